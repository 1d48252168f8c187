//! What paths and peers need from time to time: heartbeats, new keys, somebody who asks for them anew.

use std::collections::BTreeMap;

use polypath_hip::State;
use polypath_wire::hip::{Hit, PacketType, PacketView};
use polypath_wire::{Duration, Ecn, Instant};

use super::mtu::PathMtu;
use super::path::SecurePath;
use super::{DOUBT, DOUBTED, Renewal, Security, UNANSWERED, UNHEARD, Wanted, inner, route};
use crate::cover::Change;
use crate::paths::Locators;

/// How long after the last data a silent path is still asked in a hurry.
const FLOWING: Duration = Duration::from_secs(10);

/// A peer is not silent before this many times the smallest one-way delay, which heartbeats measure: on a slow link two
/// full packets each way take that long.
const SILENT: u64 = 64;

impl Security {
    /// Sends the heartbeat of a path and looks after it.
    pub(super) fn beat(&mut self, now: Instant, number: u16) {
        let every = self.config.heartbeat.max(Duration::from_millis(1));
        let Some(path) = self.paths.get_mut(number) else { return };
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
        self.peers.touch(peer);
        if let Some(path) = self.paths.get_mut(number) {
            let ecn = if self.config.ecn { path.marks.ask(unanswered) } else { Ecn::None };
            let len = path.beat(self.ours, number, now, (every, missed, flows), &mut self.scratch);
            self.events.extend(path.tell_whether_it_answers());
            self.paths.retime(number);
            self.send_scratch(now, number, ecn, len);
            self.probe(now, number);
            self.renew_if_silent(now, number);
            self.close_if_outlived(now, number);
        }
        self.tell_hip(now, number);
        self.tell_links(now, peer);
    }

    /// An association of this peer began. Programs behind its other associations may have ended without a word: their
    /// paths are asked at once.
    pub(super) fn doubt_others(&mut self, now: Instant, peer: Hit) {
        let names = self.hip.names_of(self.hit_of(peer)).filter(|name| *name != peer);
        let numbers: Vec<u16> =
            names.flat_map(|name| self.paths.of(name)).map(|(number, _)| number).collect();
        for number in numbers {
            self.paths.get_mut(number).into_iter().for_each(|path| path.doubted = true);
            self.paths.beat_at(number, now);
        }
    }

    /// One of several associations of a peer has fallen silent while the links work: the program behind it has ended.
    fn close_if_outlived(&mut self, now: Instant, number: u16) {
        let outlived = self.paths.get(number).is_some_and(|path| self.is_outlived(path));
        let Some(path) = self.paths.get_mut(number) else { return };
        path.outlived = if outlived { path.outlived + 1 } else { 0 };
        let (name, often) = (path.peer, path.outlived > UNANSWERED);
        if often && self.is_silent(now, name, UNANSWERED + 1) {
            self.hip.close(now, name);
        }
    }

    /// Whether a path is silent while another association with the peer is heard between the same addresses.
    fn is_outlived(&self, path: &SecurePath) -> bool {
        let between = |p: &SecurePath| (p.locators.local.ip(), p.locators.remote.ip());
        let works = |p: &SecurePath| between(p) == between(path) && p.heart.silent() <= 1;
        let mut others = self.hip.names_of(path.hit).filter(|name| *name != path.peer);
        path.heart.silent() > 1 && others.any(|name| self.paths.of(name).any(|(_, p)| works(p)))
    }

    /// Whether data flows to or from `peer`, or did within [`FLOWING`]; `carried`: it does now.
    pub(super) fn note_flow(&mut self, now: Instant, peer: Hit, carried: bool) -> bool {
        let Some(peer) = self.peers.get_mut(peer) else { return false };
        if carried {
            peer.flowed = Some(now);
        }
        peer.flowed.is_some_and(|at| now.since(at) < FLOWING)
    }

    /// Sends the probe of the path's packet size that is due, if one is.
    pub(super) fn probe(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(number).filter(|p| p.up) else { return };
        let before = path.mtu.carried();
        let len = path.probe(self.ours, number, now, &mut self.scratch);
        let less = path.mtu.carried() < before;
        if len.is_some() {
            self.send_scratch(now, number, Ecn::None, len);
        }
        if less {
            self.tell_size(number);
        }
    }

