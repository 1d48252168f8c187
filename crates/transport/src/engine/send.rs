//! Which path takes what goes next, and what it means that it left.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::lane::Start;
use super::machine::Engine;
use super::spill;
use super::timers::Timer;
use crate::facts::{Pace, Parcel, PathState, PathView, Why};
use crate::path::transmission::{Cargo, History, Transmission};
use crate::sched::scheduler::{Choice, Scheduler, arrival, is_open, only, opening};

/// Pacing holds a path for no longer than this, since rates change meanwhile. Linux holds a packet as long (`sch_fq`).
const LONGEST: Duration = Duration::from_secs(1);

impl Engine {
    /// The path that takes `parcel` now, or when to ask again.
    #[inline]
    pub(crate) fn pick(&mut self, now: Instant, parcel: &Parcel) -> Choice {
        match self.views.as_slice() {
            [view] => only(now, parcel, view),
            views => {
                let choice = match self.rules.spills {
                    true => spill::pick(&mut *self.scheduler, &*self.controller, now, parcel, views),
                    false => self.scheduler.pick(now, parcel, views),
                };
                if self.explains {
                    self.why = why(&*self.scheduler, now, parcel, views, choice);
                }
                choice
            }
        }
    }

    /// The same among those paths that carry `parcel` whole: for cargo that cannot be cut.
    pub(crate) fn pick_whole(&mut self, now: Instant, parcel: &Parcel) -> Choice {
        let carries = |view: &&PathView| view.mss >= parcel.len;
        if self.views.iter().all(|view| carries(&view)) {
            return self.pick(now, parcel);
        }
        let some: Vec<PathView> = self.views.iter().filter(carries).cloned().collect();
        spill::pick(&mut *self.scheduler, &*self.controller, now, parcel, &some)
    }

    /// The path that is open for `parcel`, carries it whole and on which it should arrive first, of those that `may` take it;
    /// or when to ask again.
    pub(crate) fn pick_soonest(&self, now: Instant, parcel: &Parcel, may: impl Fn(PathId) -> bool) -> Choice {
        let carry = || self.views.iter().filter(|view| view.mss >= parcel.len && may(view.id));
        let open = carry().filter(|view| is_open(now, view, parcel.len));
        match open.min_by_key(|view| (arrival(now, view, parcel.len), view.id)) {
            Some(view) => Choice::Send(view.id),
            None => Choice::Wait(carry().filter_map(|view| opening(now, parcel, view)).min()),
        }
    }

    /// The path of a retransmission that waits for no window, after [`pick`](Self::pick) had none; `last` is where it left
    /// before.
    pub(crate) fn pick_urgent(&mut self, now: Instant, parcel: &Parcel, last: PathId) -> PathId {
        self.explain(Why::Urgent);
        let path = self.scheduler.urgent(now, parcel, self.views.as_slice());
        path.unwrap_or_else(|| self.path_for_control(last))
    }

    /// The path on which `parcel`, which the timer of `from` gave up, should arrive first of the others, at once if it is the
    /// `oldest`; none if there is no other.
    pub(crate) fn pick_elsewhere(
        &mut self,
        now: Instant,
        parcel: &Parcel,
        from: PathId,
        oldest: bool,
    ) -> Option<Choice> {
        let others = || self.views.iter().filter(|v| v.id != from && v.state == PathState::Active);
        let best = others().min_by_key(|v| (arrival(now, v, parcel.len), v.id))?.id;
        let open = others().any(|v| v.id == best && is_open(now, v, parcel.len));
        self.explain(Why::Urgent);
        Some(if open || oldest { Choice::Send(best) } else { Choice::Wait(None) })
    }

    /// Why something takes its path, where there is a choice and somebody who wants to know.
    pub(crate) fn explain(&mut self, why: Why) {
        self.why = Some(why).filter(|_| self.explains && self.views.len() > 1);
    }

    /// The paths that get a copy of what leaves on `path` without having been chosen.
    pub(crate) fn copies_beside(&self, path: PathId) -> PathSet {
        let mut others = self.scheduler.copies(self.views.as_slice());
        others.remove(path);
        others
    }

    /// The longest payload of a segment that leaves on `path` and, as a copy, on `others`.
    #[inline]
    pub(crate) fn mss_of(&self, path: PathId, others: PathSet) -> u32 {
        if others.is_empty() {
            return self.views[path].mss;
        }
        let of = self.views.iter().filter(|v| v.id == path || others.contains(v.id));
        of.map(|v| v.mss).min().unwrap_or_default()
    }

    /// The path that was chosen, and those that get a copy. Of several it is an open one. If none was, a timer says when
    /// pacing opens one.
    #[inline]
    pub(crate) fn paths_of(
        &mut self,
        now: Instant,
        parcel: &Parcel,
        choice: Choice,
    ) -> Option<(PathId, PathSet)> {
        match choice {
            Choice::Send(path) => Some((path, PathSet::EMPTY)),
            Choice::Copies(mut paths) => {
                let of = self.views.iter().filter(|v| paths.contains(v.id));
                let path = of.min_by_key(|v| (!is_open(now, v, parcel.len), v.mss))?.id;
                paths.remove(path);
                Some((path, paths))
            }
            Choice::Wait(until) => {
                until.into_iter().for_each(|t| self.timers.set(Timer::Pacing, t));
                None
            }
        }
    }

