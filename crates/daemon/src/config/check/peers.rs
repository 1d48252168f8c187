//! What the peers must satisfy, each and together.

use std::collections::BTreeMap;

use ipnet::IpNet;
use polypath_hip::suite::HitSuite;
use polypath_wire::hip::Hit;

use super::wrong_network;
use crate::config::error::Problem;
use crate::config::files::Sources;
use crate::config::reached::ip_of;
use crate::config::{ADDRESS_EXAMPLE, Config, Peer, TAG_SOURCE, wrong_address};

impl Config {
    /// Refuses a peer that is this host.
    pub(in crate::config) fn check_own(&self, own: Hit) -> Result<(), Problem> {
        let Some(n) = self.peers.iter().position(|peer| peer.hit == own) else { return Ok(()) };
        Err(Problem::at(&["peer"], n, "hit").says("this host's own tag").help(TAG_SOURCE))
    }

    pub(super) fn check_peers(&self, sources: &Sources) -> Result<(), Problem> {
        let (mut hits, mut names, mut prefixes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (n, peer) in self.peers.iter().enumerate() {
            let at = |key: &str| Problem::at(&["peer"], n, key);
            if !HitSuite::has(peer.hit) {
                let why = format!("{}: no peer has a tag of HIT suite {}", peer.hit, peer.hit.suite());
                return Err(at("hit").says(why).help(TAG_SOURCE));
            }
            if let Some(other) = hits.insert(peer.hit, n) {
                let why = format!("the peer at {} has the same tag", sources.place(other));
                return Err(at("hit").says(why).help("leave one of the two out"));
            }
            if let Some(other) = names.insert(peer.called(), n) {
                let why = format!("the peer at {} has the same name", sources.place(other));
                let help = "write another one: messages and metrics tell peers apart by it";
                return Err(at("name").says(why).help(help));
            }
            self.check_peer(n, peer)?;
            for (m, prefix) in peer.prefixes.iter().enumerate() {
                if let Some(other) = prefixes.insert(*prefix, n) {
                    if other == n {
                        let twice = at("prefixes").nth(m).says(format!("{prefix} is there twice"));
                        return Err(twice.help("leave one of the two out"));
                    }
                    let why = format!("{prefix} is behind the peer at {} too", sources.place(other));
                    let help = "a network is behind one peer: write it at that one only";
                    return Err(at("prefixes").says(why).help(help));
                }
            }
        }
        Ok(())
    }

    fn check_peer(&self, n: usize, peer: &Peer) -> Result<(), Problem> {
        let at = |key: &str| Problem::at(&["peer"], n, key);
        let mut addresses = peer.addresses.iter().enumerate();
        if let Some((m, why)) = addresses.find_map(|(m, address)| Some((m, wrong_address(address)?))) {
            return Err(at("addresses").nth(m).says(why).help(ADDRESS_EXAMPLE));
        }
        if let Some(m) = peer.addresses.iter().position(|address| self.is_inside(peer, address)) {
            let why = format!("{} is its address in the tunnel", peer.addresses[m]);
            let help = "write the address at which that host is reached without the tunnel";
            return Err(at("addresses").nth(m).says(why).help(help));
        }
        if peer.prefixes.is_empty() && self.tunnel.assign.is_none() {
            let help =
                "write for example [\"10.99.0.2/32\"]: its own address in the tunnel; or [tunnel] assign";
            return Err(at("prefixes").says("nothing is behind this peer").help(help));
        }
        if let Some(taken) = self.own(peer) {
            let help = "the other host's address in the tunnel, and the networks behind it";
            return Err(at("prefixes").says(format!("{taken} is this host's own address")).help(help));
        }
        for prefix in &peer.prefixes {
            if let Some((why, help)) = wrong_network(prefix) {
                return Err(at("prefixes").says(why).help(help));
            }
            if prefix.addr().is_multicast() || prefix.addr().is_loopback() {
                let help = "multicast and loopback are not carried: leave it out";
                return Err(at("prefixes").says(format!("{prefix} is behind no host")).help(help));
            }
        }
        Ok(())
    }

    /// Whether `address` leads to the peer through the tunnel only: it is behind that peer, and of a network of the tunnel.
    fn is_inside(&self, peer: &Peer, address: &str) -> bool {
        ip_of(address).is_some_and(|ip| {
            [&peer.prefixes, &self.tunnel.addresses]
                .iter()
                .all(|nets| nets.iter().any(|net| net.contains(&ip)))
        })
    }

    /// A prefix of `peer` that is one address, and ours.
    fn own(&self, peer: &Peer) -> Option<IpNet> {
        let is_ours = |prefix: &&IpNet| {
            prefix.prefix_len() == prefix.max_prefix_len()
                && self.tunnel.addresses.iter().any(|net| net.addr() == prefix.addr())
        };
        peer.prefixes.iter().find(is_ours).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::tests::{GOOD, error};

    #[test]
    fn an_address_of_a_peer_that_cannot_be_one_is_refused_where_it_stands() {
        for wrong in ["203.0.113.5:99999", "a b", "", "ADDRESS"] {
            let said = error(&GOOD.replace("\"192.0.2.1\"", &format!("\"vpn.example\", {wrong:?}")));
            let parts =
                ["polypath.toml:7:", "peer[0].addresses[1]: ", wrong, "help: write an address or a name"];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    fn an_address_that_is_reached_through_the_tunnel_only_is_refused() {
        for (inside, prefix) in [
            ("10.99.0.2", "10.99.0.2/32"),
            ("10.99.0.2:10500", "10.99.0.2/32"),
            ("10.99.0.2", "10.99.0.0/24"),
        ] {
            let said = error(&GOOD.replace("192.0.2.1", inside).replace("10.99.0.2/32", prefix));
            let parts = [":7:", "peer[0].addresses[0]", "in the tunnel", "help: write the address"];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
        let outside = GOOD.replace("192.168.7.0/24", "192.0.2.1/32");
        assert!(Config::parse("a", &outside).is_ok(), "what is said to that address travels in the tunnel");
    }

    #[test]
    fn a_prefix_that_is_written_twice_is_refused_with_its_place() {
        let said = error(&GOOD.replace("192.168.7.0/24", "10.99.0.2/32"));
        let parts =
            ["polypath.toml:8:", "peer[0].prefixes[1]: 10.99.0.2/32 is there twice", "help: leave one"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }

    #[test]
    fn a_tag_that_no_peer_can_have_is_refused() {
        let said = error(&GOOD.replace("hit = \"2001:22:", "hit = \"2001:23:"));
        let parts = ["polypath.toml:", "peer[0].hit", "2001:23:", "HIT suite 3", "help: `polypath hit /etc/"];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }

    #[test]
    fn two_peers_of_one_name_are_refused_with_both_places() {
        let hit = "2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9c8";
        let named = |one: &str, other: &str| {
            let first = GOOD.replace("[[peer]]", &format!("[[peer]]\nname = \"{one}\""));
            format!("{first}[[peer]]\nhit = \"{hit}\"\nname = \"{other}\"\nprefixes = [\"10.99.0.3/32\"]\n")
        };
        assert!(Config::parse("a", &named("office", "home")).is_ok());
        for (one, other) in [("office", "office"), (hit, "")] {
            let said = error(&named(one, other));
            let parts =
                ["polypath.toml:", "peer[1]", "polypath.toml:5 has the same name", "help: write another one"];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }
}
