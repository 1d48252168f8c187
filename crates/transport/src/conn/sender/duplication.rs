//! Segments that leave on several paths at once, and what acknowledgments say of each of their copies.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::Sender;
use super::ack::Ack;
use super::copies::{Answered, Copies, Copy};
use super::next::Outgoing;
use crate::conn::handshake::TIMESTAMP_TICK;
use crate::engine::Engine;
use crate::engine::timers::Timer;
use crate::facts::PathState;
use crate::path::flight::Flight;
use crate::path::transmission::{Cargo, History};
use crate::path_map::{OfPath, PathMap};
use crate::sched::scheduler::is_open;

/// The sender's side of duplication.
#[derive(Debug, Default)]
pub(super) struct Duplication {
    pub(super) under_way: Copies,
    /// Copies that leave next, on which paths.
    waiting: VecDeque<(PathId, Cargo)>,
    /// Copies that paths missed while they were full.
    missed: PathMap<Missed>,
    /// Bytes that left again before their own path delivered them.
    reinjected: u64,
}

/// Bytes of the stream for each that may leave again on a quicker path, beyond the first `REINJECTED`.
const PART: u64 = 16;
const REINJECTED: u64 = 65_536;

/// Copies that a path missed, in the order in which the others left.
#[derive(Debug)]
struct Missed {
    path: PathId,
    copies: VecDeque<Cargo>,
}

impl OfPath for Missed {
    fn path(&self) -> PathId {
        self.path
    }
}

impl Sender {
    /// `outgoing` goes on `others` too.
    #[inline(always)]
    pub(super) fn copy(&mut self, now: Instant, outgoing: &Outgoing, others: PathSet, engine: &mut Engine) {
        if !others.is_empty() {
            self.copy_on(now, outgoing, others, engine);
        }
    }

    #[cold]
    fn copy_on(&mut self, now: Instant, outgoing: &Outgoing, others: PathSet, engine: &mut Engine) {
        let Outgoing { path, offset, len, retransmission } = *outgoing;
        let history = if retransmission { History::Again } else { History::Once };
        let cargo = Cargo { key: offset, len, history };
        engine.flight_mut(path).into_iter().for_each(Flight::copy_last);
        self.copied = true;
        self.note_sent_again(offset, len);
        for view in engine.views().iter().filter(|view| others.contains(view.id)) {
            if is_open(now, view, len) {
                self.copies.waiting.push_back((view.id, cargo));
            } else {
                let missed = |path| Missed { path, copies: VecDeque::new() };
                self.copies.missed.or_insert(view.id, missed).copies.push_back(cargo);
            }
        }
    }

    /// Whether copies are under way.
    #[inline]
    pub(super) fn has_copies_under_way(&self) -> bool {
        self.copied && !self.copies.under_way.is_empty()
    }

    /// Whether copies wait to be sent.
    #[inline]
    pub(super) fn has_copies(&self) -> bool {
        self.copied && !self.copies.waiting.is_empty()
    }

    /// Whether paths missed copies that may still be of use.
    #[inline]
    pub(super) fn has_missed_copies(&self) -> bool {
        self.copied && self.copies.missed.iter().any(|missed| !missed.copies.is_empty())
    }

    /// The next copy that an open path missed, if what it is of is still under way on another.
    #[cold]
    pub(super) fn next_missed_copy(&mut self, now: Instant, engine: &mut Engine) -> Option<Outgoing> {
        for Missed { path, copies } in self.copies.missed.iter_mut() {
            while copies.pop_front_if(|copy| !self.map.is_under_way_beside(copy.key, *path)).is_some() {}
            let Some(&cargo) = copies.front() else { continue };
            let view = engine.views().get(*path).filter(|view| view.state == PathState::Active);
            match view.copied() {
                None => copies.clear(),
                Some(view) if is_open(now, &view, cargo.len) => {
                    copies.pop_front();
                    self.copies.waiting.push_back((*path, cargo));
                    return self.next_copy(now, engine);
                }
                Some(view) if view.earliest_send > now => {
                    engine.timers.set_earlier(Timer::Pacing, view.earliest_send);
                }
                Some(_) => {} // an acknowledgment opens it
            }
        }
        None
    }

    /// Whether nothing new can leave, and what is under way may leave again on a quicker path.
    #[inline]
    pub(super) fn may_reinject(&self, engine: &Engine) -> bool {
        let is_held = self.usable() == 0 && !self.map.is_idle();
        is_held && engine.reinjects() && self.copies.reinjected < REINJECTED + self.map.nxt() / PART
    }

    /// A copy of what a quicker path should deliver sooner than the one it left on.
    #[cold]
    pub(super) fn next_reinjection(&mut self, now: Instant, engine: &mut Engine) -> Option<Outgoing> {
        let (path, cargo) = engine.take_reinjection(now)?;
        self.copied = true;
        self.copies.reinjected += u64::from(cargo.len);
        self.note_sent_again(cargo.key, cargo.len);
        self.copies.waiting.push_back((path, cargo));
        self.next_copy(now, engine)
    }

