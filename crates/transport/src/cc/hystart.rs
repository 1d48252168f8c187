//! HyStart++ (RFC 9406): leaves slow start when the round trip grows.
//!
//! It learns of the growth a round trip late, when the window has doubled once more: a queue of one
//! bandwidth-delay product still overflows.
//!
//! | symbol | here |
//! |---|---|
//! | currentRoundMinRTT, lastRoundMinRTT | `present`, `last` |
//! | rttSampleCount | `samples` |
//! | cssBaselineMinRtt | `baseline` |
//! | css rounds | `cautious_rounds` |
//!
//! Deviations: rounds are counted in acknowledged bytes instead of sequence numbers, since lanes of
//! several paths share one sequence space. After a round without samples `last` is the value of the round before.

use polypath_wire::Duration;

use crate::facts::AckSample;

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// RttThresh: how much longer than `rtt` a round trip is when a queue grows (§4.2).
pub(crate) fn threshold(rtt: Duration) -> Duration {
    rtt.over(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

/// What slow start should do with an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Grow by this many bytes.
    Grow(u64),
    /// The pipe is full: slow start is over.
    Leave,
}

/// Watches the rounds of slow start on one path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct HyStart {
    last: Option<Duration>,
    present: Option<Duration>,
    samples: u32,
    /// Bytes still to be acknowledged in the present round.
    left: u64,
    /// Conservative slow start since the round trip was this long.
    baseline: Option<Duration>,
    cautious_rounds: u32,
}

impl HyStart {
    /// `acked` bytes were acknowledged in slow start (§4.2, §4.3).
    pub(crate) fn on_ack(&mut self, sample: &AckSample, acked: u64) -> Advice {
        if self.left <= sample.newly_acked {
            self.begin_round(sample.prior_in_flight);
        } else {
            self.left -= sample.newly_acked;
        }
        if let Some(rtt) = sample.rtt {
            self.present = Some(self.present.map_or(rtt, |p| p.min(rtt)));
            self.samples += 1;
        }
        self.judge();
        match self.baseline {
            None => Advice::Grow(acked),
            Some(_) if self.cautious_rounds >= CSS_ROUNDS => Advice::Leave,
            Some(_) => Advice::Grow(acked / CSS_GROWTH_DIVISOR),
        }
    }

    fn begin_round(&mut self, in_flight: u64) {
        self.left = in_flight;
        self.last = self.present.take().or(self.last);
        self.samples = 0;
        self.cautious_rounds += u32::from(self.baseline.is_some());
    }

    fn judge(&mut self) {
        let (Some(present), Some(last)) = (self.present, self.last) else { return };
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.baseline {
            Some(baseline) if present < baseline => {
                self.baseline = None; // the growth was spurious: slow start goes on
                self.cautious_rounds = 0;
            }
            Some(_) => {}
            None => self.baseline = Some(present).filter(|p| *p >= last + threshold(last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of ten segments, each with this round trip; the last advice of it.
    fn round(h: &mut HyStart, rtt_ms: u64) -> Advice {
        let rtt = Some(Duration::from_millis(rtt_ms));
        let ack = AckSample { newly_acked: 1000, prior_in_flight: 10_000, rtt, ..Default::default() };
        (0..10).map(|_| h.on_ack(&ack, 1000)).last().expect("ten of them")
    }

    #[test]
    fn grows_at_full_speed_while_the_round_trip_stays() {
        let mut h = HyStart::default();
        (0..20).for_each(|_| assert_eq!(round(&mut h, 40), Advice::Grow(1000)));
    }

    #[test]
    fn a_longer_round_trip_slows_down_and_then_ends_it() {
        let mut h = HyStart::default();
        round(&mut h, 40);
        assert_eq!(round(&mut h, 44), Advice::Grow(1000)); // below 40/8 = 5 ms
        assert_eq!(round(&mut h, 50), Advice::Grow(250));
        let rounds = (0..).take_while(|_| round(&mut h, 50) != Advice::Leave).count();
        assert_eq!(rounds, 4);
    }

    #[test]
    fn a_round_trip_that_shrinks_again_was_noise() {
        let mut h = HyStart::default();
        round(&mut h, 40);
        round(&mut h, 60);
        assert_eq!(round(&mut h, 41), Advice::Grow(1000));
    }
}
