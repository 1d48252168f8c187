//! By RustCrypto. Keys are zeroed where the libraries offer it.

mod curves;
mod sign;

use aes::{Aes128, Aes256};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, InnerIvInit};
use chacha20poly1305::ChaCha20Poly1305;
use ctutils::CtEq;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha384};

use crate::{Aead, BLOCK, Digest, Hash, NONCE_LEN, TAG_LEN};
pub use curves::AgreementKey;
pub use sign::{EcdsaKey, EcdsaPublic, RsaKey, RsaPublic};

/// Whether there is RSA.
pub const RSA: bool = false;

/// The digest of `parts`, one after the other.
pub fn digest(hash: Hash, parts: &[&[u8]]) -> Digest {
    fn of<H: sha2::Digest>(parts: &[&[u8]]) -> Digest {
        let mut hasher = H::new();
        parts.iter().for_each(|p| hasher.update(p));
        Digest::new(&hasher.finalize())
    }
    match hash {
        Hash::Sha256 => of::<Sha256>(parts),
        Hash::Sha384 => of::<Sha384>(parts),
    }
}

/// Whether both are the same; in constant time.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// A key of HMAC.
pub struct MacKey(MacKind);

enum MacKind {
    Sha256(Hmac<Sha256>),
    Sha384(Hmac<Sha384>),
}

impl MacKey {
    /// The key with these bytes.
    pub fn new(hash: Hash, key: &[u8]) -> Self {
        const ANY: &str = "HMAC takes keys of any length";
        Self(match hash {
            Hash::Sha256 => MacKind::Sha256(Hmac::new_from_slice(key).expect(ANY)),
            Hash::Sha384 => MacKind::Sha384(Hmac::new_from_slice(key).expect(ANY)),
        })
    }

    /// The HMAC of `parts`, one after the other.
    pub fn sign(&self, parts: &[&[u8]]) -> Digest {
        fn of(mut mac: impl Mac, parts: &[&[u8]]) -> Digest {
            parts.iter().for_each(|p| mac.update(p));
            Digest::new(&mac.finalize().into_bytes())
        }
        match &self.0 {
            MacKind::Sha256(mac) => of(mac.clone(), parts),
            MacKind::Sha384(mac) => of(mac.clone(), parts),
        }
    }
}

/// A pseudorandom key of HKDF (RFC 5869).
pub struct Prk(PrkKind);

enum PrkKind {
    Sha256(Hkdf<Sha256>),
    Sha384(Hkdf<Sha384>),
}

impl Prk {
    /// HKDF-Extract.
    pub fn extract(hash: Hash, salt: &[u8], secret: &[u8]) -> Self {
        Self(match hash {
            Hash::Sha256 => PrkKind::Sha256(Hkdf::new(Some(salt), secret)),
            Hash::Sha384 => PrkKind::Sha384(Hkdf::new(Some(salt), secret)),
        })
    }

    /// HKDF-Expand; `None` if `out` is longer than 255 digests.
    pub fn expand(&self, info: &[u8], out: &mut [u8]) -> Option<()> {
        match &self.0 {
            PrkKind::Sha256(prk) => prk.expand(info, out),
            PrkKind::Sha384(prk) => prk.expand(info, out),
        }
        .ok()
    }
}

/// A key of an AEAD.
pub struct AeadKey(AeadKind);

enum AeadKind {
    Aes128(Box<Aes128Gcm>),
    Aes256(Box<Aes256Gcm>),
    Chacha20(Box<ChaCha20Poly1305>),
}

impl AeadKey {
    /// The key with these bytes, if it has the right number of them.
    pub fn new(aead: Aead, key: &[u8]) -> Option<Self> {
        Some(Self(match aead {
            Aead::Aes128Gcm => AeadKind::Aes128(Box::new(Aes128Gcm::new_from_slice(key).ok()?)),
            Aead::Aes256Gcm => AeadKind::Aes256(Box::new(Aes256Gcm::new_from_slice(key).ok()?)),
            Aead::Chacha20Poly1305 => {
                AeadKind::Chacha20(Box::new(ChaCha20Poly1305::new_from_slice(key).ok()?))
            }
        }))
    }

    /// Enciphers `body` and returns the tag, which authenticates `aad` and `body`. No nonce may be used twice.
    pub fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], body: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        let (nonce, body) = (nonce.into(), body.into());
        let tag = match &self.0 {
            AeadKind::Aes128(key) => key.encrypt_inout_detached(&nonce, aad, body),
            AeadKind::Aes256(key) => key.encrypt_inout_detached(&nonce, aad, body),
            AeadKind::Chacha20(key) => key.encrypt_inout_detached(&nonce, aad, body),
        };
        Some(tag.ok()?.into())
    }

    /// Deciphers `body` if `tag` authenticates `aad` and `body`; if not, `body` holds anything.
    pub fn open(&self, nonce: [u8; NONCE_LEN], aad: &[u8], tag: &[u8], body: &mut [u8]) -> Option<()> {
        let tag: [u8; TAG_LEN] = tag.try_into().ok()?;
        let (nonce, tag, body) = (nonce.into(), tag.into(), body.into());
        match &self.0 {
            AeadKind::Aes128(key) => key.decrypt_inout_detached(&nonce, aad, body, &tag),
            AeadKind::Aes256(key) => key.decrypt_inout_detached(&nonce, aad, body, &tag),
            AeadKind::Chacha20(key) => key.decrypt_inout_detached(&nonce, aad, body, &tag),
        }
        .ok()
    }
}

/// AES in CBC mode over whole blocks.
pub struct Cbc(CbcKind);

enum CbcKind {
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
}

impl Cbc {
    /// With a key of 16 or 32 bytes.
    pub fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Some(Self(CbcKind::Aes128(Box::new(Aes128::new_from_slice(key).ok()?)))),
            32 => Some(Self(CbcKind::Aes256(Box::new(Aes256::new_from_slice(key).ok()?)))),
            _ => None,
        }
    }

    /// Enciphers whole blocks; `iv` is fresh.
    pub fn encrypt(&self, iv: &[u8; BLOCK], blocks: &mut [u8]) -> Option<()> {
        let blocks = whole(blocks)?;
        match &self.0 {
            CbcKind::Aes128(key) => cbc::Encryptor::inner_iv_init(&**key, iv.into()).encrypt_blocks(blocks),
            CbcKind::Aes256(key) => cbc::Encryptor::inner_iv_init(&**key, iv.into()).encrypt_blocks(blocks),
        }
        Some(())
    }

    /// Deciphers whole blocks.
    pub fn decrypt(&self, iv: &[u8; BLOCK], blocks: &mut [u8]) -> Option<()> {
        let blocks = whole(blocks)?;
        match &self.0 {
            CbcKind::Aes128(key) => cbc::Decryptor::inner_iv_init(&**key, iv.into()).decrypt_blocks(blocks),
            CbcKind::Aes256(key) => cbc::Decryptor::inner_iv_init(&**key, iv.into()).decrypt_blocks(blocks),
        }
        Some(())
    }
}

/// `bytes` as blocks, if they are.
fn whole(bytes: &mut [u8]) -> Option<&mut [aes::Block]> {
    let (blocks, rest) = aes::Block::slice_as_chunks_mut(bytes);
    rest.is_empty().then_some(blocks)
}
