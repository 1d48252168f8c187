//! Marks of congestion on the packets of a path (RFC 3168), as its peer reports them.
//!
//! The controller hears of one mark in a round trip, as of one loss: other packets of that round trip that are marked or lost left
//! before the reduction. A peer repeats its report until new data tells it of the reduction.

use polypath_wire::{Instant, PathId};

use super::machine::Engine;
use crate::facts::{Episode, LossCause, LossEvent};

/// The episode of a mark: nothing undoes it.
const EPISODE: Episode = Episode(u32::MAX);

impl Engine {
    /// Whether what leaves may be marked: the controller answers.
    pub(crate) fn heeds_marks(&self) -> bool {
        self.controller.heeds_marks()
    }

    /// The peer reports new marks of `path`.
    pub(crate) fn on_marks(&mut self, now: Instant, path: PathId) {
        if self.hear_mark(now, path) {
            self.begin_round(now, path);
        }
    }

    /// The peer repeats that packets of `path` were marked until it [hears](Self::take_reduced) of the reduction.
    #[cold]
    pub(crate) fn on_mark_echoed(&mut self, now: Instant, path: PathId) {
        if self.hear_mark(now, path) {
            let marks = &mut self.lanes[path].marks;
            (marks.owed, marks.until, marks.deaf_until) = (true, Instant::MAX, Instant::MAX);
        }
    }

    /// Whether new data on `path` tells the peer that the window was reduced; it leaves now.
    #[inline]
    pub(crate) fn take_reduced(&mut self, now: Instant, path: PathId) -> bool {
        let owed = std::mem::take(&mut self.lanes[path].marks.owed);
        if owed {
            self.begin_round(now, path);
        }
        owed
    }

    /// A loss reduced the window of `path`: marks of the same round trip do not reduce it again.
    pub(super) fn reduced_for_loss(&mut self, now: Instant, path: PathId) {
        let end = self.end_of_round(now, path);
        let marks = &mut self.lanes[path].marks;
        marks.deaf_until = marks.deaf_until.max(end);
    }

    /// The controller hears of marks on packets that leave from now on.
    fn begin_round(&mut self, now: Instant, path: PathId) {
        let end = self.end_of_round(now, path);
        let marks = &mut self.lanes[path].marks;
        (marks.until, marks.deaf_until) = (end, end);
    }

    /// When a packet that leaves now will have been acknowledged.
    fn end_of_round(&self, now: Instant, path: PathId) -> Instant {
        now + self.lanes[path].estimator.rtt.srtt().unwrap_or_default()
    }

    /// Whether the controller heard of it.
    fn hear_mark(&mut self, now: Instant, path: PathId) -> bool {
        let Some(lane) = self.lanes.get_mut(path).filter(|lane| now >= lane.marks.deaf_until) else {
            return false;
        };
        lane.marks.heard = now;
        lane.stats.marks += 1;
        let srtt = lane.estimator.rtt.srtt().unwrap_or_default();
        let mark = LossEvent {
            cause: LossCause::LaterDelivered,
            episode: EPISODE,
            bytes: 0,
            flight_size: self.flight_size(path),
            oldest_sent: Instant(now.0.saturating_sub(srtt.0)),
        };
        self.end_start(path);
        self.controller.on_mark(now, path, &mark, self.views.as_slice());
        self.refresh_all(now);
        true
    }
}
