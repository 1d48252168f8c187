//! Whom to send to: HIT@ADDR[,ADDR…].

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use polypath_wire::hip::Hit;

/// A peer and where it is to be found.
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
        match addresses.iter().any(String::is_empty) {
            true => Err("an address is empty".into()),
            false => Ok(Self { hit, addresses }),
        }
    }
}

impl Target {
    /// All addresses; names are looked up. An address without a port has `port`; if that is 0, all have: there is no
    /// UDP then.
    pub fn resolve(&self, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let mut all = Vec::new();
        for address in &self.addresses {
            if let Ok(ip) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
                all.push(SocketAddr::new(ip, port));
            } else if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
                all.extend(address.to_socket_addrs()?);
            } else {
                all.extend((address.as_str(), port).to_socket_addrs()?);
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
    }
}
