//! Which bytes go next, and on which path.

use polypath_wire::{Instant, PathId, PathSet};

use super::Sender;
use crate::conn::timers::{Timer, Timers};
use crate::facts::{Pace, Parcel, PathView, Why};
use crate::loss::scoreboard::SentId;
use crate::path::bandwidth::DeliveryMark;
use crate::sched::scheduler::{Choice, Scheduler, only};

/// A segment to be sent: a range of sequence space on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// On which path.
    pub path: PathId,
    /// First offset.
    pub offset: u64,
    /// Length in sequence space.
    pub len: u32,
    /// Sent before.
    pub retransmission: bool,
}

impl Sender {
    /// Whether [`next`](Self::next) may have something: most often there is no data, or no room for it.
    #[inline]
    pub fn has_work(&self) -> bool {
        let waiting = self.waiting();
        let full =
            matches!(self.views.as_slice(), [only] if only.room < i64::from(only.mss).min(waiting as i64));
        let held = waiting == 0 || (full && !self.board.is_idle());
        !held || self.exceptions.probe.is_some() || self.board.has_lost() || self.has_copies()
    }

    /// What goes next, if anything may. It counts as sent.
    pub fn next(&mut self, now: Instant, timers: &mut Timers) -> Option<Outgoing> {
        if let Some(path) = self.exceptions.probe.take()
            && let Some(probe) = self.next_probe(now, path, timers)
        {
            self.explain(Why::TailProbe);
            return Some(probe);
        }
        if self.has_copies()
            && let Some(copy) = self.next_copy(now, timers)
        {
            self.explain(Why::Copy);
            return Some(copy);
        }
        if self.board.has_lost() { self.next_again(now, timers) } else { self.next_new(now, timers) }
    }

    #[cold]
    fn next_again(&mut self, now: Instant, timers: &mut Timers) -> Option<Outgoing> {
        let (id, sent) = self.board.next_lost()?;
        let (offset, len, last_path) = (sent.offset, sent.len, sent.path);
        let failing = |path: &PathId| self.paths.get(*path).is_some_and(|p| p.timeouts > 0);
        let timed_out = Some(last_path).filter(failing);
        let parcel = Parcel { offset, len, retransmission: true, timed_out, ..Parcel::default() };
        let choice = match self.choose(now, &parcel) {
            Choice::Wait(_) if self.exceptions.urgent > 0 => {
                self.explain(Why::Urgent);
                let path = self.scheduler.urgent(now, &parcel, self.views.as_slice());
                Choice::Send(path.unwrap_or_else(|| self.path_for_control(last_path)))
            }
            choice => choice,
        };
        let (path, others) = self.paths_of(choice, timers)?;
        self.exceptions.urgent = self.exceptions.urgent.saturating_sub(1);
        let len = self.fit(id, len, path);
        let mark = self.account(now, path, len, true, false, timers);
        self.board.send_again(now, path, id, mark);
        if self.board.head().is_some_and(|(head, _)| head == id) && !self.policy.holds_timer(path) {
            timers.set(Timer::Rto(path), now + self.rto(path));
        }
        self.after_send(now, path, len, timers);
        let outgoing = Outgoing { path, offset, len, retransmission: true };
        self.copy(&outgoing, others);
        Some(outgoing)
    }

    /// New data if there is any and the window is not overdrawn, else the last segment again: its acknowledgment shows what is missing.
    #[cold]
    fn next_probe(&mut self, now: Instant, path: PathId, timers: &mut Timers) -> Option<Outgoing> {
        let id = *self.board.in_flight_ids(path).last()?;
        self.policy.on_probe(path, &self.board);
        let waiting = self.waiting();
        let usable = self.window.left(self.board.nxt()).min(waiting);
        let outgoing = if usable > 0 && self.views[path].room >= 0 {
            let len = usable.min(u64::from(self.views[path].mss)) as u32;
            self.send_new(now, path, len, u64::from(len) == waiting, timers)
        } else {
            let sent = self.board.mark_lost(id)?;
            let (offset, len) = (sent.offset, self.fit(id, sent.len, path));
            let mark = self.account(now, path, len, true, false, timers);
            self.board.send_again(now, path, id, mark);
            self.after_send(now, path, len, timers);
            Outgoing { path, offset, len, retransmission: true }
        };
        timers.stop(Timer::Tail(path));
        timers.set(Timer::Rto(path), now + self.rto(path)); // §7.3
        Some(outgoing)
    }

