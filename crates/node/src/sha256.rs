//! SHA-256 (FIPS 180-4) in the fastest implementation for the processor at hand.

use aws_lc_rs::digest::{Context, SHA256};

/// A digest under way.
#[derive(Clone)]
pub struct Sha256(Context);

impl Sha256 {
    /// Of nothing yet.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a digest of nothing is no natural default")]
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// Of these bytes.
    pub fn digest(bytes: impl AsRef<[u8]>) -> [u8; 32] {
        let mut hash = Self::new();
        hash.update(bytes);
        hash.finalize()
    }

    /// Goes on with `bytes`.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes.as_ref());
    }

    /// The digest.
    pub fn finalize(self) -> [u8; 32] {
        self.0.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn the_published_example() {
        let mut hash = Sha256::new();
        hash.update("a");
        hash.update("bc");
        let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
