//! What a configuration must satisfy beyond the types of its values.

use std::collections::BTreeMap;

use polypath_wire::hip::Hit;

use super::error::Problem;
use super::files::Sources;
use super::{Config, Peer};

impl Config {
    /// The first thing that is wrong. The peers stand in `sources`.
    pub(super) fn check(&self, sources: &Sources) -> Result<(), Problem> {
        self.check_tunnel()?;
        self.check_lane()?;
        self.check_metrics()?;
        self.check_peers(sources)
    }

    fn check_tunnel(&self) -> Result<(), Problem> {
        let tunnel = &self.tunnel;
        let wrong = |key, message: &str, help: &str| Problem::new(&["tunnel", key], message).help(help);
        let name_fits = (1..16).contains(&tunnel.name.len()) && !tunnel.name.contains(['/', ' ']);
        if !name_fits {
            return Err(wrong("name", "no name of an interface", "at most 15 bytes, without / and spaces"));
        }
        if tunnel.addresses.is_empty() && tunnel.addresses_from.is_none() {
            return Err(wrong("addresses", "no address", "write for example [\"10.99.0.1/24\"]"));
        }
        let is_named = |hit: &Hit| self.peers.iter().any(|peer| peer.hit == *hit);
        if tunnel.addresses_from.is_some_and(|hit| !is_named(&hit)) {
            return Err(wrong("addresses_from", "no peer has that tag", "write the hit of a [[peer]]"));
        }
        let v6 = tunnel.addresses.iter().any(|net| net.addr().is_ipv6());
        let least = if v6 { 1280 } else { 576 };
        if tunnel.mtu < least {
            let why = format!("below {least}, which every network must carry");
            return Err(wrong("mtu", &why, "1400 is the default"));
        }
        Ok(())
    }

    fn check_lane(&self) -> Result<(), Problem> {
        let lane = &self.lane;
        let wrong = |key, message: &str, help: &str| Err(Problem::new(&["lane", key], message).help(help));
        if lane.connections == 0 {
            return wrong("connections", "0 carry nothing", "4096 is the default");
        }
        if lane.spare > 256 {
            return wrong("spare", "more than 256", "8 is the default");
        }
        if !(1..=1024).contains(&lane.buffer_mib) {
            return wrong("buffer_mib", "not between 1 and 1024", "16 is the default: 1 Gbit/s over 128 ms");
        }
        for (n, class) in lane.duplicate.iter().enumerate() {
            if let Some((key, message, help)) = class.wrong() {
                return Err(Problem::at(&["lane", "duplicate"], n, key).says(message).help(help));
            }
        }
        // Packets have it whatever carries connections.
        let checked = self.outer().check(None).and_then(|()| lane.packets().packets.check());
        checked.map_err(|error| Problem::new(&["lane", "cc"], error.to_string()))
    }

    fn check_metrics(&self) -> Result<(), Problem> {
        let others = self.metrics.listen.filter(|at| !at.ip().is_loopback() && !self.metrics.allow_remote);
        let Some(at) = others else { return Ok(()) };
        let why = format!(
            "others may reach {}, and read without a password who the peers are and what they carry",
            at.ip()
        );
        let help = "write \"127.0.0.1:9510\", or allow_remote = true if a firewall admits only trusted hosts";
        Err(Problem::new(&["metrics", "listen"], why).help(help))
    }

    fn check_peers(&self, sources: &Sources) -> Result<(), Problem> {
        let (mut hits, mut prefixes) = (BTreeMap::new(), BTreeMap::new());
        for (n, peer) in self.peers.iter().enumerate() {
            let at = |key: &str| Problem::at(&["peer"], n, key);
            if let Some(other) = hits.insert(peer.hit, n) {
                return Err(at("hit").says(format!("the peer at {} has the same tag", sources.place(other))));
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
                if let Some(other) = prefixes.insert(prefix.trunc(), n) {
                    let why = format!("{prefix} is behind the peer at {} too", sources.place(other));
                    return Err(at("prefixes").says(why));
                }
            }
        }
        Ok(())
    }

    /// A prefix of `peer` that is one address, and ours.
    fn own(&self, peer: &Peer) -> Option<ipnet::IpNet> {
        let is_ours = |prefix: &&ipnet::IpNet| {
            prefix.prefix_len() == prefix.max_prefix_len()
                && self.tunnel.addresses.iter().any(|net| net.addr() == prefix.addr())
        };
        peer.prefixes.iter().find(is_ours).copied()
    }
}
