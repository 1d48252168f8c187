//! Host Identities: key pairs, and HITs as their names (RFC 7401 §3, RFC 7343).

mod pem;

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm, KeyPair, ParsedPublicKey,
    RsaKeyPair,
};
use p256::ecdsa::signature::hazmat::PrehashSigner;
use polypath_wire::hip::{DomainId, Hit, HostId};
use zeroize::Zeroizing;

use crate::dh::{DhGroup, DhKey};
use crate::error::CryptoError;
use crate::random::Random;
use crate::suite::{Hash, HitSuite};

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
    /// The curve label of RFC 7401 §5.2.9.
    fn curve_label(self) -> [u8; 2] {
        match self {
            Self::P256 => [0, 1],
            Self::P384 => [0, 2],
            Self::Rsa => [0, 0],
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
    key: Arc<ParsedPublicKey>,
}

impl PublicIdentity {
    /// The identity in a HOST_ID, if it is of a kind that we have and a sound key.
    pub fn new(host_id: HostId) -> Result<Self, CryptoError> {
        let (kind, key) = match host_id.algorithm {
            ECDSA => ecdsa_key(&host_id.identity)?,
            RSA => (KeyKind::Rsa, rsa_key(&host_id.identity)?),
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
        match self.kind {
            KeyKind::P256 => self.key.verify_digest_sig(&leftmost_256(message), &sig.signature),
            KeyKind::P384 | KeyKind::Rsa => self.key.verify_sig(message, &sig.signature),
        }
        .map_err(|_| CryptoError::Signature)
    }
}

/// P-256 identities sign the suite's SHA-384; ECDSA takes its leftmost 256 bits (FIPS 186-5 §6.4).
/// The library pairs the curve with 256-bit digests only, so it gets those bits as one.
fn leftmost_256(message: &[u8]) -> Digest {
    let digest = Hash::Sha384.digest(&[message]);
    Digest::import_less_safe(&digest.as_ref()[..32], &digest::SHA256).expect("32 bytes are a SHA-256 digest")
}

fn ecdsa_key(identity: &[u8]) -> Result<(KeyKind, ParsedPublicKey), CryptoError> {
    let (label, point) = identity.split_first_chunk().ok_or(CryptoError::Key)?;
    let (kind, algorithm): (_, &'static EcdsaVerificationAlgorithm) = match u16::from_be_bytes(*label) {
        1 => (KeyKind::P256, &signature::ECDSA_P256_SHA256_FIXED),
        2 => (KeyKind::P384, &signature::ECDSA_P384_SHA384_FIXED),
        other => return Err(CryptoError::Unsupported(other)),
    };
    let key = ParsedPublicKey::new(algorithm, point).map_err(|_| CryptoError::Key)?;
    Ok((kind, key))
}

fn ecdsa_identity(kind: KeyKind, key: &EcdsaKeyPair) -> Vec<u8> {
    [kind.curve_label().as_slice(), key.public_key().as_ref()].concat()
}

/// An RFC 3110 key of which the exponent is short, as everybody's is.
fn rsa_identity(key: &rsa::PublicKey) -> Result<Vec<u8>, CryptoError> {
    let e = key.exponent().big_endian_without_leading_zero();
    let n = key.modulus().big_endian_without_leading_zero();
    let len = u8::try_from(e.len()).map_err(|_| CryptoError::Key)?;
    Ok([&[len], e, n].concat())
}

/// An RFC 3110 key: exponent length in one byte, or in two after a zero; exponent; modulus.
fn rsa_key(identity: &[u8]) -> Result<ParsedPublicKey, CryptoError> {
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
    let components = rsa::PublicKeyComponents { n, e };
    components.to_parsed_public_key(&signature::RSA_PSS_2048_8192_SHA256).map_err(|_| CryptoError::Key)
}

/// Our own Host Identity: signs. The private key is zeroed when the last clone is dropped, and never shown.
#[derive(Clone)]
pub struct Identity {
    public: PublicIdentity,
    key: Arc<Key>,
}

enum Key {
    Ecdsa(EcdsaKeyPair),
    /// Its signatures follow from the message.
    Repeatable(EcdsaKeyPair, p256::ecdsa::SigningKey),
    Rsa(RsaKeyPair),
}

impl Identity {
    /// A fresh identity. ECDSA keys come from `random`; RSA keys as [`Self::generate_rsa`] makes them,
    /// of 2048 bits.
    pub fn generate(kind: KeyKind, random: &mut Random) -> Result<Self, CryptoError> {
        match kind {
            KeyKind::Rsa => Self::generate_rsa(LEAST_RSA_BITS),
            _ => Self::from_ecdsa(kind, ecdsa_pair(kind, random)?.0),
        }
    }

    /// A P-256 identity from `random` whose signatures follow from the message (RFC 6979), so that a
    /// simulated exchange repeats byte for byte. Everything else about it is as usual.
    pub fn repeatable(random: &mut Random) -> Result<Self, CryptoError> {
        let (key, private) = ecdsa_pair(KeyKind::P256, random)?;
        let signing = p256::ecdsa::SigningKey::from_slice(&private).map_err(|_| CryptoError::Key)?;
        let identity = ecdsa_identity(KeyKind::P256, &key);
        Self::with(KeyKind::P256, identity, Key::Repeatable(key, signing))
    }

    /// A fresh RSA identity of 2048, 3072 or 4096 bits, from the library's own generator: it differs
    /// from run to run.
    pub fn generate_rsa(bits: usize) -> Result<Self, CryptoError> {
        let size = match bits {
            2048 => KeySize::Rsa2048,
            3072 => KeySize::Rsa3072,
            4096 => KeySize::Rsa4096,
            _ => return Err(CryptoError::Weak { bits, need: LEAST_RSA_BITS }),
        };
        Self::from_rsa(RsaKeyPair::generate(size).map_err(|_| CryptoError::Key)?)
    }

    fn from_ecdsa(kind: KeyKind, key: EcdsaKeyPair) -> Result<Self, CryptoError> {
        Self::with(kind, ecdsa_identity(kind, &key), Key::Ecdsa(key))
    }

    fn from_rsa(key: RsaKeyPair) -> Result<Self, CryptoError> {
        let identity = rsa_identity(key.public_key())?;
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

    /// The signature over `message` (RFC 7401 §5.2.14). Unless the identity is repeatable, it is
    /// randomised by the library, from the operating system: the same message gives another signature
    /// next time.
    pub fn sign(&self, message: &[u8]) -> Result<polypath_wire::hip::Signature, CryptoError> {
        let kind = self.public.kind;
        let signature = self.key.sign(kind, message).ok_or(CryptoError::Key)?;
        Ok(polypath_wire::hip::Signature { algorithm: kind.algorithm(), signature })
    }
}

impl Key {
    /// The signature over `message`, as it stands in HIP_SIGNATURE; none if the library fails.
    #[expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "the library takes no other here"
    )]
    fn sign(&self, kind: KeyKind, message: &[u8]) -> Option<Vec<u8>> {
        let rng = aws_lc_rs::rand::SystemRandom::new();
        match self {
            Self::Ecdsa(key) => {
                let signature = match kind {
                    KeyKind::P256 => key.sign_digest(&leftmost_256(message)),
                    _ => key.sign(&rng, message),
                };
                Some(signature.ok()?.as_ref().to_vec())
            }
            Self::Repeatable(_, key) => {
                let signature: p256::ecdsa::Signature =
                    key.sign_prehash(leftmost_256(message).as_ref()).ok()?;
                Some(signature.to_bytes().to_vec())
            }
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&signature::RSA_PSS_SHA256, &rng, message, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

/// A key of a curve from `random`, and its private value.
fn ecdsa_pair(kind: KeyKind, random: &mut Random) -> Result<(EcdsaKeyPair, Zeroizing<Vec<u8>>), CryptoError> {
    let (group, len) = match kind {
        KeyKind::P384 => (DhGroup::P384, 48),
        _ => (DhGroup::P256, 32),
    };
    loop {
        let private = Zeroizing::new(random.vec(len));
        // A number beyond the order of the curve is no key; the next one will be.
        let Ok(dh) = DhKey::from_private(group, &private) else { continue };
        let point = [&[0x04], dh.public()].concat();
        let key = EcdsaKeyPair::from_private_key_and_public_key(signing(kind), &private, &point);
        return Ok((key.map_err(|_| CryptoError::Key)?, private));
    }
}

fn signing(kind: KeyKind) -> &'static EcdsaSigningAlgorithm {
    match kind {
        KeyKind::P256 => &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
        KeyKind::P384 | KeyKind::Rsa => &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
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
