//! Paths that fall silent while others deliver, with `fail_silent`.
//!
//! Whatever is in flight on a path is acknowledged within about a round trip, on whichever path the acknowledgment
//! comes. If others deliver for longer than that and this path does not, it fails: what is in flight there goes again on
//! the others at once, before any timer of its own, and it gets probes only. When all paths are silent, it is not
//! the path.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::lane::{Failure, Lane};
use super::machine::{Engine, case};
use super::timers::Timer;
use crate::facts::{LossCause, LossEvent, PathState};
use crate::loss::policy::Order;

/// No path is given up sooner: acknowledgments may be delayed by 40 ms at one end and by the scheduler of either.
const SHORTEST: Duration = Duration::from_millis(100);
/// A pause of all paths counts for at most 1/`PART` of what fails a path: the peer may just have been busy.
const PART: u64 = 2;
/// The window of a path that is back, segments (RFC 6928), as after any idle time (RFC 5681 §4.1).
const RESTART: u64 = 10;

impl Engine {
    /// An acknowledgment delivered something: paths that are silent meanwhile fail. Returns them.
    #[inline(never)]
    pub(super) fn listen(&mut self, now: Instant, order: &dyn Order) -> PathSet {
        let pause = now.since(std::mem::replace(&mut self.delivered_at, now));
        let mut failed = PathSet::EMPTY;
        for i in 0..self.lanes.len() {
            let path = self.lanes.id_at(i);
            let (patience, waits) = (self.patience(path), self.lanes[path].flight.is_outstanding());
            let Lane { silence, flight, .. } = &mut self.lanes[path];
            if flight.fresh().bytes > 0 || !waits {
                silence.begin(now);
                continue;
            }
            silence.unheard += pause.min(patience.over(PART));
            if silence.unheard >= patience && self.works_without(now, path) {
                failed.insert(path);
            }
        }
        for i in 0..self.lanes.len() {
            let path = self.lanes.id_at(i);
            if failed.contains(path) {
                self.fall_silent(now, path, order);
            }
        }
        failed
    }

    #[cold]
    fn fall_silent(&mut self, now: Instant, path: PathId, order: &dyn Order) {
        let episode = self.policy.on_timeout(&case(now, path, (&self.views, &self.lanes), order));
        let loss = self.lose_all(now, path, LossCause::Silence, episode);
        self.fail(now, path, loss);
    }

    /// `path` gets probes only, the first one at once. The controller hears of the loss if the path is back before its
    /// timer would have run out: then it was congested rather than away.
    pub(super) fn fail(&mut self, now: Instant, path: PathId, loss: LossEvent) {
        self.lanes[path].doubt = None;
        self.views[path].state = PathState::Failed;
        self.lanes[path].silence.failure = Some(Failure { since: now, loss, asked: None });
        self.keep_one_open();
        self.timers.stop(Timer::Rto(path));
        self.timers.stop(Timer::Tail(path));
        self.timers.set(Timer::Probe(path), now);
    }

    /// A path that had failed may carry data again.
    pub(super) fn begin_again(&mut self, now: Instant, path: PathId) {
        let failure = self.lanes[path].silence.failure.take();
        let Some(Failure { since, loss, .. }) = failure else { return };
        if now.since(since) <= self.rto(path) {
            self.reduce_for(now, path, &loss);
        } else if !self.rules.one_window {
            let window = RESTART * u64::from(self.views[path].mss);
            self.controller.limit_window(path, window);
        }
        self.lanes[path].estimator.rtt.forgive();
    }

    /// Whether `path` failed by its silence. Then no old segment or acknowledgment revives it: they may come late
    /// or over other paths.
    pub(crate) fn is_silent(&self, path: PathId) -> bool {
        self.lanes.get(path).is_some_and(|p| p.silence.failure.is_some())
    }

    /// Whether the answer to something that left on `path` at `sent` shows that it works.
    pub(crate) fn is_sign_of_life(&self, path: PathId, sent: Instant) -> bool {
        !self.is_silent(path) || sent >= self.lanes[path].silence.heard
    }

    /// Heartbeat `number` probes `path`.
    pub(crate) fn probe_sent(&mut self, path: PathId, number: u32) {
        let failure = self.lanes[path].silence.failure.as_mut();
        failure.into_iter().for_each(|f| _ = f.asked.get_or_insert(number));
    }

    /// Whether the answer to heartbeat `number` shows that `path`, which failed by its silence, works again.
    pub(crate) fn is_probe_answered(&self, path: PathId, number: u32) -> bool {
        let failure = self.lanes.get(path).and_then(|p| p.silence.failure);
        failure.and_then(|f| f.asked).is_some_and(|first| number.wrapping_sub(first) < 1 << 31)
    }

    /// Whether another path works, as far as we know: its timer has not run out, and it has been silent for half as long
    /// at most, or has nothing to deliver.
    pub(super) fn works_without(&self, now: Instant, path: PathId) -> bool {
        let silent = |path: PathId| now.since(self.lanes[path].silence.heard);
        let works = |other: PathId| {
            self.lanes[other].timeouts == 0
                && (!self.lanes[other].flight.is_outstanding() || silent(other).times(2) <= silent(path))
        };
        self.views[path].state == PathState::Active
            && self.views.iter().any(|v| v.id != path && v.state == PathState::Active && works(v.id))
    }

    /// For how long only others may deliver: a round trip, another one for a probe of the tail, and what they vary.
    fn patience(&self, path: PathId) -> Duration {
        let rtt = &self.lanes[path].estimator.rtt;
        match rtt.srtt().zip(rtt.rttvar()) {
            Some((srtt, var)) => (srtt.times(2) + var.times(4)).max(SHORTEST),
            None => rtt.rto(),
        }
    }
}
