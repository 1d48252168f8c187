//! Segments that leave on several paths at once, and what acknowledgments say of each of their copies.

use std::collections::VecDeque;

use polypath_wire::{Instant, PathId, PathSet};

use super::Sender;
use super::ack::Ack;
use super::next::Outgoing;
use crate::conn::timers::{Timer, Timers};
use crate::facts::{AckSample, Episode, LossCause, LossEvent, PathState};
use crate::loss::copies::{Answered, Copies, Copy};
use crate::loss::scoreboard::Delivery;
use crate::path::routes::AckedInfo;

/// The sender's side of duplication.
#[derive(Debug, Default)]
pub struct Duplication {
    pub(super) under_way: Copies,
    /// Copies that leave next, on which paths.
    waiting: VecDeque<(PathId, u64, u32)>,
}

impl Sender {
    /// `outgoing` goes on `others` too.
    #[inline]
    pub(super) fn copy(&mut self, outgoing: &Outgoing, others: PathSet) {
        if others.is_empty() {
            return;
        }
        let others = self.views.ids().filter(|p| others.contains(*p));
        self.copies.waiting.extend(others.map(|p| (p, outgoing.offset, outgoing.len)));
    }

    /// Whether copies wait to be sent.
    pub(super) fn has_copies(&self) -> bool {
        !self.copies.waiting.is_empty()
    }

    /// The next copy that waits.
    #[inline(never)]
    pub(super) fn next_copy(&mut self, now: Instant, timers: &mut Timers) -> Option<Outgoing> {
        loop {
            let (path, offset, len) = self.copies.waiting.pop_front()?;
            let active = self.views.get(path).is_some_and(|v| v.state == PathState::Active);
            let useful = offset >= self.board.una() && active;
            if useful {
                self.account(now, path, len, false, false, timers);
                self.copies.under_way.add(path, Copy { offset, len, sent_at: now });
                self.after_send(now, path, len, timers);
                return Some(Outgoing { path, offset, len, retransmission: false });
            }
        }
    }

    /// The acknowledgment reports that what its first block names had come before it came by its route.
    #[cold]
    pub(super) fn on_duplicate(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) {
        let Some(&(start, _)) = ack.blocks.first() else { return };
        match self.copies.under_way.answer(ack.route, start) {
            Some(answered) => self.on_copy(now, ack, &answered, timers),
            None => self.copies.under_way.overtook(ack.route, start),
        }
    }

    /// The data that `fresh` tells of was sent on `path`, but its copy on the acknowledgment's route came
    /// first: it is the one under way on `path` that is the copy now.
    #[cold]
    pub(super) fn copy_came_first(
        &mut self,
        now: Instant,
        path: PathId,
        ack: &Ack<'_>,
        fresh: &Delivery,
        timers: &mut Timers,
    ) -> bool {
        let first = ack.route != path && !ack.reports_duplicate(); // else something came second on its route
        let Some(newest) = fresh.newest.filter(|_| first) else { return false };
        let Some(answered) = self.copies.under_way.answer(ack.route, newest.offset) else {
            return false;
        };
        let copy = Copy { offset: newest.offset, len: newest.len, sent_at: newest.sent_at };
        self.copies.under_way.add(path, copy);
        self.on_copy(now, ack, &answered, timers);
        true
    }

    fn on_copy(&mut self, now: Instant, ack: &Ack<'_>, answered: &Answered, timers: &mut Timers) {
        let (path, Copy { offset, len, sent_at }) = (ack.route, answered.copy);
        let rtt = now.since(sent_at);
        let info = AckedInfo { offset, sent_at, len: u64::from(len), acked_at: now, via: ack.path };
        let round_trip = self.observers.routes.as_mut().zip(ack.reverse);
        let round_trip = round_trip.map(|(r, rev)| r.on_round_trip(path, ack.path, rtt, rev));
        let route = self.observers.routes.as_mut().and_then(|r| r.on_acked(now, path, info));
        let p = &mut self.paths[path];
        p.timeouts = 0;
        p.stats.bytes_delivered += u64::from(len);
        p.estimator.rtt.sample(round_trip.unwrap_or(rtt));
        let (prior_in_flight, mss) = (self.views[path].in_flight, self.views[path].mss);
        let sample = AckSample {
            newly_acked: u64::from(len),
            newly_acked_segments: 1,
            rtt: Some(rtt),
            prior_in_flight,
            route,
            window_limited: prior_in_flight + u64::from(mss) > self.controller.window(path),
            ..AckSample::default()
        };
        self.controller.on_ack(now, path, &sample, self.views.as_slice());
        self.missing_copies(now, path, answered);
        match self.is_outstanding(path) {
            true => timers.set(Timer::Rto(path), now + self.rto(path)),
            false => timers.stop(Timer::Rto(path)),
        }
    }

    /// Copies that did not arrive are a loss on their path, once a window.
    fn missing_copies(&mut self, now: Instant, path: PathId, answered: &Answered) {
        let reduced = &mut self.paths[path].copies_reduced;
        if answered.missing == 0 || answered.missing_sent < *reduced {
            return;
        }
        *reduced = now;
        let event = LossEvent {
            cause: LossCause::LaterDelivered,
            episode: Episode::default(),
            bytes: answered.missing,
            flight_size: self.flight_size(path) + answered.missing,
            oldest_sent: answered.missing_sent,
        };
        self.controller.on_loss(now, path, &event, self.views.as_slice());
    }

    /// Whether anything is under way on `path`.
    pub(super) fn is_outstanding(&self, path: PathId) -> bool {
        self.board.is_outstanding(path) || self.copies.under_way.in_flight(path) > 0
    }
}
