//! Delivery rate: bytes delivered over the time it took, sampled per segment.
//!
//! Each segment remembers how much its path had delivered, and when, at the moment it left. When
//! it is delivered itself, the difference is a rate; the longer of the sending and the
//! acknowledging interval is taken, so that neither ACK compression nor a burst inflates it.
//! The estimate is the largest sample of the last ten round trips: losses and idle phases only
//! ever make samples too small. So do the first acknowledgments after an idle phase, which come one by one for what left at once: where packet
//! trains tell the rate of such a flight (`trains.rs`), its samples count only if they are larger than the estimate.

use std::cmp::Reverse;

use polypath_wire::{Duration, Instant, Rate};

use crate::windowed::WindowedMin;

/// State of a path at the moment a segment leaves. Each segment in flight keeps one, so it is small.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct DeliveryMark {
    /// Twice the bytes delivered so far, and one more if nothing more was waiting to be sent.
    delivered: u64,
    /// How long before it the last of them was acknowledged, ns; `u32::MAX` is that or longer.
    since_acked: u32,
    /// How long before it the segment left that was acknowledged last, likewise.
    since_sent: u32,
}

impl DeliveryMark {
    fn new(state: &State, now: Instant, app_limited: bool) -> Self {
        let ago = |at| u32::try_from(now.since(at).0).unwrap_or(u32::MAX);
        Self {
            delivered: 2 * state.delivered + u64::from(app_limited),
            since_acked: ago(state.delivered_at),
            since_sent: ago(state.first_sent),
        }
    }

    /// Nothing more was waiting to be sent.
    pub(crate) fn app_limited(&self) -> bool {
        self.delivered % 2 == 1
    }

    /// The longer of the sending and the acknowledging interval of a segment that left at `sent_at` and is
    /// acknowledged now, unless it began more than four seconds before that.
    fn span(&self, now: Instant, sent_at: Instant) -> Option<Duration> {
        let known = self.since_acked.max(self.since_sent) < u32::MAX;
        let acking = now.since(sent_at) + Duration(self.since_acked.into());
        known.then(|| acking.max(Duration(self.since_sent.into())))
    }
}

/// Round trips that the filter remembers.
const ROUNDS: u64 = 10;

/// What a path has delivered.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct State {
    /// Bytes.
    delivered: u64,
    /// When the last of them was acknowledged.
    delivered_at: Instant,
    /// When the segment left that was acknowledged last.
    first_sent: Instant,
    /// What had been delivered when something left and nothing was in flight, bytes.
    restarted: u64,
}

/// Delivery rate of one path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Bandwidth {
    state: State,
    /// Trains tell of the first flight after an idle phase.
    has_trains: bool,
    /// Largest rate of late.
    best: WindowedMin<Reverse<Rate>>,
    /// The last rate that measures the path.
    latest: Option<Rate>,
    /// Some sample that measures the path was of a segment behind which more waited.
    was_asked_for_more: bool,
}

impl Bandwidth {
    /// Nothing is known; `has_trains`: packet trains tell of the first flight after an idle phase.
    pub(crate) fn new(has_trains: bool) -> Self {
        Self { has_trains, ..Self::default() }
    }

    /// The mark for a segment that leaves now; `idle` if nothing is in flight.
    pub(crate) fn on_sent(&mut self, now: Instant, idle: bool, app_limited: bool) -> DeliveryMark {
        if idle {
            self.state.first_sent = now;
            self.state.delivered_at = now;
            self.state.restarted = self.state.delivered;
        }
        DeliveryMark::new(&self.state, now, app_limited)
    }