    /// Packets of more than `mtu` bytes do not get through between these addresses.
    pub fn too_big(&mut self, now: Instant, locators: &Locators, mtu: u32) {
        let ends = |l: &Locators| (l.local.ip(), l.remote.ip());
        let on = |(n, p): (u16, &SecurePath)| (ends(&p.locators) == ends(locators)).then_some(n);
        let numbers: Vec<u16> = self.paths.iter().filter_map(on).collect();
        for number in numbers {
            let Some(path) = self.paths.get_mut(number) else { continue };
            self.peers.touch(path.peer);
            if path.mtu.too_big(mtu) {
                self.paths.beat_at(number, now);
                self.tell_size(number);
            }
        }
        self.settle(now);
    }

    /// Connections hear how large their segments on a path may be.
    pub(super) fn tell_size(&mut self, number: u16) {
        let Some(path) = self.paths.get(number).filter(|p| p.up) else { return };
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
        let calm = self.paths.of(peer).filter(|(_, p)| p.heart.silent() == 0 && p.heart.next > now);
        let calm: Vec<u16> = calm.map(|(number, _)| number).collect();
        calm.into_iter().for_each(|number| self.paths.beat_at(number, now));
    }

    /// A peer that is silent on all paths may have been restarted: whoever began the association asks for a new one after
    /// each heartbeat and on its path. A peer that has lost nothing answers the heartbeat first.
    fn renew_if_silent(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get(number).filter(|p| p.heart.silent() > UNANSWERED) else { return };
        let (hit, sought) = (path.peer, path.sought);
        if !self.is_silent(now, hit, UNANSWERED) {
            return;
        }
        if self.peers.get(hit).is_none_or(|p| !p.up || p.reach.is_none()) {
            return;
        }
        if !self.hip.is_renewing(hit) {
            self.renewing.insert(hit, Renewal { since: now, doubted: 0, asked: now });
        }
        self.hip.renew(now, hit, vec![route(sought)]);
    }

    /// Whether nothing came on any path for at least `beats` heartbeats, for [`SILENT`] delays of the quickest path, and for as
    /// long as answers on each path may take now.
    fn is_silent(&self, now: Instant, name: Hit, beats: u32) -> bool {
        let of_peer = || self.paths.of(name).map(|(_, path)| path);
        let delay = of_peer().filter_map(|p| p.measured.delay).min().unwrap_or(Duration::ZERO);
        of_peer().all(|p| p.heart.silent() >= beats && p.heart.is_lost(now, delay.times(SILENT)))
    }

    /// Whether there is an association, and nothing came on any of its paths for `least`, despite heartbeats.
    pub fn is_silent_for(&self, now: Instant, peer: Hit, least: Duration) -> bool {
        let lost = |p: &SecurePath| p.heart.silent() >= UNANSWERED && p.heart.is_lost(now, least);
        let mut up = self.paths.of(peer).filter(|(_, p)| p.up);
        self.peers.get(peer).is_some_and(|peer| peer.up) && up.all(|(_, p)| lost(p))
    }

    /// Asks a silent peer on all its paths at once, but no more often than heartbeats leave.
    pub fn ask(&mut self, now: Instant, peer: Hit) {
        let every = self.config.heartbeat;
        let silent = self.paths.of(peer).filter(|(_, p)| p.heart.silent() > 0);
        let soonest: Vec<_> = silent.map(|(number, p)| (number, p.heart.soonest(now, every))).collect();
        soonest.into_iter().for_each(|(number, at)| self.paths.beat_at(number, at));
        self.settle_for(now, peer);
    }

    /// A silent peer may be elsewhere by now, and may have been restarted there.
    pub(super) fn seek(&mut self, now: Instant, peer: Hit) {
        self.want_anew(now, peer);
        let elsewhere = self.elsewhere(now, peer);
        if elsewhere.is_empty() {
            return;
        }
        if !self.hip.is_renewing(peer) {
            self.renewing.insert(peer, Renewal { since: now, doubted: 0, asked: now });
        }
        self.hip.renew(now, peer, elsewhere.into_iter().map(route).collect());
    }

    /// Where there is no path to a peer though there should be one, and was no answer for [`UNHEARD`].
    fn elsewhere(&self, now: Instant, peer: Hit) -> Vec<Locators> {
        let has_path = |l: &Locators| self.paths.of(peer).any(|(_, p)| p.sought.remote == l.remote);
        let wanted = self.peers.get(peer).into_iter().flat_map(|peer| &peer.wanted);
        let unheard = wanted.filter(|w| w.since + UNHEARD <= now && !has_path(&w.locators));
        unheard.map(|w| w.locators).collect()
    }

