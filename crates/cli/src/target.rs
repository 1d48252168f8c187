//! Whom to send to: HIT@ADDR[,ADDR…].

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use polypath_files::name::shown;
use polypath_wire::hip::Hit;

/// A peer and its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub hit: Hit,
    addresses: Vec<String>,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (hit, addresses) = text.split_once('@').ok_or("need HIT@ADDRESS[,ADDRESS…]")?;
        let hit = hit.parse().map_err(|e| format!("{e}"))?;
        let addresses: Vec<String> = addresses.split(',').map(|a| a.trim().to_owned()).collect();
        if addresses.iter().any(String::is_empty) {
            return Err("an address is empty".into());
        }
        addresses.iter().try_for_each(|address| port_in_range(address))?;
        match addresses.iter().find(|address| is_link_local(address)) {
            Some(address) => Err(format!(
                "{address} is link-local, which is not supported; use one of the host's other addresses"
            )),
            None => Ok(Self { hit, addresses }),
        }
    }
}

/// An error if a port is written and no host has it.
fn port_in_range(address: &str) -> Result<(), String> {
    let Some((host, port)) = address.rsplit_once(':') else { return Ok(()) };
    let is_ipv6 = host.contains(':') && !host.ends_with(']'); // the last of its groups is no port
    match port.parse::<u16>() {
        Ok(0) | Err(_) if !is_ipv6 => Err(format!("{} is not a UDP port: 1 to 65535", shown(port))),
        _ => Ok(()),
    }
}

/// Whether it is an IPv6 address of one link (RFC 4291 §2.5.6), with or without the interface.
fn is_link_local(address: &str) -> bool {
    let bare = address.trim_start_matches('[');
    let bare = bare.split(['%', ']']).next().unwrap_or_default();
    bare.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_unicast_link_local())
}

impl Target {
    /// All addresses; names are looked up. An address without a port has `port`; if that is 0, all have: there is no
    /// UDP then.
    pub fn resolve(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut all = Vec::new();
        for address in &self.addresses {
            if let Ok(ip) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
                all.push(SocketAddr::new(ip, port));
            } else {
                let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                let found = match has_port {
                    true => address.to_socket_addrs(),
                    false => (address.as_str(), port).to_socket_addrs(),
                };
                let which = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", shown(address)));
                all.extend(found.map_err(which)?);
            }
        }
        if port == 0 {
            all.iter_mut().for_each(|address| address.set_port(0));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_ports() {
        let hit = "2001:21::1";
        let parse = |s: &str| format!("{hit}@{s}").parse::<Target>().unwrap().resolve(10_500).unwrap();
        let shown = |s: &str| parse(s).iter().map(SocketAddr::to_string).collect::<Vec<_>>();
        assert_eq!(shown("192.0.2.1,192.0.2.2:99"), ["192.0.2.1:10500", "192.0.2.2:99"]);
        assert_eq!(
            shown("fd00::1,[fd00::2]:99,[fd00::3]"),
            ["[fd00::1]:10500", "[fd00::2]:99", "[fd00::3]:10500"]
        );
        assert!("2001:db8::1@192.0.2.1".parse::<Target>().is_err(), "no HIT");
        assert!(hit.parse::<Target>().is_err());
        assert!(format!("{hit}@").parse::<Target>().is_err());
        for wrong in ["192.0.2.1:99999", "[fd00::1]:0", "host.example:http", "192.0.2.1:"] {
            let said = format!("{hit}@{wrong}").parse::<Target>().unwrap_err();
            assert!(said.ends_with(" is not a UDP port: 1 to 65535"), "{said}");
        }
        for local in ["fe80::1%eth0", "[fe80::1%eth0]:99", "[fe80::1]:99", "192.0.2.1,fe80::1"] {
            let said = format!("{hit}@{local}").parse::<Target>().unwrap_err();
            assert!(said.contains("is link-local, which is not supported"), "{said}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_said() {
        let to: Target = "2001:21::1@192.0.2.1,no\u{1b}such.invalid".parse().unwrap();
        let said = to.resolve(10_500).unwrap_err().to_string();
        assert!(said.starts_with("no\u{fffd}such.invalid: "), "{said}");
    }
}
