//! Which bytes go next, and on which path.

use polypath_wire::{Instant, PathId};

use super::Sender;
use crate::conn::stream_map::Lost;
use crate::engine::Engine;
use crate::facts::{Parcel, PathView, Why};
use crate::path::transmission::{Cargo, History};
use crate::sched::scheduler::Choice;

use crate::conn::handshake::TIMESTAMP_TICK;

/// A segment to be sent: a range of sequence space on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outgoing {
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
    pub(crate) fn has_work(&self, engine: &Engine) -> bool {
        let waiting = self.waiting();
        let full = |view: &PathView| view.room < i64::from(view.mss).min(waiting as i64);
        let is_full = || matches!(engine.views().as_slice(), [only] if full(only));
        let held = waiting == 0 || (!self.map.is_idle() && is_full());
        !held
            || engine.wants_probe()
            || self.map.has_lost()
            || self.has_copies()
            || self.has_missed_copies()
            || self.may_reinject(engine)
    }

    /// What goes next, if anything may. It counts as sent.
    pub(crate) fn next(&mut self, now: Instant, engine: &mut Engine) -> Option<Outgoing> {
        if let Some(path) = engine.take_probe()
            && let Some(probe) = self.next_probe(now, path, engine)
        {
            engine.explain(Why::TailProbe);
            return Some(probe);
        }
        if self.has_copies()
            && let Some(copy) = self.next_copy(now, engine)
        {
            engine.explain(Why::Copy);
            return Some(copy);
        }
        let next =
            if self.map.has_lost() { self.next_again(now, engine) } else { self.next_new(now, engine) };
        if next.is_some() {
            return next;
        }
        let missed = if self.has_missed_copies() { self.next_missed_copy(now, engine) } else { None };
        let copy = match missed {
            None if self.may_reinject(engine) => self.next_reinjection(now, engine),
            missed => missed,
        };
        if copy.is_some() {
            engine.explain(Why::Copy);
        }
        copy
    }

    #[cold]
    fn next_again(&mut self, now: Instant, engine: &mut Engine) -> Option<Outgoing> {
        let lost = self.map.next_lost()?;
        let Lost { offset, len, path: last_path, .. } = lost;
        let timed_out = Some(last_path).filter(|path| engine.is_overdue(*path));
        let parcel = Parcel { offset, len, retransmission: true, timed_out, ..Parcel::default() };
        let elsewhere = timed_out.filter(|_| self.repair_elsewhere);
        let oldest = offset == self.map.una();
        let choice = match elsewhere.and_then(|from| engine.pick_elsewhere(now, &parcel, from, oldest)) {
            Some(choice) => choice,
            None => engine.pick(now, &parcel),
        };
        let (path, others) = match choice {
            Choice::Wait(_) if self.exceptions.urgent > 0 => {
                let path = engine.pick_urgent(now, &parcel, last_path);
                (path, engine.copies_beside(path))
            }
            choice => engine.paths_of(now, &parcel, choice)?,
        };
        self.exceptions.urgent = self.exceptions.urgent.saturating_sub(1);
        let mss = engine.mss_of(path, others);
        let (outgoing, head) = self.send_again(now, path, &lost, mss, engine);
        if head {
            engine.head_left_again(now, path);
        }
        self.copy(now, &outgoing, others, engine);
        Some(outgoing)
    }

    /// The `lost` segment leaves on `path`, cut to `mss`. Also whether it is the oldest of all.
    fn send_again(
        &mut self,
        now: Instant,
        path: PathId,
        lost: &Lost,
        mss: u32,
        engine: &mut Engine,
    ) -> (Outgoing, bool) {
        let Lost { offset, sent_at, .. } = *lost;
        let len = self.fit(lost, mss);
        let later = now.0 / TIMESTAMP_TICK > sent_at.0 / TIMESTAMP_TICK;
        let history = if later { History::AgainLater } else { History::Again };
        let number = engine.send(now, path, Cargo { key: offset, len, history }, false);
        self.note_sent_again(offset, len);
        let head = self.map.send_again(offset, path, number);
        (Outgoing { path, offset, len, retransmission: true }, head)
    }

    /// New data if there is any and the window is not overdrawn, else the last segment again: its acknowledgment shows what is missing.
    #[cold]
    fn next_probe(&mut self, now: Instant, path: PathId, engine: &mut Engine) -> Option<Outgoing> {
        let (number, last) = engine.lanes()[path].flight.iter().next_back()?;
        let offset = last.cargo.key;
        engine.begin_probe(path);
        let others = engine.copies_beside(path);
        let mss = engine.mss_of(path, others);
        let (waiting, usable) = (self.waiting(), self.usable());
        let view = &engine.views()[path];
        let outgoing = if usable > 0 && view.room >= 0 {
            let len = usable.min(u64::from(mss)) as u32;
            self.send_new(now, path, len, u64::from(len) == waiting, engine)
        } else {
            self.map.take_again(path, number, offset, engine)?;
            let lost = self.map.lost_at(offset)?;
            self.send_again(now, path, &lost, mss, engine).0
        };
        self.copy(now, &outgoing, others, engine);
        engine.probe_left(now, path);
        Some(outgoing)
    }

    #[inline(always)]
    fn next_new(&mut self, now: Instant, engine: &mut Engine) -> Option<Outgoing> {
        let offset = self.map.nxt();
        let (waiting, usable) = (self.waiting(), self.usable());
        if usable == 0 {
            return None;
        }
        let len = usable.min(u64::from(u32::MAX)) as u32;
        let window = self.window.edge.saturating_sub(self.map.una());
        let known = if self.cut_short { u64::MAX } else { waiting };
        let parcel = Parcel { offset, len, waiting: known, window, ..Parcel::default() };
        let choice = engine.pick(now, &parcel);
        let (path, others) = engine.paths_of(now, &parcel, choice)?;
        let len = self.worth_sending(engine.mss_of(path, others).into(), usable, waiting)?;
        let outgoing = self.send_new(now, path, len, u64::from(len) == waiting, engine);
        self.copy(now, &outgoing, others, engine);
        engine.arm_tail(now, path);
        Some(outgoing)
    }

    /// `len` new bytes leave on `path`; `last` if no more are waiting.
    #[inline(always)]
    fn send_new(
        &mut self,
        now: Instant,
        path: PathId,
        len: u32,
        last: bool,
        engine: &mut Engine,
    ) -> Outgoing {
        let offset = self.map.nxt();
        let number = engine.send(now, path, Cargo { key: offset, len, history: History::Once }, last);
        self.map.send_new(path, number, len);
        self.note_sent(now, path, offset, len, engine);
        Outgoing { path, offset, len, retransmission: false }
    }

    /// Silly window avoidance and Nagle (RFC 9293 §3.8.6.2.1, §3.7.4): how much of `usable` to send.
    fn worth_sending(&mut self, mss: u64, usable: u64, waiting: u64) -> Option<u32> {
        let idle = self.map.is_idle();
        let full = usable >= mss; // (1)
        let last = usable == waiting && (idle || self.no_delay || self.stream.is_finished()); // (2)
        let half = 2 * usable >= self.window.largest; // (3)
        let worth = full || last || half || self.exceptions.small; // (4)
        self.exceptions.small &= !worth;
        worth.then_some(usable.min(mss) as u32)
    }

    /// Cuts a lost segment if it is too long for a path whose segments carry `mss` bytes.
    fn fit(&mut self, lost: &Lost, mss: u32) -> u32 {
        let with_fin = lost.offset + u64::from(lost.len) > self.stream.end();
        if lost.len > mss + u32::from(with_fin) {
            self.map.split(lost.offset, mss);
            return mss;
        }
        lost.len
    }
}
