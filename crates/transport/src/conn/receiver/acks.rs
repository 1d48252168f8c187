//! When to acknowledge what on which path.
//!
//! As RFC 5681 has it, an acknowledgment waits for each segment that wants one. If they are thinned, each path
//! has a clock (`recv/ack_clock.rs`) that says when the next is due: what an acknowledgment tells is decided
//! when it leaves, so several segments that came before that share it.

use polypath_wire::tcp::SackBlocks;
use polypath_wire::{Duration, Instant, PathId, Seq};

use super::Receiver;
use crate::conn::timers::{Timer, Timers};
use crate::recv::config::Thinning;

/// An acknowledgment that waits to be sent, on the path of what it acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PendingAck {
    /// On this path.
    pub path: PathId,
    /// Offset of the segment that caused it, if that came out of order: its block goes first.
    pub trigger: Option<u64>,
    /// What that segment carried, if all of it had arrived before (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
}

impl PendingAck {
    /// Of whatever came on `path`.
    pub(crate) fn on(path: PathId) -> Self {
        Self { path, trigger: None, duplicate: None }
    }
}

impl Receiver {
    /// Acknowledge at once on `path`. Acknowledgments of what came in order merge; those of what came
    /// out of order do not, since each carries news of its own.
    pub(crate) fn ack_now(&mut self, path: PathId, trigger: Option<u64>, timers: &mut Timers) {
        self.settle(timers);
        let ack = PendingAck { trigger, ..PendingAck::on(path) };
        if trigger.is_none()
            && !self.one_by_one
            && let Some(last) = self.pending.back_mut()
            && last.trigger.is_none()
        {
            *last = ack;
        } else {
            self.pending.push_back(ack);
        }
    }

    /// Acknowledge at once on `path`, and tell that these `len` bytes at `offset` had arrived before.
    pub(crate) fn ack_duplicate(&mut self, path: PathId, offset: u64, len: u64, timers: &mut Timers) {
        self.settle(timers);
        self.reporter.was_not_heard();
        let duplicate = Some((offset, offset + len));
        self.pending.push_back(PendingAck { path, trigger: Some(offset), duplicate });
    }

    /// Stops the timer of a delayed acknowledgment, unless it is for the clocks of all paths.
    fn settle(&mut self, timers: &mut Timers) {
        if self.thinning.is_none() {
            timers.stop(Timer::DELAYED_ACK);
        }
    }

    /// Whether enough came in order to be acknowledged at once.
    pub(super) fn is_enough(&self) -> bool {
        self.delay == Duration::ZERO || self.unacked >= 2 * self.peer_segment
    }

    /// What came in order waits for more.
    pub(super) fn ack_later(&mut self, now: Instant, timers: &mut Timers) {
        if !timers.is_set(Timer::DELAYED_ACK) {
            timers.set(Timer::DELAYED_ACK, now + self.delay);
        }
    }

    /// Asks the clock of `path` whether an acknowledgment is due, or when.
    pub(super) fn consult(&mut self, now: Instant, path: PathId, rules: &Thinning, timers: &mut Timers) {
        let due = self.paths.get(path).and_then(|p| p.clock.due(rules, self.delay));
        match due {
            Some(at) if at <= now => self.due.insert(path),
            Some(at) => timers.set_earlier(Timer::DELAYED_ACK, at),
            None => {}
        }
    }

    /// The delayed acknowledgment is due.
    pub(crate) fn on_delayed_ack(&mut self, now: Instant, timers: &mut Timers) {
        if let Some(thinning) = self.thinning {
            (0..self.paths.len()).for_each(|i| self.consult(now, self.paths.id_at(i), &thinning, timers));
        } else if self.unacked > 0 {
            self.ack_now(self.unacked_path, None, timers);
        }
    }

    /// A segment of data on `path` echoes what we sent at `sent`.
    #[inline]
    pub(crate) fn on_echo(&mut self, now: Instant, path: PathId, sent: Instant) {
        if let Some(path) = self.paths.get_mut(path) {
            path.clock.on_echo(now, sent);
        }
    }

