//! Paths come, change, fail, come back and go.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::config::PathConfig;
use super::lane::{Lane, Silence, Start};
use super::machine::Engine;
use super::marks::Marks;
use super::piece::Piece;
use super::stats::PathStats;
use super::timers::Timer;
use crate::facts::{Episode, FirstFlight, KnownPath, LossCause, PathState, PathView};
use crate::path::estimator::PathEstimator;
use crate::path::flight::Flight;
use crate::path::limit::Limit;
use crate::path::others::Others;

/// A failed path is probed at most and, after the first time, at least this often.
const PROBE_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(1)];

/// Bytes delivered on a path before what was measured is worth keeping.
const WORTH_KNOWING: u64 = 100_000;

/// Segments after whose delivery slow start goes on alone, unless they had a turn: as many as may leave at once (RFC 6928).
const UNKNOWN: u64 = 10;

/// Most segments of a request, which needs no turn.
const REQUEST: u64 = 2;

impl Engine {
    /// Adds the path `id`, whose segments carry up to `mss` bytes.
    pub(crate) fn add_path(&mut self, now: Instant, id: PathId, config: &PathConfig, mss: u32) {
        self.controller.on_path_added(now, id, mss);
        config.link.into_iter().for_each(|link| self.controller.on_link(now, id, link));
        config.bottleneck.into_iter().for_each(|it| self.controller.on_bottleneck(now, id, it));
        self.lanes.iter_mut().for_each(|lane| lane.flight.joined_by_another());
        self.observers.add_path(id);
        self.timers.add_path(id);
        let round_trip = config.round_trip.or(config.known.map(|known| known.rtt));
        self.lanes.insert(Lane {
            path: id,
            flight: Flight::new(self.lanes.is_empty()),
            aside: 0,
            beside: None,
            estimator: PathEstimator::new(self.rules.rto, config.rate, config.one_way, self.rules.trains)
                .expecting(round_trip, config.last_round_trip),
            stats: PathStats::default(),
            recovering: None,
            timeouts: 0,
            silence: Silence::default(),
            doubt: None,
            timed_from: 0,
            burst: 0,
            was_full: false,
            together: 0,
            known: config.known,
            start: Start::Ahead,
            first_flight: UNKNOWN * u64::from(mss),
            had_turn: false,
            limit: config.max_rate.map(|rate| Limit::new(rate, config.overhead)),
            marks: Marks::default(),
            others: Others::default(),
            piece: Piece::default(),
        });
        let overhead = if config.rate.is_some() { config.overhead } else { 0 };
        let view = PathView { idle_at: now, overhead, spill: config.spill, ..PathView::new(id, mss) };
        self.views.insert(view);
        self.consider_paths();
        self.refresh_all(now); // it may share a window with others
    }

    /// From now on `path` spills, or no longer: it carries what the others have no room for.
    pub(crate) fn set_spill(&mut self, path: PathId, spill: bool) {
        self.views[path].spill = spill;
        self.consider_paths();
    }

    /// What the paths there are mean for all.
    fn consider_paths(&mut self) {
        self.rules.consider(&*self.controller, self.lanes.as_slice(), self.views.as_slice());
    }

    /// Takes a path away; what was in flight there is lost.
    pub(crate) fn remove_path(&mut self, now: Instant, path: PathId) {
        self.timers.remove_path(path);
        self.lose_all(now, path, LossCause::PathRemoved, Episode::default());
        self.controller.on_path_removed(now, path);
        self.scheduler.on_path_removed(path);
        self.policy.on_path_removed(path);
        self.observers.remove_path(path);
        self.clock.remove_path(path);
        self.lanes.remove(path);
        self.views.remove(path);
        self.consider_paths();
        self.probe.take_if(|probed| *probed == path);
        self.keep_one_open();
        self.refresh_all(now);
    }

    /// The largest payload of `path` is `mss` from now on, and cargo of more than `most` bytes does not arrive: it
    /// goes again at once, and as this is no congestion, the window stays (RFC 1191 §6.4).
    pub(crate) fn set_mss(&mut self, now: Instant, path: PathId, mss: u32, most: u32) {
        let flight = &self.lanes[path].flight;
        let large: Vec<_> =
            flight.iter().filter(|(_, t)| t.cargo.len > most).map(|(number, _)| number).collect();
        for number in large {
            self.give_up(path, number, LossCause::TooBig, Episode::default());
        }
        self.views[path].mss = mss;
        self.controller.on_mss(path, mss);
        self.refresh_all(now);
    }

