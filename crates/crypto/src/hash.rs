//! What is computed with a hash.

use crate::library::{self, MacKey};
use crate::{Digest, Hash};

impl Hash {
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
