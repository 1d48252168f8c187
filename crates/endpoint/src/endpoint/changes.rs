//! What the cover says of paths and peers, and what it has to do in time.

use std::net::IpAddr;

use polypath_transport::{Connection, PathConfig};
use polypath_wire::{Instant, PathId};

use super::Endpoint;
use crate::cover::{Change, Cover};
use crate::demux::Route;
use crate::paths::Locators;
use crate::slots::Slot;

impl Endpoint {
    /// Lets the cover do what is due. What connections have measured with the peers concerned it hears first.
    pub(super) fn cover_timeout(&mut self, now: Instant) {
        if self.cover.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        let concerned = self.cover.concerned(now);
        let mut indices = Vec::new();
        for name in concerned {
            let restless = self.slots.restless(name.as_ipv6().into());
            if restless.is_empty() {
                self.cover.quiet(name);
            }
            indices.extend(restless);
        }
        for slot in indices.iter().filter_map(|index| self.slots.get(*index)) {
            for (path, inner) in slot.paths.iter() {
                self.cover.measured(now, &inner, &slot.connection.path_stats(path));
            }
        }
        self.cover.handle_timeout(now);
        indices.iter().for_each(|index| self.remember(now, *index));
        for index in indices {
            self.tell_bottlenecks(now, index);
            self.slots.calm(index);
        }
        self.apply(now);
    }

    /// Tells connections of changes of their paths. Quiet ones hear of what can wait only when they next send or receive: on a server
    /// with thousands of idle connections a heartbeat is answered every second.
    pub(super) fn apply(&mut self, now: Instant) {
        while let Some(change) = self.cover.poll() {
            self.tell_lane(now, change);
            let told = match self.news.take(now, change) {
                true => self.slots.restless(change.peer()),
                false => self.slots.with_peer(change.peer()),
            };
            told.into_iter().for_each(|index| self.apply_to(now, index, change));
        }
    }

    /// Tells a connection that was quiet what was measured on its paths meanwhile, before it sends or receives.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Instant, index: u32) {
        let waits = |slot: &&Slot| !slot.restless && slot.known_news != self.news.number();
        let Some(slot) = self.slots.get(index).filter(waits) else { return };
        if slot.paths.iter().any(|(_, inner)| self.news.are_there(slot.known_news, &inner)) {
            self.tell_news(index);
            self.tell_bottlenecks(now, index);
        }
    }

    #[cold]
    fn tell_news(&mut self, index: u32) {
        let Some(slot) = self.slots.at(index) else { return };
        let known = std::mem::replace(&mut slot.known_news, self.news.number());
        for (path, inner) in slot.paths.iter() {
            let (round_trips, skipped) = self.news.since(known, &inner);
            round_trips.for_each(|(at, rtt)| slot.connection.path_answered(at, path, rtt));
            if skipped {
                slot.connection.path_skipped(path);
            }
        }
    }

    fn apply_to(&mut self, now: Instant, index: u32, change: Change) {
        match change {
            Change::Up(inner) => self.path_up(now, index, inner),
            Change::Down(inner) => self.path_down(now, index, inner),
            Change::Moved(inner) => {
                self.on_path(index, inner, |connection, path| connection.path_moved(now, path));
            }
            Change::Carries(inner, mss) => {
                self.on_path(index, inner, |connection, path| connection.path_carries(now, path, mss));
            }
            Change::Spills(inner, spill) => {
                self.on_path(index, inner, |connection, path| connection.path_spills(path, spill));
            }
            Change::Sample(..) | Change::Skipped(_) => {
                self.tell_news(index);
                self.mark(index);
            }
            Change::Over(_) => {
                if let Some(slot) = self.slots.at(index) {
                    slot.connection.abort(now);
                    self.mark(index);
                }
            }
        }
    }

    /// Does something to the connection that has that path.
    fn on_path(&mut self, index: u32, inner: Locators, act: impl FnOnce(&mut Connection, PathId)) {
        let Some(slot) = self.slots.at(index) else { return };
        let path = slot.paths.iter().find(|(_, l)| *l == inner);
        if let Some((path, _)) = path {
            act(&mut slot.connection, path);
            self.mark(index);
        }
    }

    /// Adds a path to a connection, which announces it, if it takes one more.
    pub(super) fn start_path(
        &mut self,
        now: Instant,
        index: u32,
        locators: Locators,
        config: PathConfig,
    ) -> Option<PathId> {
        let config = self.recalled(now, &locators, config);
        let slot = self.slots.at(index)?;
        let path = slot.connection.add_path(now, config)?;
        slot.connection.announce(now, path);
        slot.paths.insert(path, locators);
        self.demux.insert(&locators, slot.ports, Route { index, path });
        Some(path)
    }

    /// A connection has one more path; what it kept for want of another goes.
    fn path_up(&mut self, now: Instant, index: u32, inner: Locators) {
        let max = self.max_paths();
        let Some(slot) = self.slots.at(index).filter(|s| s.takes_paths()) else { return };
        let known = slot.paths.iter().find(|(_, l)| *l == inner);
        if let Some((path, _)) = known {
            slot.connection.path_proved(now, path);
        } else if slot.paths.iter().filter(|(_, l)| self.cover.is_up(l)).count() < max {
            let config = self.cover.config_of(&inner).unwrap_or_default();
            self.start_path(now, index, inner, config);
        }
        let Some(slot) = self.slots.at(index) else { return };
        let stale = slot.paths.iter().map(|(_, l)| l).filter(|l| !self.cover.is_up(l));
        let stale: Vec<Locators> = stale.collect();
        stale.into_iter().for_each(|inner| self.path_down(now, index, inner));
        self.mark(index);
    }

    /// A connection has a path less, unless it is its last: that one stays until there is another.
    fn path_down(&mut self, now: Instant, index: u32, inner: Locators) {
        let Some(slot) = self.slots.at(index) else { return };
        let others = || slot.paths.iter().map(|(_, l)| l).filter(|l| *l != inner);
        let some_proved = others().any(|l| self.cover.is_up(&l));
        if slot.paths.len() < 2 || !some_proved {
            return;
        }
        let (handle, path) = (slot.handle, slot.paths.iter().find(|(_, l)| *l == inner));
        if let Some((path, _)) = path {
            self.remove_path(now, handle, path);
        }
    }
}

impl Slot {
    /// Whether the peer has this address.
    pub(super) fn is_with(&self, peer: IpAddr) -> bool {
        self.remote == Some(peer)
    }

    fn takes_paths(&self) -> bool {
        use polypath_transport::State as S;
        !self.retired && !matches!(self.connection.state(), S::Closed | S::TimeWait)
    }
}
