//! Chance in the forms a generator needs.

use polypath_wire::{Duration, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws from one seed.
pub struct Dice(Pcg64Mcg);

impl Dice {
    pub fn new(seed: Seed) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed.0))
    }

    /// A number in `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n.max(1)
    }

    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// From `0.0` to below `1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Between `low` and `high`, all orders of magnitude alike.
    pub fn scale(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low as f64, high as f64);
        (low * (high / low).powf(self.unit())) as u64
    }

    /// Zero in half of the cases, else up to `most`, small ones more often.
    pub fn some(&mut self, most: f64) -> f64 {
        let p = self.unit() * self.unit() * most;
        if self.chance(0.5) { p } else { 0.0 }
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.between(low * 1000, high * 1000))
    }
}
