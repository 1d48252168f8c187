//! What a configuration must satisfy beyond the types of its values.

mod paths;
mod peers;

use std::net::IpAddr;

use ipnet::IpNet;
use polypath_wire::hip::Hit;

use super::error::Problem;
use super::files::Sources;
use super::wording::takes;
use super::{Config, SOCKET};

/// Longest path of a socket, bytes (unix(7)).
const SOCKET_PATH: usize = 107;

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
        if !is_interface(name) {
            let help = "1 to 15 bytes without spaces, / and :, for example \"polypath0\"";
            return Err(wrong("name", "not a valid name of an interface", help));
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
        for (n, net) in tunnel.addresses.iter().enumerate() {
            if let Some((why, help)) = wrong_host(net) {
                return Err(Problem::item(&["tunnel", "addresses"], n).says(why).help(help));
            }
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
        if !takes("tunnel.queues", tunnel.queues as u64) {
            return Err(wrong("queues", "must be from 1 to 16", "1 is the default"));
        }
        Ok(())
    }

    fn check_lane(&self) -> Result<(), Problem> {
        let lane = &self.lane;
        let wrong = |key, message: &str, help: &str| Err(Problem::new(&["lane", key], message).help(help));
        if !takes("lane.connections", lane.connections.into()) {
            return wrong("connections", "must be at least 1", "4096 is the default");
        }
        if !takes("lane.spare", lane.spare as u64) {
            return wrong("spare", "more than 256", "8 is the default");
        }
        if !takes("lane.buffer_mib", lane.buffer_mib) {
            return wrong(
                "buffer_mib",
                "must be from 1 to 1024 MiB",
                "16 is the default: 1 Gbit/s over 128 ms",
            );
        }
        if lane.memory_mib.is_some_and(|memory| !takes("lane.memory_mib", memory)) {
            return wrong(
                "memory_mib",
                "less than 16",
                "leave it out: a quarter of the memory is the default",
            );
        }
        if !takes("lane.keep_alive", lane.keep_alive.into()) {
            return wrong("keep_alive", "must be from 1 to 86400 s", "60 is the default");
        }
        let mut excluded = lane.exclude.iter().enumerate();
        if let Some((n, (why, help))) = excluded.find_map(|(n, net)| Some((n, wrong_network(net)?))) {
            return Err(Problem::item(&["lane", "exclude"], n).says(why).help(help));
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
        if long { Err(problem().help(format!("{SOCKET:?} is the default"))) } else { Ok(()) }
    }
}

/// Whether an interface may have that name.
fn is_interface(name: &str) -> bool {
    let is_written = |c: char| !(c.is_whitespace() || c.is_control() || ['/', ':'].contains(&c));
    (1..16).contains(&name.len()) && name.chars().all(is_written) && ![".", ".."].contains(&name)
}

/// Why that is not one network, and what to write.
fn wrong_network(net: &IpNet) -> Option<(String, String)> {
    let help = || format!("write \"{}\" or \"{}\"", net.trunc(), IpNet::from(net.addr()));
    (*net != net.trunc()).then(|| (format!("{net} names a host and the length of a network"), help()))
}

/// Why no host can have that address in the tunnel, and what to write.
pub fn wrong_host(net: &IpNet) -> Option<(String, String)> {
    let ip = net.addr();
    if ip.is_loopback() || ip.is_multicast() || ip.is_unspecified() {
        let help = "write a private one that neither host uses yet, for example \"10.99.0.1/24\"";
        return Some((format!("{ip} cannot be an address in the tunnel"), help.into()));
    }
    let has_ends = net.max_prefix_len() - net.prefix_len() > 1;
    let what = match ip {
        _ if has_ends && ip == net.network() => "the network itself",
        IpAddr::V4(_) if has_ends && ip == net.broadcast() => "the broadcast address of its network",
        _ => return None,
    };
    let first = net.hosts().find(|host| *host != net.network())?;
    Some((
        format!("{ip} is {what}"),
        format!("write a host's address, for example \"{first}/{}\"", net.prefix_len()),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{GOOD, error};

    /// What is said of [`GOOD`] with `more` before it.
    fn said(more: &str) -> String {
        error(&format!("{more}\n{GOOD}"))
    }

    #[test]
    fn a_value_of_another_type_is_answered_with_what_to_write() {
        for (text, help) in [
            ("[metrics]\nallow_remote = \"yes\"", "write true or false"),
            ("[paths]\ninclude = \"eth0\"", "write a list, for example [\"eth0\"]"),
            ("[[peers]]\nname = \"a\"", "each peer has a table [[peer]]"),
            ("identity = \"a.pem\"", "write a table"),
            ("[identity]\nkey = { file = \"a.pem\" }", "write it in quotes"),
            ("[lane]\nspare = \"8\"", "write it without quotes"),
            ("[daemon]\nstate = 5", "write it in quotes"),
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
