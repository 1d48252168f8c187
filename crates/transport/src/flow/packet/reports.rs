//! What the peer's reports tell of what we sent.

use std::collections::BTreeMap;

use polypath_wire::shim::Report;
use polypath_wire::{Duration, Instant, PathId};

use super::PacketFlow;
use super::again::came;
use super::numbering::expand;
use super::send::ASK;
use crate::engine::answers::Answer;
use crate::engine::facts::Fact;
use crate::engine::numbers::Reported;
use crate::path::transmission::Transmission;

/// Transmissions judged lost that are remembered, on each path, in case they were only late.
const GIVEN_UP: usize = 1024;

/// What is remembered of what was sent on one path.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Transmissions judged lost.
    given_up: BTreeMap<u64, Transmission>,
    /// The first question and the last, while none is answered: the next may leave before an answer can be here.
    asked: Option<(u64, u64)>,
    /// The peer's clock, as in its last report: µs without the wrap.
    clock: u64,
    /// Marks of congestion that were reported.
    marked: u32,
}

impl Sent {
    /// The peer's clock showed `low`, µs without what wraps: all of it.
    fn clock(&mut self, low: u32) -> u64 {
        self.clock = expand(low, self.clock).unwrap_or(low.into());
        self.clock
    }

    /// The peer counted `marked` of them: how many more than at the last report. A late report counts none.
    fn marks(&mut self, marked: u32) -> u32 {
        let more = marked.wrapping_sub(self.marked);
        match more as i32 {
            0.. => {
                self.marked = marked;
                more
            }
            _ => 0,
        }
    }

    /// A question left as `number`. Returns the one before, if it is not answered.
    pub(super) fn asks(&mut self, number: u64) -> Option<u64> {
        let (first, last) = self.asked.unzip();
        self.asked = Some((first.unwrap_or(number), number));
        last
    }

    /// The peer has `highest`: whether that answers a question.
    fn answers(&mut self, highest: u64) -> bool {
        self.asked.take_if(|(first, _)| *first <= highest).is_some()
    }

    /// Takes out what was judged lost and is in `range`.
    fn late(&mut self, (first, last): (u64, u64)) -> Vec<(u64, Transmission)> {
        let numbers: Vec<_> = self.given_up.range(first..=last).map(|(number, _)| *number).collect();
        numbers.into_iter().filter_map(|number| Some((number, self.given_up.remove(&number)?))).collect()
    }

    fn give_up(&mut self, number: u64, transmission: Transmission) {
        if transmission.cargo.key == ASK {
            return;
        }
        if self.given_up.len() >= GIVEN_UP {
            self.given_up.pop_first();
        }
        self.given_up.insert(number, transmission);
    }

    /// Forgets what left before that; whether any is left.
    pub(super) fn forget(&mut self, before: Instant) -> bool {
        self.given_up.retain(|_, transmission| transmission.sent_at >= before);
        !self.given_up.is_empty()
    }
}

impl PacketFlow {
    /// The peer reports what came on `path`.
    pub(super) fn on_report(&mut self, now: Instant, path: PathId, report: &Report) {
        let (ranges, bad) = self.located(path, report);
        self.stats.bad_ranges += bad;
        let Some(&(_, highest)) = ranges.first() else { return };
        let sent = &mut self.paths[path].sent;
        let left = sent.clock(report.received) * 1000 + u64::from(report.delay) * 1000;
        let answer = Answer { via: path, reverse: Some(now.0 as i64 - left as i64) };
        ranges.iter().for_each(|range| came(&mut self.paths[path].kept, *range));
        let sent = &mut self.paths[path].sent;
        let late: Vec<_> = ranges.iter().flat_map(|range| sent.late(*range)).collect();
        let answered = sent.answers(highest);
        let marks = sent.marks(report.ecn.marked);
        self.stats.marked += u64::from(marks);
        if marks > 0 && self.engine.heeds_marks() {
            self.engine.on_marks(now, path);
        }
        self.stats.late += late.len() as u64;
        self.came_late(&late);
        let delay = Duration::from_micros(report.delay.into());
        let reported = Reported { ranges: &ranges, late: &late, highest, delay };
        self.engine.reported(now, path, &reported, &answer);
        if answered {
            self.engine.works_again(now, path);
        }
        self.take_facts();
    }

    /// The ranges of `report` in whole numbers, highest first, and how many were of numbers that were never used.
    fn located(&self, path: PathId, report: &Report) -> (Vec<(u64, u64)>, u64) {
        let next = self.engine.lanes()[path].flight.next_number();
        let begin = self.paths[path].first;
        let whole = |(first, last): &(u32, u32)| {
            let len = last.wrapping_sub(*first);
            let last = expand(last.wrapping_sub(begin), next).filter(|last| *last < next)?;
            Some((last.saturating_sub(len.into()), last))
        };
        let ranges: Vec<_> = report.ranges.iter().filter_map(whole).collect();
        let never =
            |(_, last): &&(u32, u32)| expand(last.wrapping_sub(begin), next).is_some_and(|n| n >= next);
        let bad = report.ranges.iter().filter(never).count() as u64;
        (ranges, bad)
    }

    /// Counts and remembers what is taken to be lost.
    pub(super) fn take_facts(&mut self) {
        let facts = self.engine.take_facts();
        for fact in &facts {
            if let Fact::Lost { what, transmission, .. } = fact {
                self.stats.lost += u64::from(transmission.cargo.key != ASK);
                if let Some(path) = self.paths.get_mut(what.path) {
                    path.lost_of = Some(transmission.sent_at).max(path.lost_of);
                    path.sent.give_up(what.number, *transmission);
                    let kept = path.kept.remove(&what.number);
                    kept.into_iter().for_each(|kept| self.send_again(kept));
                }
            }
        }
        self.engine.put_back(facts);
    }
}
