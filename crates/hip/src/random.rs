//! Randomness that the driver hands in as a seed, so that a run can be repeated.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// A cryptographic generator (ChaCha20). The daemon seeds it from the operating system, the
/// simulator from the run's seed. Its state is zeroed on drop.
pub struct Random(ChaCha20Rng);

impl Random {
    /// The generator of `seed`.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }
    /// Fills `buf`.
    pub fn fill(&mut self, buf: &mut [u8]) {
        self.0.fill_bytes(buf);
    }
    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
    /// `len` random bytes.
    pub fn vec(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }
    /// A random number.
    pub fn u32(&mut self) -> u32 {
        self.0.next_u32()
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random(..)")
    }
}
