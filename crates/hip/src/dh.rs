//! Diffie-Hellman groups (RFC 7401 §5.2.7): NIST curves (RFC 5903) and MODP (RFC 3526).
//!
//! Public values on curves are x and y without a prefix; the shared secret is x. MODP values are
//! padded to the length of the modulus, and so is the secret.

mod modp;

use polypath_crypto::{AgreementKey, Curve};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::CryptoError;
use crate::random::Random;

/// The groups we have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DhGroup {
    /// 1536-bit MODP; for interoperation.
    Modp1536 = 3,
    /// 3072-bit MODP.
    Modp3072 = 4,
    /// NIST P-256.
    P256 = 7,
    /// NIST P-384.
    P384 = 8,
    /// NIST P-521.
    P521 = 9,
}

impl DhGroup {
    const ALL: [Self; 5] = [Self::Modp1536, Self::Modp3072, Self::P256, Self::P384, Self::P521];

    /// The group with that id.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|g| *g as u8 == id)
    }

    /// Length of a public value, bytes.
    pub fn public_len(self) -> usize {
        self.parts().0
    }

    fn curve(self) -> Option<Curve> {
        self.parts().1
    }

    /// Length of a public value, and the curve if it is one.
    fn parts(self) -> (usize, Option<Curve>) {
        match self {
            Self::Modp1536 => (192, None),
            Self::Modp3072 => (384, None),
            Self::P256 => (64, Some(Curve::P256)),
            Self::P384 => (96, Some(Curve::P384)),
            Self::P521 => (132, Some(Curve::P521)),
        }
    }
}

/// A private value with its public one. The private value is zeroed on drop.
pub struct DhKey {
    group: DhGroup,
    secret: Secret,
    public: Vec<u8>,
}

enum Secret {
    Curve(AgreementKey),
    Modp(Zeroizing<Vec<u8>>),
}

/// Kij: what both ends computed. Zeroed on drop.
pub type SharedSecret = Zeroizing<Vec<u8>>;

/// Bytes of a MODP exponent: twice the strength of the largest group, and some.
const EXPONENT_LEN: usize = 40;

impl DhKey {
    /// A fresh key.
    pub fn generate(group: DhGroup, random: &mut Random) -> Self {
        loop {
            let len = match group.curve() {
                Some(_) => group.public_len() / 2,
                None => EXPONENT_LEN,
            };
            let mut private = Zeroizing::new(random.vec(len));
            if group == DhGroup::P521 {
                private[0] &= 1;
            }
            // A number beyond the order of the curve is no key; the next one will be.
            if let Ok(key) = Self::from_private(group, &private) {
                return key;
            }
        }
    }

    /// The key with that private value, big-endian; on curves as long as the field.
    pub fn from_private(group: DhGroup, private: &[u8]) -> Result<Self, CryptoError> {
        let Some(curve) = group.curve() else {
            let public = modp::power(group, None, private).ok_or(CryptoError::Key)?;
            return Ok(Self { group, secret: Secret::Modp(Zeroizing::new(private.to_vec())), public });
        };
        let key = AgreementKey::from_private(curve, private).ok_or(CryptoError::Key)?;
        let public = key.public().ok_or(CryptoError::Key)?;
        Ok(Self { group, secret: Secret::Curve(key), public })
    }

    /// The group.
    pub fn group(&self) -> DhGroup {
        self.group
    }
    /// The public value.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret shared with the owner of `peer`. Refuses 0, 1, p-1 and points off the curve.
    pub fn agree(&self, peer: &[u8]) -> Result<SharedSecret, CryptoError> {
        match &self.secret {
            Secret::Modp(exponent) => modp::power(self.group, Some(peer), exponent).map(Zeroizing::new),
            Secret::Curve(_) if peer.len() != self.group.public_len() => None,
            Secret::Curve(key) => key.agree(peer),
        }
        .ok_or(CryptoError::PublicValue)
    }
}

impl std::fmt::Debug for DhKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DhKey").field("group", &self.group).finish_non_exhaustive()
    }
}
