//! HIP and ESP as the cover of an endpoint.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::BytesMut;
use polypath_transport::{PathConfig, PathStats};
use polypath_wire::hip::Hit;
use polypath_wire::{Duration, Ecn, Instant};

use super::{Security, inner};
use crate::cover::{Cargo, Change, Cover, Inner, name_of};
use crate::outlet::Outlet;
use crate::paths::Locators;

impl Cover for Security {
    fn open(&mut self, now: Instant, outer: &Locators, ecn: Ecn, bytes: BytesMut) -> Option<Inner> {
        self.receive(now, outer, ecn, bytes)
    }

    fn seal(&mut self, now: Instant, path: &Locators, cargo: Cargo<'_>, outlet: &mut impl Outlet) {
        self.send(now, path, &cargo, outlet);
    }

    /// HIP packets and heartbeats.
    fn transmit(&mut self, now: Instant, outlet: &mut impl Outlet) {
        while !outlet.is_full()
            && let Some((locators, ecn, payload)) = self.outbox.pop_front()
        {
            outlet.send_datagram(now, &locators, ecn, &payload);
        }
    }

    fn poll(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.hip.handle_timeout(now);
        self.paths.due(now).into_iter().for_each(|number| self.beat(now, number));
        self.settle(now);
    }

    /// The associations for which something is due at `now`, and those that changed since it last was.
    fn concerned(&self, now: Instant) -> BTreeSet<Hit> {
        let beats = self.paths.due(now).into_iter().filter_map(|number| self.paths.get(number));
        let mut concerned = &self.peers.concerned(now) | &self.hip.due(now);
        concerned.extend(beats.map(|path| path.peer));
        concerned
    }

    fn measured(&mut self, now: Instant, path: &Locators, stats: &PathStats) {
        let number = path.local.port();
        let Some(path) = self.paths.get_mut(number) else { return };
        path.see_rate(now, stats.delivered_rate);
        stats.srtt.into_iter().for_each(|srtt| path.heart.see_data(srtt));
        self.tell_round_trip(now, number);
    }

    fn quiet(&mut self, name: Hit) {
        let numbers: Vec<u16> = self.paths.of(name).map(|(number, _)| number).collect();
        for number in numbers {
            self.paths.get_mut(number).into_iter().for_each(|path| path.heart.see_data(Duration::ZERO));
        }
    }

    fn note_other(&mut self) {
        self.stats.other += 1;
    }

    fn has_news(&self) -> bool {
        let observed = self.records.as_ref().is_some_and(|records| !records.is_empty());
        observed || !self.events.is_empty()
    }

    fn authenticates(&self) -> bool {
        true
    }

    fn peer_at(&self, remote: IpAddr) -> Option<Hit> {
        name_of(remote).map(|name| self.hit_of(name))
    }

    fn takes_early_data(&self, remote: IpAddr) -> bool {
        let peer = name_of(remote).and_then(|name| self.peers.get(name));
        self.config.hip.early_data && peer.is_some_and(|peer| peer.early_data)
    }

    fn outer(&self, path: &Locators) -> Option<Locators> {
        self.paths.get(path.local.port()).map(|path| path.locators)
    }

    fn is_up(&self, path: &Locators) -> bool {
        let known = self.paths.get(path.local.port());
        known.is_some_and(|known| known.up && known.peer.as_ipv6() == path.remote.ip())
    }

    fn config_of(&self, path: &Locators) -> Option<PathConfig> {
        self.paths.get(path.local.port()).map(|path| self.path_config(path))
    }

    fn live_paths(&self, name: Hit) -> Vec<Locators> {
        let there = self.peers.get(name).is_some_and(|peer| peer.up);
        let live = self.paths.of(name).filter(|(_, path)| there && path.up);
        live.map(|(number, _)| inner(self.ours, name, number)).collect()
    }

    fn knows_sizes(&self, name: Hit) -> bool {
        self.paths.of(name).filter(|(_, path)| path.up).all(|(_, path)| path.mtu.is_settled())
    }
}
