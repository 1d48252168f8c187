//! What the sending half does when one of its timers expires.

use polypath_wire::{Duration, Instant, PathId};

use super::Sender;
use super::eifel::Doubt;
use crate::conn::timers::{Timer, Timers};
use crate::facts::{Episode, LossCause, LossEvent, PathState};
use crate::loss::scoreboard::Status;

impl Sender {
    /// The retransmission timer of `path` expired. Returns whether the path failed.
    pub fn on_rto(&mut self, now: Instant, path: PathId, timers: &mut Timers) -> bool {
        let reneged = self.reneged().is_some();
        if !self.is_outstanding(path) && !reneged {
            return false;
        }
        self.stalled += 1;
        let p = &mut self.paths[path];
        p.timeouts += 1;
        p.estimator.rtt.back_off();
        let first = p.timeouts == 1;
        self.board.clear_credit();
        if reneged {
            self.board.renege();
        }
        let lost = self.rules.fail_silent && !reneged && self.works_without(now, path);
        let doubtful = first && !lost && !reneged && self.may_doubt(path);
        let episode = self.policy.on_timeout(path, &self.board);
        let loss = self.lose_all(now, path, LossCause::Timeout, episode);
        if first && !lost {
            self.reduce_for(now, path, &loss);
            self.paths[path].doubt = doubtful.then_some(Doubt { since: now, episode });
        }
        let alone = !self.views.iter().any(|v| v.id != path && v.state == PathState::Active);
        let too_many = |after| self.paths[path].timeouts >= after;
        let failed = lost || !alone && self.rules.fail_after.is_some_and(too_many);
        if lost {
            self.fail(now, path, loss, timers);
        } else if failed {
            self.views[path].state = PathState::Failed;
            self.keep_one_open();
            timers.set(Timer::Probe(path), now + self.rto(path));
        }
        self.refresh_all(now); // all lost their credit
        failed
    }

    /// The path of the oldest segment, if it was acknowledged selectively and yet nothing acknowledges it
    /// cumulatively: the peer may have taken it back (RFC 2018 §8). Any path, if that one is gone.
    pub(super) fn reneged(&self) -> Option<PathId> {
        let (_, head) = self.board.head().filter(|(_, s)| s.status == Status::Sacked)?;
        self.there(head.path)
    }

    /// All that is in flight on `path` is lost: what the controller may hear of it.
    pub(super) fn lose_all(
        &mut self,
        now: Instant,
        path: PathId,
        cause: LossCause,
        episode: Episode,
    ) -> LossEvent {
        let ids = self.board.in_flight_ids(path);
        let flight_size = self.flight_size(path);
        let mut event = LossEvent { cause, episode, bytes: 0, flight_size, oldest_sent: now };
        for id in ids {
            if let Some(sent) = self.board.mark_lost(id) {
                event.bytes += u64::from(sent.len);
                event.oldest_sent = event.oldest_sent.min(sent.sent_at);
                self.losses.push((path, sent.offset, sent.len, cause, episode));
                self.controller.on_lost(now, path, &sent.as_lost());
            }
        }
        event.bytes += self.copies.under_way.lose(path);
        if matches!(cause, LossCause::Timeout | LossCause::Silence) {
            self.paths[path].recovering = None; // slow start begins at once (RFC 5681 §3.1)
        }
        event
    }

    /// The controller of `path` hears of a loss, if anything was lost.
    pub(super) fn reduce_for(&mut self, now: Instant, path: PathId, loss: &LossEvent) {
        if loss.bytes > 0 {
            self.controller.on_loss(now, path, loss, self.views.as_slice());
        }
    }

    /// Nothing was heard of `path` for so long that its tail is probed.
    pub fn on_tail_timeout(&mut self, path: PathId) {
        let active = self.views[path].state == PathState::Active;
        if active && self.board.is_outstanding(path) && !self.board.has_lost() {
            self.exceptions.probe = Some(path);
        }
    }

    /// The controller's period is over.
    pub fn on_congestion_timeout(&mut self, now: Instant, timers: &mut Timers) {
        self.controller.on_timeout(now, self.views.as_slice());
        if let Some(at) = self.controller.next_timeout() {
            timers.set(Timer::Congestion, at);
        }
        self.refresh_all(now);
    }

    /// The retransmission timeout of `path`, or the longest if it is gone.
    pub fn rto(&self, path: PathId) -> Duration {
        self.paths.get(path).map_or(self.rules.rto.max, |p| p.estimator.rtt.rto())
    }
}
