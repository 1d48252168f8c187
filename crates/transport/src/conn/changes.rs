//! Paths of a connection: they come, change and go, and others tell of them what segments do not.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::connection::{Connection, State};
use super::paths::Member;
use super::timers::Timer;
use crate::engine::config::PathConfig;
use crate::engine::lane::Lane;
use crate::engine::stats::PathStats;
use crate::facts::{Beside, FirstFlight, KnownPath, PathState, UnderWay};

impl Connection {
    /// Adds a path to an open connection. None if it has as many as there may be at a time,
    /// [64](PathId::PLACES).
    pub fn add_path(&mut self, now: Instant, path: PathConfig) -> Option<PathId> {
        let id = self.enrol(&path)?;
        if self.handshake.peer.is_some() || self.handshake.early {
            let mss = self.payload_size(&path);
            self.engine.add_path(now, id, &path, mss);
        }
        Some(id)
    }

    /// The same for a path at whose other end the peer has not proved to be: data may come there, and none goes before
    /// [`Self::path_proved`].
    pub fn add_unproved_path(&mut self, now: Instant, path: PathConfig) -> Option<PathId> {
        let id = self.add_path(now, path)?;
        if self.engine.has_joined(id) {
            self.engine.distrust(now, id);
            self.observe_path(now, id, PathState::Unproved);
        }
        Some(id)
    }

    /// The peer proved that it is at the other end of `path`.
    pub fn path_proved(&mut self, now: Instant, path: PathId) {
        if self.engine.path_state(path) == PathState::Unproved {
            self.engine.trust(now, path);
            self.observe_path(now, path, PathState::Active);
        }
    }

    /// The peer has another address on `path`. What went to the old one may be lost: what came is acknowledged again, so that the peer
    /// need not wait for its timer once more.
    pub fn path_moved(&mut self, now: Instant, path: PathId) {
        match self.state {
            State::Closed => {}
            State::SynSent | State::SynReceived => self.start_handshake(now, path),
            _ if self.paths.contains(path) => self.receiver.ack_now(path, None, &mut self.engine.timers),
            _ => {}
        }
    }

    pub(super) fn enrol(&mut self, path: &PathConfig) -> Option<PathId> {
        let id = self.paths.add(*path)?;
        self.receiver.add_path(id, path.mss);
        Some(id)
    }

