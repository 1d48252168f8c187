//! What came on one path, to be reported to the peer.

use polypath_wire::shim::{EcnCounts, MAX_RANGES, Report};
use polypath_wire::{Duration, Ecn, Instant};

use super::numbering::expand;
use crate::ranges::Ranges;

/// Transmissions that are reported together at most.
const MOST: u32 = 32;
/// Reports of two or more follow one another no sooner.
const PAUSE: Duration = Duration::from_millis(1);
/// A single one waits so long for a second.
const PATIENCE: Duration = Duration::from_millis(10);

/// Transmissions of the peer on one path.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// Numbers that came: the last ranges, as many as a report holds.
    ranges: Ranges,
    /// The highest, and when it came.
    highest: Option<(u64, Instant)>,
    ecn: EcnCounts,
    /// How many came since the last report, and when it left.
    unreported: u32,
    reported: Option<Instant>,
    due: Option<Instant>,
}

impl Receipts {
    /// The transmission whose number ends in `low` came; `asked` if it wants a report at once.
    pub(super) fn take(&mut self, now: Instant, low: u32, ecn: Ecn, asked: bool) {
        let near = self.highest.map_or(low.into(), |(number, _)| number);
        let Some(number) = expand(low, near) else { return };
        if self.highest.is_none_or(|(highest, _)| number > highest) {
            self.highest = Some((number, now));
        }
        self.ranges.insert(number, number + 1);
        let lowest = self.ranges.iter().rev().nth(MAX_RANGES - 1);
        lowest.into_iter().for_each(|(first, _)| self.ranges.remove_below(first));
        match ecn {
            Ecn::None => {}
            Ecn::Capable => self.ecn.capable = self.ecn.capable.wrapping_add(1),
            Ecn::Marked => self.ecn.marked = self.ecn.marked.wrapping_add(1),
        }
        self.unreported += 1;
        let at = self.next_report(now, asked);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn next_report(&self, now: Instant, asked: bool) -> Instant {
        match self.unreported {
            _ if asked => now,
            MOST.. => now,
            2.. => self.reported.map_or(now, |last| now.max(last + PAUSE)),
            _ => now + PATIENCE,
        }
    }

    /// When a report is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The report, if it is due.
    pub(super) fn report(&mut self, now: Instant) -> Option<Report> {
        self.due.take_if(|due| *due <= now)?;
        let (_, at) = self.highest?;
        (self.unreported, self.reported) = (0, Some(now));
        let ranges = self.ranges.iter().rev().map(|(first, end)| (first as u32, (end - 1) as u32)).collect();
        let micros = |ns: u64| (ns / 1000) as u32;
        Some(Report { received: micros(at.0), delay: micros(now.since(at).0), ecn: self.ecn, ranges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = |n| Instant(n * 1_000_000);

    fn take(receipts: &mut Receipts, ms: u64, numbers: &[u32]) {
        numbers.iter().for_each(|number| receipts.take(MS(ms), *number, Ecn::None, false));
    }

    #[test]
    fn two_are_reported_at_once_one_after_a_while_and_many_no_more_often_than_every_millisecond() {
        let mut receipts = Receipts::default();
        take(&mut receipts, 5, &[0]);
        assert_eq!(receipts.due(), Some(MS(15)));
        take(&mut receipts, 6, &[1]);
        assert_eq!(receipts.due(), Some(MS(6)));
        let report = receipts.report(MS(6)).expect("it is due");
        assert_eq!((report.ranges, report.received, report.delay), (vec![(0, 1)], 6000, 0));
        take(&mut receipts, 6, &[2, 3]);
        assert_eq!((receipts.due(), receipts.report(MS(6))), (Some(MS(7)), None));
        take(&mut receipts, 6, &(4..34).collect::<Vec<_>>());
        assert_eq!(receipts.due(), Some(MS(6)));
    }

    #[test]
    fn a_report_holds_the_last_ranges_highest_first() {
        let mut receipts = Receipts::default();
        take(&mut receipts, 0, &(0..200).step_by(2).collect::<Vec<_>>());
        let report = receipts.report(MS(0)).expect("it is due");
        assert_eq!((report.ranges.len(), report.ranges[0], report.ranges[31]), (32, (198, 198), (136, 136)));
        take(&mut receipts, 1, &[197]);
        assert_eq!(receipts.report(MS(11)).map(|report| report.ranges[0]), Some((196, 198)));
    }

    #[test]
    fn numbers_may_begin_anywhere() {
        let mut receipts = Receipts::default();
        take(&mut receipts, 0, &[u32::MAX, 0]);
        let report = receipts.report(MS(0)).expect("it is due");
        assert_eq!(report.ranges, [(u32::MAX, 0)]);
    }

    #[test]
    fn who_asks_is_answered_at_once() {
        let mut receipts = Receipts::default();
        receipts.take(MS(3), 0, Ecn::Marked, true);
        let report = receipts.report(MS(3)).expect("it is due");
        assert_eq!(report.ecn, EcnCounts { capable: 0, marked: 1 });
    }
}
