//! Algorithms and their numbers (RFC 7401 §5.2.8, §5.2.10; RFC 7402 §5.1.2).

use aws_lc_rs::cipher::{self, DecryptionContext, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{digest, hkdf, hmac};
pub use polypath_wire::esp::Suite as EspSuite;
use serde::{Deserialize, Serialize};

use crate::error::CryptoError;

/// The hash of a HIT suite: of HITs, puzzles, KEYMAT and MACs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
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
    pub fn digest(self, parts: &[&[u8]]) -> digest::Digest {
        let mut context = digest::Context::new(self.digest_algorithm());
        parts.iter().for_each(|p| context.update(p));
        context.finish()
    }

    /// The HMAC of `message`, not truncated.
    pub fn mac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        hmac::sign(&self.mac_key(key), message).as_ref().to_vec()
    }

    /// Whether `mac` is the HMAC of `message`; in constant time.
    pub fn verify_mac(self, key: &[u8], message: &[u8], mac: &[u8]) -> bool {
        hmac::verify(&self.mac_key(key), message, mac).is_ok()
    }

    fn digest_algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
        }
    }
    fn mac_key(self, key: &[u8]) -> hmac::Key {
        match self {
            Self::Sha256 => hmac::Key::new(hmac::HMAC_SHA256, key),
            Self::Sha384 => hmac::Key::new(hmac::HMAC_SHA384, key),
        }
    }
    pub(crate) fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Sha256 => hkdf::HKDF_SHA256,
            Self::Sha384 => hkdf::HKDF_SHA384,
        }
    }
}

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

const BLOCK: usize = 16;

impl HipCipher {
    /// The cipher with that id.
    pub fn from_id(id: u16) -> Option<Self> {
        [Self::Null, Self::Aes128Cbc, Self::Aes256Cbc].into_iter().find(|c| *c as u16 == id)
    }
    /// Length of a key, bytes.
    pub fn key_len(self) -> usize {
        self.algorithm().map_or(0, |(_, len)| len)
    }

    fn algorithm(self) -> Option<(&'static cipher::Algorithm, usize)> {
        match self {
            Self::Null => None,
            Self::Aes128Cbc => Some((&cipher::AES_128, 16)),
            Self::Aes256Cbc => Some((&cipher::AES_256, 32)),
        }
    }

    /// Initialisation vector and ciphertext of `plain` with PKCS#7 padding. `iv` is fresh.
    pub fn encrypt(self, key: &[u8], iv: [u8; BLOCK], plain: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let Some((algorithm, _)) = self.algorithm() else { return Ok(plain.to_vec()) };
        let key = UnboundCipherKey::new(algorithm, key).map_err(|_| CryptoError::Key)?;
        let key = cipher::PaddedBlockEncryptingKey::cbc_pkcs7(key).map_err(|_| CryptoError::Key)?;
        let mut text = plain.to_vec();
        let context = EncryptionContext::Iv128(FixedLength::from(&iv));
        key.less_safe_encrypt(&mut text, context).map_err(|_| CryptoError::Key)?;
        Ok([iv.as_slice(), &text].concat())
    }

    /// The plaintext of what [`Self::encrypt`] gave. Authenticity is the MAC's business.
    pub fn decrypt(self, key: &[u8], sealed: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let Some((algorithm, _)) = self.algorithm() else { return Ok(sealed.to_vec()) };
        let (iv, text) = sealed.split_first_chunk::<BLOCK>().ok_or(CryptoError::Decrypt)?;
        let key = UnboundCipherKey::new(algorithm, key).map_err(|_| CryptoError::Key)?;
        let key = cipher::PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(|_| CryptoError::Key)?;
        let mut text = text.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        let plain = key.decrypt(&mut text, context).map_err(|_| CryptoError::Decrypt)?;
        Ok(plain.to_vec())
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
