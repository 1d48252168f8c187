//! What a configuration must satisfy beyond the types of its values.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use polypath_wire::hip::Hit;

use super::error::Problem;
use super::files::Sources;
use super::{Config, Peer};

/// Longest path of a socket, bytes (unix(7)).
const SOCKET_PATH: usize = 107;
/// What `polypath init` prints where it knows no address of this host.
const PLACEHOLDER: &str = "ADDRESS";

impl Config {
    /// The first thing that is wrong. The peers stand in `sources`.
    pub(super) fn check(&self, sources: &Sources) -> Result<(), Problem> {
        self.check_tunnel()?;
        self.check_paths()?;
        self.check_lane()?;
        self.check_metrics()?;
        self.check_control()?;
        self.check_peers(sources)
    }

    fn check_tunnel(&self) -> Result<(), Problem> {
        let tunnel = &self.tunnel;
        let wrong = |key, message: &str, help: &str| Problem::new(&["tunnel", key], message).help(help);
        let name = tunnel.name.as_str();
        let is_written = |c: char| !(c.is_whitespace() || c.is_control() || ['/', ':'].contains(&c));
        if !(1..16).contains(&name.len()) || !name.chars().all(is_written) || [".", ".."].contains(&name) {
            let help = "1 to 15 bytes without spaces, / and :, for example \"polypath0\"";
            return Err(wrong("name", "no name of an interface", help));
        }
        if name == "lo" {
            return Err(wrong(
                "name",
                "the loopback interface has that name",
                "\"polypath0\" is the default",
            ));
        }
        if tunnel.addresses.is_empty() && tunnel.addresses_from.is_none() {
            return Err(wrong("addresses", "no address", "write for example [\"10.99.0.1/24\"]"));
        }
        let is_named = |hit: &Hit| self.peers.iter().any(|peer| peer.hit == *hit);
        if tunnel.addresses_from.is_some_and(|hit| !is_named(&hit)) {
            return Err(wrong("addresses_from", "no peer has that tag", "write the hit of a [[peer]]"));
        }
        let is_a_hosts = |ip: IpAddr| !(ip.is_loopback() || ip.is_multicast() || ip.is_unspecified());
        if let Some(n) = tunnel.addresses.iter().position(|net| !is_a_hosts(net.addr())) {
            let why = format!("{} cannot be an address in the tunnel", tunnel.addresses[n].addr());
            let help = "write a private one that neither host uses yet, for example \"10.99.0.1/24\"";
            return Err(Problem::item(&["tunnel", "addresses"], n).says(why).help(help));
        }
        let prefixes = self.peers.iter().flat_map(|peer| &peer.prefixes);
        let v6 =
            tunnel.addresses.iter().chain(&tunnel.assign).chain(prefixes).any(|net| net.addr().is_ipv6());
        let least = if v6 { 1280 } else { 576 };
        if tunnel.mtu < least {
            let what = if v6 { "IPv6" } else { "IPv4" };
            let why = format!("below {least}, which every network of {what} must carry");
            return Err(wrong("mtu", &why, "1400 is the default"));
        }
        Ok(())
    }

    /// A limit and a quota are of one interface each.
    fn check_paths(&self) -> Result<(), Problem> {
        let limits = self.paths.limit.keys().map(|name| ("limit", name));
        let mut named = limits.chain(self.paths.quota.keys().map(|name| ("quota", name)));
        match named.find(|(_, name)| name.contains(['*', '?'])) {
            Some((key, name)) => Err(Problem::new(
                &["paths", key, name],
                format!("\"{name}\" is a pattern, and no interface's name"),
            )
            .help("write each interface by its name, as `ip link` shows it, for example wwan0")),
            None => Ok(()),
        }
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
        if lane.memory_mib.is_some_and(|memory| memory < 16) {
            return wrong(
                "memory_mib",
                "less than 16",
                "leave it out: a quarter of the memory is the default",
            );
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

    fn check_control(&self) -> Result<(), Problem> {
        let long = self.control.socket.as_os_str().len() > SOCKET_PATH;
        let problem = || Problem::new(&["control", "socket"], format!("longer than {SOCKET_PATH} bytes"));
        if long { Err(problem().help("\"/run/polypath.sock\" is the default")) } else { Ok(()) }
    }

    /// Refuses a peer that is this host.
    pub(super) fn check_own(&self, own: Hit) -> Result<(), Problem> {
        let Some(n) = self.peers.iter().position(|peer| peer.hit == own) else { return Ok(()) };
        let help = "write the peer's: `polypath hit` on that host prints it";
        Err(Problem::at(&["peer"], n, "hit").says("this host's own tag").help(help))
    }

    fn check_peers(&self, sources: &Sources) -> Result<(), Problem> {
        let (mut hits, mut prefixes) = (BTreeMap::new(), BTreeMap::new());
        for (n, peer) in self.peers.iter().enumerate() {
            let at = |key: &str| Problem::at(&["peer"], n, key);
            if let Some(other) = hits.insert(peer.hit, n) {
                let why = format!("the peer at {} has the same tag", sources.place(other));
                return Err(at("hit").says(why).help("leave one of the two out"));
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
            if peer.addresses.iter().any(|address| address == PLACEHOLDER) {
                let help = "write the address at which that host is reached, for example \"203.0.113.5\"";
                return Err(at("addresses").says("ADDRESS stands for an address").help(help));
            }
            for prefix in &peer.prefixes {
                if *prefix != prefix.trunc() {
                    let why = format!("{prefix} names a host and the length of a network");
                    let help = format!("write \"{}\" or \"{}\"", prefix.trunc(), IpNet::from(prefix.addr()));
                    return Err(at("prefixes").says(why).help(help));
                }
                if prefix.addr().is_multicast() || prefix.addr().is_loopback() {
                    let help = "multicast and loopback are not carried: leave it out";
                    return Err(at("prefixes").says(format!("{prefix} is behind no host")).help(help));
                }
                if let Some(other) = prefixes.insert(prefix.trunc(), n) {
                    let why = format!("{prefix} is behind the peer at {} too", sources.place(other));
                    return Err(at("prefixes")
                        .says(why)
                        .help("a network is behind one peer: write it at that one only"));
                }
            }
        }
        Ok(())
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
    use super::super::tests::{GOOD, error};

    /// What is said of [`GOOD`] with `more` before it.
    fn said(more: &str) -> String {
        error(&format!("{more}\n{GOOD}"))
    }

    #[test]
    fn a_limit_or_a_quota_of_a_pattern_is_refused() {
        for (key, value) in [("limit", "10Mbit/s"), ("quota", "5GB")] {
            let said = said(&format!("[paths]\n{key} = {{ \"wwan*\" = \"{value}\" }}"));
            let parts = [":2:", key, "\"wwan*\" is a pattern", "help: write each interface by its name"];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_answered_with_what_to_write() {
        for (text, help) in [
            ("[metrics]\nallow_remote = \"yes\"", "write true or false"),
            ("[paths]\ninclude = \"eth0\"", "write a list"),
            ("[lane]\nspare = \"8\"", "write it without quotes"),
            ("[lane]\nspare = \"eight\"", "write a whole number"),
            ("[lane]\ncc = { algorithm = \"polypath\", queue_target = \"10ms\" }", "write a number"),
        ] {
            let said = said(text);
            assert!(said.contains(&format!("help: {help}")), "{said}");
        }
        let said = error(&GOOD.replace("[[peer]]", "[peer]"));
        assert!(said.contains("write two brackets, [[peer]]"), "{said}");
    }
}
