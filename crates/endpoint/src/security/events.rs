//! What HIP says, and what becomes of it.

use polypath_esp::{Inbound, Outbound};
use polypath_hip::{Association, Event, SaPair, State};
use polypath_wire::hip::{Hit, NotifyType};
use polypath_wire::{Duration, Instant};

use super::heartbeat::Heart;
use super::path::SecurePath;
use super::report::{HipRecord, PeerEvent, PeerFailure};
use super::sas::associations;
use super::{Security, inner};
use crate::cover::Change;
use crate::paths::Locators;

impl Security {
    pub(super) fn take_events(&mut self, now: Instant) {
        while let Some((peer, event)) = self.hip.poll_event() {
            self.peers.touch(peer);
            match event {
                Event::State { from, to } => self.on_state(now, peer, from, to),
                Event::SaAdded(pair) => self.on_added(now, peer, &pair),
                Event::SaRemoved { inbound, .. } => self.on_removed(inbound),
                Event::Reachable { inbound, route } => {
                    let locators = Locators { local: route.local, remote: route.remote };
                    self.on_reachable(now, inbound, locators);
                }
                Event::Withdrawn { inbound } => self.on_withdrawn(inbound),
                Event::PathFailed { route } => {
                    let (retry, flows) = (self.config.retry, self.note_flow(now, peer, false));
                    let locators = Locators { local: route.local, remote: route.remote };
                    self.wanted(peer, locators, |w| w.fail(now, retry, flows));
                }
                Event::Locators(addresses) => self.on_announced(now, peer, addresses),
                Event::Multipath(multipath) => self.on_multipath(peer, &multipath),
                Event::Notified(said) if said.notify_type == NotifyType::BLOCKED_BY_POLICY => {
                    self.fail(peer, PeerFailure::Refused);
                }
                Event::Notified(_) => {}
                Event::Failed(failure) => self.fail(peer, failure.into()),
                Event::Refused { route } => {
                    let from = Locators { local: route.local, remote: route.remote };
                    self.events.push_back((peer, PeerEvent::Stranger { from }));
                }
            }
        }
    }

    fn on_state(&mut self, now: Instant, hit: Hit, from: State, to: State) {
        if let Some(records) = &mut self.records {
            records.push_back(HipRecord { at: now, peer: hit, state: to });
        }
        let peer = self.peers.named(hit);
        match to {
            State::Closing | State::Closed | State::EFailed | State::Unassociated => {
                peer.wanted.iter_mut().for_each(|wanted| wanted.reset(now));
                if std::mem::take(&mut peer.up) {
                    self.changes.push_back(Change::Over(hit));
                    self.tell_of(hit, PeerEvent::Down);
                }
                if to == State::Unassociated {
                    self.peers.remove(hit);
                    self.renewing.remove(&hit);
                }
            }
            _ => {}
        }
        if to == State::Established {
            self.announce_to(now, hit);
        }
        let anew = to == State::R2Sent || (from, to) == (State::I2Sent, State::Established);
        if anew && let Some(peer) = self.peers.get_mut(hit).filter(|p| p.up) {
            // The peer, or we on its silence, began anew: it knows nothing of the connections of before.
            self.changes.push_back(Change::Over(hit));
            peer.wanted.iter_mut().for_each(|wanted| wanted.reset(now));
            peer.flowed = None;
            self.renewing.remove(&hit);
        }
        if to == State::R2Sent {
            self.peers.named(hit).told = None;
            // Whatever comes first must be reported at once: it confirms that the peer has our R2.
            let numbers: Vec<u16> = self.paths.of(hit).map(|(number, _)| number).collect();
            numbers.into_iter().for_each(|number| self.paths.beat_at(number, now));
        }
    }

    fn fail(&mut self, hit: Hit, failure: PeerFailure) {
        let peer = self.peers.named(hit);
        if !peer.up && !peer.refused {
            peer.refused = failure == PeerFailure::Refused;
            self.events.push_back((hit, PeerEvent::Failed(failure)));
        }
    }

    /// A new SA pair: of a new path, or for new keys of one that there is.
    pub(super) fn on_added(&mut self, now: Instant, peer: Hit, pair: &SaPair) {
        let Ok(sas) = associations(&self.config, pair) else { return };
        let locators = Locators { local: pair.route.local, remote: pair.route.remote };
        self.wanted(peer, locators, super::Wanted::succeed);
        let known = match pair.replaces {
            Some(spi) => self.spis.get(&spi).copied(),
            None => self.path_between(peer, &locators),
        };
        match (known, pair.replaces) {
            (Some(number), Some(_)) => self.rekey(now, number, pair, sas),
            (Some(number), None) => self.renew(now, number, pair, sas),
            (None, _) => self.add(now, peer, pair, sas),
        }
    }

    /// The path in use that was sought between `locators`.
    fn path_between(&self, peer: Hit, locators: &Locators) -> Option<u16> {
        let mut paths = self.paths.of(peer);
        paths.find(|(_, path)| path.sought == *locators && path.up && !path.gone).map(|(number, _)| number)
    }

    /// New keys of a path.
    fn rekey(&mut self, now: Instant, number: u16, pair: &SaPair, (inbound, outbound): (Inbound, Outbound)) {
        if let Some(path) = self.paths.get_mut(number) {
            path.rekey(pair, inbound, outbound);
        }
        self.spis.insert(pair.inbound, number);
        self.paths.beat_at(number, now);
    }

