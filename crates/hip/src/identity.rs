//! Host Identities: key pairs, and HITs as their names (RFC 7401 §3, RFC 7343).

mod pem;

use std::fmt;
use std::sync::Arc;

use polypath_crypto::{Curve, EcdsaKey, EcdsaPublic, RsaKey, RsaPublic};
use polypath_wire::hip::{DomainId, Hit, HostId};
use zeroize::Zeroizing;

use crate::error::CryptoError;
use crate::random::Random;
use crate::suite::HitSuite;

/// The context of ORCHIDs that are HITs (RFC 7401 §3.2).
const CONTEXT: [u8; 16] = 0xf0ef_f02f_bff4_3d0f_e793_0c3c_6e61_74ea_u128.to_be_bytes();
const RSA: u16 = 5;
const ECDSA: u16 = 7;
/// Shorter RSA keys can be factored, or soon.
const LEAST_RSA_BITS: usize = 2048;

/// The kinds of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    /// ECDSA over NIST P-256.
    P256,
    /// ECDSA over NIST P-384; the usual one.
    P384,
    /// RSA of 2048 bits or more.
    Rsa,
}

impl KeyKind {
    /// Whether the library that was compiled in has it: the one in Rust alone has no RSA.
    pub fn is_supported(self) -> bool {
        polypath_crypto::RSA || self != Self::Rsa
    }
    fn suite(self) -> HitSuite {
        match self {
            Self::P256 | Self::P384 => HitSuite::EcdsaSha384,
            Self::Rsa => HitSuite::RsaSha256,
        }
    }
    fn algorithm(self) -> u16 {
        match self {
            Self::P256 | Self::P384 => ECDSA,
            Self::Rsa => RSA,
        }
    }
    /// The curve, and its label of RFC 7401 §5.2.9.
    fn curve(self) -> Option<(Curve, [u8; 2])> {
        match self {
            Self::P256 => Some((Curve::P256, [0, 1])),
            Self::P384 => Some((Curve::P384, [0, 2])),
            Self::Rsa => None,
        }
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P256 => "ecdsa-p256",
            Self::P384 => "ecdsa-p384",
            Self::Rsa => "rsa",
        })
    }
}