    /// The peer must prove that it is at the other end of `path`: no data goes there before.
    pub(crate) fn distrust(&mut self, now: Instant, path: PathId) {
        self.views[path].state = PathState::Unproved;
        self.refresh(now, path);
    }

    /// It is proved.
    pub(crate) fn trust(&mut self, now: Instant, path: PathId) {
        self.views[path].state = PathState::Active;
        self.refresh(now, path);
    }

    /// A failed path answered.
    #[cold]
    pub(crate) fn revive(&mut self, now: Instant, path: PathId) {
        self.views[path].state = PathState::Active;
        self.lanes[path].timeouts = 0;
        self.timers.stop(Timer::Probe(path));
        self.begin_again(now, path);
        self.refresh_all(now);
    }

    /// If no path is open, those that failed are tried again, as a path is that has no other: their timeouts
    /// end the connection, which probes do not. Returns them.
    pub(crate) fn retry_failed(&mut self, now: Instant) -> Vec<PathId> {
        if self.views.iter().any(|v| v.state == PathState::Active) {
            return Vec::new();
        }
        let failed = self.views.iter().filter(|v| v.state == PathState::Failed);
        let failed: Vec<_> = failed.map(|v| v.id).collect();
        failed.iter().for_each(|path| self.revive(now, *path));
        failed
    }

    /// How long until the next probe of a failed path, after a first one at its backed-off timeout: its timeout,
    /// but soon enough that a path that came back is used again within seconds.
    pub(crate) fn probe_interval(&self, path: PathId) -> Duration {
        let [shortest, longest] = PROBE_INTERVALS;
        self.rto(path).clamp(shortest, longest)
    }

    /// `lost` SYNs or SYN-ACKs were lost on `path`: data begins with a longer timeout (RFC 6298 §5.7), and with one
    /// segment if there were several (RFC 5681 §3.1, RFC 6928 §2).
    pub(crate) fn after_lost_syns(&mut self, now: Instant, path: PathId, lost: u32) {
        let Some(p) = self.lanes.get_mut(path).filter(|_| lost > 0) else { return };
        p.start = Start::Over;
        p.estimator.rtt.after_lost_syn();
        if lost > 1 {
            self.controller.limit_window(path, self.views[path].mss.into());
            self.refresh(now, path);
        }
    }

    /// Something that is not data took `rtt` on `path` and back.
    pub(crate) fn measured(&mut self, now: Instant, path: PathId, rtt: Duration) {
        let Some(p) = self.lanes.get_mut(path) else { return };
        p.estimator.rtt.sample(rtt);
        let wait = rtt - p.estimator.rtt.min().unwrap_or(rtt);
        self.note_wait(now, path, wait);
        self.recall(path, rtt);
        self.refresh(now, path);
    }

    /// The first round trip of `path` took `rtt`: whether the rate that is known of it counts.
    pub(super) fn recall(&mut self, path: PathId, rtt: Duration) {
        let lane = &mut self.lanes[path];
        if let Some(known) = lane.known.take().and_then(|known| known.at(rtt))
            && self.rules.trains
        {
            lane.estimator.show(known.rate);
        }
    }

    /// Whether `waiting` bytes ask for turns in the first flight: if they are the first and more than a request, or one turn is used up.
    #[inline]
    pub(crate) fn asks(&self, waiting: u64) -> bool {
        let with = |start| {
            self.lanes.iter().filter(move |lane| lane.start == start).map(|lane| &self.views[lane.path])
        };
        if with(Start::Begun).next().is_some() {
            return with(Start::Begun).all(|view| view.room < waiting.min(view.mss.into()) as i64);
        }
        with(Start::Ahead).any(|view| waiting > REQUEST * u64::from(view.mss))
    }

    /// What `path` has under way and how long its last round trip was, if its first flight is not over, and may leave.
    pub(crate) fn starts(&mut self, path: PathId) -> Option<(u64, Duration)> {
        let (lane, view) = self.lanes.get_mut(path).zip(self.views.get(path))?;
        if !self.controller.starts(path) {
            lane.start = Start::Over;
        }
        let may = view.state == PathState::Active && !view.spill && lane.start != Start::Over;
        lane.estimator.rtt.latest().filter(|_| may).map(|rtt| (lane.in_flight(), rtt))
    }

