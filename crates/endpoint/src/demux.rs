//! Which connection, and which of its paths, a segment belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use polypath_transport::Ports;
use polypath_wire::PathId;

use crate::paths::Locators;

/// Where the last segment between two locators went: spares a driver that keeps one for each pair of
/// locators looking for the way of the next segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trail {
    /// Of the routes; 0 is of none.
    version: u64,
    ports: Ports,
    route: Route,
}

/// Where a segment goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Route {
    /// Index of the connection's slot.
    pub index: u32,
    /// The path it came on.
    pub path: PathId,
}

/// Routes by locators and ports. IPv4 keys fit in one integer, so that a map with a handful of
/// entries is one short scan of one node.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Demux {
    v4: BTreeMap<u128, Route>,
    v6: BTreeMap<KeyV6, Route>,
    /// Connections whose segments may come on other paths than theirs, by their ports.
    open: BTreeSet<(Ports, u32)>,
    /// Another one after each change; from 1.
    version: u64,
}

type KeyV6 = (u128, u128, u64, u32);

enum Key {
    V4(u128),
    V6(KeyV6),
}

impl Default for Demux {
    fn default() -> Self {
        Self { version: 1, v4: BTreeMap::new(), v6: BTreeMap::new(), open: BTreeSet::new() }
    }
}

impl Demux {
    /// The route of segments with these locators and ports.
    pub fn find(&self, locators: &Locators, ports: Ports) -> Option<Route> {
        match key(locators, ports) {
            Key::V4(k) => self.v4.get(&k).copied(),
            Key::V6(k) => self.v6.get(&k).copied(),
        }
    }

    /// The same by the `trail` of these locators.
    #[inline]
    pub fn follow(&self, trail: &mut Trail, locators: &Locators, ports: Ports) -> Option<Route> {
        if (trail.version, trail.ports) != (self.version, ports) {
            let route = self.find(locators, ports)?;
            *trail = Trail { version: self.version, ports, route };
        }
        Some(trail.route)
    }

    /// Adds a route; an existing one for the same key is replaced.
    pub fn insert(&mut self, locators: &Locators, ports: Ports, route: Route) {
        self.version += 1;
        match key(locators, ports) {
            Key::V4(k) => self.v4.insert(k, route),
            Key::V6(k) => self.v6.insert(k, route),
        };
    }

    /// Removes a route.
    pub fn remove(&mut self, locators: &Locators, ports: Ports) {
        self.version += 1;
        match key(locators, ports) {
            Key::V4(k) => self.v4.remove(&k),
            Key::V6(k) => self.v6.remove(&k),
        };
    }

    /// Lets the connection in slot `index` be found by its ports alone.
    pub fn open(&mut self, ports: Ports, index: u32) {
        self.open.insert((ports, index));
    }

    /// Undoes [`open`](Self::open).
    pub fn close(&mut self, ports: Ports, index: u32) {
        self.open.remove(&(ports, index));
    }

    /// The connections with these ports whose segments may come on other paths than theirs.
    pub fn candidates(&self, ports: Ports) -> impl Iterator<Item = u32> {
        self.open.range((ports, 0)..=(ports, u32::MAX)).map(|(_, index)| *index)
    }
}

fn key(locators: &Locators, ports: Ports) -> Key {
    match (locators.local, locators.remote) {
        (SocketAddr::V4(l), SocketAddr::V4(r)) => {
            let addresses = u64::from(l.ip().to_bits()) << 32 | u64::from(r.ip().to_bits());
            Key::V4(u128::from(addresses) << 64 | u128::from(all_ports(locators, ports)))
        }
        _ => Key::V6(key_v6(locators, ports)),
    }
}

fn key_v6(locators: &Locators, ports: Ports) -> KeyV6 {
    let scope = match locators.local {
        SocketAddr::V6(l) => l.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    let [local, remote] = [locators.local, locators.remote].map(|l| as_v6(l.ip()).to_bits());
    (local, remote, all_ports(locators, ports), scope)
}

fn all_ports(locators: &Locators, ports: Ports) -> u64 {
    u64::from(ports.local) << 48
        | u64::from(ports.remote) << 32
        | u64::from(locators.local.port()) << 16
        | u64::from(locators.remote.port())
}

fn as_v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locators(local: &str, remote: &str) -> Locators {
        Locators { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let mut demux = Demux::default();
        let ports = Ports { local: 80, remote: 50_000 };
        let route = Route { index: 7, path: PathId(1) };
        for (local, remote, other) in
            [("10.0.0.1:5", "10.0.0.2:6", "10.0.0.3:6"), ("[fe80::1]:5", "[fe80::2]:6", "[fe80::3]:6")]
        {
            let l = locators(local, remote);
            demux.insert(&l, ports, route);
            assert_eq!(demux.find(&l, ports), Some(route));
            assert_eq!(demux.find(&l.reversed(), ports), None);
            assert_eq!(demux.find(&l, Ports { local: 81, ..ports }), None);
            assert_eq!(demux.find(&l, Ports { remote: 50_001, ..ports }), None);
            assert_eq!(demux.find(&locators(local, other), ports), None);
            let mut udp = l;
            udp.remote.set_port(9);
            assert_eq!(demux.find(&udp, ports), None);
            demux.remove(&l, ports);
            assert_eq!(demux.find(&l, ports), None);
        }
    }

    #[test]
    fn a_trail_is_as_good_as_a_search() {
        let (mut demux, mut trail) = (Demux::default(), Trail::default());
        let here = locators("10.0.0.1:5", "10.0.0.2:6");
        let [first, second] =
            [1, 2].map(|n| (Ports { local: 80, remote: n }, Route { index: n.into(), path: PathId(0) }));
        assert_eq!(demux.follow(&mut trail, &here, Ports::default()), None);
        demux.insert(&here, first.0, first.1);
        assert_eq!(demux.follow(&mut trail, &here, first.0), Some(first.1));
        assert_eq!(demux.follow(&mut trail, &here, second.0), None);
        demux.insert(&here, second.0, second.1);
        assert_eq!(demux.follow(&mut trail, &here, second.0), Some(second.1));
        demux.remove(&here, second.0);
        assert_eq!(demux.follow(&mut trail, &here, second.0), None);
        assert_eq!(demux.follow(&mut trail, &here, first.0), Some(first.1));
    }

    #[test]
    fn candidates_are_those_with_the_ports() {
        let mut demux = Demux::default();
        let ports = Ports { local: 80, remote: 50_000 };
        for (remote, index) in [(49_999, 1), (50_000, 2), (50_000, 3), (50_001, 4)] {
            demux.open(Ports { local: 80, remote }, index);
        }
        demux.close(ports, 3);
        assert_eq!(demux.candidates(ports).collect::<Vec<_>>(), [2]);
    }
}
