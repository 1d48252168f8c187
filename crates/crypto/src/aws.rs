//! By AWS-LC. The library zeroes the keys it holds.

mod sign;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::cipher::{
    self, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::hkdf::{self, KeyType};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{constant_time, hmac};
use zeroize::Zeroizing;

use crate::{Aead, BLOCK, Curve, Digest, Hash, NONCE_LEN, TAG_LEN};
pub use sign::{EcdsaKey, EcdsaPublic, RsaKey, RsaPublic};

/// Whether there is RSA.
pub const RSA: bool = true;

/// The digest of `parts`, one after the other.
pub fn digest(hash: Hash, parts: &[&[u8]]) -> Digest {
    let mut context = aws_lc_rs::digest::Context::new(match hash {
        Hash::Sha256 => &aws_lc_rs::digest::SHA256,
        Hash::Sha384 => &aws_lc_rs::digest::SHA384,
    });
    parts.iter().for_each(|p| context.update(p));
    Digest::new(context.finish().as_ref())
}

/// Whether both are the same; in constant time.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// A key of HMAC.
pub struct MacKey(hmac::Key);

impl MacKey {
    /// The key with these bytes.
    pub fn new(hash: Hash, key: &[u8]) -> Self {
        Self(match hash {
            Hash::Sha256 => hmac::Key::new(hmac::HMAC_SHA256, key),
            Hash::Sha384 => hmac::Key::new(hmac::HMAC_SHA384, key),
        })
    }

    /// The HMAC of `parts`, one after the other.
    pub fn sign(&self, parts: &[&[u8]]) -> Digest {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|p| context.update(p));
        Digest::new(context.sign().as_ref())
    }
}

/// A pseudorandom key of HKDF (RFC 5869).
pub struct Prk(hkdf::Prk);

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl Prk {
    /// HKDF-Extract.
    pub fn extract(hash: Hash, salt: &[u8], secret: &[u8]) -> Self {
        let algorithm = match hash {
            Hash::Sha256 => hkdf::HKDF_SHA256,
            Hash::Sha384 => hkdf::HKDF_SHA384,
        };
        Self(hkdf::Salt::new(algorithm, salt).extract(secret))
    }

    /// HKDF-Expand; `None` if `out` is longer than 255 digests.
    pub fn expand(&self, info: &[u8], out: &mut [u8]) -> Option<()> {
        self.0.expand(&[info], Length(out.len())).ok()?.fill(out).ok()
    }
}

/// A key of an AEAD.
pub struct AeadKey(LessSafeKey);

impl AeadKey {
    /// The key with these bytes, if it has the right number of them.
    pub fn new(aead: Aead, key: &[u8]) -> Option<Self> {
        let algorithm = match aead {
            Aead::Aes128Gcm => &aead::AES_128_GCM,
            Aead::Aes256Gcm => &aead::AES_256_GCM,
            Aead::Chacha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        Some(Self(LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?)))
    }

    /// Enciphers `body` and returns the tag, which authenticates `aad` and `body`. No nonce may be used twice.
    #[inline]
    pub fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(aad), body).ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Deciphers `body` if `tag` authenticates `aad` and `body`; if not, `body` holds anything.
    #[inline]
    pub fn open(&self, nonce: [u8; NONCE_LEN], aad: &[u8], tag: &[u8], body: &mut [u8]) -> Option<()> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.open_in_place_separate_tag(nonce, Aad::from(aad), tag, body).ok().map(|_| ())
    }
}

/// AES in CBC mode over whole blocks.
pub struct Cbc {
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
}

impl Cbc {
    /// With a key of 16 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => &cipher::AES_128,
            32 => &cipher::AES_256,
            _ => return None,
        };
        let key = || UnboundCipherKey::new(algorithm, key).ok();
        Some(Self { encrypt: EncryptingKey::cbc(key()?).ok()?, decrypt: DecryptingKey::cbc(key()?).ok()? })
    }

    /// Enciphers whole blocks; `iv` is fresh.
    pub fn encrypt(&self, iv: &[u8; BLOCK], blocks: &mut [u8]) -> Option<()> {
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        self.encrypt.less_safe_encrypt(blocks, context).ok().map(|_| ())
    }

    /// Deciphers whole blocks.
    pub fn decrypt(&self, iv: &[u8; BLOCK], blocks: &mut [u8]) -> Option<()> {
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        self.decrypt.decrypt(blocks, context).ok().map(|_| ())
    }
}

/// A private key of Diffie-Hellman on a curve.
pub struct AgreementKey(PrivateKey);

impl AgreementKey {
    /// The key with that number, big-endian and as long as the field, if it is below the order of the curve and not 0.
    pub fn from_private(curve: Curve, private: &[u8]) -> Option<Self> {
        let curve = match curve {
            Curve::P256 => &agreement::ECDH_P256,
            Curve::P384 => &agreement::ECDH_P384,
            Curve::P521 => &agreement::ECDH_P521,
        };
        PrivateKey::from_private_key(curve, private).ok().map(Self)
    }

    /// x and y of the public point.
    pub fn public(&self) -> Option<Vec<u8>> {
        Some(self.0.compute_public_key().ok()?.as_ref()[1..].to_vec())
    }

    /// x of the point shared with the owner of the point with these x and y, if that is on the curve.
    pub fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let peer = UnparsedPublicKey::new(self.0.algorithm(), [&[0x04], peer].concat());
        agreement::agree(&self.0, peer, (), |secret| Ok(Zeroizing::new(secret.to_vec()))).ok()
    }
}