    /// Something came from the peer of that name: one that has answered on an SA, or with an UPDATE, since we asked for a new
    /// association needs none.
    pub(super) fn cancel_renewal(&mut self, now: Instant, name: Hit) {
        let Some(since) = self.renewing.get(&name).map(|renewal| renewal.since) else { return };
        let heard = self.paths.of(name).any(|(_, p)| p.heart.heard > since)
            || self.hip.association(name).is_some_and(|a| a.heard() > since);
        if heard || !self.hip.is_renewing(name) {
            self.hip.cancel_renewal(now, name);
            self.renewing.remove(&name);
        }
    }

    /// Whether that R1 of a silent peer is not taken yet: links work again, and heartbeats may have been lost, so others leave first;
    /// or their answers go where a NAT expects us no longer, so the path is asked for.
    ///
    /// One from where we [seek](Self::seek) the peer is taken. One that it did not sign, or that comes from anywhere else, is dropped and counts for nothing. Nor does one so early after another
    /// that the heartbeats may still be answered: the paths are asked again when they had their time.
    pub(super) fn doubts(
        &mut self,
        now: Instant,
        locators: &Locators,
        packet: &PacketView<'_>,
        payload: &[u8],
    ) -> bool {
        let hit = packet.sender();
        if packet.packet_type() != PacketType::R1 || !self.renewing.contains_key(&hit) {
            return false;
        }
        if self.elsewhere(now, hit).iter().any(|pair| pair.remote == locators.remote) {
            return false; // there is no path there to ask
        }
        if !self.hip.is_genuine_r1(now, route(*locators), payload) {
            return true;
        }
        let by = self.paths.of(hit).find(|(_, p)| p.sought == *locators);
        let delay = by.and_then(|(_, p)| p.measured.delay).unwrap_or(Duration::ZERO);
        let Some(renewal) = self.renewing.get_mut(&hit) else { return false };
        let ready = renewal.asked + DOUBT.max(delay.times(2));
        let answered = renewal.doubted == 0 || now >= ready;
        if answered && renewal.doubted >= DOUBTED {
            return false;
        }
        if answered {
            (renewal.doubted, renewal.asked) = (renewal.doubted + 1, now);
        }
        let at = if answered { now } else { ready };
        let later = self.paths.of(hit).filter(|(_, p)| p.heart.next > at);
        let numbers: Vec<u16> = later.map(|(number, _)| number).collect();
        numbers.into_iter().for_each(|number| self.paths.beat_at(number, at));
        let wanted = self.peers.get_mut(hit).into_iter().flat_map(|peer| &mut peer.wanted);
        for wanted in wanted.filter(|w| w.locators == *locators && !w.asked) {
            wanted.asked = true;
            self.hip.add_path(now, hit, route(*locators));
        }
        self.settle_for(now, hit);
        true
    }

    /// HIP hears what came on a path since it heard last, and from where.
    pub(super) fn tell_hip(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(number).filter(|p| p.untold > 0) else { return };
        let (peer, spi, bytes) = (path.peer, path.used_spi(), std::mem::take(&mut path.untold));
        let source = route(path.source);
        self.hip.on_data(now, peer, spi, bytes);
        self.hip.on_source(now, peer, spi, source);
        self.settle_for(now, peer);
    }

    /// Asks for wanted paths that there are not, when their time has come.
    pub(super) fn ask_for_paths(&mut self, now: Instant) {
        let lost = self.config.heartbeat.times(u64::from(self.config.missed_heartbeats.max(2)));
        let is_due = |w: &Wanted| !w.asked && w.at <= now;
        for hit in self.peers.concerned(now) {
            let Some(peer) = self.peers.get_mut(hit).filter(|peer| peer.wanted.iter().any(is_due)) else {
                continue;
            };
            if self.hip.association(hit).is_none_or(|a| a.state() != State::Established) {
                continue;
            }
            let live = |w: &Wanted| {
                self.paths.of(hit).any(|(_, p)| p.sought == w.locators && !p.heart.is_lost(now, lost))
            };
            // What has each place, and whether that is more than an attempt at an address that the peer does not list.
            let mut busy = BTreeMap::new();
            for wanted in peer.wanted.iter().filter(|w| w.asked || live(w)) {
                *busy.entry((wanted.link, wanted.spare)).or_insert(false) |= wanted.listed || live(wanted);
            }
            for wanted in peer.wanted.iter_mut().filter(|w| is_due(w)) {
                let taken = |place| busy.get(&place).is_some_and(|surely| *surely || !wanted.listed);
                let waits = wanted.spare && taken((wanted.link, false));
                if !waits && !taken((wanted.link, wanted.spare)) {
                    *busy.entry((wanted.link, wanted.spare)).or_insert(false) |= wanted.listed;
                    wanted.asked = true;
                    self.hip.add_path(now, hit, route(wanted.locators));
                }
            }
        }
    }
}