/// The HIT of a Host Identity as it stands in HOST_ID (RFC 7343 §2, RFC 7401 §3.2): the prefix, the
/// suite, and the middle 96 bits of the hash.
pub fn hit(suite: HitSuite, identity: &[u8]) -> Hit {
    let digest = suite.hash().digest(&[&CONTEXT, identity]);
    let skip = (digest.as_ref().len() - 12) / 2;
    let mut hit = [0x20, 0x01, 0x00, 0x20 | suite as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    hit[4..].copy_from_slice(&digest.as_ref()[skip..skip + 12]);
    Hit(hit)
}

/// A peer's Host Identity: checks signatures.
#[derive(Clone)]
pub struct PublicIdentity {
    kind: KeyKind,
    host_id: HostId,
    hit: Hit,
    key: Arc<PublicKey>,
}

enum PublicKey {
    Ecdsa(EcdsaPublic),
    Rsa(RsaPublic),
}

impl PublicIdentity {
    /// The identity in a HOST_ID, if it is of a kind that we have and a sound key.
    pub fn new(host_id: HostId) -> Result<Self, CryptoError> {
        let (kind, key) = match host_id.algorithm {
            ECDSA => {
                let (kind, key) = ecdsa_key(&host_id.identity)?;
                (kind, PublicKey::Ecdsa(key))
            }
            RSA if KeyKind::Rsa.is_supported() => (KeyKind::Rsa, PublicKey::Rsa(rsa_key(&host_id.identity)?)),
            other => return Err(CryptoError::Unsupported(other)),
        };
        let hit = hit(kind.suite(), &host_id.identity);
        Ok(Self { kind, host_id, hit, key: Arc::new(key) })
    }

    fn of(kind: KeyKind, identity: Vec<u8>) -> Result<Self, CryptoError> {
        Self::new(HostId { algorithm: kind.algorithm(), identity, domain: DomainId::default() })
    }

    /// Its name.
    pub fn hit(&self) -> Hit {
        self.hit
    }
    /// Its HIT suite.
    pub fn suite(&self) -> HitSuite {
        self.kind.suite()
    }
    /// What kind of key it is.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }
    /// The parameter that carries it.
    pub fn host_id(&self) -> &HostId {
        &self.host_id
    }

    /// Checks that `signature` over `message` was made by the owner of the key (RFC 7401 §5.2.14).
    pub fn verify(&self, message: &[u8], sig: &polypath_wire::hip::Signature) -> Result<(), CryptoError> {
        if sig.algorithm != self.kind.algorithm() {
            return Err(CryptoError::Signature);
        }
        let good = match &*self.key {
            PublicKey::Ecdsa(key) => key.verify(message, &sig.signature),
            PublicKey::Rsa(key) => key.verify(message, &sig.signature),
        };
        good.then_some(()).ok_or(CryptoError::Signature)
    }
}

fn ecdsa_key(identity: &[u8]) -> Result<(KeyKind, EcdsaPublic), CryptoError> {
    let (label, point) = identity.split_first_chunk().ok_or(CryptoError::Key)?;
    let (kind, curve) = match u16::from_be_bytes(*label) {
        1 => (KeyKind::P256, Curve::P256),
        2 => (KeyKind::P384, Curve::P384),
        other => return Err(CryptoError::Unsupported(other)),
    };
    Ok((kind, EcdsaPublic::new(curve, point).ok_or(CryptoError::Key)?))
}

/// An RFC 3110 key of which the exponent is short, as everybody's is.
fn rsa_identity((e, n): &(Vec<u8>, Vec<u8>)) -> Result<Vec<u8>, CryptoError> {
    let len = u8::try_from(e.len()).map_err(|_| CryptoError::Key)?;
    Ok([&[len], e.as_slice(), n].concat())
}

/// An RFC 3110 key: exponent length in one byte, or in two after a zero; exponent; modulus.
fn rsa_key(identity: &[u8]) -> Result<RsaPublic, CryptoError> {
    let (len, rest) = match *identity {
        [0, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
        [len, ref rest @ ..] => (usize::from(len), rest),
        [] => return Err(CryptoError::Key),
    };
    let (e, n) = rest.split_at_checked(len).ok_or(CryptoError::Key)?;
    let bits = n.len() * 8 - n.first().map_or(0, |b| b.leading_zeros() as usize);
    if bits < LEAST_RSA_BITS {
        return Err(CryptoError::Weak { bits, need: LEAST_RSA_BITS });
    }
    RsaPublic::new(e, n).ok_or(CryptoError::Key)
}

/// Our own Host Identity: signs. The private key is zeroed when the last clone is dropped, and never shown.
#[derive(Clone)]
pub struct Identity {
    public: PublicIdentity,
    key: Arc<Key>,
}

enum Key {
    Ecdsa(EcdsaKey),
    Rsa(RsaKey),
}

impl Identity {
    /// A fresh identity. ECDSA keys come from `random`; RSA keys as [`Self::generate_rsa`] makes them,
    /// of 2048 bits.
    pub fn generate(kind: KeyKind, random: &mut Random) -> Result<Self, CryptoError> {
        match kind.curve() {
            None => Self::generate_rsa(LEAST_RSA_BITS),
            Some((curve, _)) => {
                let key = ecdsa_from(kind, random, |private| EcdsaKey::from_private(curve, private));
                Self::from_ecdsa(kind, key)
            }
        }
    }

    /// A P-256 identity from `random` whose signatures follow from the message (RFC 6979), so that a
    /// simulated exchange repeats byte for byte. Everything else about it is as usual.
    pub fn repeatable(random: &mut Random) -> Result<Self, CryptoError> {
        Self::from_ecdsa(KeyKind::P256, ecdsa_from(KeyKind::P256, random, EcdsaKey::repeatable))
    }

    /// A fresh RSA identity of 2048, 3072 or 4096 bits, from the library's own generator: it differs
    /// from run to run.
    pub fn generate_rsa(bits: usize) -> Result<Self, CryptoError> {
        if !KeyKind::Rsa.is_supported() {
            return Err(CryptoError::Unsupported(RSA));
        }
        if !matches!(bits, 2048 | 3072 | 4096) {
            return Err(CryptoError::Weak { bits, need: LEAST_RSA_BITS });
        }
        Self::from_rsa(RsaKey::generate(bits).ok_or(CryptoError::Key)?)
    }

    fn from_ecdsa(kind: KeyKind, key: EcdsaKey) -> Result<Self, CryptoError> {
        let (_, label) = kind.curve().ok_or(CryptoError::Key)?;
        Self::with(kind, [label.as_slice(), &key.public()].concat(), Key::Ecdsa(key))
    }

    fn from_rsa(key: RsaKey) -> Result<Self, CryptoError> {
        let identity = rsa_identity(&key.public())?;
        Self::with(KeyKind::Rsa, identity, Key::Rsa(key))
    }

    fn with(kind: KeyKind, identity: Vec<u8>, key: Key) -> Result<Self, CryptoError> {
        Ok(Self { public: PublicIdentity::of(kind, identity)?, key: Arc::new(key) })
    }

    /// What others may know of it.
    pub fn public(&self) -> &PublicIdentity {
        &self.public
    }
    /// Its name.
    pub fn hit(&self) -> Hit {
        self.public.hit
    }

    /// The signature over `message` (RFC 7401 §5.2.14). Unless the identity is repeatable, AWS-LC randomises it from the
    /// operating system: the same message gives another signature next time.
    pub fn sign(&self, message: &[u8]) -> Result<polypath_wire::hip::Signature, CryptoError> {
        let kind = self.public.kind;
        let signature = match &*self.key {
            Key::Ecdsa(key) => key.sign(message),
            Key::Rsa(key) => key.sign(message),
        };
        let signature = signature.ok_or(CryptoError::Key)?;
        Ok(polypath_wire::hip::Signature { algorithm: kind.algorithm(), signature })
    }
}

/// A key of a curve from `random`, as `make` makes it of a private value.
fn ecdsa_from(kind: KeyKind, random: &mut Random, make: impl Fn(&[u8]) -> Option<EcdsaKey>) -> EcdsaKey {
    loop {
        let private = Zeroizing::new(random.vec(if kind == KeyKind::P384 { 48 } else { 32 }));
        // A number beyond the order of the curve is no key; the next one will be.
        if let Some(key) = make(&private) {
            return key;
        }
    }
}

impl fmt::Debug for PublicIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.hit)
    }
}
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.public.fmt(f)
    }
}
