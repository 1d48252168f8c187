//! Signatures: ECDSA with SHA-384, RSASSA-PSS with SHA-256.

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm, KeyPair, ParsedPublicKey,
    RsaKeyPair,
};
use p256::ecdsa::signature::hazmat::PrehashSigner;
use zeroize::Zeroizing;

use crate::{Curve, Hash, Private};

fn signing(curve: Curve) -> Option<&'static EcdsaSigningAlgorithm> {
    match curve {
        Curve::P256 => Some(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
        Curve::P384 => Some(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        Curve::P521 => None,
    }
}

/// On P-256, ECDSA takes the leftmost 256 bits of SHA-384 (FIPS 186-5 §6.4). The library pairs the curve with 256-bit
/// digests only, so it gets those bits as one.
fn leftmost_256(message: &[u8]) -> Digest {
    let digest = super::digest(Hash::Sha384, &[message]);
    Digest::import_less_safe(&digest.as_ref()[..32], &digest::SHA256).expect("32 bytes are a SHA-256 digest")
}

/// A private key of ECDSA.
pub struct EcdsaKey {
    curve: Curve,
    key: EcdsaKeyPair,
    /// The same, if its signatures are to follow from the message.
    repeatable: Option<p256::ecdsa::SigningKey>,
}

impl EcdsaKey {
    /// The key with that number on P-256 or P-384, big-endian and as long as the field.
    pub fn from_private(curve: Curve, private: &[u8]) -> Option<Self> {
        let public = super::AgreementKey::from_private(curve, private)?.public()?;
        let point = [&[0x04], public.as_slice()].concat();
        let key = EcdsaKeyPair::from_private_key_and_public_key(signing(curve)?, private, &point).ok()?;
        Some(Self { curve, key, repeatable: None })
    }

    /// The same on P-256, whose signatures follow from the message (RFC 6979).
    pub fn repeatable(private: &[u8]) -> Option<Self> {
        let repeatable = Some(p256::ecdsa::SigningKey::from_slice(private).ok()?);
        Some(Self { repeatable, ..Self::from_private(Curve::P256, private)? })
    }

    /// The key in a file.
    pub fn from_der(curve: Curve, form: Private, der: &[u8]) -> Option<Self> {
        let key = match form {
            Private::Pkcs8 => EcdsaKeyPair::from_pkcs8(signing(curve)?, der),
            Private::Old => EcdsaKeyPair::from_private_key_der(signing(curve)?, der),
        };
        Some(Self { curve, key: key.ok()?, repeatable: None })
    }

    /// PKCS#8.
    pub fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        Some(Zeroizing::new(self.key.to_pkcs8v1().ok()?.as_ref().to_vec()))
    }

    /// The public point, uncompressed (SEC 1 §2.3.3).
    pub fn public(&self) -> Vec<u8> {
        self.key.public_key().as_ref().to_vec()
    }

    /// r and s over SHA-384 of `message`. Unless the key is repeatable they differ each time, by the operating system's
    /// randomness.
    #[expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "the library takes no other here"
    )]
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        if let Some(key) = &self.repeatable {
            let signature: p256::ecdsa::Signature = key.sign_prehash(leftmost_256(message).as_ref()).ok()?;
            return Some(signature.to_bytes().to_vec());
        }
        let signature = match self.curve {
            Curve::P256 => self.key.sign_digest(&leftmost_256(message)),
            _ => self.key.sign(&aws_lc_rs::rand::SystemRandom::new(), message),
        };
        Some(signature.ok()?.as_ref().to_vec())
    }
}

/// A public key of ECDSA.
pub struct EcdsaPublic {
    curve: Curve,
    key: ParsedPublicKey,
}

impl EcdsaPublic {
    /// The key with that point of P-256 or P-384, as SEC 1 writes it.
    pub fn new(curve: Curve, point: &[u8]) -> Option<Self> {
        let algorithm: &'static EcdsaVerificationAlgorithm = match curve {
            Curve::P256 => &signature::ECDSA_P256_SHA256_FIXED,
            Curve::P384 => &signature::ECDSA_P384_SHA384_FIXED,
            Curve::P521 => return None,
        };
        Some(Self { curve, key: ParsedPublicKey::new(algorithm, point).ok()? })
    }

    /// Whether these are r and s over SHA-384 of `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match self.curve {
            Curve::P256 => self.key.verify_digest_sig(&leftmost_256(message), signature).is_ok(),
            _ => self.key.verify_sig(message, signature).is_ok(),
        }
    }

    /// SubjectPublicKeyInfo (RFC 5480).
    pub fn to_der(&self) -> Option<Vec<u8>> {
        Some(self.key.as_der().ok()?.as_ref().to_vec())
    }
}

/// A private key of RSA.
pub struct RsaKey(RsaKeyPair);

impl RsaKey {
    /// A fresh key of 2048, 3072 or 4096 bits, from the operating system's randomness.
    pub fn generate(bits: usize) -> Option<Self> {
        let size = match bits {
            2048 => KeySize::Rsa2048,
            3072 => KeySize::Rsa3072,
            4096 => KeySize::Rsa4096,
            _ => return None,
        };
        RsaKeyPair::generate(size).ok().map(Self)
    }

    /// The key in a file.
    pub fn from_der(form: Private, der: &[u8]) -> Option<Self> {
        match form {
            Private::Pkcs8 => RsaKeyPair::from_pkcs8(der),
            Private::Old => RsaKeyPair::from_der(der),
        }
        .ok()
        .map(Self)
    }

    /// PKCS#8.
    pub fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        let der: Pkcs8V1Der<'_> = self.0.as_der().ok()?;
        Some(Zeroizing::new(der.as_ref().to_vec()))
    }

    /// Exponent and modulus, big-endian without leading zeros.
    pub fn public(&self) -> (Vec<u8>, Vec<u8>) {
        numbers(self.0.public_key())
    }

    /// The signature over SHA-256 of `message`.
    #[expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "the library takes no other here"
    )]
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        let rng = aws_lc_rs::rand::SystemRandom::new();
        self.0.sign(&signature::RSA_PSS_SHA256, &rng, message, &mut signature).ok()?;
        Some(signature)
    }
}

/// A public key of RSA.
pub struct RsaPublic(ParsedPublicKey);

impl RsaPublic {
    /// The key with that exponent and modulus, of 2048 bits or more.
    pub fn new(e: &[u8], n: &[u8]) -> Option<Self> {
        let components = rsa::PublicKeyComponents { n, e };
        components.to_parsed_public_key(&signature::RSA_PSS_2048_8192_SHA256).ok().map(Self)
    }

    /// Exponent and modulus of the key in a SubjectPublicKeyInfo.
    pub fn numbers_of(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        rsa::PublicKey::from_der(der).ok().map(|key| numbers(&key))
    }

    /// Whether that is a signature over SHA-256 of `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        self.0.verify_sig(message, signature).is_ok()
    }

    /// SubjectPublicKeyInfo.
    pub fn to_der(&self) -> Option<Vec<u8>> {
        Some(self.0.as_der().ok()?.as_ref().to_vec())
    }
}

fn numbers(key: &rsa::PublicKey) -> (Vec<u8>, Vec<u8>) {
    let e = key.exponent().big_endian_without_leading_zero();
    let n = key.modulus().big_endian_without_leading_zero();
    (e.to_vec(), n.to_vec())
}