    /// `first` is a turn in the first flight of `path`, which [starts](Self::starts).
    pub(crate) fn start(&mut self, now: Instant, path: PathId, first: FirstFlight) {
        let (lane, view) = (&mut self.lanes[path], &mut self.views[path]);
        (lane.start, lane.had_turn) = (Start::Begun, true);
        lane.first_flight = lane.first_flight.max(lane.stats.bytes_sent + first.bytes);
        if self.rules.trains {
            lane.estimator.show(first.known.rate);
        }
        let bytes = lane.in_flight() + first.bytes;
        self.controller.on_first_flight(path, &FirstFlight { bytes, ..first });
        if first.at > now {
            view.earliest_send = view.earliest_send.max(first.at);
        }
        self.refresh_all(now);
        let view = &self.views[path];
        if view.room < first.bytes.min(view.mss.into()) as i64 {
            self.lanes[path].start = Start::Over; // it did not help
        }
    }

    /// Something was lost on `path`, or marked: it has no more turns.
    #[inline]
    pub(super) fn end_start(&mut self, path: PathId) {
        let lane = &mut self.lanes[path];
        lane.start = Start::Over;
        if std::mem::take(&mut lane.had_turn) {
            self.lost_starts.insert(path);
        }
    }

    /// The paths whose first flights lost something, each once.
    #[inline]
    pub(crate) fn take_lost_starts(&mut self) -> PathSet {
        std::mem::take(&mut self.lost_starts)
    }

    /// What the next connection may know of `path`, and since when.
    pub(crate) fn known_path(&self, path: PathId) -> Option<(KnownPath, Instant)> {
        let p = self.lanes.get(path).filter(|p| p.stats.bytes_delivered >= WORTH_KNOWING)?;
        let (rate, rtt) = p.estimator.bandwidth.rate_of_path().zip(p.estimator.rtt.min())?;
        Some((KnownPath { rate, rtt }, p.estimator.bandwidth.measured_at()))
    }

    /// Another connection found `path` to lead through `bottleneck`.
    pub(crate) fn set_bottleneck(&mut self, now: Instant, path: PathId, bottleneck: u32) {
        self.controller.on_bottleneck(now, path, bottleneck);
        self.refresh_all(now);
    }

    /// The pairs of paths that this connection has compared, whether they share a bottleneck, and when they were compared last.
    pub(crate) fn pairs(&self) -> Vec<([PathId; 2], bool, Instant)> {
        self.controller.pairs()
    }

    /// Whether `path` is there, as it is once the peer's SYN came.
    pub(crate) fn has_joined(&self, path: PathId) -> bool {
        self.lanes.contains(path)
    }

    /// Whether the retransmission timer of `path` ran out since anything was delivered there.
    pub(crate) fn is_overdue(&self, path: PathId) -> bool {
        self.lanes.get(path).is_some_and(|lane| lane.timeouts > 0)
    }

    /// `path`, or if it is gone the first that is there.
    pub(crate) fn there(&self, path: PathId) -> Option<PathId> {
        if self.lanes.contains(path) { Some(path) } else { self.lanes.ids().next() }
    }

    /// State of a path.
    #[inline]
    pub(crate) fn path_state(&self, path: PathId) -> PathState {
        self.views.get(path).map_or(PathState::Removed, |v| v.state)
    }

    /// The path for a segment that is not data: `preferred` if it works, or may, else the quickest that does.
    pub(crate) fn path_for_control(&self, preferred: PathId) -> PathId {
        let active = |v: &&PathView| v.state == PathState::Active;
        let quickest = || self.views.iter().filter(active).min_by_key(|v| v.srtt).map(|v| v.id);
        let may = |v: &&PathView| matches!(v.state, PathState::Active | PathState::Unproved);
        match self.views.get(preferred).filter(may) {
            Some(view) => view.id,
            None => quickest().or(self.there(preferred)).unwrap_or(preferred),
        }
    }

    /// The last round trip measured on `path`.
    pub(crate) fn latest_rtt(&self, path: PathId) -> Option<Duration> {
        self.lanes[path].estimator.rtt.latest()
    }

    /// Counters and state of `path`.
    pub(crate) fn path_stats(&self, path: PathId) -> PathStats {
        let p = &self.lanes[path];
        let snapshot = self.controller.snapshot(path);
        PathStats {
            cwnd: snapshot.window,
            ssthresh: snapshot.ssthresh,
            in_flight: p.flight.in_flight(),
            srtt: p.estimator.rtt.srtt(),
            min_rtt: p.estimator.rtt.min(),
            rate: snapshot.rate.or(p.estimator.rate()),
            delivered_rate: p.estimator.bandwidth.rate_of_path(),
            bottleneck: self.controller.bottleneck(path),
            ..p.stats.clone()
        }
    }
}
