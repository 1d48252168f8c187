//! Acknowledgments by number, of cargo without an order.

use polypath_wire::{Duration, Instant, PathId};

use super::answers::{Answer, Learnt};
use super::machine::Engine;
use crate::facts::PathState;
use crate::loss::policy::Unordered;
use crate::path::bandwidth::DeliveryMark;
use crate::path::transmission::{Cargo, History, Transmission};

/// What the peer reports of one path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Reported<'a> {
    /// Numbers that came, first and last of each range.
    pub ranges: &'a [(u64, u64)],
    /// What was judged lost and came all the same, with its numbers: it was late.
    pub late: &'a [(u64, Transmission)],
    /// The highest number.
    pub highest: u64,
    /// How long before the report left that had come.
    pub delay: Duration,
}

impl Engine {
    /// The peer reports what came on `path`.
    pub(crate) fn reported(&mut self, now: Instant, path: PathId, reported: &Reported<'_>, answer: &Answer) {
        self.begin_account();
        self.deliver(path, reported);
        let fresh = self.lanes[path].flight.fresh();
        if fresh.bytes > 0 {
            let newest = fresh.newest.filter(|(number, _)| *number == reported.highest);
            let rtt = newest.map(|(_, newest)| now.since(newest.sent_at) - reported.delay);
            let learnt = Learnt { rtt, timed: rtt, ..Learnt::default() };
            self.learn(now, path, answer, learnt, &Unordered);
            if let Some(rtt) = rtt.filter(|_| self.rules.compares) {
                self.tell_wait(now, path, rtt);
            }
            self.after_delivery(now, path);
            self.goes_on();
        }
        self.judge(now, &Unordered);
        self.listen_for_silence(now, &Unordered);
        self.restart_rtos(now);
        self.refresh_all(now);
    }

    fn deliver(&mut self, path: PathId, reported: &Reported<'_>) {
        let flight = &mut self.lanes[path].flight;
        for &(first, last) in reported.ranges.iter().rev() {
            let from = first.max(flight.first_number());
            (from..=last).for_each(|number| _ = flight.deliver(number, false));
        }
        for (number, transmission) in reported.late {
            flight.deliver_late(*number, transmission);
            flight.note_duplicate();
        }
        flight.vouch(|_| true);
        flight.trim();
    }

    /// Something without a size leaves on `path` that no window holds back and no timer waits for. Returns its number.
    pub(crate) fn send_free(&mut self, now: Instant, path: PathId, key: u64) -> u64 {
        let cargo = Cargo { key, len: 0, history: History::Once };
        self.lanes[path].flight.push(Transmission::new(cargo, now, DeliveryMark::default()))
    }

    /// Nobody waits for the transmission `number` of `path` any more.
    pub(crate) fn forget(&mut self, path: PathId, number: u64) {
        self.lanes[path].flight.lose(number);
    }

    /// `path` answered what it was asked: if it had failed, it works again.
    pub(crate) fn works_again(&mut self, now: Instant, path: PathId) {
        if self.views[path].state == PathState::Failed {
            self.revive(now, path);
        }
    }
}
