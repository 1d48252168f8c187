//! Paths of a connection: they come, change and go, and others tell of them what segments do not.

use polypath_wire::{Duration, Instant, PathId};

use super::config::PathConfig;
use super::connection::Connection;
use super::stats::PathStats;
use super::timers::Timer;
use crate::facts::{KnownPath, PathState};

impl Connection {
    /// Adds a path to an open connection; there may be 64 in its life, as many as a `PathSet` holds.
    pub fn add_path(&mut self, now: Instant, path: PathConfig) -> PathId {
        self.enrol(&path);
        if self.handshake.peer.is_some() {
            let mss = self.payload_size(&path);
            self.sender.add_path(now, &path, mss);
        }
        PathId((self.paths.len() - 1) as u8)
    }

    pub(super) fn enrol(&mut self, path: &PathConfig) {
        self.paths.reserve_exact(1);
        self.receiver.paths.reserve_exact(1);
        self.paths.push(*path);
        self.receiver.paths.push(Default::default());
        self.timers.add_path();
    }

    /// Removes a path; what is in flight on it is sent again on others.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        if path.index() >= self.paths.len() || self.removed.contains(path) {
            return;
        }
        self.burst = 0;
        self.removed.insert(path);
        if self.sender.has_joined(path) {
            self.sender.remove_path(now, path, &mut self.timers);
            self.observe_losses(now);
        }
        self.observe_path(now, path, PathState::Removed);
        for path in self.sender.retry_failed(now, &mut self.timers).iter() {
            self.observe_path(now, path, PathState::Active);
        }
        if path == self.handshake.path && self.timers.is_set(Timer::Handshake) {
            self.start_handshake(now, self.next_path(path));
        }
    }

    /// The path carries no larger segments than `mss` bytes of payload, as an ICMP message says: never
    /// more than before.
    pub fn path_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        let known = self.paths.get(path.index()).map_or(0, PathConfig::segment_size);
        self.path_carries(now, path, mss.min(known));
    }

    /// The path was found to carry segments of `mss` bytes of payload: more than before, or less (RFC 8899).
    /// Less than RFC 879's 536 is believed down to 64 bytes.
    pub fn path_carries(&mut self, now: Instant, path: PathId, mss: u32) {
        let Some(config) = self.paths.get_mut(path.index()) else { return };
        if config.segment_size() == mss {
            return;
        }
        config.carried = Some(mss.max(64));
        let config = *config;
        if self.sender.has_joined(path) {
            let mss = self.payload_size(&config);
            self.sender.set_mss(now, path, mss);
            self.observe_losses(now);
        }
    }

    /// The peer answered something else than a segment on `path` (a heartbeat), `rtt` after it was asked:
    /// a path that had failed works again, and one with nothing in flight is measured.
    pub fn path_answered(&mut self, now: Instant, path: PathId, rtt: Duration) {
        if !self.sender.has_joined(path) || self.removed.contains(path) {
            return;
        }
        if self.sender.is_sign_of_life(path, now - rtt) {
            self.revive(now, path);
        }
        if self.sender.flight_size(path) == 0 {
            self.sender.measured(now, path, rtt);
        }
    }

    /// The layer below numbers the packets of `path`, and some before the one that comes now are lost or late: what they
    /// held may be missing, which the next data on the path tells the peer at once.
    pub fn path_skipped(&mut self, path: PathId) {
        if let Some(path) = self.receiver.paths.get_mut(path.index()) {
            path.skipped = true;
        }
    }

    /// Something on `path` answered: if it had failed, it works again.
    #[inline]
    pub(super) fn revive(&mut self, now: Instant, path: PathId) {
        if self.path_state(path) == Some(PathState::Failed) {
            self.sender.revive(now, path, &mut self.timers);
            self.observe_path(now, path, PathState::Active);
        }
    }

    /// A packet that leaves on `path` now waits this long in all of its queues: somebody sees them, which
    /// no host does. What is measured afterwards replaces it.
    pub fn reveal_queues(&mut self, now: Instant, path: PathId, wait: Duration) {
        self.sender.reveal_queues(now, path, wait);
    }

    /// The path after `path` in the order of their ids that is still there, or `path` itself.
    pub(super) fn next_path(&self, path: PathId) -> PathId {
        let count = self.paths.len();
        let mut after = (1..count).map(|i| PathId(((path.index() + i) % count) as u8));
        after.find(|p| !self.removed.contains(*p)).unwrap_or(path)
    }

    /// Number of paths ever added.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Whether a path may carry data.
    pub fn path_state(&self, path: PathId) -> Option<PathState> {
        self.sender.views.get(path.index()).map(|v| v.state)
    }

    /// What the next connection may know of one path, and since when, if this one delivered enough there.
    pub fn known_path(&self, path: PathId) -> Option<(KnownPath, Instant)> {
        self.sender.known_path(path)
    }

    /// Counters and state of one path; zeros for a path that is not there or has not joined yet.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        if !self.sender.has_joined(path) {
            return PathStats::default();
        }
        let received = self.receiver.paths.get(path.index()).map_or(0, |p| p.bytes);
        PathStats { bytes_received: received, ..self.sender.path_stats(path) }
    }
}
