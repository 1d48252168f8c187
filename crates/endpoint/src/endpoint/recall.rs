//! What is known of paths outlives the connections that measured it (RFC 9040).

use polypath_transport::{KnownPath, PathConfig};
use polypath_wire::{Duration, Instant, PathId};

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

    /// `config` of a path between `locators` on which a connection starts, with what is known of it.
    pub(super) fn recalled(&mut self, now: Instant, locators: &Locators, config: PathConfig) -> PathConfig {
        let Some(name) = self.name_of(locators) else { return config };
        let bottleneck = self.known.bottleneck(now, &name);
        let known = self
            .known
            .at(now, &name)
            .or_else(|| config.known.inspect(|known| self.known.insert(now, name, *known, Duration::ZERO)));
        PathConfig { known, bottleneck: config.bottleneck.or(bottleneck), ..config }
    }

    /// Keeps what a connection measured.
    pub(super) fn remember(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.get(index) else { return };
        let measured = |(path, locators)| {
            let (measured, at) = slot.connection.known_path(path)?;
            Some((locators, self.name_of(&locators)?, measured, at))
        };
        let measured: Vec<_> = slot.paths.iter().filter_map(measured).collect();
        let found = self.found(index);
        for (locators, name, path, at) in measured {
            self.known.measured(now, name, path, now.since(at));
            let known = self.known.at(now, &name);
            known.into_iter().for_each(|known| self.shared.learn(&locators, known.rate));
        }
        for (names, share, at) in found {
            self.known.found(now, names, share, now.since(at));
        }
    }

    /// Which paths of a connection share a bottleneck, and which do not, where it has measured that, and when it did last.
    fn found(&self, index: u32) -> Vec<([PathName; 2], bool, Instant)> {
        let Some(slot) = self.slots.get(index).filter(|slot| slot.paths.len() > 1) else { return vec![] };
        let name = |path| self.name_of(slot.paths.locators(path)?);
        let found = |([a, b], share, at): ([PathId; 2], _, _)| Some(([name(a)?, name(b)?], share, at));
        slot.connection.path_pairs().into_iter().filter_map(found).collect()
    }

    /// Tells a connection which bottlenecks others found on its paths.
    pub(super) fn tell_bottlenecks(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.get(index).filter(|slot| slot.paths.len() > 1) else { return };
        let known = |(path, locators)| Some((path, self.known.bottleneck(now, &self.name_of(&locators)?)?));
        let known: Vec<(PathId, u32)> = slot.paths.iter().filter_map(known).collect();
        let Some(slot) = self.slots.at(index) else { return };
        let mut is_news = false;
        for (path, bottleneck) in known {
            is_news |= slot.connection.path_bottleneck(now, path, bottleneck);
        }
        if is_news {
            self.mark(index);
        }
    }

    /// The name of the path that connections know by these locators.
    fn name_of(&self, locators: &Locators) -> Option<PathName> {
        name_of(&self.cover, locators)
    }
}

/// The name of the path that connections under `cover` know by these locators.
pub(super) fn name_of(cover: &impl Cover, locators: &Locators) -> Option<PathName> {
    let outer = cover.outer(locators)?;
    let (local, remote) = (outer.local.ip(), outer.remote.ip());
    Some(PathName { peer: locators.remote.ip(), local, remote })
}