    /// Whether acknowledgments are thinned.
    #[inline]
    pub(crate) fn thins(&self) -> bool {
        self.thinning.is_some()
    }

    /// When the newest segment came on `path` of which an acknowledgment tells that leaves `now`, if they are thinned.
    pub(crate) fn newest_on(&self, now: Instant, path: PathId) -> Option<Instant> {
        self.thinning.and_then(|_| self.paths.get(path)?.clock.newest(now))
    }

    /// Whether acknowledgments wait to be sent.
    #[inline]
    pub(crate) fn has_acks(&self) -> bool {
        !self.pending.is_empty() || !self.due.is_empty()
    }

    /// The next acknowledgment to send.
    pub(crate) fn pop_ack(&mut self) -> Option<PendingAck> {
        let due = || self.paths.ids().find(|path| self.due.contains(*path)).map(PendingAck::on);
        self.pending.pop_front().or_else(due)
    }

    /// A data segment leaves on `path`: what waits in order for that path travels with it.
    pub(crate) fn piggyback(&mut self, path: PathId, timers: &mut Timers) {
        if self.pending.front().is_some_and(|a| a.trigger.is_none() && a.path == path) {
            self.pending.pop_front();
        }
        if self.unacked_path == path {
            self.settle(timers);
            self.unacked = 0;
        }
    }

    /// An acknowledgment left on `path`. If it had no room for all blocks that changed there, another one is due.
    #[inline(always)]
    pub(crate) fn acknowledged(&mut self, now: Instant, path: PathId) {
        let all = self.buffer.held().is_empty() || !self.reporter.has_news(path);
        if self.thinning.is_some()
            && all
            && let Some(of_path) = self.paths.get_mut(path)
        {
            self.due.remove(path);
            of_path.clock.acknowledged(now);
        }
    }

    /// Up to `max` SACK blocks for `ack`.
    #[inline]
    pub(crate) fn sack_blocks(
        &mut self,
        ack: &PendingAck,
        max: usize,
        seq: impl Fn(u64) -> Seq,
    ) -> SackBlocks {
        match self.buffer.held().is_empty() && ack.duplicate.is_none() {
            true => SackBlocks::default(),
            false => self.report_blocks(ack, max, seq),
        }
    }

    #[inline(never)]
    fn report_blocks(&mut self, ack: &PendingAck, max: usize, seq: impl Fn(u64) -> Seq) -> SackBlocks {
        let held = self.buffer.held();
        self.reporter.blocks(ack.path, ack.trigger, ack.duplicate, held, max, seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::config::ConnectionConfig;
    use crate::payload::{Pattern, Payload};

    /// After segments of `len` bytes from each of `offsets` on, over a path whose segments carry up to 1348.
    fn receiver(sack: bool, offsets: impl Iterator<Item = u64>, len: u64) -> Receiver {
        let config = ConnectionConfig::default();
        let mut receiver = Receiver::new(&config);
        receiver.add_path(PathId::FIRST, 1348);
        receiver.agree(&config, sack, false);
        for offset in offsets {
            let data = Payload::Pattern(Pattern { key: 0, offset, len });
            receiver.on_data(Instant::ZERO, PathId::FIRST, offset, data, false, &mut Timers::default());
        }
        receiver
    }

    #[test]
    fn without_sack_no_block_is_remembered_that_nobody_will_be_told() {
        let remembered = |sack| receiver(sack, (1..100).map(|n| n * 20), 10).reporter.remembered();
        assert_eq!((remembered(true), remembered(false)), (99, 0));
    }

    /// The kernel joins segments. Its sender may wait for their acknowledgment.
    #[test]
    fn many_segments_that_come_as_one_are_acknowledged_at_once() {
        let waits = |len| !receiver(true, [0].into_iter(), len).has_acks();
        assert_eq!([waits(1348), waits(2 * 1348), waits(48 * 1348)], [true, false, false]);
    }
}
