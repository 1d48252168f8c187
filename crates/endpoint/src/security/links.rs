//! What is known of links and paths: configured, measured, and advertised by the peer (MULTIPATH).

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_hip::Link;
use polypath_transport::PathConfig;
use polypath_wire::hip::{Hit, Multipath};
use polypath_wire::{Duration, Instant};

use super::path::SecurePath;
use super::{Security, inner};
use crate::cover::Change;

/// Most addresses of a peer whose links are remembered.
const MOST: usize = 64;
/// Peers hear no more often of what was measured.
const PAUSE: Duration = Duration::from_secs(10);

/// The number of our link by which packets from `local` leave: paths from one address share it.
fn number(local: IpAddr) -> u32 {
    match local {
        IpAddr::V4(ip) => ip.to_bits(),
        IpAddr::V6(ip) => {
            ip.segments().chunks(2).fold(0, |n, pair| n ^ (u32::from(pair[0]) << 16 | u32::from(pair[1])))
        }
    }
}

impl Security {
    /// What a connection knows of a path: the smaller rate and the sum of the delays of both links, as far as their
    /// owners know them, and the smallest round trip of heartbeats, or of the exchange that made the path.
    pub(super) fn path_config(&self, path: &SecurePath) -> PathConfig {
        let local = self.locals.get(&path.locators.local).copied().unwrap_or_default();
        let remote = self.peers.get(path.peer).and_then(|p| p.links.get(&path.sought.remote.ip()));
        let remote = remote.copied().unwrap_or_default();
        let rates = [local.link.bandwidth, remote.bandwidth];
        let delays = [local.link.delay, remote.delay];
        PathConfig {
            rate: rates.into_iter().flatten().min(),
            one_way: delays.into_iter().flatten().reduce(|a, b| a + b),
            link: Some(number(path.locators.local.ip())),
            max_rate: local.limit,
            spill: local.link.spill || remote.spill,
            ..path.config()
        }
    }

    /// HIP hears how long answers on a path take.
    pub(super) fn tell_round_trip(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get(number) else { return };
        self.hip.on_round_trip(now, path.peer, path.spi(), path.heart.round_trip());
    }

    /// What the peer measured at its end of the path.
    pub(super) fn measured_by_peer(&self, path: &SecurePath) -> Link {
        let peer = self.peers.get(path.peer);
        peer.and_then(|p| p.measured.get(&path.sought.remote.ip())).copied().unwrap_or_default()
    }

    /// The peer says what its links give, or what it measured.
    pub(super) fn on_multipath(&mut self, hit: Hit, multipath: &Multipath) {
        let peer = self.peers.named(hit);
        peer.early_data = multipath.early_data;
        for path in &multipath.paths {
            let (address, spill) = (path.address, path.spill);
            let link = Link { bandwidth: path.bandwidth, delay: path.delay, spill };
            if path.measured {
                keep(&mut peer.measured, address, |known| *known = link);
                keep(&mut peer.links, address, |known| known.spill = spill);
            } else {
                keep(&mut peer.links, address, |known| *known = link);
            }
        }
        let of_peer = self.paths.of(hit).map(|(number, _)| number).collect();
        self.tell_spill(of_peer);
    }

    /// Connections hear which of these paths are for what others have no room for, if that is news.
    pub(super) fn tell_spill(&mut self, paths: Vec<u16>) {
        for number in paths {
            let Some(path) = self.paths.get(number) else { continue };
            let (spills, inner) = (self.path_config(path).spill, inner(self.ours, path.peer, number));
            let Some(path) = self.paths.get_mut(number).filter(|path| path.spills != spills) else {
                continue;
            };
            path.spills = spills;
            self.changes.push_back(Change::Spills(inner, spills));
        }
    }

