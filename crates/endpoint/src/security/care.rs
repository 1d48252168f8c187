//! What paths need from time to time: heartbeats, new keys, somebody who asks for them anew.

use polypath_hip::State;
use polypath_wire::{Duration, Instant};

use super::mtu::PathMtu;
use super::path::SecurePath;
use super::{Change, Security, inner, route};
use crate::paths::Locators;

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
        let (silence, every) = match self.config.heartbeat {
            Duration::ZERO => (true, Duration::from_secs(1)),
            every => (false, every),
        };
        let Some(path) = self.paths.get_mut(&number) else { return };
        let missed = self.config.missed_heartbeats.max(2);
        let (peer, silent) = (path.peer, path.heart.silent() >= missed);
        if path.is_worn() {
            path.rekeying = true;
            let spi = path.spi();
            self.hip.rekey(now, peer, spi, true);
        }
        if silence {
            self.paths.get_mut(&number).into_iter().for_each(|p| p.heart.next = now + every);
        } else if let Some(path) = self.paths.get_mut(&number) {
            let len = path.beat(self.ours, number, now, (every, missed), &mut self.scratch);
            self.send_scratch(now, number, len);
            self.probe(now, number);
        }
        self.tell_hip(now, number);
        self.tell_links(now, peer);
        if silent {
            self.seek_anew(now, number);
        }
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
        PathMtu::new(now, link, locators.remote.is_ipv4(), self.config.heartbeat > Duration::ZERO)
    }

    /// A path from which nothing comes any more, among others or alone: whoever began the association
    /// asks for another one between the same locators.
    fn seek_anew(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get(&number) else { return };
        let (peer, locators) = (path.peer, path.locators);
        let others = self.paths.values().any(|p| p.peer == peer && p.up && p.locators != locators);
        let ours = self.peers.get(&peer).is_some_and(|p| p.wanted.iter().any(|w| w.locators == locators));
        if ours && others {
            self.abandon(now, number);
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
        for (&hit, peer) in &mut self.peers {
            if self.hip.association(hit).is_none_or(|a| a.state() != State::Established) {
                continue;
            }
            for wanted in peer.wanted.iter_mut().filter(|w| !w.asked && w.at <= now) {
                let live = |p: &SecurePath| {
                    p.peer == hit
                        && p.locators == wanted.locators
                        && p.heart.silent() < self.config.missed_heartbeats.max(2)
                };
                if !self.paths.values().any(live) {
                    wanted.asked = true;
                    self.hip.add_path(now, hit, route(wanted.locators));
                }
            }
        }
    }
}
