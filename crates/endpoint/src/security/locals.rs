//! Our own addresses, which come and go, and the paths that they make possible.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use polypath_hip::State;
use polypath_wire::Instant;
use polypath_wire::hip::Hit;

use super::path::SecurePath;
use super::reach::{End, OwnLink, Reach};
use super::{LocalInfo, Security, UNANSWERED, route};
use crate::paths::Locators;

impl Security {
    /// A local address can be used.
    pub fn local_up(&mut self, now: Instant, local: SocketAddr, info: LocalInfo) {
        self.hip.set_link(local.ip(), info.link, false);
        let same = self.locals.insert(local, info).is_none_or(|before| before.mtu == info.mtu);
        let on = |(n, p): (u16, &SecurePath)| (p.locators.local == local && !same).then_some((n, p.locators));
        let changed: Vec<_> = self.paths.iter().filter_map(on).collect();
        changed.into_iter().for_each(|(number, locators)| self.resize(now, number, &locators));
        self.tell_spill(
            self.paths.iter().filter(|(_, p)| p.locators.local == local).map(|(n, _)| n).collect(),
        );
        self.hip.set_addresses(told(&self.locals, |_| false));
        self.locals_changed(now);
    }

    /// The link below a path is another one, or not what it was: what was known of its packet size is void.
    pub(super) fn resize(&mut self, now: Instant, number: u16, locators: &Locators) {
        let size = self.new_size(now, locators);
        if let Some(path) = self.paths.get_mut(number) {
            path.mtu = size;
            self.paths.beat_at(number, now);
            self.tell_size(number);
        }
    }

    /// A local address can be used no longer: its paths are given up, the last one of a peer when
    /// there is another.
    pub fn local_down(&mut self, now: Instant, local: SocketAddr) {
        self.locals.remove(&local);
        self.hip.set_addresses(told(&self.locals, |_| false));
        let gone: Vec<_> =
            self.paths.iter().filter(|(_, p)| p.locators.local == local).map(|(n, _)| n).collect();
        gone.into_iter().for_each(|number| self.abandon(now, number));
        self.locals_changed(now);
    }

    /// Our addresses, each with the link that it is on.
    pub(super) fn local_ends(&self) -> Vec<End> {
        let link =
            |(n, info): (usize, &LocalInfo)| info.interface.map_or(OwnLink::Address(n), OwnLink::Interface);
        let links = self.locals.values().enumerate().map(link);
        self.locals.keys().copied().zip(links).map(|(address, link)| End { address, link }).collect()
    }

    /// The pairs of locators that should be paths to a peer may be others now.
    pub(super) fn want_anew(&mut self, now: Instant, hit: Hit) {
        self.peers.touch(hit);
        let locals = self.local_ends();
        let Some(peer) = self.peers.get_mut(hit) else { return };
        let Some(reach @ Reach::Addresses(_)) = &peer.reach else { return };
        let of_peer = || self.paths.of(hit).map(|(_, path)| path);
        let port = of_peer().next().map_or(0, |p| p.sought.remote.port());
        let announced: Vec<_> = peer.announced.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
        let is_proven = |remote: &SocketAddr| of_peer().any(|p| p.up && p.sought.remote == *remote);
        let pairs = reach.pairs(&locals, &announced, is_proven);
        peer.want(now, pairs);
    }

    /// Our addresses are others now.
    fn locals_changed(&mut self, now: Instant) {
        let names = self.peers.names();
        names.iter().for_each(|hit| self.want_anew(now, *hit));
        names.iter().for_each(|hit| self.call_anew(now, *hit));
        names.iter().for_each(|hit| self.follow_us(now, *hit));
        names.iter().for_each(|hit| self.announce_to(now, *hit));
        self.resume(now);
        self.settle(now);
    }

    /// A peer that has not answered yet is called from the addresses that there are now, if there are any.
    fn call_anew(&mut self, now: Instant, hit: Hit) {
        if self.state(hit) != Some(State::I1Sent) {
            return;
        }
        let reach = self.peers.get(hit).and_then(|peer| peer.reach.as_ref());
        let Some(reach @ Reach::Addresses(_)) = reach else { return };
        let pairs = reach.pairs(&self.local_ends(), &[], |_| false);
        let _ = self.hip.connect(now, hit, pairs.iter().map(|p| route(p.locators)).collect());
    }

    /// A peer that began its association with us looks for us where we were. If we have left all addresses of its paths, its last path
    /// continues from one that we have now, and it hears all of them.
    fn follow_us(&mut self, now: Instant, hit: Hit) {
        let is_there = |p: &SecurePath| self.locals.contains_key(&p.locators.local);
        let called_us = self.peers.get(hit).is_some_and(|peer| peer.reach.is_none() && peer.up);
        if !called_us || self.paths.of(hit).any(|(_, p)| is_there(p)) {
            return;
        }
        let last = self.paths.of(hit).find(|(_, p)| !p.gone).map(|(_, p)| (p.spi(), p.locators.remote));
        let Some((spi, remote)) = last else { return };
        let pairs = Reach::Addresses(vec![remote]).pairs(&self.local_ends(), &[], |_| false);
        if let Some(pair) = pairs.first() {
            self.hip.move_path(now, hit, spi, route(pair.locators));
        }
    }

    /// A peer's last path was kept while its local address was gone: where that is back, connections may use it again.
    fn resume(&mut self, now: Instant) {
        let is_kept = |p: &SecurePath| !p.up && p.reachable && !p.gone;
        let is_back = |p: &SecurePath| is_kept(p) && self.locals.contains_key(&p.locators.local);
        let back: Vec<_> = self.paths.iter().filter(|(_, p)| is_back(p)).map(|(number, _)| number).collect();
        back.into_iter().for_each(|number| self.bring_up(now, number));
    }