    #[inline(always)]
    fn next_new(&mut self, now: Instant, timers: &mut Timers) -> Option<Outgoing> {
        let offset = self.board.nxt();
        let waiting = self.waiting();
        let usable = self.window.left(offset).min(waiting);
        if usable == 0 {
            return None;
        }
        let len = usable.min(u64::from(u32::MAX)) as u32;
        let window = self.window.edge.saturating_sub(self.board.una());
        let known = if self.cut_short { u64::MAX } else { waiting };
        let parcel = Parcel { offset, len, waiting: known, window, ..Parcel::default() };
        let choice = self.choose(now, &parcel);
        let (path, others) = self.paths_of(choice, timers)?;
        let len = self.worth_sending(path, usable, waiting)?;
        let outgoing = self.send_new(now, path, len, u64::from(len) == waiting, timers);
        self.copy(&outgoing, others);
        self.arm_tail(now, path, timers);
        Some(outgoing)
    }

    #[inline]
    fn choose(&mut self, now: Instant, parcel: &Parcel) -> Choice {
        match self.views.as_slice() {
            [view] => only(now, parcel, view),
            views => {
                let choice = self.scheduler.pick(now, parcel, views);
                if self.explains {
                    self.why = why(&*self.scheduler, now, parcel, views, choice);
                }
                choice
            }
        }
    }

    /// Where there is a choice of paths and somebody who wants to know.
    fn explain(&mut self, why: Why) {
        self.why = Some(why).filter(|_| self.explains && self.views.len() > 1);
    }

    /// The path that was chosen, and those that get a copy. Of several it is the one with the smallest
    /// segments: what fits there fits all.
    #[inline]
    fn paths_of(&self, choice: Choice, timers: &mut Timers) -> Option<(PathId, PathSet)> {
        match choice {
            Choice::Send(path) => Some((path, PathSet::EMPTY)),
            Choice::Copies(mut paths) => {
                let path = self.views.iter().filter(|v| paths.contains(v.id)).min_by_key(|v| v.mss)?.id;
                paths.remove(path);
                Some((path, paths))
            }
            Choice::Wait(until) => {
                until.into_iter().for_each(|t| timers.set(Timer::Pacing, t));
                None
            }
        }
    }

    /// `len` new bytes leave on `path`; `last` if no more are waiting.
    #[inline(always)]
    fn send_new(
        &mut self,
        now: Instant,
        path: PathId,
        len: u32,
        last: bool,
        timers: &mut Timers,
    ) -> Outgoing {
        let offset = self.board.nxt();
        let mark = self.account(now, path, len, false, last, timers);
        self.board.send_new(now, path, len, mark);
        self.after_send(now, path, len, timers);
        Outgoing { path, offset, len, retransmission: false }
    }

    /// When the tail of `path` is probed if nothing is heard until then. The retransmission timer stands
    /// behind it and need not be waited for if it is due sooner.
    #[inline]
    pub(super) fn arm_tail(&self, now: Instant, path: PathId, timers: &mut Timers) {
        if self.rules.probes {
            self.arm_probe(now, path, timers);
        }
    }

    #[inline(never)]
    fn arm_probe(&self, now: Instant, path: PathId, timers: &mut Timers) {
        let view = &self.views[path];
        let after = self.policy.probe_after(path, &self.board, view);
        // what waits at the bottleneck cannot be answered before it has left
        let at = after.map(|after| view.idle_at.max(now) + after);
        match at.filter(|at| *at < now + self.rto(path)) {
            Some(at) => timers.set(Timer::Tail(path), at),
            None => timers.stop(Timer::Tail(path)),
        }
    }

