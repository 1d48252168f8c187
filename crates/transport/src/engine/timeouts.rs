//! What the engine does when one of its timers expires.

use polypath_wire::{Duration, Instant, PathId};

use super::config::TimeoutTakes;
use super::facts::Fact;
use super::lane::Doubt;
use super::machine::{Engine, case};
use super::timers::Timer;
use crate::facts::{Episode, LossCause, LossEvent, LostSegment, PathState};
use crate::loss::policy::{Departure, Order};

/// What the owner says of a path whose retransmission timer expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Overdue {
    /// The peer took back what it had acknowledged: all counts as lost, whether other paths work or not.
    pub reneged: bool,
    /// An echo may yet show that the timeout was for nothing.
    pub doubtful: bool,
    /// All that is in flight there lies beyond the peer's window, where the peer drops it: that is no fault of the path.
    pub beyond_window: bool,
}

impl Engine {
    /// The retransmission timer of `path` expired, on which something is under way. Returns whether the path failed.
    pub(crate) fn on_rto(&mut self, now: Instant, path: PathId, overdue: Overdue, order: &dyn Order) -> bool {
        self.stalled += 1;
        let lane = &mut self.lanes[path];
        lane.timeouts += 1;
        lane.estimator.rtt.back_off();
        let first = lane.timeouts == 1;
        self.clear_credit();
        let may_fail = !overdue.beyond_window;
        let lost = may_fail && self.rules.fail_silent && !overdue.reneged && self.works_without(now, path);
        let doubtful = overdue.doubtful && first && !lost && self.may_doubt(path);
        let episode = self.policy.on_timeout(&case(now, path, (&self.views, &self.lanes), order));
        let loss = self.lose_at_timeout(now, path, episode);
        if first && !lost {
            self.reduce_for(now, path, &loss);
            self.lanes[path].doubt = doubtful.then_some(Doubt { since: now, episode });
        }
        let failed = lost || may_fail && self.failed_too_often(path);
        if failed {
            self.lose_all(now, path, LossCause::Timeout, episode); // no timer of a failed path waits for the rest
        }
        if lost {
            self.fail(now, path, loss);
        } else if failed {
            self.views[path].state = PathState::Failed;
            self.keep_one_open();
            self.timers.set(Timer::Probe(path), now + self.rto(path));
        }
        if !failed && self.lanes[path].is_outstanding() && !self.timers.is_set(Timer::Rto(path)) {
            self.rearm(now, path); // the timeout took part of it
        }
        self.refresh_all(now); // all lost their credit
        failed
    }

    /// What is in flight lay beyond the peer's window, which opens again: what the peer dropped is not to wait for timers that were backed off.
    #[cold]
    pub(crate) fn on_window_reopened(&mut self, now: Instant) {
        for i in 0..self.lanes.len() {
            let path = self.lanes.id_at(i);
            self.lanes[path].estimator.rtt.forgive();
            self.restart_rto(now, path);
        }
    }

    /// Whether this number of timeouts in a row fails `path`: the last path never fails.
    fn failed_too_often(&self, path: PathId) -> bool {
        let alone = !self.views.iter().any(|v| v.id != path && v.state == PathState::Active);
        !alone && self.rules.fail_after.is_some_and(|after| self.lanes[path].timeouts >= after)
    }

    /// Whether all that a timeout of `path` takes for lost may be in flight: nothing there was lost before.
    fn may_doubt(&self, path: PathId) -> bool {
        self.rules.undoes_timeouts && self.lanes[path].recovering.is_none()
    }

    /// The timeout of `path` that may have been for nothing; it is asked for once.
    pub(crate) fn take_doubt(&mut self, path: PathId) -> Option<Doubt> {
        self.lanes.get_mut(path)?.doubt.take()
    }

    /// The timeout of `path` in this episode was for nothing: the answer was under way, which took `rtt`.
    pub(crate) fn undo_timeout(&mut self, now: Instant, path: PathId, episode: Episode, rtt: Duration) {
        self.policy.on_undo(path);
        self.controller.on_undo(now, path, episode);
        self.lanes[path].estimator.rtt.was_late(rtt);
    }

    /// What a timeout takes for lost.
    pub(crate) fn timeout_takes(&self) -> TimeoutTakes {
        self.rules.timeout_takes
    }