    /// The peer says what all its addresses are. Of those that it listed before and does not list now, the paths
    /// are given up. Those that are new in its list are asked at once, although they may have been asked in vain.
    pub(super) fn on_announced(&mut self, now: Instant, hit: Hit, addresses: Vec<IpAddr>) {
        let Some(peer) = self.peers.get_mut(hit).filter(|p| p.reach.is_some()) else { return };
        let before = std::mem::replace(&mut peer.announced, addresses);
        let news: Vec<IpAddr> = peer.announced.iter().filter(|ip| !before.contains(ip)).copied().collect();
        let gone = |ip: &IpAddr| before.contains(ip) && !peer.announced.contains(ip);
        let on = |(n, p): (u16, &SecurePath)| gone(&p.sought.remote.ip()).then_some(n);
        let gone: Vec<_> = self.paths.of(hit).filter_map(on).collect();
        gone.into_iter().for_each(|number| self.abandon(now, number));
        self.want_anew(now, hit);
        let wanted = self.peers.get_mut(hit).filter(|_| !before.is_empty());
        let wanted = wanted.into_iter().flat_map(|peer| &mut peer.wanted);
        wanted.filter(|w| news.contains(&w.locators.remote.ip())).for_each(|w| w.reset(now));
    }

    /// A peer that began its association with us hears of our addresses, when these are others than it knows.
    pub(super) fn announce_to(&mut self, now: Instant, hit: Hit) {
        let Some(peer) = self.peers.get_mut(hit).filter(|peer| peer.reach.is_none() && peer.up) else {
            return;
        };
        let of_peer = || self.paths.of(hit).map(|(_, path)| path);
        let Some(first) = of_peer().next() else { return };
        let here = first.locators.local.ip().is_loopback();
        let has_path = |ip: &IpAddr| of_peer().any(|p| p.locators.local.ip() == *ip);
        let mut list = told(&self.locals, has_path);
        list.retain(|ip| ip.is_loopback() == here);
        let known = match &peer.told {
            Some(told) => *told == list,
            None => list.iter().all(has_path),
        };
        if !known {
            self.hip.set_addresses(list.clone());
            self.hip.announce(now, hit, true);
            peer.told = Some(list);
        }
    }

    /// A path came up. One that is wanted no longer is given up if both its addresses are in paths that are wanted; of two
    /// over one link, the silent one is given up, or else the one later in the list.
    pub(super) fn prune(&mut self, now: Instant, hit: Hit) {
        self.want_anew(now, hit);
        let Some(peer) = self.peers.get(hit).filter(|p| matches!(p.reach, Some(Reach::Addresses(_)))) else {
            return;
        };
        let place = |p: &SecurePath| peer.wanted.iter().position(|w| w.locators == p.sought);
        let of_peer = || self.paths.of(hit).filter(|(_, p)| p.up);
        let rank =
            |p: &SecurePath| place(p).map(|n| (peer.wanted[n].link, (p.heart.silent() > UNANSWERED, n)));
        let kept: Vec<Locators> =
            of_peer().filter(|(_, p)| place(p).is_some()).map(|(_, p)| p.sought).collect();
        let covered = |l: &Locators| {
            kept.iter().any(|k| k.local == l.local) && kept.iter().any(|k| k.remote == l.remote)
        };
        let better = |link: usize, own: (bool, usize)| {
            of_peer().filter_map(|(_, p)| rank(p)).any(|(l, other)| l == link && other < own)
        };
        let spare = |p: &SecurePath| match rank(p) {
            Some((link, own)) => better(link, own),
            None => covered(&p.sought),
        };
        let spare: Vec<u16> = of_peer().filter(|(_, p)| spare(p)).map(|(n, _)| n).collect();
        spare.into_iter().for_each(|number| self.abandon(now, number));
    }

    /// Connections use the path no longer; HIP takes it away if it is not the peer's last.
    pub(super) fn abandon(&mut self, now: Instant, number: u16) {
        self.bring_down(number);
        let Some(path) = self.paths.get(number) else { return };
        let (peer, spi) = (path.peer, path.spi());
        let goes =
            |inbound: u32| self.newest(inbound).and_then(|n| self.paths.get(n)).is_some_and(|p| p.gone);
        let stays = |inbound: u32| inbound != spi && !goes(inbound);
        let others = self.hip.association(peer).is_some_and(|a| a.paths().iter().any(|p| stays(p.inbound)));
        if let Some(path) = self.paths.get_mut(number).filter(|p| others && !p.gone) {
            path.gone = true;
            self.hip.remove_path(now, peer, spi);
        }
    }
}

/// The addresses that are announced: one of each family for each interface, one with a path if there is one.
fn told(locals: &BTreeMap<SocketAddr, LocalInfo>, has_path: impl Fn(&IpAddr) -> bool) -> Vec<IpAddr> {
    let mut all: Vec<_> = locals.iter().map(|(address, info)| (address.ip(), info.interface)).collect();
    all.sort_by_key(|(ip, _)| !has_path(ip));
    let mut told: Vec<(IpAddr, Option<u32>)> = Vec::new();
    for (ip, interface) in all {
        let same = |t: &(IpAddr, Option<u32>)| {
            interface.is_some() && t.1 == interface && t.0.is_ipv4() == ip.is_ipv4()
        };
        if !told.iter().any(same) {
            told.push((ip, interface));
        }
    }
    let mut told: Vec<IpAddr> = told.into_iter().map(|(ip, _)| ip).collect();
    told.sort();
    told
}
