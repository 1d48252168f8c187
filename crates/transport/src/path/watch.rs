//! mHIP's marks and heartbeats on the paths of a connection (Polishchuk and Gurtov, §III.B): an observer of what leaves and what is
//! delivered. What it learns of one path is in `knowledge.rs`.

use polypath_wire::{Duration, Instant, PathId};

use super::knowledge::{Knowledge, KnowledgeConfig};
use crate::path_map::{OfPath, PathMap};

/// The paths that are watched, each from the first mark or heartbeat on it on.
#[derive(Debug)]
pub(crate) struct Watch {
    config: KnowledgeConfig,
    paths: PathMap<Watched>,
}

#[derive(Debug)]
struct Watched {
    path: PathId,
    knowledge: Knowledge,
}

impl OfPath for Watched {
    fn path(&self) -> PathId {
        self.path
    }
}

impl Watch {
    /// Watches as `config` asks.
    pub(crate) fn new(config: KnowledgeConfig) -> Self {
        Self { config, paths: PathMap::default() }
    }

    /// Whether packets are marked.
    #[inline]
    pub(crate) fn marks_packets(&self) -> bool {
        self.config.marks_packets()
    }

    /// Whether a loss episode closes its path.
    pub(crate) fn closes_on_loss(&self) -> bool {
        self.config.close_on_loss
    }

    /// The path is gone.
    pub(crate) fn remove(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// How much longer than modelled packets on `path` take lately.
    pub(crate) fn excess(&self, path: PathId) -> Duration {
        match self.paths.is_empty() {
            true => Duration::ZERO,
            false => self.paths.get(path).map_or(Duration::ZERO, |p| p.knowledge.excess()),
        }
    }

    /// Somebody sees how much longer than modelled a packet on `path` takes now.
    pub(crate) fn reveal(&mut self, path: PathId, excess: Duration) {
        self.of(path).reveal(excess);
    }

    /// Transmission `tx` leaves on `path`, to wait behind our own for `wait`.
    pub(crate) fn on_sent(&mut self, now: Instant, path: PathId, tx: u64, wait: Duration) {
        self.of(path).on_sent(now, tx, wait);
    }

    /// Transmissions on `path` up to `highest` were delivered; `fastest` is its smallest round trip. Returns by how much
    /// the marked one was late, if that is more than is tolerated.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        path: PathId,
        highest: u64,
        fastest: Duration,
    ) -> Option<Duration> {
        let limit = self.config.close_late;
        let late = self.of(path).on_delivered(now, highest, fastest);
        late.zip(limit).filter(|(late, limit)| late > limit).map(|(late, _)| late)
    }

    /// Heartbeat `number` leaves on `path`.
    pub(crate) fn on_heartbeat_sent(&mut self, now: Instant, path: PathId, number: u64, wait: Duration) {
        self.of(path).on_heartbeat_sent(now, number, wait);
    }

    /// Heartbeat `number` came back on `path`; `round_trip` is twice the configured one-way delay. Returns whether the path, if it
    /// was closed, is free again.
    pub(crate) fn on_heartbeat(
        &mut self,
        now: Instant,
        path: PathId,
        number: u64,
        round_trip: Option<Duration>,
    ) -> bool {
        self.paths.get_mut(path).is_some_and(|p| p.knowledge.on_heartbeat(now, number, round_trip))
    }

    /// `path` is closed: its packets take by `late` more than expected, or one was lost.
    pub(crate) fn close(&mut self, path: PathId, late: Duration) {
        let config = self.config;
        let knowledge = self.of(path);
        knowledge.close(&config, knowledge.excess() - late);
    }

    /// `path` is open again without a heartbeat in time.
    pub(crate) fn reopen(&mut self, path: PathId) {
        self.of(path).reopen();
    }

    fn of(&mut self, path: PathId) -> &mut Knowledge {
        let new = |path| Watched { path, knowledge: Knowledge::default() };
        &mut self.paths.or_insert(path, new).knowledge
    }
}
