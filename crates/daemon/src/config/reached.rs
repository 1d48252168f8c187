//! Where a peer is reached, as people write it: an address or a name, with or without a port.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use polypath_wire::hip::udp;

/// What to write.
pub const EXAMPLE: &str = "write an address or a name, with or without a port, for example \"203.0.113.5\", \"[2001:db8::5]:10500\" or \"vpn.example.org\"";
/// What `polypath init` prints where it knows no address of this host.
const PLACEHOLDER: &str = "ADDRESS";
/// Longest name, and longest part of one between two dots, bytes (RFC 1035 §2.3.4).
const NAME: usize = 253;
const LABEL: usize = 63;

/// What is wrong with `address`: whether a name is known, only the resolver can say.
pub fn wrong_address(address: &str) -> Option<String> {
    if address == PLACEHOLDER {
        return Some("ADDRESS stands for an address".into());
    }
    let why = |what: &str| Some(format!("\"{address}\" {what}"));
    if address.contains('/') {
        return why("is a network or a URL, and no address");
    }
    let (host, port) = split(address);
    if port.is_some_and(|port| !port.parse().is_ok_and(|port: u16| port > 0)) {
        return why("has a port that is no number from 1 to 65535");
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() || ip.is_multicast() => why("is the address of no host"),
        Ok(ip) if bare.is_some() && ip.is_ipv4() => why("has brackets, which only IPv6 has"),
        Ok(_) => None,
        Err(_) if address.parse::<SocketAddr>().is_ok() || is_name(host) => None,
        Err(_) => why("is neither an address nor a name"),
    }
}

/// The address, if it is no name.
pub(super) fn ip_of(address: &str) -> Option<IpAddr> {
    split(address).0.trim_matches(['[', ']']).parse().ok()
}

/// Where to ask for a peer's address, with the port that it has if none is written.
pub(crate) fn with_port(address: &str) -> String {
    match split(address) {
        (_, Some(_)) => address.to_owned(),
        (host, None) if host.parse::<Ipv6Addr>().is_ok() => format!("[{host}]:{}", udp::PORT),
        (host, None) => format!("{host}:{}", udp::PORT),
    }
}

/// The host and the port, if there is one: an address of IPv6 has one only behind brackets.
fn split(address: &str) -> (&str, Option<&str>) {
    match address.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port)),
        _ => (address, None),
    }
}

/// Whether a host may be called that. The last part of a name is no number: `10.99.300.1` is a mistaken address.
fn is_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_written = |c: char| c.is_alphanumeric() || ['-', '_'].contains(&c);
    let is_label = |label: &str| (1..=LABEL).contains(&label.len()) && label.chars().all(is_written);
    let last = host.rsplit('.').next().unwrap_or_default();
    host.len() <= NAME && host.split('.').all(is_label) && !last.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_added_where_there_are_none() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1:10500"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("2001:db8::1", "[2001:db8::1]:10500"),
            ("[2001:db8::1]", "[2001:db8::1]:10500"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
            ("host.example", "host.example:10500"),
            ("host.example:7", "host.example:7"),
        ] {
            assert_eq!((with_port(address).as_str(), wrong_address(address)), (expected, None));
        }
    }

    #[test]
    fn names_of_hosts_pass() {
        for name in ["localhost", "a", "vpn-1.example.org.", "my_host:10500", "4.example", "bücher.example"]
        {
            assert_eq!(wrong_address(name), None);
        }
    }

    #[test]
    fn what_is_neither_an_address_nor_a_name_is_refused_with_the_reason() {
        for (address, why) in [
            ("203.0.113.5:99999", "port"),
            ("203.0.113.5:", "port"),
            ("host.example:0", "port"),
            ("[2001:db8::1]:x", "port"),
            ("a b", "neither"),
            ("", "neither"),
            ("a..b", "neither"),
            ("10.99.300.1", "neither"),
            ("10.99.0", "neither"),
            ("[2001:db8::1", "neither"),
            ("2001:db8::1::7", "neither"),
            ("203.0.113.5,203.0.113.6", "neither"),
            ("203.0.113.5/24", "network"),
            ("https://vpn.example.org/", "URL"),
            ("[192.0.2.1]:7", "brackets"),
            ("0.0.0.0", "no host"),
            ("[ff02::1]:7", "no host"),
            ("ADDRESS", "stands for"),
        ] {
            let said = wrong_address(address).unwrap_or_default();
            assert!(said.contains(why), "{address}: {said}");
        }
        assert!(wrong_address(&"a".repeat(64)).is_some() && wrong_address(&"a.".repeat(128)).is_some());
    }
}
