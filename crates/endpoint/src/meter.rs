//! The rate at which a path delivers what all connections together have under way there.
//!
//! Many connections, each too short to measure the path, can fill it together. What is under way for more than a round trip waits in a queue: as
//! long as there is one, the path delivers what it carries. Late acknowledgments make that seem less, and bursts of them more.

use std::collections::VecDeque;

use polypath_transport::{KnownPath, UnderWay};
use polypath_wire::{Duration, Instant, Rate};

/// A measurement takes at least this long, and half a round trip: acknowledgments come in bursts.
const SPAN: Duration = Duration::from_millis(10);
/// A measurement takes at least this many delivered bytes.
const ENOUGH: u64 = 30_000;
/// A measurement ends after this time, or after a round trip if that is longer.
const MOST: Duration = Duration::from_millis(100);
/// Fewer waiting bytes are not taken for a queue, in all and for each connection: only their acknowledgments may be late.
const QUEUE: u64 = 14_600;
const QUEUE_EACH: u64 = 1460;
/// The meter looks at the path this often in a round trip.
const LOOKS: u64 = 8;
/// The meter waits at least this long between two looks.
const SOON: Duration = Duration::from_millis(1);

/// Measures one path.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// When to look at the path next.
    next: Instant,
    /// When it was looked at in the last round trip, and once before that; and what had left by then.
    looks: VecDeque<(Instant, u64)>,
    /// When there was a queue first, and when last; and what had been delivered by then.
    full: Option<[(Instant, u64); 2]>,
}

impl Meter {
    /// `all` was given to the path until now, by that number of `connections` of which something is in flight. Returns what the path
    /// carries, if that was measured; `rtts` tells the shortest round trip of the connection that reports, and the known one: what waits
    /// is judged by the shorter one.
    #[inline]
    pub fn measure(
        &mut self,
        now: Instant,
        all: &UnderWay,
        connections: u64,
        rtts: impl FnOnce() -> [Option<Duration>; 2],
    ) -> Option<KnownPath> {
        let is_due = now >= self.next || all.in_flight == 0;
        let looks = is_due && (all.in_flight >= QUEUE || !self.looks.is_empty());
        if looks { self.look(now, all, connections, rtts()) } else { None }
    }

    #[cold]
    fn look(
        &mut self,
        now: Instant,
        all: &UnderWay,
        connections: u64,
        [own, known]: [Option<Duration>; 2],
    ) -> Option<KnownPath> {
        let rtt = own.into_iter().chain(known).min()?;
        self.next = now + SOON.max(rtt.over(LOOKS));
        let is_old = |at: Instant| now.since(at) >= rtt;
        while self.looks.get(1).is_some_and(|(at, _)| is_old(*at)) {
            self.looks.pop_front();
        }
        let before = self.looks.front().filter(|(at, _)| is_old(*at));
        let waits = before.map_or(0, |(_, sent)| all.in_flight.saturating_sub(all.sent - sent));
        self.looks.push_back((now, all.sent));
        let measured = self.hear(now, waits >= QUEUE.max(connections * QUEUE_EACH), all.delivered, rtt);
        measured.map(|rate| KnownPath { rate, rtt: own.unwrap_or(rtt) })
    }

    /// Hears whether there is a queue now, and that `delivered` bytes arrived until now. Returns a measurement when the queue is gone, or
    /// has lasted for [`MOST`] or a round trip, whichever is longer.
    fn hear(&mut self, now: Instant, is_full: bool, delivered: u64, rtt: Duration) -> Option<Rate> {
        if is_full {
            self.full.get_or_insert([(now, delivered); 2])[1] = (now, delivered);
        }
        let [(since, before), (until, after)] = self.full?;
        let (span, bytes) = (until.since(since), after - before);
        if is_full && span < MOST.max(rtt) {
            return None;
        }
        self.full = is_full.then_some([(now, delivered); 2]);
        let is_enough = bytes >= ENOUGH && span >= SPAN.max(rtt.over(2));
        is_enough.then(|| Rate::from_bytes_per(bytes, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 20;

    /// What is measured, Mbit/s, and when, ms, if in each millisecond `sends` bytes leave, and of what is under way the path delivers at most
    /// `carries`, a round trip later.
    fn measured(sends: impl Fn(u64) -> u64, carries: u64) -> Vec<(u64, u64)> {
        measured_by(1, sends, carries)
    }

    /// The same of that number of `connections`; every second look is by one whose own round trip is five times as long. Who has nothing in
    /// flight does not report.
    fn measured_by(connections: u64, sends: impl Fn(u64) -> u64, carries: u64) -> Vec<(u64, u64)> {
        let (mut meter, mut all, mut queue) = (Meter::default(), UnderWay::default(), 0);
        let mut on_way = VecDeque::from(vec![0; RTT as usize]);
        let step = |ms| {
            queue += sends(ms);
            on_way.push_back(queue.min(carries));
            queue -= queue.min(carries);
            let arrives = on_way.pop_front()?;
            all.sent += sends(ms);
            all.delivered += arrives;
            let was_idle = all.in_flight == 0;
            all.in_flight = all.sent - all.delivered;
            if was_idle && all.in_flight == 0 {
                meter = Meter::default();
                return None;
            }
            let now = Instant::ZERO + Duration::from_millis(ms);
            let rtt = Duration::from_millis(if ms % 2 == 0 { RTT } else { 5 * RTT });
            let path =
                meter.measure(now, &all, connections, || [Some(rtt), Some(Duration::from_millis(RTT))])?;
            assert_eq!(path.rtt, rtt, "the connection's own");
            Some((path.rate.0 / 1_000_000, ms))
        };
        (0..500).filter_map(step).collect()
    }

    #[test]
    fn a_queue_tells_the_rate_when_it_ends() {
        let once = |bytes| measured(move |ms| if ms == 0 { bytes } else { 0 }, 1000);
        assert_eq!(once(70_000), [(8, 75)]);
        assert_eq!(once(40_000), [], "too little waited");
    }

    /// At 100 Mbit/s all arrives between two looks.
    #[test]
    fn the_end_of_all_ends_a_measurement() {
        assert_eq!(measured(|ms| if ms == 0 { 500_000 } else { 0 }, 12_500), [(100, 59)]);
    }

    #[test]
    fn late_acknowledgments_of_many_connections_are_no_queue() {
        let once = |connections| measured_by(connections, |ms| if ms == 0 { 70_000 } else { 0 }, 1000);
        assert_eq!((once(20), once(40)), (vec![(8, 60)], vec![]));
    }

    #[test]
    fn a_queue_that_stands_tells_it_ten_times_a_second() {
        let all = measured(|ms| if ms == 0 { 100_000 } else { 1000 }, 1000);
        assert_eq!(all, [(8, 123), (8, 225), (8, 327), (8, 429)]);
    }

    /// Half of the rate is used, at once every ten milliseconds or evenly: nothing waits for long.
    #[test]
    fn what_does_not_fill_the_path_tells_nothing() {
        assert_eq!(measured(|ms| if ms % 10 == 0 { 50_000 } else { 0 }, 10_000), []);
        assert_eq!(measured(|_| 5000, 10_000), []);
    }
}