    /// `cargo` leaves on `path`; `last` if nothing more waits. Returns its number there.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Instant, path: PathId, cargo: Cargo, last: bool) -> u64 {
        let number = self.leave::<false>(now, path, cargo, last);
        self.after_send(now, path, cargo.len);
        number
    }

    /// Accounts for `cargo`, which leaves on `path`; or else its owner does (`ASIDE`).
    #[inline(always)]
    pub(super) fn leave<const ASIDE: bool>(
        &mut self,
        now: Instant,
        path: PathId,
        cargo: Cargo,
        last: bool,
    ) -> u64 {
        let (overhead, len) = (u64::from(self.views[path].overhead), u64::from(cargo.len));
        if self.observers.watch.marks_packets() {
            self.mark(now, path);
        }
        if !self.rules.window_only {
            self.controller.on_sent(now, path, len);
        }
        let lane = &mut self.lanes[path];
        let idle = !lane.flight.is_outstanding();
        if idle {
            lane.silence.begin(now);
        }
        lane.stats.segments_sent += 1;
        lane.stats.bytes_sent += len;
        lane.stats.retransmissions += u64::from(cargo.history != History::Once);
        self.timers.start(Timer::Rto(path), || now + lane.estimator.rtt.rto()); // RFC 6298 §5.1
        if let Some(beside) = &mut lane.beside {
            beside.on_sent(now, len);
        }
        let mark = lane.estimator.on_sent(now, len + overhead, idle, last);
        match ASIDE {
            true => lane.aside += len,
            false => return lane.flight.push(Transmission::new(cargo, now, mark)),
        }
        0
    }

    #[cold]
    fn mark(&mut self, now: Instant, path: PathId) {
        let (wait, number) = (self.own_wait(now, path), self.lanes[path].flight.next_number());
        self.observers.watch.on_sent(now, path, number, wait);
    }

    #[inline(always)]
    pub(super) fn after_send(&mut self, now: Instant, path: PathId, len: u32) {
        if self.rules.window_only {
            return self.refresh_room(now, path);
        }
        self.pace(now, path, len);
        self.refresh_room(now, path);
        self.lanes[path].was_full = self.views[path].room < self.next_takes(path) as i64;
    }

    #[inline(never)]
    fn pace(&mut self, now: Instant, path: PathId, len: u32) {
        if self.rules.offload {
            self.cut(now, path, len);
        }
        let (view, lane) = (&mut self.views[path], &mut self.lanes[path]);
        if let Some(Pace { rate, quantum, credit, together, .. }) = self.controller.pace(path) {
            if lane.was_full && credit > Duration::ZERO && view.earliest_send <= now {
                (view.earliest_send, lane.burst) = (now, 0);
            }
            lane.together = if lane.together == 0 { together } else { 0 }; // the first of two leaves, or the second
            lane.burst += u64::from(len);
            if lane.burst >= quantum {
                let next = view.earliest_send.max(now - credit) + rate.transmission_time(lane.burst);
                view.earliest_send = next.min(now + LONGEST);
                lane.burst = 0;
            }
        }
        if let Some(limit) = &mut lane.limit {
            view.earliest_send = view.earliest_send.max(limit.on_sent(now, len));
        }
        if let Some(at) = self.controller.next_timeout() {
            self.timers.set(Timer::Congestion, at);
        }
    }

    /// Nothing is under way on `path` any more: the round trip over which the window was spread is over, also where it became much shorter,
    /// as after an outage. What follows waits for the path's limit alone, or for its turn.
    #[cold]
    pub(super) fn end_pace(&mut self, now: Instant, path: PathId) {
        let lane = &self.lanes[path];
        let spreads = || self.controller.pace(path).is_some_and(|pace| pace.spreads_window);
        if lane.start != Start::Begun && lane.recovering.is_none() && spreads() {
            let limited = lane.limit.map_or(now, |limit| limit.next_at());
            let view = &mut self.views[path];
            view.earliest_send = view.earliest_send.min(limited.max(now));
        }
    }

    /// The path whose tail must be probed; it is asked for once.
    pub(crate) fn take_probe(&mut self) -> Option<PathId> {
        self.probe.take()
    }

    /// Whether a tail must be probed.
    #[inline]
    pub(crate) fn wants_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// The tail of `path` is probed by what leaves there next.
    pub(crate) fn begin_probe(&mut self, path: PathId) {
        self.policy.on_probe(path, &self.lanes[path].flight);
    }

    /// The probe left: the retransmission timer stands behind it (RFC 8985 §7.3).
    pub(crate) fn probe_left(&mut self, now: Instant, path: PathId) {
        self.timers.stop(Timer::Tail(path));
        self.timers.set(Timer::Rto(path), now + self.rto(path));
    }

    /// What `path` carries first of all went again there: its timer begins anew, unless the policy holds it.
    pub(crate) fn head_left_again(&mut self, now: Instant, path: PathId) {
        if !self.policy.holds_timer(path) {
            self.timers.set(Timer::Rto(path), now + self.rto(path));
        }
    }

    /// When the tail of `path` is probed if nothing is heard until then. The retransmission timer stands
    /// behind it and need not be waited for if it is due sooner.
    #[inline]
    pub(crate) fn arm_tail(&mut self, now: Instant, path: PathId) {
        if self.rules.probes {
            self.arm_probe(now, path);
        }
    }

    #[inline(never)]
    fn arm_probe(&mut self, now: Instant, path: PathId) {
        let view = &self.views[path];
        let after = self.policy.probe_after(view, &self.lanes[path].flight);
        // What waits at the bottleneck cannot be answered before it has left; an only path is as RFC 8985 has it.
        let from = if self.lanes.len() > 1 { view.idle_at.max(now) } else { now };
        let at = after.map(|after| from + after);
        match at.filter(|at| *at < now + self.rto(path)) {
            Some(at) => self.timers.set(Timer::Tail(path), at),
            None => self.timers.stop(Timer::Tail(path)),
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