    /// `bytes` were delivered by one acknowledgment; `mark` and `sent_at` are those of the segment
    /// among them that left last.
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        mark: &DeliveryMark,
        sent_at: Instant,
        rtt: Option<Duration>,
    ) -> Option<Rate> {
        let delivered = self.state.delivered + bytes;
        self.state = State { delivered, delivered_at: now, first_sent: sent_at, ..self.state };
        let (rtt, span) = (rtt?, mark.span(now, sent_at)?);
        if span < rtt.over(2) {
            return None; // too short to mean anything: the flight began within it
        }
        let rate = Rate::from_bytes_per(delivered - mark.delivered / 2, span);
        let is_first_flight = self.has_trains && mark.delivered / 2 <= self.state.restarted;
        let tells_of_path = !mark.app_limited() && !is_first_flight;
        self.was_asked_for_more |= tells_of_path;
        self.latest = Some(rate).filter(|_| tells_of_path).or(self.latest);
        if tells_of_path || self.rate().is_none_or(|best| rate > best) {
            self.best.add(now, Reverse(rate), rtt.times(ROUNDS / 2));
        }
        Some(rate)
    }

    /// The last sample that measures the path: unlike the estimate it follows a rate that falls within a round trip.
    pub(crate) fn latest(&self) -> Option<Rate> {
        self.latest
    }

    /// When something was last delivered, or sent after nothing was under way.
    pub(crate) fn measured_at(&self) -> Instant {
        self.state.delivered_at
    }

    /// The estimate.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.best.value().map(|Reverse(rate)| rate)
    }

    /// The estimate, unless all that was measured is how little there was to send.
    pub(crate) fn rate_of_path(&self) -> Option<Rate> {
        self.rate().filter(|_| self.was_asked_for_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten segments of 1,000 bytes in flight, delivered 1 ms apart: 8 Mbit/s.
    #[test]
    fn measures_the_rate_of_a_paced_flight() {
        let mut bw = Bandwidth::default();
        let at = |ms: u64| Instant(ms * 1_000_000);
        let mut flight = std::collections::VecDeque::new();
        for ms in 0..100 {
            if ms >= 10 {
                let (sent, mark) = flight.pop_front().expect("ten in flight");
                bw.on_delivered(at(ms), 1000, &mark, sent, Some(Duration::from_millis(10)));
            }
            let mark = bw.on_sent(at(ms), flight.is_empty(), false);
            flight.push_back((at(ms), mark));
        }
        assert_eq!(bw.rate(), Some(Rate::from_mbps(8)));
        assert_eq!(bw.rate_of_path(), bw.rate());
    }

    #[test]
    fn the_first_acknowledgment_after_an_idle_phase_tells_no_rate_of_the_path() {
        let (rtt, at) = (Duration::from_millis(20), |ms: u64| Instant(ms * 1_000_000));
        let mut bw = Bandwidth::new(true);
        let flight =
            |bw: &mut Bandwidth, ms: u64| [true, false, false].map(|idle| bw.on_sent(at(ms), idle, false));
        let first = flight(&mut bw, 0);
        bw.on_delivered(at(20), 1000, &first[0], at(0), Some(rtt));
        assert_eq!(bw.rate_of_path(), None, "1,000 bytes in 20 ms are what one acknowledgment tells");
        let next = bw.on_sent(at(20), false, false);
        bw.on_delivered(at(20), 2000, &first[2], at(0), Some(rtt));
        bw.on_delivered(at(40), 1000, &next, at(20), Some(rtt));
        let rate = bw.rate_of_path();
        assert_eq!(rate, Some(Rate(1_200_000)), "3,000 bytes in 20 ms");
        let later = flight(&mut bw, 5000);
        bw.on_delivered(at(5020), 1000, &later[0], at(5000), Some(rtt));
        assert_eq!(bw.rate_of_path(), rate);
    }

    #[test]
    fn single_segments_with_nothing_behind_tell_no_rate_of_the_path() {
        let mut bw = Bandwidth::default();
        let at = |ms: u64| Instant(ms * 1_000_000);
        for n in 0..20 {
            let mark = bw.on_sent(at(100 * n), true, true);
            bw.on_delivered(at(100 * n + 10), 1000, &mark, at(100 * n), Some(Duration::from_millis(10)));
        }
        assert_eq!((bw.rate(), bw.rate_of_path()), (Some(Rate(800_000)), None));
    }
}
