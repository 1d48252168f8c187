//! Delivery rate: bytes delivered over the time it took, sampled per segment.
//!
//! Each segment remembers how much its path had delivered, and when, at the moment it left. When
//! it is delivered itself, the difference is a rate; the longer of the sending and the
//! acknowledging interval is taken, so that neither ACK compression nor a burst inflates it.
//! The estimate is the largest sample of the last ten round trips: losses and idle phases only
//! ever make samples too small.

use polypath_wire::{Duration, Instant, Rate};

/// State of a path at the moment a segment leaves.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DeliveryMark {
    /// Bytes delivered so far.
    pub delivered: u64,
    /// When the last of them was acknowledged.
    pub delivered_at: Instant,
    /// When the segment left that was acknowledged last.
    pub first_sent: Instant,
    /// Nothing more was waiting to be sent.
    pub app_limited: bool,
}

/// Round trips that the filter remembers.
const ROUNDS: u64 = 10;

/// Delivery rate of one path.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bandwidth {
    mark: DeliveryMark,
    /// Largest rate of the last and of the present half window, and when the present began.
    best: Option<(Rate, Rate, Instant)>,
}

impl Bandwidth {
    /// The mark for a segment that leaves now; `idle` if nothing is in flight.
    pub fn on_sent(&mut self, now: Instant, idle: bool, app_limited: bool) -> DeliveryMark {
        if idle {
            self.mark.first_sent = now;
            self.mark.delivered_at = now;
        }
        DeliveryMark { app_limited, ..self.mark }
    }

    /// `bytes` were delivered by one acknowledgment; `mark` and `sent_at` are those of the segment
    /// among them that left last.
    pub fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        mark: &DeliveryMark,
        sent_at: Instant,
        rtt: Option<Duration>,
    ) -> Option<Rate> {
        self.mark.delivered += bytes;
        self.mark.delivered_at = now;
        self.mark.first_sent = sent_at;
        let span = now.since(mark.delivered_at).max(sent_at.since(mark.first_sent));
        let rtt = rtt?;
        if span < rtt.over(2) {
            return None; // too short to mean anything: the flight began within it
        }
        let rate = Rate::from_bytes_per(self.mark.delivered - mark.delivered, span);
        if !mark.app_limited || self.rate().is_none_or(|best| rate > best) {
            self.keep(now, rate, rtt);
        }
        Some(rate)
    }

    /// The estimate.
    pub fn rate(&self) -> Option<Rate> {
        self.best.map(|(last, present, _)| last.max(present))
    }

    fn keep(&mut self, now: Instant, rate: Rate, rtt: Duration) {
        self.best = Some(match self.best {
            None => (rate, rate, now),
            Some((_, present, began)) if now.since(began) > rtt.times(ROUNDS / 2) => (present, rate, now),
            Some((last, present, began)) => (last, present.max(rate), began),
        });
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
    }
}
