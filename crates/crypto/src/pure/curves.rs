//! Diffie-Hellman on curves.

use p256::elliptic_curve::sec1::ToSec1Point;
use zeroize::Zeroizing;

use crate::Curve;

/// A private key of Diffie-Hellman on a curve. Zeroed on drop.
pub struct AgreementKey(Kind);

enum Kind {
    P256(p256::SecretKey),
    P384(p384::SecretKey),
    P521(p521::SecretKey),
}

impl AgreementKey {
    /// The key with that number, big-endian and as long as the field, if it is below the order of the curve and not 0.
    pub fn from_private(curve: Curve, private: &[u8]) -> Option<Self> {
        let len = match curve {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        };
        if private.len() != len {
            return None;
        }
        Some(Self(match curve {
            Curve::P256 => Kind::P256(p256::SecretKey::from_slice(private).ok()?),
            Curve::P384 => Kind::P384(p384::SecretKey::from_slice(private).ok()?),
            Curve::P521 => Kind::P521(p521::SecretKey::from_slice(private).ok()?),
        }))
    }

    /// x and y of the public point.
    pub fn public(&self) -> Option<Vec<u8>> {
        let point = match &self.0 {
            Kind::P256(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
            Kind::P384(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
            Kind::P521(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
        };
        Some(point[1..].to_vec())
    }

    /// x of the point shared with the owner of the point with these x and y, if that is on the curve.
    pub fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let point = [&[0x04], peer].concat();
        let secret = match &self.0 {
            Kind::P256(key) => {
                let peer = p256::PublicKey::from_sec1_bytes(&point).ok()?;
                key.diffie_hellman(&peer).raw_secret_bytes().to_vec()
            }
            Kind::P384(key) => {
                let peer = p384::PublicKey::from_sec1_bytes(&point).ok()?;
                key.diffie_hellman(&peer).raw_secret_bytes().to_vec()
            }
            Kind::P521(key) => {
                let peer = p521::PublicKey::from_sec1_bytes(&point).ok()?;
                key.diffie_hellman(&peer).raw_secret_bytes().to_vec()
            }
        };
        Some(Zeroizing::new(secret))
    }
}