    /// Silly window avoidance and Nagle (RFC 9293 §3.8.6.2.1, §3.7.4): how much of `usable` to send.
    fn worth_sending(&mut self, path: PathId, usable: u64, waiting: u64) -> Option<u32> {
        let mss = u64::from(self.views[path].mss);
        let idle = self.board.is_idle();
        let full = usable >= mss; // (1)
        let last = usable == waiting && (idle || self.rules.no_delay || self.stream.is_finished()); // (2)
        let half = 2 * usable >= self.window.largest; // (3)
        let worth = full || last || half || self.exceptions.small; // (4)
        self.exceptions.small &= !worth;
        worth.then_some(usable.min(mss) as u32)
    }

    /// Cuts the lost segment `id` if it is too long for `path`.
    fn fit(&mut self, id: SentId, len: u32, path: PathId) -> u32 {
        let mss = self.views[path].mss;
        let with_fin = self.board.segment(id).is_some_and(|s| s.end() > self.stream.end());
        if len > mss + u32::from(with_fin) {
            self.board.split(id, mss);
            return mss;
        }
        len
    }

    #[inline(always)]
    pub(super) fn account(
        &mut self,
        now: Instant,
        path: PathId,
        len: u32,
        again: bool,
        last: bool,
        timers: &mut Timers,
    ) -> DeliveryMark {
        let idle = !self.board.is_outstanding(path);
        let overhead = u64::from(self.views[path].overhead);
        if self.observers.watch.marks_packets() {
            let (wait, tx) = (self.own_wait(now, path), self.board.next_tx(path));
            self.observers.watch.on_sent(now, path, tx, wait);
        }
        let p = &mut self.paths[path];
        if idle {
            p.silence.begin(now);
        }
        p.stats.segments_sent += 1;
        p.stats.bytes_sent += u64::from(len);
        p.stats.retransmissions += u64::from(again);
        if !timers.is_set(Timer::Rto(path)) {
            timers.set(Timer::Rto(path), now + p.estimator.rtt.rto()); // RFC 6298 §5.1
        }
        if !self.rules.window_only {
            self.controller.on_sent(now, path, u64::from(len));
        }
        p.estimator.on_sent(now, u64::from(len) + overhead, idle, last)
    }

    #[inline(always)]
    pub(super) fn after_send(&mut self, now: Instant, path: PathId, len: u32, timers: &mut Timers) {
        if !self.rules.window_only {
            self.pace(now, path, len, timers);
        }
        self.refresh_room(now, path);
    }

    #[inline(never)]
    fn pace(&mut self, now: Instant, path: PathId, len: u32, timers: &mut Timers) {
        if let Some(Pace { rate, quantum, credit }) = self.controller.pace(path) {
            let (view, burst) = (&mut self.views[path], &mut self.paths[path].burst);
            *burst += u64::from(len);
            if *burst >= quantum {
                view.earliest_send = view.earliest_send.max(now - credit) + rate.transmission_time(*burst);
                *burst = 0;
            }
        }
        if let Some(limit) = &mut self.paths[path].limit {
            let view = &mut self.views[path];
            view.earliest_send = view.earliest_send.max(limit.on_sent(now, len));
        }
        if let Some(at) = self.controller.next_timeout() {
            timers.set(Timer::Congestion, at);
        }
    }
}

#[cold]
fn why(
    scheduler: &dyn Scheduler,
    now: Instant,
    parcel: &Parcel,
    views: &[PathView],
    choice: Choice,
) -> Option<Why> {
    match choice {
        Choice::Send(path) => Some(scheduler.why(now, parcel, views, path)),
        Choice::Copies(_) => Some(Why::Copy),
        Choice::Wait(_) => None,
    }
}
