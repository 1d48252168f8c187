//! What a hash gives.

/// Longest digest, bytes.
const LONGEST: usize = 48;

/// A digest, or an HMAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Digest {
    /// At most 48 bytes.
    pub(crate) fn new(of: &[u8]) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..of.len()].copy_from_slice(of);
        Self { bytes, len: of.len() }
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