    /// The path is gone.
    pub(super) fn forget_copies(&mut self, path: PathId) {
        self.copies.under_way.remove(path);
        self.copies.missed.remove(path);
    }

    /// The next copy that waits.
    #[inline(never)]
    pub(super) fn next_copy(&mut self, now: Instant, engine: &mut Engine) -> Option<Outgoing> {
        loop {
            let (path, Cargo { key: offset, len, history }) = self.copies.waiting.pop_front()?;
            let active = engine.views().get(path).is_some_and(|v| v.state == PathState::Active);
            if offset >= self.map.una() && active {
                let under_way = &mut self.copies.under_way;
                let again = history != History::Once || under_way.left(path, offset).is_some();
                under_way.add(path, Copy { offset, len, sent_at: now, again });
                engine.send_aside(now, path, Cargo { key: offset, len, history: History::Once });
                return Some(Outgoing { path, offset, len, retransmission: false });
            }
        }
    }

    /// The acknowledgment reports that what its first block names had come before it came by its route. Returns whether it left
    /// as a copy.
    #[cold]
    pub(super) fn on_duplicate(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine) -> bool {
        let Some(&(start, _)) = ack.blocks.first() else { return false };
        if let Some(answered) = self.copies.under_way.answer(ack.route, start) {
            self.on_copy(now, ack, &answered, true, engine);
            return true;
        }
        let is_of_copy = self.copies.under_way.overtook(ack.route, start);
        for i in 0..engine.lanes().len() {
            self.tell_aside(engine.lanes().id_at(i), engine);
        }
        is_of_copy
    }

    /// What was delivered on `path` just now had a copy on the acknowledgment's route, and that came
    /// first: it is the one under way on `path` that is the copy now.
    #[cold]
    pub(super) fn copy_came_first(
        &mut self,
        now: Instant,
        path: PathId,
        ack: &Ack<'_>,
        engine: &mut Engine,
    ) -> bool {
        let first = ack.route != path && !ack.reports_duplicate(); // else something came second on its route
        let newest = engine.lanes()[path].flight.fresh().newest.filter(|_| first);
        let Some((_, newest)) = newest else { return false };
        let Cargo { key: offset, len, .. } = newest.cargo;
        let Some(answered) = self.copies.under_way.answer(ack.route, offset) else { return false };
        let (sent_at, again) = (newest.sent_at, newest.retransmitted());
        self.copies.under_way.add(path, Copy { offset, len, sent_at, again });
        self.tell_aside(path, engine);
        self.on_copy(now, ack, &answered, false, engine);
        true
    }

    /// The round trip of what left on `path` at `sent_at`, if `ack` shows it. Copies left on other paths, which `ack` may answer instead. It
    /// does not if it echoes what left on `path` then or later. It is taken not to if the round trip is no shorter than the path's shortest
    /// (as in RFC 8985 §6.2, step 2).
    #[cold]
    pub(super) fn round_trip(
        &self,
        now: Instant,
        path: PathId,
        sent_at: Instant,
        ack: &Ack<'_>,
        engine: &Engine,
    ) -> Option<Duration> {
        let tick = |at: Instant| at.0 / TIMESTAMP_TICK;
        let (left, echo) = (tick(sent_at), ack.echo.filter(|_| ack.route == path).map(tick));
        let least = engine.lanes().get(path).and_then(|lane| lane.estimator.rtt.min());
        let took = now.since(sent_at);
        let is_sure = self.copies.under_way.are_answered_one_by_one() || echo > Some(left);
        if is_sure || least.is_some_and(|least| took >= least) {
            return Some(took);
        }
        // Another segment may have left before, but no sooner than the tick began.
        (echo == Some(left)).then(|| now.since(Instant(left * TIMESTAMP_TICK)))
    }

    /// The acknowledgment answers a copy; `twice`: it reports that its data came twice.
    fn on_copy(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        answered: &Answered,
        twice: bool,
        engine: &mut Engine,
    ) {
        let (path, Copy { offset, len, sent_at, again }) = (ack.route, answered.copy);
        self.tell_aside(path, engine);
        let cargo = Cargo { key: offset, len, history: History::Once };
        let first = || engine.lanes().get(path).is_none_or(|lane| lane.estimator.rtt.min().is_none());
        let rtt = match twice && !again && first() {
            true => Some(now.since(sent_at)),
            false => self.round_trip(now, path, sent_at, ack, engine),
        };
        engine.delivered_aside(now, path, &ack.answer(), (cargo, sent_at), rtt);
        let Answered { missing, missing_sent, .. } = *answered;
        if missing > 0 && self.copies.under_way.is_loss(now, path, missing_sent) {
            engine.lost_aside(now, path, missing, missing_sent);
        }
        engine.answered_aside(now, path);
    }

    /// Tells the engine what is under way on `path` by our account.
    fn tell_aside(&self, path: PathId, engine: &mut Engine) {
        engine.set_aside(path, self.copies.under_way.in_flight(path));
    }
}
