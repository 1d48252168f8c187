//! Signatures: ECDSA with SHA-384, always the same for one message (RFC 6979). There is no RSA: the library that has it
//! warns of its timing.

use p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
use p256::elliptic_curve::sec1::ToSec1Point;
use p256::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey};
use zeroize::Zeroizing;

use crate::{Curve, Digest, Hash, Private};

/// A private key of ECDSA. Zeroed on drop.
pub struct EcdsaKey(Key);

enum Key {
    P256(p256::SecretKey),
    P384(p384::SecretKey),
}

fn sha384(message: &[u8]) -> Digest {
    super::digest(Hash::Sha384, &[message])
}

impl EcdsaKey {
    /// The key with that number on P-256 or P-384, big-endian and as long as the field.
    pub fn from_private(curve: Curve, private: &[u8]) -> Option<Self> {
        match (curve, private.len()) {
            (Curve::P256, 32) => p256::SecretKey::from_slice(private).ok().map(|key| Self(Key::P256(key))),
            (Curve::P384, 48) => p384::SecretKey::from_slice(private).ok().map(|key| Self(Key::P384(key))),
            _ => None,
        }
    }

    /// The same on P-256: signatures follow from the message anyway.
    pub fn repeatable(private: &[u8]) -> Option<Self> {
        Self::from_private(Curve::P256, private)
    }

    /// The key in a file.
    pub fn from_der(curve: Curve, form: Private, der: &[u8]) -> Option<Self> {
        let key = match (curve, form) {
            (Curve::P256, Private::Pkcs8) => Key::P256(p256::SecretKey::from_pkcs8_der(der).ok()?),
            (Curve::P256, Private::Old) => Key::P256(p256::SecretKey::from_sec1_der(der).ok()?),
            (Curve::P384, Private::Pkcs8) => Key::P384(p384::SecretKey::from_pkcs8_der(der).ok()?),
            (Curve::P384, Private::Old) => Key::P384(p384::SecretKey::from_sec1_der(der).ok()?),
            (Curve::P521, _) => return None,
        };
        Some(Self(key))
    }

    /// PKCS#8.
    pub fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        let der = match &self.0 {
            Key::P256(key) => key.to_pkcs8_der(),
            Key::P384(key) => key.to_pkcs8_der(),
        };
        Some(Zeroizing::new(der.ok()?.as_bytes().to_vec()))
    }

    /// The public point, uncompressed (SEC 1 §2.3.3).
    pub fn public(&self) -> Vec<u8> {
        match &self.0 {
            Key::P256(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
            Key::P384(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
        }
    }

    /// r and s over SHA-384 of `message`, of which P-256 takes the leftmost 256 bits (FIPS 186-5 §6.4).
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let digest = sha384(message);
        match &self.0 {
            Key::P256(key) => {
                let key = p256::ecdsa::SigningKey::from(key);
                let signature: p256::ecdsa::Signature = key.sign_prehash(&digest.as_ref()[..32]).ok()?;
                Some(signature.to_bytes().to_vec())
            }
            Key::P384(key) => {
                let key = p384::ecdsa::SigningKey::from(key);
                let signature: p384::ecdsa::Signature = key.sign_prehash(digest.as_ref()).ok()?;
                Some(signature.to_bytes().to_vec())
            }
        }
    }
}

/// A public key of ECDSA.
pub struct EcdsaPublic(Public);

enum Public {
    P256(p256::PublicKey),
    P384(p384::PublicKey),
}

impl EcdsaPublic {
    /// The key with that point of P-256 or P-384, as SEC 1 writes it.
    pub fn new(curve: Curve, point: &[u8]) -> Option<Self> {
        Some(Self(match curve {
            Curve::P256 => Public::P256(p256::PublicKey::from_sec1_bytes(point).ok()?),
            Curve::P384 => Public::P384(p384::PublicKey::from_sec1_bytes(point).ok()?),
            Curve::P521 => return None,
        }))
    }

    /// Whether these are r and s over SHA-384 of `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let digest = sha384(message);
        match &self.0 {
            Public::P256(key) => {
                let signature = p256::ecdsa::Signature::from_slice(signature);
                let key = p256::ecdsa::VerifyingKey::from(key);
                signature.is_ok_and(|s| key.verify_prehash(&digest.as_ref()[..32], &s).is_ok())
            }
            Public::P384(key) => {
                let signature = p384::ecdsa::Signature::from_slice(signature);
                let key = p384::ecdsa::VerifyingKey::from(key);
                signature.is_ok_and(|s| key.verify_prehash(digest.as_ref(), &s).is_ok())
            }
        }
    }

    /// SubjectPublicKeyInfo (RFC 5480).
    pub fn to_der(&self) -> Option<Vec<u8>> {
        let der = match &self.0 {
            Public::P256(key) => key.to_public_key_der(),
            Public::P384(key) => key.to_public_key_der(),
        };
        Some(der.ok()?.as_bytes().to_vec())
    }
}

/// A private key of RSA, which this library does not offer: it has no values.
pub enum RsaKey {}

impl RsaKey {
    /// None.
    pub fn generate(_bits: usize) -> Option<Self> {
        None
    }

    /// None.
    pub fn from_der(_form: Private, _der: &[u8]) -> Option<Self> {
        None
    }

    /// Never called.
    pub fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        match *self {}
    }

    /// Never called.
    pub fn public(&self) -> (Vec<u8>, Vec<u8>) {
        match *self {}
    }

    /// Never called.
    pub fn sign(&self, _message: &[u8]) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// A public key of RSA; it has no values either.
pub enum RsaPublic {}

impl RsaPublic {
    /// None.
    pub fn new(_e: &[u8], _n: &[u8]) -> Option<Self> {
        None
    }

    /// None.
    pub fn numbers_of(_der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        None
    }

    /// Never called.
    pub fn verify(&self, _message: &[u8], _signature: &[u8]) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        match *self {}
    }
}
