//! Keys in PEM files (RFC 7468): private ones in PKCS#8, public ones as SubjectPublicKeyInfo.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{EcdsaKeyPair, RsaKeyPair};
use pem_rfc7468::LineEnding;
use zeroize::Zeroizing;

use super::{Identity, Key, KeyKind, PublicIdentity, ecdsa_key, rsa_identity, signing};
use crate::error::CryptoError;

const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";

impl Identity {
    /// The identity whose private key is in a PEM file: PKCS#8, or as older tools write it SEC 1 or PKCS#1.
    pub fn from_pem(pem: &str) -> Result<Self, CryptoError> {
        let (label, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|_| CryptoError::Key)?;
        let der = Zeroizing::new(der);
        for kind in [KeyKind::P384, KeyKind::P256] {
            let key = match label {
                PRIVATE => EcdsaKeyPair::from_pkcs8(signing(kind), &der),
                "EC PRIVATE KEY" => EcdsaKeyPair::from_private_key_der(signing(kind), &der),
                _ => break,
            };
            if let Ok(key) = key {
                return Self::from_ecdsa(kind, key);
            }
        }
        let key = match label {
            PRIVATE => RsaKeyPair::from_pkcs8(&der),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&der),
            "ENCRYPTED PRIVATE KEY" => return Err(CryptoError::Encrypted),
            _ => return Err(CryptoError::Key),
        };
        Self::from_rsa(key.map_err(|_| CryptoError::Key)?)
    }

    /// The private key as a PKCS#8 file in PEM. Whoever writes it lets nobody else read it.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, CryptoError> {
        match &*self.key {
            Key::Ecdsa(key) | Key::Repeatable(key, _) => {
                encode(PRIVATE, key.to_pkcs8v1().map_err(|_| CryptoError::Key)?.as_ref())
            }
            Key::Rsa(key) => {
                let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| CryptoError::Key)?;
                encode(PRIVATE, der.as_ref())
            }
        }
        .map(Zeroizing::new)
    }
}

impl PublicIdentity {
    /// The identity whose public key is in a PEM file.
    pub fn from_pem(pem: &str) -> Result<Self, CryptoError> {
        let (label, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|_| CryptoError::Key)?;
        if label != PUBLIC {
            return Err(CryptoError::Key);
        }
        for (kind, point_len) in [(KeyKind::P384, 97), (KeyKind::P256, 65)] {
            // The point is the last field. That the whole names this curve, the re-encoding shows.
            let point = &der[der.len().saturating_sub(point_len)..];
            let identity = [kind.curve_label().as_slice(), point].concat();
            if ecdsa_key(&identity).is_ok_and(|(_, key)| key.as_der().is_ok_and(|d| d.as_ref() == der)) {
                return Self::of(kind, identity);
            }
        }
        let key = rsa::PublicKey::from_der(&der).map_err(|_| CryptoError::Key)?;
        Self::of(KeyKind::Rsa, rsa_identity(&key)?)
    }

    /// The public key as a PEM file.
    pub fn to_pem(&self) -> Result<String, CryptoError> {
        encode(PUBLIC, self.key.as_der().map_err(|_| CryptoError::Key)?.as_ref())
    }
}

fn encode(label: &str, der: &[u8]) -> Result<String, CryptoError> {
    pem_rfc7468::encode_string(label, LineEnding::LF, der).map_err(|_| CryptoError::Key)
}
