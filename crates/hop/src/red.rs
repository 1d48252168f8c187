//! RED (S. Floyd and V. Jacobson, Random Early Detection Gateways for Congestion Avoidance, 1993), gentle
//! (S. Floyd, Recommendation on using the gentle variant of RED, 2000). An average of the queue's length, which an
//! arriving packet finds, says how probably that packet is dropped or marked. As S. Floyd's own RED in ns-2 does, nothing
//! is dropped where one packet waits at most, however high the average still is, and the first packet above `min` only
//! begins the count.
//!
//! | symbol | here |
//! |---|---|
//! | w_q | `weight` |
//! | min_th, max_th | `min`, `max` |
//! | max_p | `probability` |
//! | avg | `average` |
//! | count | `since` |

use polypath_wire::{Duration, Rate, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::aqm::{Found, Judge, Verdict};
use crate::error::{HopError, check};
use crate::limit::QueueLimit;

/// Parameters of RED.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedConfig {
    /// Average from which packets are dropped: 5 packets.
    pub min: QueueLimit,
    /// Average at which `probability` is reached, in the same unit: 15 packets.
    pub max: QueueLimit,
    /// Probability of a drop at `max`, above 0 up to 1: 0.1.
    pub probability: f64,
    /// Weight of the queue that a packet finds in the average, above 0 up to 1: 0.002.
    pub weight: f64,
    /// From `max` to twice `max` the probability rises to 1, instead of at once.
    pub gentle: bool,
    /// Mark ECN-capable packets instead of dropping them, below `max`.
    pub ecn: bool,
    /// A typical packet, bytes: how many of them an idle link could have sent ages the average; 500.
    pub packet: u32,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            min: QueueLimit::Packets(5),
            max: QueueLimit::Packets(15),
            probability: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: true,
            packet: 500,
        }
    }
}

impl RedConfig {
    /// Checks the ranges of its parameters.
    pub(crate) fn check(&self) -> Result<(), HopError> {
        let share = |field, p: f64| check(p > 0.0 && p <= 1.0, field, "above 0, at most 1", p);
        share("red.probability", self.probability)?;
        share("red.weight", self.weight)?;
        check(self.packet > 0, "red.packet", "at least 1 byte", 0)?;
        let one_unit = std::mem::discriminant(&self.min) == std::mem::discriminant(&self.max);
        check(one_unit, "red.max", "in the unit of min: packets or bytes", format!("{:?}", self.max))?;
        check(self.max.number() > self.min.number(), "red.max", "more than min", self.max.number())
    }
}

/// The state of RED for one queue.
#[derive(Debug)]
pub(crate) struct Red {
    config: RedConfig,
    average: f64,
    /// Packets since the last one dropped or marked; none while the average is below `min`.
    since: Option<u64>,
    rng: Pcg64Mcg,
}

impl Red {
    pub fn new(config: RedConfig, seed: Seed) -> Self {
        Self { config, average: 0.0, since: None, rng: Pcg64Mcg::seed_from_u64(seed.0) }
    }

    /// The probability for this average, p_b; none below `min`.
    fn probability(&self) -> Option<f64> {
        let RedConfig { min, max, probability, gentle, .. } = self.config;
        let (min, max, average) = (min.number(), max.number(), self.average);
        if average < min {
            None
        } else if average < max {
            Some(probability * (average - min) / (max - min))
        } else if gentle && average < 2.0 * max {
            Some(probability + (1.0 - probability) * (average - max) / max)
        } else {
            Some(1.0)
        }
    }

    /// Whether it happens now: p_b / (1 − count · p_b), which spaces drops evenly.
    fn happens(&mut self, p: f64, count: u64) -> bool {
        let spread = 1.0 - count as f64 * p;
        let p = if spread > 0.0 { p / spread } else { 1.0 };
        ((self.rng.next_u64() >> 11) as f64) < p * (1u64 << 53) as f64
    }

    /// How many typical packets a link of `rate` sends in `idle`.
    fn packets_in(&self, idle: Duration, rate: Rate) -> u64 {
        let bits = u128::from(idle.0) * u128::from(rate.0) / 1_000_000_000;
        u64::try_from(bits / (8 * u128::from(self.config.packet.max(1)))).unwrap_or(u64::MAX)
    }
}

impl Judge for Red {
    fn judge(&mut self, found: &Found, ecn_capable: bool) -> Verdict {
        let RedConfig { min, max, weight, ecn, .. } = self.config;
        let Found { packets, bytes, .. } = *found;
        let waiting = if matches!(min, QueueLimit::Bytes(_)) { bytes } else { packets };
        let idle = self.packets_in(found.idle, found.rate);
        self.average = self.average * power(1.0 - weight, idle + 1) + weight * waiting as f64;
        let Some(probability) = self.probability().filter(|_| packets > 1) else {
            self.since = None;
            return Verdict::Pass;
        };
        let Some(since) = self.since else {
            self.since = Some(1);
            return Verdict::Pass;
        };
        self.since = Some(since + 1);
        if !self.happens(probability, since + 1) {
            return Verdict::Pass;
        }
        self.since = Some(0);
        if ecn && ecn_capable && self.average < max.number() { Verdict::Mark } else { Verdict::Drop }
    }
}