    /// A path that was sought anew between the same addresses: the new SAs are the same path.
    fn renew(&mut self, now: Instant, number: u16, pair: &SaPair, sas: (Inbound, Outbound)) {
        let Some(path) = self.paths.get_mut(number) else { return };
        let (peer, before) = (path.peer, path.spi());
        path.locators = path.sought;
        self.rekey(now, number, pair, sas);
        if self.peers.get(peer).is_some_and(|p| p.reach.is_some()) {
            self.hip.remove_path(now, peer, before);
        }
    }

    /// A new path.
    fn add(&mut self, now: Instant, peer: Hit, pair: &SaPair, sas: (Inbound, Outbound)) {
        let association = self.hip.association(peer);
        let known = association.and_then(|of| of.paths().iter().find(|path| path.inbound == pair.inbound));
        let they_check =
            association.and_then(Association::multipath).is_none_or(|multipath| !multipath.no_checksums);
        let (reachable, round_trip) = known.map_or((false, Duration::ZERO), |p| (p.reachable, p.round_trip));
        let number = self.free_number();
        let locators = Locators { local: pair.route.local, remote: pair.route.remote };
        let hits = (peer, self.hit_of(peer));
        let mut path = SecurePath::new(now, hits, pair, sas, self.new_size(now, &locators));
        (path.heart, path.reachable) = (Heart::new(now, round_trip), reachable);
        let we_check = !self.config.hip.no_checksums;
        path.checksums = [we_check, we_check || they_check];
        self.paths.insert(number, path);
        self.spis.insert(pair.inbound, number);
        self.doubt_others(now, peer);
        if reachable {
            self.bring_up(now, number);
            if self.config.hip.same_spi && round_trip > Duration::ZERO {
                self.changes.push_back(Change::Sample(inner(self.ours, peer, number), round_trip));
            }
        }
    }

    /// Connections may use the path from now on; one before it between the same locators is over.
    pub(super) fn bring_up(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(number).filter(|p| !p.up) else { return };
        (path.up, path.reachable) = (true, true);
        let (peer, hit, locators) = (path.peer, path.hit, path.locators);
        self.paths.beat_at(number, now);
        self.changes.push_back(Change::Up(inner(self.ours, peer, number)));
        if !std::mem::replace(&mut self.peers.named(peer).up, true) {
            self.tell_of(peer, PeerEvent::Up);
        }
        self.events.push_back((hit, PeerEvent::PathUp(locators)));
        let stale = |(n, p): (u16, &SecurePath)| {
            let dead = !self.locals.is_empty() && !self.locals.contains_key(&p.locators.local);
            let before = (number.wrapping_sub(n) as i16) > 0;
            (n != number && (before && p.locators == locators || dead)).then_some(n)
        };
        let stale: Vec<u16> = self.paths.of(peer).filter_map(stale).collect();
        stale.into_iter().for_each(|number| self.abandon(now, number));
        self.prune(now, peer);
    }

    fn on_reachable(&mut self, now: Instant, inbound: u32, locators: Locators) {
        let Some(number) = self.newest(inbound) else { return };
        let Some(path) = self.paths.get_mut(number) else { return };
        let moved = std::mem::replace(&mut path.locators, locators) != locators;
        path.reachable = true;
        if self.peers.get(path.peer).is_some_and(|peer| peer.reach.is_none()) {
            path.sought = locators;
        }
        if moved {
            self.changes.push_back(Change::Moved(inner(self.ours, path.peer, number)));
            self.resize(now, number, &locators);
        }
        self.bring_up(now, number);
    }

    /// Nothing goes there any more, until HIP says that the peer is there again.
    fn on_withdrawn(&mut self, inbound: u32) {
        let Some(number) = self.newest(inbound) else { return };
        self.paths.get_mut(number).into_iter().for_each(|p| p.reachable = false);
        self.bring_down(number);
    }

    /// The path whose newest SA pair has that inbound SPI. What becomes of one in whose place another was made between the same
    /// addresses does not concern the path.
    pub(super) fn newest(&self, inbound: u32) -> Option<u16> {
        let number = *self.spis.get(&inbound)?;
        self.paths.get(number).filter(|path| path.spi() == inbound).map(|_| number)
    }

    pub(super) fn on_removed(&mut self, inbound: u32) {
        let Some(number) = self.spis.remove(&inbound) else { return };
        let Some(path) = self.paths.get_mut(number) else { return };
        path.inbound.retain(|sa| sa.spi().0 != inbound);
        if !path.inbound.is_empty() {
            path.use_next();
            return;
        }
        self.bring_down(number);
        self.paths.remove(number);
    }

    /// Connections may use the path no longer.
    pub(super) fn bring_down(&mut self, number: u16) {
        let Some(path) = self.paths.get_mut(number) else { return };
        // A connection may have joined it before it was up.
        self.changes.push_back(Change::Down(inner(self.ours, path.peer, number)));
        if std::mem::take(&mut path.up) {
            self.events.push_back((path.hit, PeerEvent::PathDown(path.locators)));
        }
    }

    fn wanted(&mut self, peer: Hit, locators: Locators, act: impl FnOnce(&mut super::Wanted)) {
        let mut wanted = self.peers.get_mut(peer).into_iter().flat_map(|p| &mut p.wanted);
        if let Some(wanted) = wanted.find(|w| w.locators == locators) {
            act(wanted);
        }
    }

    /// An event of a peer's first association is one of the peer.
    fn tell_of(&mut self, peer: Hit, event: PeerEvent) {
        if peer.is_orchid() {
            self.events.push_back((peer, event));
        }
    }

    /// A number that no path has had for long.
    fn free_number(&mut self) -> u16 {
        while self.paths.get(self.next_number).is_some() || self.next_number == 0 {
            self.next_number = self.next_number.wrapping_add(1);
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }
}
