//! What paths and peers need from time to time: heartbeats, new keys, somebody who asks for them anew.

use std::collections::BTreeSet;

use polypath_hip::State;
use polypath_wire::hip::Hit;
use polypath_wire::{Duration, Instant};

use super::mtu::PathMtu;
use super::path::SecurePath;
use super::{Change, Security, UNANSWERED, Wanted, inner, route};
use crate::paths::Locators;

/// How long after the last data a silent path is still asked in a hurry.
const FLOWING: Duration = Duration::from_secs(10);

/// A peer is not silent before this many times the smallest one-way delay, which heartbeats measure: on a slow link two
/// full packets each way take that long.
const SILENT: u64 = 64;

impl Security {
    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.hip.handle_timeout(now);
        let numbers: Vec<u16> =
            self.paths.iter().filter(|(_, p)| p.heart.next <= now).map(|(n, _)| *n).collect();
        numbers.into_iter().for_each(|number| self.beat(now, number));
        self.settle(now);
    }

    /// Sends the heartbeat of a path and looks after it.
    fn beat(&mut self, now: Instant, number: u16) {
        let every = self.config.heartbeat.max(Duration::from_millis(1));
        let Some(path) = self.paths.get_mut(&number) else { return };
        let (peer, missed) = (path.peer, self.config.missed_heartbeats.max(2));
        let (carried, unanswered) = (path.carried_data(), path.heart.silent() > 0);
        if path.is_worn() {
            path.rekeying = true;
            let spi = path.spi();
            self.hip.rekey(now, peer, spi, true);
        }
        let flows = self.note_flow(now, peer, carried);
        if flows && unanswered {
            self.ask_all(now, peer);
        }
        if let Some(path) = self.paths.get_mut(&number) {
            let len = path.beat(self.ours, number, now, (every, missed, flows), &mut self.scratch);
            self.send_scratch(now, number, len);
            self.probe(now, number);
            self.renew_if_silent(now, number);
            self.close_if_silent(now, peer);
        }
        self.tell_hip(now, number);
        self.tell_links(now, peer);
    }

    /// An association of this peer began. Programs behind its other associations may have ended without a word: their
    /// paths are asked at once.
    pub(super) fn doubt_others(&mut self, now: Instant, peer: Hit) {
        let hit = self.hit_of(peer);
        for path in self.paths.values_mut().filter(|p| p.hit == hit && p.peer != peer) {
            (path.heart.next, path.doubted) = (now, true);
        }
    }

    /// One of several associations of a peer has fallen silent: that program has ended.
    fn close_if_silent(&mut self, now: Instant, name: Hit) {
        let several = self.hip.names_of(self.hit_of(name)).count() > 1;
        if several && self.is_silent(now, name, UNANSWERED + 1) {
            self.hip.close(now, name);
        }
    }

    /// Whether data flows to or from `peer`, or did within [`FLOWING`]; `carried`: it does now.
    pub(super) fn note_flow(&mut self, now: Instant, peer: Hit, carried: bool) -> bool {
        let Some(peer) = self.peers.get_mut(&peer) else { return false };
        if carried {
            peer.flowed = Some(now);
        }
        peer.flowed.is_some_and(|at| now.since(at) < FLOWING)
    }

    /// Sends the probe of the path's packet size that is due, if one is.
    pub(super) fn probe(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(&number).filter(|p| p.up) else { return };
        let before = path.mtu.carried();
        let len = path.probe(self.ours, number, now, &mut self.scratch);
        let less = path.mtu.carried() < before;
        if len.is_some() {
            self.send_scratch(now, number, len);
        }
        if less {
            self.tell_size(number);
        }
    }

    /// Packets of more than `mtu` bytes do not get through between these addresses.
    pub fn too_big(&mut self, now: Instant, locators: &Locators, mtu: u32) {
        let ends = |l: &Locators| (l.local.ip(), l.remote.ip());
        let on = |(n, p): (&u16, &SecurePath)| (ends(&p.locators) == ends(locators)).then_some(*n);
        let numbers: Vec<u16> = self.paths.iter().filter_map(on).collect();
        for number in numbers {
            let Some(path) = self.paths.get_mut(&number) else { continue };
            if path.mtu.too_big(mtu) {
                path.heart.next = now;
                self.tell_size(number);
            }
        }
        self.settle(now);
    }

    /// Connections hear how large their segments on a path may be.
    pub(super) fn tell_size(&mut self, number: u16) {
        let Some(path) = self.paths.get(&number).filter(|p| p.up) else { return };
        let inner = inner(self.ours, path.peer, number);
        self.changes.push_back(Change::Carries(inner, path.config().segment_size()));
    }

    /// What is known of the packet size between these locators before anything was sent.
    pub(super) fn new_size(&self, now: Instant, locators: &Locators) -> PathMtu {
        let link = self.locals.get(&locators.local).and_then(|info| info.mtu).unwrap_or(self.config.mtu);
        PathMtu::new(now, link, locators.remote.is_ipv4())
    }

    /// A path is silent: the others are asked at once, which tells whether the peer is.
    fn ask_all(&mut self, now: Instant, peer: Hit) {
        let calm = |p: &&mut SecurePath| p.peer == peer && p.heart.silent() == 0;
        self.paths.values_mut().filter(calm).for_each(|p| p.heart.next = p.heart.next.min(now));
    }

    /// A peer that is silent on all paths may have been restarted: whoever began the association asks for a new one after
    /// each heartbeat and on its path. A peer that has lost nothing answers the heartbeat first.
    fn renew_if_silent(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get(&number).filter(|p| p.heart.silent() > UNANSWERED) else { return };
        let (hit, locators) = (path.peer, path.locators);
        if !self.is_silent(now, hit, UNANSWERED) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&hit).filter(|p| p.up && p.reach.is_some()) else { return };
        if !self.hip.is_renewing(hit) {
            peer.renewing = Some(now);
        }
        self.hip.renew(now, hit, vec![route(locators)]);
    }

    /// Whether nothing came on any path for at least `beats` heartbeats, for [`SILENT`] delays of the quickest path, and for as
    /// long as answers on each path may take now.
    fn is_silent(&self, now: Instant, name: Hit, beats: u32) -> bool {
        let of_peer = || self.paths.values().filter(|p| p.peer == name);
        let delay = of_peer().filter_map(|p| p.measured.delay).min().unwrap_or(Duration::ZERO);
        of_peer().all(|p| p.heart.silent() >= beats && p.heart.is_lost(now, delay.times(SILENT)))
    }

    /// A HIP packet came: a peer that has answered on an SA since we asked for a new association needs none.
    pub(super) fn cancel_renewals(&mut self, now: Instant) {
        for (&hit, peer) in &mut self.peers {
            let Some(since) = peer.renewing else { continue };
            let heard = self.paths.values().any(|p| p.peer == hit && p.heart.heard > since);
            if heard || !self.hip.is_renewing(hit) {
                peer.renewing = None;
                self.hip.cancel_renewal(now, hit);
            }
        }
    }

    /// HIP hears what came on a path since it heard last.
    pub(super) fn tell_hip(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(&number).filter(|p| p.untold > 0) else { return };
        let (peer, spi, bytes) = (path.peer, path.used_spi(), std::mem::take(&mut path.untold));
        self.hip.on_data(now, peer, spi, bytes);
        self.settle(now);
    }

    /// Asks for wanted paths that there are not, when their time has come.
    pub(super) fn ask_for_paths(&mut self, now: Instant) {
        let lost = self.config.heartbeat.times(u64::from(self.config.missed_heartbeats.max(2)));
        let is_due = |w: &Wanted| !w.asked && w.at <= now;
        for (&hit, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.wanted.iter().any(is_due)) {
            if self.hip.association(hit).is_none_or(|a| a.state() != State::Established) {
                continue;
            }
            let live = |w: &Wanted| {
                let of = |p: &SecurePath| p.peer == hit && p.locators == w.locators;
                self.paths.values().any(|p| of(p) && !p.heart.is_lost(now, lost))
            };
            let taken = |w: &&Wanted| w.asked || live(w);
            let mut busy: BTreeSet<usize> = peer.wanted.iter().filter(taken).map(|w| w.link).collect();
            for wanted in peer.wanted.iter_mut().filter(|w| is_due(w)) {
                if busy.insert(wanted.link) {
                    wanted.asked = true;
                    self.hip.add_path(now, hit, route(wanted.locators));
                }
            }
        }
    }
}
