//! Algorithms and their numbers (RFC 7401 §5.2.8, §5.2.10; RFC 7402 §5.1.2).

use polypath_crypto::{BLOCK, Cbc};
pub use polypath_crypto::{Hash, has_aes};
pub use polypath_wire::esp::Suite as EspSuite;
use polypath_wire::hip::Hit;
use serde::{Deserialize, Serialize};

use crate::error::CryptoError;

/// The HIT suites we have. Number 3 (ECDSA over SECP160R1 with SHA-1) is too weak, and number 5
/// (RFC 9374) builds its HITs from a registry's tree instead of the key alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HitSuite {
    /// RSA with SHA-256.
    RsaSha256 = 1,
    /// ECDSA over NIST curves with SHA-384.
    EcdsaSha384 = 2,
}

impl HitSuite {
    /// The suite with that id, which stands in a HIT after the prefix.
    pub fn from_id(id: u8) -> Option<Self> {
        [Self::RsaSha256, Self::EcdsaSha384].into_iter().find(|s| *s as u8 == id)
    }
    /// Those whose signatures the library that was compiled in has, the usual one first.
    pub fn supported() -> impl Iterator<Item = Self> {
        let rsa = polypath_crypto::RSA.then_some(Self::RsaSha256);
        std::iter::once(Self::EcdsaSha384).chain(rsa)
    }
    /// Whether a HIT is of a suite that is supported.
    pub fn has(hit: Hit) -> bool {
        Self::supported().any(|suite| suite as u8 == hit.suite())
    }
    /// As HIT_SUITE_LIST has it: the id in the upper four bits.
    pub fn list_byte(self) -> u8 {
        (self as u8) << 4
    }
    /// Its hash.
    pub fn hash(self) -> Hash {
        match self {
            Self::RsaSha256 => Hash::Sha256,
            Self::EcdsaSha384 => Hash::Sha384,
        }
    }
}

/// The ciphers of ENCRYPTED (RFC 7401 §5.2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HipCipher {
    /// No encryption; for tests only.
    Null = 1,
    /// AES with 128-bit keys, CBC.
    Aes128Cbc = 2,
    /// AES with 256-bit keys, CBC.
    Aes256Cbc = 4,
}

impl HipCipher {
    /// The cipher with that id.
    pub fn from_id(id: u16) -> Option<Self> {
        [Self::Null, Self::Aes128Cbc, Self::Aes256Cbc].into_iter().find(|c| *c as u16 == id)
    }
    /// Length of a key, bytes.
    pub fn key_len(self) -> usize {
        match self {
            Self::Null => 0,
            Self::Aes128Cbc => 16,
            Self::Aes256Cbc => 32,
        }
    }

    fn cbc(self, key: &[u8]) -> Result<Cbc, CryptoError> {
        Cbc::new(key).filter(|_| key.len() == self.key_len()).ok_or(CryptoError::Key)
    }

    /// Initialisation vector and ciphertext of `plain` with PKCS#7 padding. `iv` is fresh.
    pub fn encrypt(self, key: &[u8], iv: [u8; BLOCK], plain: &[u8]) -> Result<Vec<u8>, CryptoError> {
        if self == Self::Null {
            return Ok(plain.to_vec());
        }
        let padding = BLOCK - plain.len() % BLOCK;
        let mut text = [plain, &[padding as u8; BLOCK][..padding]].concat();
        self.cbc(key)?.encrypt(&iv, &mut text).ok_or(CryptoError::Key)?;
        Ok([iv.as_slice(), &text].concat())
    }

    /// The plaintext of what [`Self::encrypt`] gave. Authenticity is the MAC's business.
    pub fn decrypt(self, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
        if self == Self::Null {
            return Ok(sealed.to_vec());
        }
        let (iv, text) = sealed.split_first_chunk::<BLOCK>().ok_or(CryptoError::Decrypt)?;
        let mut text = text.to_vec();
        self.cbc(key)?.decrypt(iv, &mut text).ok_or(CryptoError::Decrypt)?;
        let padding = *text.last().ok_or(CryptoError::Decrypt)?;
        let len = text.len().checked_sub(padding.into()).ok_or(CryptoError::Decrypt)?;
        let whole = (1..=BLOCK).contains(&padding.into()) && text[len..].iter().all(|byte| *byte == padding);
        text.truncate(len);
        whole.then_some(text).ok_or(CryptoError::Decrypt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_open_what_they_sealed() {
        for cipher in [HipCipher::Null, HipCipher::Aes128Cbc, HipCipher::Aes256Cbc] {
            let key = vec![7; cipher.key_len()];
            for len in [0, 1, 15, 16, 17, 100] {
                let plain = vec![9; len];
                let sealed = cipher.encrypt(&key, [3; 16], &plain).unwrap();
                assert_eq!(cipher.decrypt(&key, &sealed).unwrap(), plain);
            }
        }
        assert_eq!(HipCipher::Aes128Cbc.decrypt(&[0; 16], &[0; 15]), Err(CryptoError::Decrypt));
        assert_eq!(HipCipher::Aes128Cbc.decrypt(&[0; 16], &[0; 40]), Err(CryptoError::Decrypt));
    }

    #[test]
    fn macs_are_checked_whole() {
        let mac = Hash::Sha384.mac(b"key", b"message");
        assert!(Hash::Sha384.verify_mac(b"key", b"message", &mac));
        assert!(!Hash::Sha384.verify_mac(b"key", b"message", &mac[..47]));
        assert!(!Hash::Sha256.verify_mac(b"key", b"message", &mac));
    }
}