    /// Removes a path; what is in flight on it is sent again on others, and late segments on it still count.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        if self.paths.members.remove(path).is_none() {
            return;
        }
        self.burst = 0;
        self.receiver.remove_path(path, &mut self.engine.timers);
        if self.engine.has_joined(path) {
            self.engine.remove_path(now, path);
            self.sender.follow(&mut self.engine);
            self.sender.remove_path(path);
            self.observe_losses(now);
        }
        self.observe_path(now, path, PathState::Removed);
        for path in self.engine.retry_failed(now) {
            self.observe_path(now, path, PathState::Active);
        }
        if path == self.handshake.path && self.engine.timers.is_set(Timer::HANDSHAKE) {
            self.start_handshake(now, self.paths.after(path));
        }
    }

    /// The path carries no larger segments than `mss` bytes of payload, as an ICMP message says: never
    /// more than before.
    pub fn path_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        let known = self.paths.members.get(path).map_or(0, |m| m.config.segment_size());
        self.path_carries(now, path, mss.min(known));
    }

    /// The path was found to carry segments of `mss` bytes of payload: more than before, or less (RFC 8899).
    /// Less than RFC 879's 536 is believed down to 64 bytes.
    pub fn path_carries(&mut self, now: Instant, path: PathId, mss: u32) {
        let Some(Member { config, .. }) = self.paths.members.get_mut(path) else { return };
        if config.segment_size() == mss {
            return;
        }
        config.carried = Some(mss.max(64));
        let config = *config;
        if self.engine.has_joined(path) {
            let mss = self.payload_size(&config);
            self.engine.set_mss(now, path, mss, self.sender.largest(mss));
            self.sender.follow(&mut self.engine);
            self.observe_losses(now);
        }
    }

    /// From now on `path` spills, or no longer: it carries what the others have no room for.
    pub fn path_spills(&mut self, path: PathId, spill: bool) {
        let Some(Member { config, .. }) = self.paths.members.get_mut(path) else { return };
        config.spill = spill;
        if self.engine.has_joined(path) {
            self.engine.set_spill(path, spill);
        }
    }

    /// Another connection found `path` to lead through `bottleneck`: paths of the same share it until measurements say otherwise.
    /// Whether that is news.
    pub fn path_bottleneck(&mut self, now: Instant, path: PathId, bottleneck: u32) -> bool {
        let Some(Member { config, .. }) = self.paths.members.get_mut(path) else { return false };
        let is_news = config.bottleneck.replace(bottleneck) != Some(bottleneck);
        if self.engine.has_joined(path) {
            self.engine.set_bottleneck(now, path, bottleneck);
            self.observe_bottlenecks(now);
        }
        is_news
    }

    /// How many bytes were sent on `path`, are in flight there, and were delivered.
    #[inline]
    pub fn under_way(&self, path: PathId) -> UnderWay {
        self.engine.lanes().get(path).map_or_else(UnderWay::default, Lane::under_way)
    }

    /// Other connections over the same path have this under way there, or nothing: what leaves waits behind it.
    #[inline]
    pub fn path_beside(&mut self, now: Instant, path: PathId, beside: Option<Beside>) {
        self.engine.set_beside(now, path, beside);
    }

    /// Bytes that wait for turns in first flights, if there are any.
    #[inline]
    pub fn asks(&self) -> Option<u64> {
        let waiting = self.sender.usable();
        (waiting > 0 && self.state != State::Closed && self.engine.asks(waiting)).then_some(waiting)
    }

    /// What `path` has under way and how long its last round trip was, if a turn there would count.
    pub fn starts(&mut self, path: PathId) -> Option<(u64, Duration)> {
        self.engine.starts(path)
    }

    /// A turn in the first flight of `path`, which [starts](Self::starts): the window grows to what it needs.
    pub fn start_path(&mut self, now: Instant, path: PathId, first: FirstFlight) {
        self.engine.start(now, path, first);
    }

    /// The paths whose first flights lost something, each once.
    #[inline]
    pub fn take_lost_starts(&mut self) -> PathSet {
        self.engine.take_lost_starts()
    }

    /// The peer answered something else than a segment on `path` (a heartbeat), `rtt` after it was asked:
    /// a path that had failed works again, and one with nothing in flight is measured.
    pub fn path_answered(&mut self, now: Instant, path: PathId, rtt: Duration) {
        if !self.engine.has_joined(path) {
            return;
        }
        if self.engine.is_sign_of_life(path, now - rtt) {
            self.revive(now, path);
        }
        if self.engine.flight_size(path) == 0 {
            self.engine.measured(now, path, rtt);
        }
    }

    /// The layer below numbers the packets of `path`, and some before the one that comes now are lost or late: what they
    /// held may be missing, which the next data on the path tells the peer at once.
    pub fn path_skipped(&mut self, path: PathId) {
        if let Some(path) = self.receiver.paths.get_mut(path) {
            path.skipped = true;
        }
    }

    /// Something on `path` answered: if it had failed, it works again.
    #[inline]
    pub(super) fn revive(&mut self, now: Instant, path: PathId) {
        if self.engine.path_state(path) == PathState::Failed {
            self.engine.revive(now, path);
            self.observe_path(now, path, PathState::Active);
        }
    }

    /// A packet that leaves on `path` now waits this long in all of its queues: somebody sees them, which
    /// no host does. What is measured afterwards replaces it.
    pub fn reveal_queues(&mut self, now: Instant, path: PathId, wait: Duration) {
        self.engine.reveal_queues(now, path, wait);
    }

    /// The paths that are there, in the order in which they came.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        self.paths.members.ids()
    }

    /// Whether a path may carry data; none before it has joined.
    pub fn path_state(&self, path: PathId) -> Option<PathState> {
        match self.paths.contains(path) {
            true => self.engine.views().get(path).map(|v| v.state),
            false => self.paths.knows(path).then_some(PathState::Removed),
        }
    }

    /// What the next connection may know of one path, and since when, if this one delivered enough there.
    pub fn known_path(&self, path: PathId) -> Option<(KnownPath, Instant)> {
        self.engine.known_path(path)
    }

    /// The pairs of paths that this connection has compared, whether they share a bottleneck, and when they were compared last.
    pub fn path_pairs(&self) -> Vec<([PathId; 2], bool, Instant)> {
        self.engine.pairs()
    }

    /// Counters and state of one path; zeros for a path that is not there or has not joined yet.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        if !self.engine.has_joined(path) {
            return PathStats::default();
        }
        let received = self.receiver.paths.get(path).map_or(0, |p| p.bytes);
        PathStats { bytes_received: received, ..self.engine.path_stats(path) }
    }
}
