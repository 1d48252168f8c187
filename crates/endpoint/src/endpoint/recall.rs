//! What is known of paths outlives the connections that measured it (RFC 9040).

use polypath_transport::{KnownPath, PathConfig};
use polypath_wire::{Duration, Instant};

use super::Endpoint;
use crate::cover::Cover;
use crate::known::PathName;
use crate::paths::Locators;

impl Endpoint {
    /// What is known of paths, each with its age: for [`Input::Known`](crate::Input::Known) of another endpoint of this
    /// host.
    pub fn known_paths(&mut self, now: Instant) -> Vec<(PathName, KnownPath, Duration)> {
        self.remember_open(now);
        self.known.iter(now).collect()
    }

    /// Keeps what open connections have measured.
    pub(super) fn remember_open(&mut self, now: Instant) {
        let open: Vec<u32> =
            self.slots.iter().filter(|s| !s.retired).map(|s| s.handle.index() as u32).collect();
        open.into_iter().for_each(|index| self.remember(now, index));
    }

    /// `config` of a path between `locators`, with what is known of it.
    pub(super) fn recalled(&self, now: Instant, locators: &Locators, config: PathConfig) -> PathConfig {
        let known = self.name_of(locators).and_then(|name| self.known.at(now, &name));
        PathConfig { known: config.known.or(known), ..config }
    }

    /// Keeps what a connection measured.
    pub(super) fn remember(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.get(index) else { return };
        let measured = |(path, locators)| slot.connection.known_path(path).zip(self.name_of(&locators));
        let measured: Vec<_> = slot.paths.iter().filter_map(measured).collect();
        for ((path, at), name) in measured {
            self.known.measured(now, name, path, now.since(at));
        }
    }

    /// The name of the path that connections know by these locators.
    fn name_of(&self, locators: &Locators) -> Option<PathName> {
        let outer = self.cover.outer(locators)?;
        let (local, remote) = (outer.local.ip(), outer.remote.ip());
        Some(PathName { peer: locators.remote.ip(), local, remote })
    }
}
