//! SHA-256 (FIPS 180-4), with the instructions that the processor has for it.

use std::io;

use sha2::Digest;

/// A hash that grows with what it is given.
#[derive(Clone)]
pub struct Sha256(sha2::Sha256);

impl Sha256 {
    /// The hash of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self(sha2::Sha256::new())
    }

    /// The digest of `bytes`.
    pub fn digest(bytes: impl AsRef<[u8]>) -> [u8; 32] {
        let mut hash = Self::new();
        hash.update(bytes);
        hash.finalize()
    }

    /// Adds `bytes`.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes.as_ref());
    }

    /// The digest of all bytes added.
    pub fn finalize(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl io::Write for Sha256 {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `bytes` in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        assert_eq!(hex(&hash.finalize()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
