//! Paths come, change, fail, come back and go.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::silence::Silence;
use super::{PathSender, Sender};
use crate::conn::config::PathConfig;
use crate::conn::stats::PathStats;
use crate::conn::timers::{Timer, Timers};
use crate::facts::{Episode, KnownPath, LossCause, PathState, PathView};
use crate::path::estimator::PathEstimator;
use crate::path::knowledge::Knowledge;
use crate::path::routes::Routes;

/// A failed path is probed at most and, after the first time, at least this often.
const PROBE_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(1)];

/// Bytes delivered on a path before what was measured is worth keeping.
const WORTH_KNOWING: u64 = 100_000;

impl Sender {
    /// Adds a path whose segments carry up to `mss` bytes.
    pub fn add_path(&mut self, now: Instant, config: &PathConfig, mss: u32) {
        let id = PathId(self.paths.len() as u8);
        self.controller.on_path_added(now, id, mss);
        self.board.add_lane();
        self.routes.iter_mut().for_each(Routes::add);
        self.paths.reserve_exact(1); // most connections have one path, and a vector makes room for four
        self.views.reserve_exact(1);
        self.paths.push(PathSender {
            estimator: PathEstimator::new(self.rules.rto, config.rate, config.one_way),
            knowledge: Knowledge::default(),
            stats: PathStats::default(),
            recovering: None,
            timeouts: 0,
            silence: Silence::default(),
            timed_from: 0,
            burst: 0,
            known: config.known,
        });
        let overhead = if config.rate.is_some() { config.overhead } else { 0 };
        self.views.push(PathView { idle_at: now, overhead, ..PathView::new(id, mss) });
        self.refresh(now, id);
    }

    /// Takes a path away; what was in flight there is lost.
    pub fn remove_path(&mut self, now: Instant, path: PathId, timers: &mut Timers) {
        self.lose_all(now, path, LossCause::PathRemoved, Episode::default());
        self.views[path.index()].state = PathState::Removed;
        self.controller.on_path_removed(path);
        self.keep_one_open();
        timers.stop(Timer::Rto(path));
        timers.stop(Timer::Tail(path));
        timers.stop(Timer::Probe(path));
        self.refresh(now, path);
    }

    /// The largest payload of `path` is `mss` from now on. What is under way and larger will not arrive:
    /// it goes again at once, and as this is no congestion, the window stays (RFC 1191 §6.4).
    pub fn set_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        let most = mss + u32::from(self.stream.is_finished());
        for id in self.board.in_flight_ids(path) {
            if self.board.segment(id).is_some_and(|s| s.len > most)
                && let Some(sent) = self.board.mark_lost(id)
            {
                self.losses.push((path, sent.offset, sent.len, LossCause::TooBig, Episode::default()));
            }
        }
        self.views[path.index()].mss = mss;
        self.controller.on_mss(path, mss);
        self.refresh(now, path);
    }

    /// A failed path answered.
    #[cold]
    pub fn revive(&mut self, now: Instant, path: PathId, timers: &mut Timers) {
        self.views[path.index()].state = PathState::Active;
        self.paths[path.index()].timeouts = 0;
        timers.stop(Timer::Probe(path));
        self.begin_again(now, path);
        self.refresh(now, path);
    }

    /// If no path is open, those that failed are tried again, as a path is that has no other: their timeouts
    /// end the connection, which probes do not. Returns them.
    pub fn retry_failed(&mut self, now: Instant, timers: &mut Timers) -> PathSet {
        if self.views.iter().any(|v| v.state == PathState::Active) {
            return PathSet::EMPTY;
        }
        let failed: PathSet =
            self.views.iter().filter(|v| v.state == PathState::Failed).map(|v| v.id).collect();
        failed.iter().for_each(|path| self.revive(now, path, timers));
        failed
    }

    /// How long until the next probe of a failed path, after a first one at its backed-off timeout: its timeout,
    /// but soon enough that a path that came back is used again within seconds.
    pub fn probe_interval(&self, path: PathId) -> Duration {
        let [shortest, longest] = PROBE_INTERVALS;
        self.rto(path).clamp(shortest, longest)
    }

    /// So many SYNs or SYN-ACKs were lost on `path`: data begins with a longer timeout (RFC 6298 §5.7), and with one
    /// segment if there were several (RFC 5681 §3.1, RFC 6928 §2).
    pub fn after_lost_syns(&mut self, now: Instant, path: PathId, lost: u32) {
        if lost > 0 {
            self.paths[path.index()].estimator.rtt.after_lost_syn();
        }
        if lost > 1 {
            self.controller.limit_window(path, self.views[path.index()].mss.into());
            self.refresh(now, path);
        }
    }

    /// Something that is not data took `rtt` on `path` and back.
    pub fn measured(&mut self, now: Instant, path: PathId, rtt: Duration) {
        self.paths[path.index()].estimator.rtt.sample(rtt);
        self.recall(path, rtt);
        self.refresh(now, path);
    }

    /// The first round trip of `path`: if it is like the known one, the controller hears what was known.
    pub(super) fn recall(&mut self, path: PathId, rtt: Duration) {
        let Some(known) = self.paths[path.index()].known.take() else { return };
        if rtt.times(2) >= known.rtt && rtt <= known.rtt.times(2) {
            self.controller.on_known(path, &KnownPath { rtt: rtt.min(known.rtt), ..known });
        }
    }

    /// What the next connection may know of `path`, and since when.
    pub fn known_path(&self, path: PathId) -> Option<(KnownPath, Instant)> {
        let p = self.paths.get(path.index()).filter(|p| p.stats.bytes_delivered >= WORTH_KNOWING)?;
        let (rate, rtt) = p.estimator.bandwidth.rate().zip(p.estimator.rtt.min())?;
        Some((KnownPath { rate, rtt }, p.estimator.bandwidth.measured_at()))
    }

    /// Whether `path` is there, as it is once the peer's SYN came.
    pub fn has_joined(&self, path: PathId) -> bool {
        path.index() < self.paths.len()
    }

    /// State of a path.
    pub fn path_state(&self, path: PathId) -> PathState {
        self.views[path.index()].state
    }

    /// The path for a segment that is not data: `preferred` if it works, else the quickest that does.
    pub fn path_for_control(&self, preferred: PathId) -> PathId {
        let active = |v: &&PathView| v.state == PathState::Active;
        match self.views.get(preferred.index()).filter(active) {
            Some(view) => view.id,
            None => self.views.iter().filter(active).min_by_key(|v| v.srtt).map_or(preferred, |v| v.id),
        }
    }

    /// The last round trip measured on `path`.
    pub fn latest_rtt(&self, path: PathId) -> Option<Duration> {
        self.paths[path.index()].estimator.rtt.latest()
    }

    /// Counters and state of `path`.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        let p = &self.paths[path.index()];
        let snapshot = self.controller.snapshot(path);
        PathStats {
            cwnd: snapshot.window,
            ssthresh: snapshot.ssthresh,
            in_flight: self.board.in_flight(path),
            srtt: p.estimator.rtt.srtt(),
            min_rtt: p.estimator.rtt.min(),
            rate: snapshot.rate.or(p.estimator.rate()),
            ..p.stats.clone()
        }
    }
}