/// `base` to the `exponent`, by multiplications only: the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(config: RedConfig) -> Red {
        Red::new(config, Seed(3))
    }

    fn waiting(packets: u64, bytes: u64) -> Found {
        Found { packets, bytes, ..Found::default() }
    }

    /// Judges `times` packets that find `packets` before them; how many are dropped, after the average settled.
    fn dropped(red: &mut Red, packets: u64, times: u32) -> u32 {
        (0..10_000).for_each(|_| _ = red.judge(&waiting(packets, 0), false));
        (0..times).map(|_| u32::from(red.judge(&waiting(packets, 0), false) == Verdict::Drop)).sum()
    }

    #[test]
    fn the_average_is_exponentially_weighted() {
        let mut red = red(RedConfig { weight: 0.25, ..RedConfig::default() });
        let averages: Vec<_> = [4, 4, 0].map(|packets| average(&mut red, packets, 0)).into();
        assert_eq!(averages, [1.0, 1.75, 1.3125]);
        // Idle for two packets' time: aged by them, and by the packet that comes.
        assert_eq!(average(&mut red, 0, 2), 1.3125 * 0.75 * 0.75 * 0.75);
    }

    /// The average after a packet that finds `packets`; before it the link was idle for `idle` packets' time.
    fn average(red: &mut Red, packets: u64, idle: u64) -> f64 {
        let rate = Rate(u64::from(red.config.packet) * 8 * 1_000);
        let idle = Duration::from_millis(idle);
        red.judge(&Found { packets, idle, rate, ..Found::default() }, false);
        red.average
    }

    /// As the paper counts, the next drop is 1 to 1/p_b − 1 packets after the last, each as probable.
    #[test]
    fn the_share_dropped_follows_the_average() {
        let mut red = red(RedConfig::default());
        assert_eq!(dropped(&mut red, 4, 10_000), 0);
        // p_b = 0.1 · 5/10 = 1/20: one in 10, standard deviation below 60.
        let share = dropped(&mut red, 10, 100_000);
        assert!(share.abs_diff(10_000) < 300, "{share}");
        // Gentle: p_b = 0.1 + 0.9 · 6/15 = 0.46, so the first with 0.46/0.54, else the second: one in 1.148.
        let gentle = dropped(&mut red, 21, 100_000);
        assert!(gentle.abs_diff(87_097) < 500, "{gentle}");
        assert_eq!(dropped(&mut red, 31, 1_000), 1_000);
    }

    #[test]
    fn without_gentle_everything_is_dropped_from_max_on() {
        let mut red = red(RedConfig { gentle: false, ..RedConfig::default() });
        assert_eq!(dropped(&mut red, 16, 1_000), 1_000);
    }

    #[test]
    fn what_can_be_marked_is_marked_below_max() {
        let mut red = red(RedConfig { weight: 1.0, probability: 1.0, ..RedConfig::default() });
        let verdicts: Vec<_> = (0..50).map(|_| red.judge(&waiting(14, 0), true)).collect();
        assert!(verdicts.contains(&Verdict::Mark) && !verdicts.contains(&Verdict::Drop));
        assert_eq!(red.judge(&waiting(40, 0), true), Verdict::Drop);
    }

    #[test]
    fn thresholds_may_count_bytes() {
        let (min, max) = (QueueLimit::Bytes(5_000), QueueLimit::Bytes(15_000));
        let mut red = red(RedConfig { min, max, weight: 1.0, ..RedConfig::default() });
        assert_eq!([0; 2].map(|_| red.judge(&waiting(100, 4_000), false)), [Verdict::Pass; 2]);
        assert_eq!([0; 2].map(|_| red.judge(&waiting(20, 31_000), false)), [Verdict::Pass, Verdict::Drop]);
    }

    #[test]
    fn an_empty_queue_loses_nothing_however_high_its_average() {
        let mut red = red(RedConfig::default());
        assert_eq!(dropped(&mut red, 31, 100), 100);
        let verdicts: Vec<_> = (0..20).map(|n| red.judge(&waiting(n % 2, 0), false)).collect();
        assert!(red.average > 29.0 && verdicts.iter().all(|v| *v == Verdict::Pass));
    }

    #[test]
    fn an_idle_link_could_have_sent_this_many() {
        let red = red(RedConfig { packet: 1000, ..RedConfig::default() });
        assert_eq!(red.packets_in(Duration::from_millis(10), Rate(8_000_000)), 10);
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert_eq!(power(0.9, 0), 1.0);
    }
}
