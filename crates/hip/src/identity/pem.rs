//! Keys in PEM files (RFC 7468): private ones in PKCS#8, public ones as SubjectPublicKeyInfo.

use pem_rfc7468::LineEnding;
use polypath_crypto::{EcdsaKey, Private, RsaKey, RsaPublic};
use zeroize::Zeroizing;

use super::{Identity, Key, KeyKind, PublicIdentity, PublicKey, ecdsa_key, rsa_identity};
use crate::error::CryptoError;

const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";

impl Identity {
    /// The identity whose private key is in a PEM file: PKCS#8, or as older tools write it SEC 1 or PKCS#1.
    pub fn from_pem(pem: &str) -> Result<Self, CryptoError> {
        let (label, der) = pem_rfc7468::decode_vec(pem.as_bytes()).map_err(|_| CryptoError::Key)?;
        let der = Zeroizing::new(der);
        for kind in [KeyKind::P384, KeyKind::P256] {
            let form = match label {
                PRIVATE => Private::Pkcs8,
                "EC PRIVATE KEY" => Private::Old,
                _ => break,
            };
            let key = kind.curve().and_then(|(curve, _)| EcdsaKey::from_der(curve, form, &der));
            if let Some(key) = key {
                return Self::from_ecdsa(kind, key);
            }
        }
        let key = match label {
            PRIVATE => RsaKey::from_der(Private::Pkcs8, &der),
            "RSA PRIVATE KEY" => RsaKey::from_der(Private::Old, &der),
            "ENCRYPTED PRIVATE KEY" => return Err(CryptoError::Encrypted),
            _ => return Err(CryptoError::Key),
        };
        Self::from_rsa(key.ok_or(CryptoError::Key)?)
    }

    /// The private key as a PKCS#8 file in PEM. Whoever writes it lets nobody else read it.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, CryptoError> {
        let der = match &*self.key {
            Key::Ecdsa(key) => key.to_pkcs8(),
            Key::Rsa(key) => key.to_pkcs8(),
        };
        encode(PRIVATE, &der.ok_or(CryptoError::Key)?).map(Zeroizing::new)
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
            let (_, label) = kind.curve().ok_or(CryptoError::Key)?;
            let identity = [label.as_slice(), point].concat();
            if ecdsa_key(&identity).is_ok_and(|(_, key)| key.to_der().is_some_and(|d| d == der)) {
                return Self::of(kind, identity);
            }
        }
        let numbers = RsaPublic::numbers_of(&der).ok_or(CryptoError::Key)?;
        Self::of(KeyKind::Rsa, rsa_identity(&numbers)?)
    }

    /// The public key as a PEM file.
    pub fn to_pem(&self) -> Result<String, CryptoError> {
        let der = match &*self.key {
            PublicKey::Ecdsa(key) => key.to_der(),
            PublicKey::Rsa(key) => key.to_der(),
        };
        encode(PUBLIC, &der.ok_or(CryptoError::Key)?)
    }
}

fn encode(label: &str, der: &[u8]) -> Result<String, CryptoError> {
    pem_rfc7468::encode_string(label, LineEnding::LF, der).map_err(|_| CryptoError::Key)
}
