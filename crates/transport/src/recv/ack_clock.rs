//! When what came on one path is acknowledged, if acknowledgments are thinned: a few times a round trip, as
//! TACK does it, within the limits of draft-ietf-quic-ack-frequency.
//!
//! The receiver measures the round trip from its acknowledgments to the data that they let go (their timestamps
//! come back with it). That includes what they wait on the way back: where they have to queue they become fewer.
//!
//! In the middle of a transfer an acknowledgment leaves as a segment comes, as TCP's do, and not at a time of its own: what
//! it releases then meets a full queue as often as what others release (docs/controller.md, *Acknowledgments by a timer*).

use polypath_wire::{Duration, Instant};

use super::config::Thinning;
use crate::windowed::WindowedMin;

/// A single segment waits at least so long for another.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);
/// The fewest segments that are acknowledged together are so at once if they took this long: there is little to save.
const SLOW: Duration = Duration::from_millis(2);

/// The smallest round trip is remembered for one or two of these.
const MEMORY: Duration = Duration::from_secs(1);

/// What came on one path and was not acknowledged there.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckClock {
    /// Segments that came since the last acknowledgment on this path, and when the first of them did.
    untold: u32,
    since: Instant,
    /// When the last of them did.
    last: Instant,
    /// When the last acknowledgment left.
    told_at: Instant,
    /// Segments that came in all.
    came: u64,
    /// Offset after the last byte that came.
    end: u64,
    haste: Haste,
    /// When there was haste last.
    hurried_at: Instant,
    /// The smallest round trip of late: data that waited for something else than its acknowledgment makes samples too long.
    round_trip: WindowedMin<Duration>,
}

/// Something is missing on the path, or came after it had been.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Haste {
    #[default]
    None,
    /// The peer should know at once.
    Now,
    /// It knows; `every` segments more tell it that this was no reordering (RFC 8985's DupThresh).
    Soon,
}

