//! What FAST knows of the delay of its path: baseRTT, and averages above it.

use polypath_wire::Duration;

use super::DelaySignal;
use crate::facts::AckSample;

/// Delays in seconds.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// Smallest round trip.
    pub base: Option<f64>,
    /// Average queueing.
    pub queueing: f64,
    /// Average round trip, whatever the signal.
    pub round_trip: f64,
}

impl Delays {
    /// Takes a sample, which the averages weigh by min(3/w, 1/4).
    pub(super) fn update(&mut self, sample: &AckSample, signal: DelaySignal, window: f64) {
        let Some(rtt) = sample.rtt.map(Duration::as_secs_f64) else { return };
        let base = self.base.map_or(rtt, |b| b.min(rtt));
        let one_way = sample.one_way_queueing.filter(|_| signal == DelaySignal::OneWay);
        let queueing = one_way.map_or(rtt - base, Duration::as_secs_f64);
        let weight = (3.0 / window).min(0.25);
        self.round_trip += (rtt - self.round_trip) * if self.base.is_none() { 1.0 } else { weight };
        self.queueing = match self.base {
            None => 0.0,
            // the average is of the RTT: where baseRTT falls, what is above it grows
            Some(old) if one_way.is_none() => {
                let average = self.queueing + old - base;
                average + weight * (queueing - average)
            }
            Some(_) => self.queueing + weight * (queueing - self.queueing),
        };
        self.base = Some(base);
    }

    /// Average RTT.
    pub(super) fn rtt(&self) -> f64 {
        self.base.unwrap_or(0.0) + self.queueing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(queueing_ms: f64) -> Delays {
        let queueing = queueing_ms / 1e3;
        Delays { base: Some(0.1), queueing, round_trip: 0.1 + queueing }
    }

    fn sample(rtt_ms: u64) -> AckSample {
        AckSample { rtt: Some(Duration::from_millis(rtt_ms)), ..Default::default() }
    }

    #[test]
    fn one_way_queueing_counts_alone_if_asked() {
        let both = AckSample { one_way_queueing: Some(Duration::from_millis(4)), ..sample(180) };
        for (signal, expected) in [(DelaySignal::RoundTrip, 0.02), (DelaySignal::OneWay, 0.001)] {
            let mut delays = settled(0.0);
            delays.update(&both, signal, 4.0);
            assert!((delays.queueing - expected).abs() < 1e-9, "{}", delays.queueing);
        }
    }

    #[test]
    fn the_average_keeps_its_meaning_when_the_base_falls() {
        let mut delays = settled(20.0); // average RTT 120 ms
        delays.update(&sample(80), DelaySignal::RoundTrip, 4.0); // a quarter of the way to 80
        assert!((delays.rtt() - 0.11).abs() < 1e-9, "{}", delays.rtt());
    }
}
