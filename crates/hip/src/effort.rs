//! What public-key operations were done: the work that strangers may ask for is bounded, and this shows it.

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