impl AckClock {
    /// A segment of stream bytes `offset..end` came; `gap`: one before it on this path did not.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        (offset, end): (u64, u64),
        gap: bool,
        rules: &Thinning,
    ) {
        if self.untold == 0 {
            self.since = now;
        }
        self.untold += 1;
        self.last = now;
        self.came += 1;
        let again = offset < self.end;
        self.end = self.end.max(end);
        let calm = self.haste == Haste::None && now >= self.hurried_at + self.interval(rules);
        if (gap || again) && calm {
            self.haste = Haste::Now;
            self.hurried_at = now;
        }
    }

    /// Something that came here must be acknowledged at once.
    pub(crate) fn hurry(&mut self) {
        self.haste = Haste::Now;
    }

    /// Whether a segment came that no acknowledgment covers yet.
    pub(crate) fn waits(&self) -> bool {
        self.untold > 0
    }

    /// When the newest segment came of which an acknowledgment tells that leaves `now`.
    pub(crate) fn newest(&self, now: Instant) -> Option<Instant> {
        let tells = self.waits() || self.told_at == now;
        (tells && self.came > 0).then_some(self.last)
    }

    /// A segment came that echoes what we sent at `sent`.
    pub(crate) fn on_echo(&mut self, now: Instant, sent: Instant) {
        self.round_trip.add(now, now.since(sent), MEMORY);
    }

    /// When an acknowledgment is due, if something is unacknowledged; a single segment waits for `delay` at most.
    pub(crate) fn due(&self, rules: &Thinning, delay: Duration) -> Option<Instant> {
        let delay = self.patience().min(delay);
        let enough = self.untold >= rules.every;
        match (self.untold, self.haste) {
            (0, _) => None,
            (_, Haste::Now) => Some(self.since),
            (_, Haste::Soon) if enough => Some(self.since),
            (n, _) if n >= rules.most => Some(self.since),
            _ if enough => Some(self.of_enough(rules).min(self.since + delay)),
            _ => Some(self.since + delay),
        }
    }

    /// An acknowledgment of all that came left on this path.
    pub(crate) fn acknowledged(&mut self, now: Instant) {
        self.untold = 0;
        self.told_at = now;
        self.haste = if self.haste == Haste::Now { Haste::Soon } else { Haste::None };
    }

    /// How long few segments wait for more: where a window holds few, each round trip ends with such.
    fn patience(&self) -> Duration {
        self.round_trip.value().map_or(Duration(u64::MAX), |rtt| rtt.over(4).max(LEAST_PATIENCE))
    }

    /// When as many segments as are enough, or more, are acknowledged, if no other comes: at once if the interval had passed as
    /// the last came.
    fn of_enough(&self, rules: &Thinning) -> Instant {
        let (interval, passed) = (self.interval(rules), self.last.since(self.told_at));
        let is_slow = self.untold == rules.every && passed >= SLOW;
        if is_slow || passed >= interval { self.since } else { self.told_at + interval.times(2) }
    }

    /// Least time between two acknowledgments.
    fn interval(&self, rules: &Thinning) -> Duration {
        match self.round_trip.value() {
            Some(rtt) if self.came > rules.first.into() => {
                rtt.over(rules.per_round_trip.into()).min(rules.longest)
            }
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const DELAY: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    /// A clock in the middle of a transfer over a round trip of 160 ms, which has just acknowledged all.
    fn running() -> (AckClock, Thinning) {
        let rules = Thinning { first: 0, ..Thinning::default() };
        let mut clock = AckClock::default();
        clock.on_echo(at(1000), at(840));
        clock.on_segment(at(1000), (0, 10), false, &rules);
        clock.acknowledged(at(1000));
        (clock, rules)
    }

    /// The `n`th segment of ten bytes.
    fn segment(n: u64) -> (u64, u64) {
        (10 * n, 10 * n + 10)
    }

    #[test]
    fn one_segment_waits_for_the_delay_and_more_for_the_first_after_a_sixteenth_of_the_round_trip() {
        let (mut clock, rules) = running();
        assert_eq!(clock.due(&rules, DELAY), None);
        clock.on_segment(at(1001), segment(1), false, &rules);
        assert_eq!(clock.due(&rules, DELAY), Some(at(1041)));
        for ms in [1001, 1005, 1009] {
            clock.on_segment(at(ms), segment(ms), false, &rules);
            assert_eq!(clock.due(&rules, DELAY), Some(at(1020)), "none may come");
        }
        clock.on_segment(at(1010), segment(1010), false, &rules);
        assert!(clock.due(&rules, DELAY) <= Some(at(1010)));
        clock.acknowledged(at(1010));
        assert_eq!(clock.due(&rules, DELAY), None);
    }

    #[test]
    fn two_segments_that_come_slowly_are_acknowledged_as_the_second_comes() {
        for (us, slow) in [(1999, false), (2000, true)] {
            let (mut clock, rules) = running();
            let second = at(1000) + Duration::from_micros(us);
            clock.on_segment(at(1001), segment(1), false, &rules);
            clock.on_segment(second, segment(2), false, &rules);
            assert_eq!(clock.due(&rules, DELAY) <= Some(second), slow, "{us}");
        }
    }

    #[test]
    fn where_the_round_trip_is_short_one_segment_waits_for_less_than_the_delay() {
        let (mut clock, rules) = running();
        clock.on_echo(at(1001), at(961));
        clock.on_segment(at(1001), segment(1), false, &rules);
        assert_eq!(clock.due(&rules, DELAY), Some(at(1011)));
    }

    #[test]
    fn after_many_segments_it_waits_no_longer() {
        let (mut clock, rules) = running();
        for n in 1..=32 {
            clock.on_segment(at(1001), segment(n), false, &rules);
        }
        assert!(clock.due(&rules, DELAY) <= Some(at(1001)));
    }

    #[test]
    fn the_first_segments_of_a_path_are_acknowledged_in_twos() {
        let rules = Thinning::default();
        let mut clock = AckClock::default();
        clock.on_echo(at(1000), at(840));
        for n in 0..u64::from(rules.first) / 2 {
            clock.on_segment(at(1000), segment(2 * n), false, &rules);
            assert_eq!(clock.due(&rules, DELAY), Some(at(1040)));
            clock.on_segment(at(1000), segment(2 * n + 1), false, &rules);
            assert!(clock.due(&rules, DELAY) <= Some(at(1000)));
            clock.acknowledged(at(1000));
        }
        clock.on_segment(at(1000), segment(100), false, &rules);
        clock.on_segment(at(1000), segment(101), false, &rules);
        assert_eq!(clock.due(&rules, DELAY), Some(at(1020)));
    }

    #[test]
    fn a_gap_is_told_at_once_and_confirmed_by_two_segments_more_and_then_there_is_no_haste() {
        let (mut clock, rules) = running();
        let mut acknowledged = Vec::new();
        for n in 0..20 {
            let now = at(1020) + Duration::from_micros(100 * n);
            clock.on_segment(now, segment(2 + 2 * n), true, &rules);
            if clock.due(&rules, DELAY).is_some_and(|due| due <= now) {
                clock.acknowledged(now);
                acknowledged.push(n);
            }
        }
        assert_eq!(acknowledged, [0, 2]);
    }

    #[test]
    fn what_comes_after_later_data_of_its_path_is_told_at_once() {
        let (mut clock, rules) = running();
        clock.on_segment(at(1015), segment(5), false, &rules);
        assert_eq!(clock.due(&rules, DELAY), Some(at(1055)));
        clock.on_segment(at(1016), segment(3), false, &rules);
        assert!(clock.due(&rules, DELAY) <= Some(at(1016)));
    }

    #[test]
    fn a_slow_way_back_makes_the_round_trip_longer_and_acknowledgments_fewer() {
        let (mut clock, rules) = running();
        for ms in [2001, 2500, 3010] {
            clock.on_echo(at(ms), at(ms - 320));
        }
        clock.acknowledged(at(3010));
        clock.on_segment(at(3010), segment(1), false, &rules);
        clock.on_segment(at(3010), segment(2), false, &rules);
        assert_eq!(clock.due(&rules, DELAY), Some(at(3050)));
    }
}
