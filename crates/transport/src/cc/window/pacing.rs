//! How fast a window leaves.

use polypath_wire::{Duration, Rate};

use crate::cc::controller::Phase;
use crate::facts::{AckSample, Pace};

/// Most bytes of a quantum.
const MAX_QUANTUM: u64 = 1 << 16;
/// How late a timer of a real host may be: its tick and what else runs there.
const LATENESS: Duration = Duration::from_millis(5);
/// Smallest quantum in slow start, segments: a train.
const TRAIN: u64 = 8;

fn gain(rate: Rate, times: u64, over: u64) -> Rate {
    Rate(rate.0.saturating_mul(times) / over)
}

/// What acknowledgments showed of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub srtt: Option<Duration>,
    pub train_rate: Option<Rate>,
    /// Delivery rate times smallest round trip, bytes.
    pub pipe: u64,
}

impl Known {
    pub(super) fn learn(&mut self, sample: &AckSample) {
        (self.srtt, self.train_rate) = (sample.srtt, sample.train_rate);
        if let (Some(rtt), Some(rate), false) = (sample.min_rtt, sample.delivery_rate, sample.in_recovery) {
            self.pipe = rate.bytes_in(rtt);
        }
    }

    /// Slow start leaves at twice the window in a round trip, or as fast as the bottleneck once trains tell its rate;
    /// congestion avoidance at the window and a quarter,
    /// two segments together, as they leave where every second one is acknowledged.
    pub(super) fn pace(self, phase: Phase, window: u64, mss: u64) -> Option<Pace> {
        let per_round_trip = Rate::from_bytes_per(window, self.srtt?);
        let (rate, least, together) = match phase {
            Phase::SlowStart => (self.start_rate(per_round_trip), TRAIN, 0),
            Phase::CongestionAvoidance => (gain(per_round_trip, 5, 4), 2, 2 * mss),
        };
        let quantum = Pace::whole(rate.bytes_in(Pace::GRAIN).min(MAX_QUANTUM), mss).max(least * mss);
        let credit = rate.transmission_time(quantum).max(LATENESS);
        Some(Pace { rate, quantum, credit, together, spreads_window: true })
    }

    fn start_rate(self, per_round_trip: Rate) -> Rate {
        let doubled = gain(per_round_trip, 2, 1);
        let trains = self.train_rate.map(|rate| doubled.clamp(gain(rate, 3, 4), rate));
        trains.unwrap_or(doubled).max(per_round_trip)
    }
}