    /// The retransmission timer of `path` starts again.
    pub(crate) fn rearm(&mut self, now: Instant, path: PathId) {
        self.timers.set(Timer::Rto(path), now + self.rto(path));
    }

    /// What the timeout of `path` takes for lost there; if it takes all paths, the others start over here.
    fn lose_at_timeout(&mut self, now: Instant, path: PathId, episode: Episode) -> LossEvent {
        match self.rules.timeout_takes {
            TimeoutTakes::Path | TimeoutTakes::Head => {}
            TimeoutTakes::Connection => {
                for other in self.lanes.ids().filter(|other| *other != path).collect::<Vec<_>>() {
                    let loss = self.lose_all(now, other, LossCause::Timeout, episode);
                    self.reduce_for(now, other, &loss);
                }
            }
            TimeoutTakes::Segment => {
                let oldest = self.lanes[path].flight.numbers().into_iter().take(1).collect();
                return self.lose_these(now, path, oldest, LossCause::Timeout, episode);
            }
        }
        self.lose_all(now, path, LossCause::Timeout, episode)
    }

    /// All that is in flight on `path` is lost: what the controller may hear of it.
    pub(super) fn lose_all(
        &mut self,
        now: Instant,
        path: PathId,
        cause: LossCause,
        episode: Episode,
    ) -> LossEvent {
        let numbers = self.lanes[path].flight.numbers();
        self.lose_these(now, path, numbers, cause, episode)
    }

    /// The transmissions `numbers` on `path` are lost.
    fn lose_these(
        &mut self,
        now: Instant,
        path: PathId,
        numbers: Vec<u64>,
        cause: LossCause,
        episode: Episode,
    ) -> LossEvent {
        let flight_size = self.flight_size(path);
        let mut event = LossEvent { cause, episode, bytes: 0, flight_size, oldest_sent: now };
        for number in numbers {
            if let Some(lost) = self.give_up(path, number, cause, episode) {
                event.bytes += lost.bytes;
                event.oldest_sent = event.oldest_sent.min(lost.sent_at);
                self.controller.on_lost(now, path, &lost);
            }
        }
        event.bytes += std::mem::take(&mut self.lanes[path].aside);
        self.facts.push(Fact::LostAside(path));
        if matches!(cause, LossCause::Timeout | LossCause::Silence) {
            self.lanes[path].recovering = None; // slow start begins at once (RFC 5681 §3.1)
        }
        event
    }

    /// The transmission `number` on `path` is taken to be lost, and nobody is to blame, if it is in flight.
    pub(crate) fn give_up(
        &mut self,
        path: PathId,
        number: u64,
        cause: LossCause,
        episode: Episode,
    ) -> Option<LostSegment> {
        let transmission = self.lanes[path].flight.lose(number)?;
        self.end_start(path);
        let cargo = transmission.cargo;
        let what = Departure { path, number, cargo: cargo.key };
        self.facts.push(Fact::Lost { what, transmission, cause, episode, charged: path, first: false });
        Some(LostSegment { offset: cargo.key, bytes: cargo.len.into(), sent_at: transmission.sent_at })
    }

    /// The controller of `path` hears of a loss, if anything was lost.
    pub(super) fn reduce_for(&mut self, now: Instant, path: PathId, loss: &LossEvent) {
        if loss.bytes > 0 {
            self.controller.on_loss(now, path, loss, self.views.as_slice());
        }
    }

    /// `path` was silent for too long: its tail is probed.
    pub(crate) fn on_tail_timeout(&mut self, path: PathId) {
        if self.views[path].state == PathState::Active && self.lanes[path].flight.is_outstanding() {
            self.probe = Some(path);
        }
    }

    /// The controller's period is over.
    pub(crate) fn on_congestion_timeout(&mut self, now: Instant) {
        self.controller.on_timeout(now, self.views.as_slice());
        if let Some(at) = self.controller.next_timeout() {
            self.timers.set(Timer::Congestion, at);
        }
        self.refresh_all(now);
    }

    /// The retransmission timeout of `path`, or the longest if it is gone.
    pub(crate) fn rto(&self, path: PathId) -> Duration {
        self.lanes.get(path).map_or(self.rules.rto.max, |p| p.estimator.rtt.rto())
    }
}
