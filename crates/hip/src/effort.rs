//! Counts public-key operations, to show that the work that strangers can cause is bounded.

/// Public-key operations of one host since it began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effort {
    /// Signatures made.
    pub signed: u64,
    /// Signatures checked.
    pub verified: u64,
    /// Diffie-Hellman values computed, public or shared.
    pub agreed: u64,
}

impl Effort {
    /// All together.
    pub fn total(&self) -> u64 {
        self.signed + self.verified + self.agreed
    }
}