    /// Tells the peer what we know of our links, if that is news.
    pub(super) fn tell_links(&mut self, now: Instant, hit: Hit) {
        let of_peer = self.paths.of(hit).filter(|(_, p)| p.up);
        let known: BTreeMap<IpAddr, (Link, bool)> = of_peer.map(|(_, p)| self.known(p)).collect();
        let Some(peer) = self.peers.get_mut(hit).filter(|p| p.up) else { return };
        let old = |ip: &IpAddr| peer.links_told.get(ip).copied().unwrap_or_default();
        let differs = |(ip, (link, _)): (&IpAddr, &(Link, bool))| match link.spill == old(ip).spill {
            true => now >= peer.tell_links_at && is_news(*link, old(ip)),
            false => true,
        };
        if !known.iter().any(differs) {
            return;
        }
        peer.tell_links_at = now + PAUSE;
        for (ip, (link, measured)) in known {
            peer.links_told.insert(ip, link);
            self.hip.set_link(ip, link, measured);
        }
        if self.hip.association(hit).is_some_and(|a| a.multipath().is_some()) {
            let all = self.peers.get(hit).is_some_and(|p| p.told.is_some());
            self.hip.announce(now, hit, all);
        }
    }

    /// What our configuration says of the link of a path; what was measured on it where that says nothing.
    fn known(&self, path: &SecurePath) -> (IpAddr, (Link, bool)) {
        let told = self.locals.get(&path.locators.local).map(|info| info.link).unwrap_or_default();
        let spill = told.spill;
        let is_told = told != Link { spill, ..Link::default() };
        let link = if is_told { (told, false) } else { (Link { spill, ..path.measured }, true) };
        (path.locators.local.ip(), link)
    }
}

/// Changes what is known of an address, unless it is one too many.
fn keep(known: &mut BTreeMap<IpAddr, Link>, address: IpAddr, change: impl FnOnce(&mut Link)) {
    if known.len() < MOST || known.contains_key(&address) {
        change(known.entry(address).or_default());
    }
}

/// Whether `new` says what `old` did not, or differs from it by a quarter.
fn is_news(new: Link, old: Link) -> bool {
    let differs = |new: Option<u64>, old: Option<u64>| match (new, old) {
        (Some(new), Some(old)) => 4 * new.abs_diff(old) > old,
        (new, old) => new.is_some() && old.is_none(),
    };
    differs(new.bandwidth.map(|r| r.0), old.bandwidth.map(|r| r.0))
        || differs(new.delay.map(|d| d.0), old.delay.map(|d| d.0))
}

#[cfg(test)]
mod tests {
    use polypath_hip::{Identity, KeyKind, Random};
    use polypath_wire::hip::MultipathPath;

    use super::*;
    use crate::security::SecurityConfig;

    #[test]
    fn links_of_a_peer_are_kept_for_64_of_its_addresses() {
        let identity = Identity::generate(KeyKind::P256, &mut Random::from_seed([1; 32])).unwrap();
        let mut security = Security::new(SecurityConfig::default(), identity, [1; 32], 1);
        let hit = Hit([2; 16]);
        let said = |n: u8, measured: bool, mbps: u64| {
            let bandwidth = Some(polypath_wire::Rate::from_mbps(mbps));
            let path = MultipathPath {
                id: n,
                address: [10, 0, 0, n].into(),
                measured,
                spill: false,
                bandwidth,
                delay: None,
            };
            Multipath {
                shim_version: 1,
                max_paths: 8,
                early_data: true,
                same_spi: true,
                no_checksums: true,
                paths: vec![path],
            }
        };
        for n in 0..=255 {
            security.on_multipath(hit, &said(n, false, 1));
            security.on_multipath(hit, &said(n, true, 1));
        }
        security.on_multipath(hit, &said(0, false, 2));
        let peer = security.peers.get(hit).unwrap();
        assert_eq!((peer.links.len(), peer.measured.len()), (MOST, MOST));
        let first = peer.links[&IpAddr::from([10, 0, 0, 0])].bandwidth;
        assert_eq!(first.map(|rate| rate.0), Some(2_000_000), "what is known is kept up to date");
    }
}
