//! What an acknowledgment means for the sending half:
//! scoreboard → estimates and controller (`sample.rs`) → loss policy (`verdicts.rs`) → timers.

use polypath_wire::{Instant, PathId, PathSet};

use super::Sender;
use super::sample::Learnt;
use crate::conn::timers::{Timer, Timers};

/// An acknowledgment in terms of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The path it came on.
    pub path: PathId,
    /// The path of what it acknowledges, as far as it says so; otherwise the same.
    pub route: PathId,
    /// Everything below arrived.
    pub una: u64,
    /// SACK blocks.
    pub blocks: &'a [(u64, u64)],
    /// It carries no data.
    pub bare: bool,
    /// It looks like a duplicate: no data, no change of the window (RFC 5681 §2).
    pub pure: bool,
    /// Whether TSecr proves that it answers the last transmission of a segment sent then.
    pub echo: Option<Instant>,
    /// Arrival minus TSval, nanoseconds up to the peer's clock offset.
    pub reverse: Option<i64>,
}

impl Ack<'_> {
    /// Whether its first block is of something that had arrived before (RFC 2883 §4).
    pub(super) fn reports_duplicate(&self) -> bool {
        match self.blocks {
            [first, ..] if first.1 <= self.una => true,
            [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
            _ => false,
        }
    }
}

/// What an acknowledgment changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acked {
    /// The cumulative acknowledgment moved.
    pub advanced: bool,
    /// SACK blocks that cannot be true.
    pub bad_blocks: u32,
    /// Bytes newly delivered on all paths.
    pub delivered: u64,
    /// New loss episodes.
    pub episodes: u32,
    /// Episodes undone.
    pub undone: u32,
    /// Paths that failed, as they are silent while others deliver.
    pub failed: PathSet,
}

impl Sender {
    /// Takes an acknowledgment; `ack.una` is not beyond what was sent.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) -> Acked {
        match self.is_expected(ack) {
            true => self.on_expected_ack(now, ack, timers),
            false => self.on_any_ack(now, ack, timers),
        }
    }

    /// Whether it acknowledges what was sent first, on the only path, while nothing is missing: most do.
    fn is_expected(&self, ack: &Ack<'_>) -> bool {
        let plain = self.copies.under_way.is_empty() && self.observers.are_idle();
        let calm = matches!(self.paths.as_slice(), [only] if only.recovering.is_none());
        ack.una > self.board.una() && ack.blocks.is_empty() && self.board.is_orderly() && calm && plain
    }

    /// What [`on_any_ack`](Self::on_any_ack) comes to then.
    fn on_expected_ack(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) -> Acked {
        let path = self.paths.id_at(0);
        let fresh = self.board.ack_in_order(path, ack.una);
        let rtt = fresh.newest.map(|n| now.since(n.sent_at));
        let timed = rtt.filter(|_| self.is_timed(ack, path, &fresh));
        self.learn(now, path, ack, &fresh, Learnt { rtt, timed, ..Learnt::default() });
        self.stalled = 0;
        self.stream.release(ack.una);
        let mut result = Acked { advanced: true, delivered: fresh.bytes, ..Acked::default() };
        self.judge(now, timers, &mut result);
        self.restart_rto(now, path, timers);
        self.refresh(now, path);
        result
    }

    #[inline(never)]
    fn on_any_ack(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) -> Acked {
        let mut result = Acked::default();
        self.board.begin_ack();
        result.advanced = self.board.ack_up_to(ack.una);
        if self.rules.sack {
            result.bad_blocks = ack.blocks.iter().map(|b| u32::from(!self.board.sack(b.0, b.1))).sum();
        }
        if ack.reports_duplicate() {
            self.board.note_duplicate(ack.route);
            self.on_duplicate(now, ack, timers);
        }
        self.board.vouch(ack.route, ack.una, ack.blocks);
        self.doubt_timeout(now, ack, &mut result);
        let duplicate = !result.advanced && self.is_duplicate(ack);
        if duplicate {
            self.board.count_dupack();
        }
        result.delivered = self.board.stranded();
        for i in 0..self.paths.len() {
            result.delivered += self.sample(now, self.paths.id_at(i), ack, timers);
        }
        self.copies.under_way.tell(ack.route, ack.una);
        if result.delivered > 0 {
            self.stalled = 0;
        }
        if result.advanced {
            self.stream.release(ack.una);
        }
        self.judge(now, timers, &mut result);
        if self.rules.fail_silent && result.delivered > 0 {
            result.failed = self.listen(now, timers);
        }
        self.restart_rtos(now, timers);
        if duplicate && !self.rules.sack {
            self.make_room(ack.path);
        }
        if result.advanced && self.paths.iter().all(|p| p.recovering.is_none()) {
            self.board.clear_credit();
        }
        self.refresh_all(now);
        result
    }

    fn is_duplicate(&self, ack: &Ack<'_>) -> bool {
        let pure = ack.pure || (ack.bare && !ack.blocks.is_empty());
        pure && ack.una == self.board.una() && !self.board.is_idle()
    }

    /// Without SACK a duplicate says that some segment left the network. That makes room for another
    /// in recovery (RFC 5681 §3.2 step 4) and otherwise as often as the policy says (RFC 3042: twice): after a
    /// timeout most duplicates answer what we sent again without need.
    fn make_room(&mut self, path: PathId) {
        let limited_transmit = self.board.dupacks() <= self.policy.limited_transmit();
        if limited_transmit || self.paths.iter().any(|p| p.recovering.is_some()) {
            let mss = self.views.get(path).map(|v| v.mss);
            mss.into_iter().for_each(|mss| self.board.add_credit(path, mss));
        }
    }

    /// Once the policy has judged, which may hold a timer, or just have let it go.
    fn restart_rtos(&mut self, now: Instant, timers: &mut Timers) {
        for i in 0..self.paths.len() {
            let path = self.paths.id_at(i);
            if self.board.fresh(path).bytes > 0 {
                self.restart_rto(now, path, timers);
            }
        }
        if self.board.has_sacked()
            && let Some(path) = self.reneged()
            && !timers.is_set(Timer::Rto(path))
        {
            timers.set(Timer::Rto(path), now + self.rto(path));
        }
    }

    /// RFC 6298 §5.2 and 5.3.
    #[inline(always)]
    fn restart_rto(&mut self, now: Instant, path: PathId, timers: &mut Timers) {
        if !self.is_outstanding(path) {
            timers.stop(Timer::Rto(path));
            timers.stop(Timer::Tail(path));
            return;
        }
        self.arm_tail(now, path, timers);
        if !self.policy.holds_timer(path) {
            timers.set(Timer::Rto(path), now + self.rto(path));
        }
    }
}

#[cfg(test)]
mod tests;
