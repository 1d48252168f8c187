//! Key material (RFC 7401 §6.5, RFC 7402 §7): HKDF over the shared secret, drawn in a fixed order.
//!
//! HOST_g is the host with the greater HIT, HOST_l the other; `gl` keys protect what HOST_g sends.

use polypath_crypto::Prk;
use polypath_wire::hip::Hit;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::CryptoError;
use crate::suite::{EspSuite, Hash, HipCipher};

/// The source of all keys of one association, up to the next Diffie-Hellman exchange.
pub struct Keymat {
    prk: Prk,
    hash: Hash,
    info: [u8; 32],
}

/// The keys of HIP packets in one direction. Zeroed on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct HipKeys {
    /// Of ENCRYPTED.
    pub encryption: Vec<u8>,
    /// Of HIP_MAC.
    pub integrity: Vec<u8>,
}

/// The keys of ESP packets in one direction. Zeroed on drop.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct EspKeys {
    /// With its salt, if the suite has one.
    pub encryption: Vec<u8>,
    /// Empty if the suite needs none.
    pub authentication: Vec<u8>,
}

/// Keys of both directions, named by who uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair<T> {
    /// Of what we send.
    pub outgoing: T,
    /// Of what the peer sends.
    pub incoming: T,
}

impl Keymat {
    /// From Kij, the puzzle's I and J, and both HITs in any order.
    pub fn new(hash: Hash, kij: &[u8], i: &[u8], j: &[u8], a: Hit, b: Hit) -> Self {
        let prk = Prk::extract(hash, &[i, j].concat(), kij);
        let mut info = [0; 32];
        info[..16].copy_from_slice(&a.min(b).0);
        info[16..].copy_from_slice(&a.max(b).0);
        Self { prk, hash, info }
    }

    /// The bytes from `index` on.
    pub fn bytes(&self, index: usize, len: usize) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
        let mut all = Zeroizing::new(vec![0; index + len]);
        self.prk.expand(&self.info, &mut all).ok_or(CryptoError::KeymatExhausted)?;
        all.drain(..index);
        Ok(all)
    }

    /// How many bytes there are (RFC 5869 §2.3): the keys of some 300 SA pairs.
    pub fn capacity(&self) -> usize {
        255 * self.hash.len()
    }

    /// Where the ESP keys of the base exchange begin, bytes.
    pub fn first_esp_index(&self, cipher: HipCipher) -> usize {
        2 * (cipher.key_len() + self.hash.len())
    }

    /// The keys of HIP packets: drawn once, from the beginning.
    pub fn hip_keys(&self, cipher: HipCipher, ours: Hit, peers: Hit) -> Result<Pair<HipKeys>, CryptoError> {
        let lens = (cipher.key_len(), self.hash.len());
        let [gl, lg] = self.draw(0, lens)?.map(|(encryption, integrity)| HipKeys { encryption, integrity });
        Ok(Pair::of(ours > peers, gl, lg))
    }

    /// The keys of an SA pair, from `index` on.
    pub fn esp_keys(
        &self,
        suite: EspSuite,
        index: usize,
        ours: Hit,
        peers: Hit,
    ) -> Result<Pair<EspKeys>, CryptoError> {
        let keys = self.draw(index, esp_key_lens(suite))?;
        let [gl, lg] = keys.map(|(encryption, authentication)| EspKeys { encryption, authentication });
        Ok(Pair::of(ours > peers, gl, lg))
    }

    /// Four keys: encryption and integrity of HOST_g, then of HOST_l.
    #[expect(clippy::type_complexity, reason = "two pairs of keys, named by the callers")]
    fn draw(
        &self,
        index: usize,
        (enc, auth): (usize, usize),
    ) -> Result<[(Vec<u8>, Vec<u8>); 2], CryptoError> {
        let bytes = self.bytes(index, 2 * (enc + auth))?;
        let pair = |at: usize| (bytes[at..at + enc].to_vec(), bytes[at + enc..at + enc + auth].to_vec());
        Ok([pair(0), pair(enc + auth)])
    }
}

/// Bytes of the encryption and of the authentication key of one SA.
fn esp_key_lens(suite: EspSuite) -> (usize, usize) {
    (suite.encryption_key_len(), suite.authentication_key_len())
}

/// How many bytes of KEYMAT an SA pair takes.
pub fn esp_draw_len(suite: EspSuite) -> usize {
    let (enc, auth) = esp_key_lens(suite);
    2 * (enc + auth)
}

impl<T> Pair<T> {
    fn of(we_are_greater: bool, gl: T, lg: T) -> Self {
        if we_are_greater { Self { outgoing: gl, incoming: lg } } else { Self { outgoing: lg, incoming: gl } }
    }
}

macro_rules! hide {
    ($($name:ident)+) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )+};
}
hide!(Keymat HipKeys EspKeys);
