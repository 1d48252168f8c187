//! Peers and paths, found by name and by what is due: one peer costs the same beside a thousand others.

use std::collections::{BTreeMap, BTreeSet};

use polypath_wire::Instant;
use polypath_wire::deadlines::Named;
use polypath_wire::hip::Hit;

use super::Peer;
use super::path::SecurePath;
use crate::looks::Looks;

/// Secure paths by their numbers, by their peers and by their heartbeats.
#[derive(Debug, Default)]
pub(super) struct Paths {
    by_number: BTreeMap<u16, SecurePath>,
    of_peers: BTreeSet<(Hit, u16)>,
    beats: Named<u16>,
    pub looks: Looks,
}

impl Paths {
    pub fn get(&self, number: u16) -> Option<&SecurePath> {
        self.looks.count();
        self.by_number.get(&number)
    }

    /// To change it. After a change of its next heartbeat, [`Self::retime`].
    pub fn get_mut(&mut self, number: u16) -> Option<&mut SecurePath> {
        self.looks.count();
        self.by_number.get_mut(&number)
    }

    pub fn insert(&mut self, number: u16, path: SecurePath) {
        self.beats.set(number, Some(path.heart.next));
        self.of_peers.insert((path.peer, number));
        self.by_number.insert(number, path);
    }

    pub fn remove(&mut self, number: u16) {
        if let Some(path) = self.by_number.remove(&number) {
            self.of_peers.remove(&(path.peer, number));
            self.beats.set(number, None);
        }
    }

    /// The next heartbeat of a path leaves at another instant.
    pub fn retime(&mut self, number: u16) {
        let next = self.get(number).map(|path| path.heart.next);
        self.beats.set(number, next);
    }

    /// The next heartbeat of a path leaves at `at`.
    pub fn beat_at(&mut self, number: u16, at: Instant) {
        self.get_mut(number).into_iter().for_each(|path| path.heart.next = at);
        self.retime(number);
    }

    /// The paths whose heartbeats are due.
    pub fn due(&self, now: Instant) -> BTreeSet<u16> {
        self.beats.due(now)
    }

    /// When the first heartbeat is due.
    pub fn next_beat(&self) -> Option<Instant> {
        self.beats.next()
    }

    /// The paths of the association of that name, in the order of their numbers.
    pub fn of(&self, name: Hit) -> impl Iterator<Item = (u16, &SecurePath)> {
        let numbers = self.of_peers.range((name, 0)..=(name, u16::MAX));
        numbers.filter_map(|(_, number)| Some((*number, self.get(*number)?)))
    }

    /// All paths in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &SecurePath)> {
        self.by_number.iter().inspect(|_| self.looks.count()).map(|(number, path)| (*number, path))
    }
}

/// Peers by the names of their associations.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_name: BTreeMap<Hit, Peer>,
    /// When a path that a peer should have is asked for.
    asks: Named<Hit>,
    /// Those of which something has changed since it was looked at what they need.
    touched: BTreeSet<Hit>,
    pub looks: Looks,
}

impl Peers {
    pub fn get(&self, name: Hit) -> Option<&Peer> {
        self.looks.count();
        self.by_name.get(&name)
    }

    pub fn get_mut(&mut self, name: Hit) -> Option<&mut Peer> {
        self.looks.count();
        self.by_name.get_mut(&name)
    }

    /// The peer of that name, a new one if there is none.
    pub fn named(&mut self, name: Hit) -> &mut Peer {
        self.looks.count();
        self.by_name.entry(name).or_default()
    }

    pub fn remove(&mut self, name: Hit) {
        self.by_name.remove(&name);
        self.asks.set(name, None);
    }

    /// All names.
    pub fn names(&self) -> Vec<Hit> {
        self.by_name.keys().inspect(|_| self.looks.count()).copied().collect()
    }

    /// Something that concerns this peer has changed.
    pub fn touch(&mut self, name: Hit) {
        self.touched.insert(name);
    }

    /// Those to look after: touched, or with a path to request.
    pub fn concerned(&self, now: Instant) -> BTreeSet<Hit> {
        &self.touched | &self.asks.due(now)
    }

    /// They were looked after: sets when they are again.
    pub fn leave(&mut self, now: Instant, concerned: BTreeSet<Hit>) {
        for name in concerned {
            let ask = self.get(name).and_then(|peer| peer.next_ask(now));
            self.asks.set(name, ask);
        }
        self.touched.clear();
    }

    /// When the first path must be requested.
    pub fn next_ask(&self) -> Option<Instant> {
        self.asks.next()
    }
}
