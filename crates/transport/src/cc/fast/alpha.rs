//! α, fixed or in three ranges of the throughput.

use super::FastConfig;

/// α of low, medium and high speed, and the packets per second at which it rises and falls again.
const ALPHAS: [f64; 3] = [8.0, 20.0, 200.0];
const RISE_ABOVE: [f64; 2] = [1_500.0, 15_000.0];
const FALL_BELOW: [f64; 2] = [1_250.0, 12_500.0];

/// How many packets to keep in the queues of the path.
#[derive(Debug)]
pub(super) struct Alpha {
    pub packets: f64,
    /// Which of [`ALPHAS`], if it is tuned.
    range: usize,
}

impl Alpha {
    pub(super) fn new(config: &FastConfig) -> Self {
        let packets = if config.tune_alpha { ALPHAS[0] } else { f64::from(config.alpha.max(1)) };
        Self { packets, range: 0 }
    }

    /// Follows the throughput achieved, w/RTT, packets per second, with some hysteresis.
    pub(super) fn tune(&mut self, throughput: f64) {
        if RISE_ABOVE.get(self.range).is_some_and(|limit| throughput > *limit) {
            self.range += 1;
        } else if self.range > 0 && throughput < FALL_BELOW[self.range - 1] {
            self.range -= 1;
        }
        self.packets = ALPHAS[self.range];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_tuned_in_three_ranges_with_hysteresis() {
        let mut alpha = Alpha::new(&FastConfig { tune_alpha: true, ..Default::default() });
        let throughputs = [1000.0, 1600.0, 1300.0, 1200.0, 1600.0, 16_000.0, 13_000.0, 12_000.0];
        let alphas = throughputs.map(|t| {
            alpha.tune(t);
            alpha.packets
        });
        assert_eq!(alphas, [8.0, 20.0, 20.0, 8.0, 20.0, 200.0, 200.0, 20.0]);
    }
}
