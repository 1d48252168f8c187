//! Whether the pipe is full: three rounds in which the bandwidth hardly grew (§5.3.1.2).

use super::Sample;

/// Growth in a round that counts.
const GROWTH: f64 = 1.25;
/// Rounds without it.
const ROUNDS: u32 = 3;

/// The detector.
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// full_bw_now and full_bw_reached.
    pub now: bool,
    pub reached: bool,
    bw: f64,
    rounds: u32,
}

impl FullPipe {
    /// ResetFullBW, from `bw` on.
    pub(super) fn reset(&mut self, bw: f64) {
        (self.now, self.bw, self.rounds) = (false, bw, 0);
    }

    /// CheckFullBWReached.
    pub(super) fn check(&mut self, rs: &Sample, round_started: bool) {
        let Some(rate) = rs.rate.filter(|_| !self.now && round_started && !rs.app_limited) else { return };
        if rate >= self.bw * GROWTH {
            return self.reset(rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.reached |= self.now;
    }
}
