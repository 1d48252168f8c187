//! Addresses and networks on the command line, as the configuration has them.

use std::net::IpAddr;

use ipnet::IpNet;
use polypath_daemon::config::{ADDRESS_EXAMPLE, wrong_address, wrong_host};

/// The address of a host in the tunnel, with the length of the network's prefix.
pub fn host(text: &str) -> Result<IpNet, String> {
    let net = read(text)?;
    match wrong_host(&net) {
        Some((why, help)) => Err(format!("{why}: {help}")),
        None => Ok(net),
    }
}

/// The network that an address is in, with room for another host.
pub fn network(text: &str) -> Result<IpNet, String> {
    let net = read(text)?;
    match net.prefix_len() == net.max_prefix_len() {
        true => Err(format!(
            "{net} has no address for a peer: write a shorter prefix, for example {}",
            example(net.addr())
        )),
        false => Ok(net.trunc()),
    }
}

/// An address, or a whole network.
pub fn prefix(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpAddr>().map_or_else(|_| read(text), |ip| Ok(ip.into()))?;
    match net == net.trunc() {
        true => Ok(net),
        false => Err(format!(
            "{net} names a host and the length of a network: write {} or {}",
            net.trunc(),
            IpNet::from(net.addr())
        )),
    }
}

/// Where a host is reached: an address or a name, with or without a port.
pub fn reached(text: &str) -> Result<String, String> {
    wrong_address(text).map_or_else(|| Ok(text.to_owned()), |why| Err(format!("{why}: {ADDRESS_EXAMPLE}")))
}

fn read(text: &str) -> Result<IpNet, String> {
    let read = text.parse().map_err(|_| text.parse::<IpAddr>());
    read.map_err(|alone| match alone {
        Ok(ip) => format!("the length of the prefix is missing: write for example {}", example(ip)),
        Err(_) => "write an address and the length of its prefix, for example 10.99.0.1/24".to_owned(),
    })
}

/// The address with the length of a network as tunnels have it.
fn example(ip: IpAddr) -> String {
    format!("{ip}/{}", if ip.is_ipv4() { 24 } else { 64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_would_refuse_is_refused_with_what_to_write() {
        for (read, text, parts) in [
            (host as fn(&str) -> _, "10.99.0.0/24", ["the network itself", "10.99.0.1/24"]),
            (host, "10.99.0.255/24", ["broadcast", "10.99.0.1/24"]),
            (host, "fd99::/64", ["the network itself", "fd99::1/64"]),
            (host, "127.0.0.1/8", ["cannot be", "10.99.0.1/24"]),
            (host, "10.99.0.1", ["length", "10.99.0.1/24"]),
            (host, "fd99::1", ["length", "fd99::1/64"]),
            (host, "10.99.0.1/33", ["address", "10.99.0.1/24"]),
            (network, "10.99.0.1/32", ["no address for a peer", "10.99.0.1/24"]),
            (prefix, "10.99.0.2/24", ["10.99.0.0/24", "10.99.0.2/32"]),
        ] {
            let said = read(text).unwrap_err();
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_meant_plainly_is_taken() {
        for (read, text, expected) in [
            (host as fn(&str) -> Result<IpNet, String>, "10.99.0.1/32", "10.99.0.1/32"),
            (host, "10.99.0.0/31", "10.99.0.0/31"),
            (host, "fd99::ffff/112", "fd99::ffff/112"),
            (network, "10.99.0.5/24", "10.99.0.0/24"),
            (prefix, "10.99.0.2", "10.99.0.2/32"),
            (prefix, "0.0.0.0/0", "0.0.0.0/0"),
        ] {
            assert_eq!(read(text).map(|net| net.to_string()).as_deref(), Ok(expected));
        }
    }
}
