//! Hashes and their digests.

use crate::library::{self, MacKey};

/// SHA-2 of two lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

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

impl Hash {
    /// Length of a digest, bytes.
    #[expect(clippy::len_without_is_empty, reason = "no digest is empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    /// The digest of `parts`, one after the other.
    pub fn digest(self, parts: &[&[u8]]) -> Digest {
        library::digest(self, parts)
    }

    /// The HMAC of `message`, not truncated.
    pub fn mac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        MacKey::new(self, key).sign(&[message]).as_ref().to_vec()
    }

    /// Whether `mac` is the HMAC of `message`; in constant time.
    pub fn verify_mac(self, key: &[u8], message: &[u8], mac: &[u8]) -> bool {
        library::equal(MacKey::new(self, key).sign(&[message]).as_ref(), mac)
    }
}
