//! The ciphers, over one packet in place.

use polypath_crypto::{Aead, AeadKey, Cbc, Digest, Hash, MacKey, NONCE_LEN, equal};
use polypath_wire::esp::{HEADER_LEN, SALT_LEN, Suite};
use zeroize::Zeroizing;

use crate::config::{EspConfig, Keys};
use crate::simulated;

/// A cipher with its keys and the places of IV and ICV.
pub(crate) struct Transform {
    algorithm: Algorithm,
    iv_len: usize,
    icv_len: usize,
    extended: bool,
}

enum Algorithm {
    Aead { key: AeadKey, salt: Zeroizing<[u8; SALT_LEN]> },
    Cbc(Box<(Cbc, MacKey)>),
    Null(Box<MacKey>),
    Simulated,
}

/// The packet is not what its ICV says, or the library refused it.
pub(crate) struct Refused;

/// A packet cut where its fields begin.
struct Fields<'a> {
    head: [u8; HEADER_LEN],
    iv: &'a mut [u8],
    body: &'a mut [u8],
    icv: &'a mut [u8],
}

impl Transform {
    /// `keys` are as long as `config.suite` wants them ([`EspConfig::check`]).
    pub(crate) fn new(config: &EspConfig, keys: &Keys) -> Self {
        let mac = || MacKey::new(Hash::Sha256, &keys.authentication);
        let algorithm = match config.suite {
            Suite::Aes128Gcm | Suite::Aes128GcmImplicit => aead_of(Aead::Aes128Gcm, keys),
            Suite::Aes256Gcm => aead_of(Aead::Aes256Gcm, keys),
            Suite::Chacha20Poly1305 => aead_of(Aead::Chacha20Poly1305, keys),
            Suite::Aes128CbcHmacSha256 | Suite::Aes256CbcHmacSha256 => cbc_of(keys, mac()),
            Suite::NullHmacSha256 => Algorithm::Null(Box::new(mac())),
            Suite::Simulated => Algorithm::Simulated,
        };
        let (iv_len, icv_len) = (config.iv_len(), config.icv_len());
        Self { algorithm, iv_len, icv_len, extended: config.extended_sequence }
    }

    /// Writes IV and ICV of `packet`, whose header and body stand, and enciphers the body.
    pub(crate) fn seal(&self, seq: u64, packet: &mut [u8]) -> Result<(), Refused> {
        let number = self.high_half(seq);
        match &self.algorithm {
            Algorithm::Aead { key, salt } => {
                let f = self.fields(packet);
                // RFC 4106 §3.1: any value that is not used twice under a key.
                let iv = seq.to_be_bytes();
                f.iv.copy_from_slice(&iv[..f.iv.len()]);
                let (aad, len) = aad(f.head, number);
                let tag = key.seal(nonce(salt, iv), &aad[..len], f.body).ok_or(Refused)?;
                f.icv.copy_from_slice(&tag);
            }
            Algorithm::Cbc(keys) => {
                let (cbc, mac) = &**keys;
                let f = self.fields(packet);
                let iv = unpredictable_iv(cbc, seq)?;
                f.iv.copy_from_slice(&iv);
                cbc.encrypt(&iv, f.body).ok_or(Refused)?;
                self.sign(mac, number, packet);
            }
            Algorithm::Null(mac) => {
                self.fields(packet).iv.fill(0);
                self.sign(mac, number, packet);
            }
            Algorithm::Simulated => {
                self.fields(packet).iv.copy_from_slice(&seq.to_be_bytes());
                let (covered, icv) = packet.split_at_mut(packet.len() - self.icv_len);
                icv.copy_from_slice(&simulated::icv(covered, seq));
            }
        }
        Ok(())
    }

    /// Verifies the ICV of `packet` as number `seq`, then deciphers its body.
    pub(crate) fn open(&self, seq: u64, packet: &mut [u8]) -> Result<(), Refused> {
        let number = self.high_half(seq);
        match &self.algorithm {
            Algorithm::Aead { key, salt } => {
                let f = self.fields(packet);
                let (aad, len) = aad(f.head, number);
                // Where it is not sent, it is the number (RFC 8750 §3).
                let iv = f.iv.first_chunk().copied().unwrap_or(seq.to_be_bytes());
                key.open(nonce(salt, iv), &aad[..len], f.icv, f.body).ok_or(Refused)?;
            }
            Algorithm::Cbc(keys) => {
                let (cbc, mac) = &**keys;
                self.verify(mac, number, packet)?;
                let f = self.fields(packet);
                let iv: &[u8; 16] = (&*f.iv).try_into().expect("the IV of AES-CBC has 16 bytes");
                cbc.decrypt(iv, f.body).ok_or(Refused)?;
            }
            Algorithm::Null(mac) => self.verify(mac, number, packet)?,
            Algorithm::Simulated => {
                let (covered, icv) = packet.split_at(packet.len() - self.icv_len);
                if icv != simulated::icv(covered, seq) {
                    return Err(Refused);
                }
            }
        }
        Ok(())
    }

    fn fields<'a>(&self, packet: &'a mut [u8]) -> Fields<'a> {
        let (head, rest) =
            packet.split_first_chunk_mut::<HEADER_LEN>().expect("callers check the length of a packet");
        let (iv, rest) = rest.split_at_mut(self.iv_len);
        let (body, icv) = rest.split_at_mut(rest.len() - self.icv_len);
        Fields { head: *head, iv, body, icv }
    }

    /// The part of the sequence number that is authenticated but not sent (RFC 4303 §2.2.1).
    fn high_half(&self, seq: u64) -> Option<[u8; 4]> {
        self.extended.then(|| ((seq >> 32) as u32).to_be_bytes())
    }

    fn sign(&self, mac: &MacKey, high: Option<[u8; 4]>, packet: &mut [u8]) {
        let (covered, icv) = packet.split_at_mut(packet.len() - self.icv_len);
        icv.copy_from_slice(&digest(mac, high, covered).as_ref()[..self.icv_len]);
    }

    fn verify(&self, mac: &MacKey, high: Option<[u8; 4]>, packet: &[u8]) -> Result<(), Refused> {
        let (covered, icv) = packet.split_at(packet.len() - self.icv_len);
        let ours = digest(mac, high, covered);
        if equal(&ours.as_ref()[..self.icv_len], icv) { Ok(()) } else { Err(Refused) }
    }
}

/// HMAC over the packet up to the ICV, then the high half of the number (RFC 4303 §2.8).
fn digest(mac: &MacKey, high: Option<[u8; 4]>, covered: &[u8]) -> Digest {
    mac.sign(&[covered, high.as_ref().map_or(&[], |high| high)])
}

/// SPI, high half if there is one, low half (RFC 4106 §5), and how many bytes that is.
fn aad(head: [u8; HEADER_LEN], high: Option<[u8; 4]>) -> ([u8; 12], usize) {
    let mut out = [0; 12];
    out[..4].copy_from_slice(&head[..4]);
    let low = match high {
        Some(high) => {
            out[4..8].copy_from_slice(&high);
            8
        }
        None => 4,
    };
    out[low..low + 4].copy_from_slice(&head[4..]);
    (out, low + 4)
}

/// Salt and IV (RFC 4106 §4, 7634 §2).
fn nonce(salt: &[u8; SALT_LEN], iv: [u8; 8]) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[..SALT_LEN].copy_from_slice(salt);
    nonce[SALT_LEN..].copy_from_slice(&iv);
    nonce
}

/// The cipher over a number that is not used twice: unpredictable without the key and without a
/// source of randomness (NIST SP 800-38A, appendix C).
fn unpredictable_iv(key: &Cbc, seq: u64) -> Result<[u8; 16], Refused> {
    let mut block = [0; 16];
    block[8..].copy_from_slice(&seq.to_be_bytes());
    key.encrypt(&[0; 16], &mut block).ok_or(Refused)?;
    Ok(block)
}

fn aead_of(aead: Aead, keys: &Keys) -> Algorithm {
    let (key, salt) = keys.encryption.split_last_chunk::<SALT_LEN>().expect("the suite's key has a salt");
    let key = AeadKey::new(aead, key).expect("the key has the suite's length");
    Algorithm::Aead { key, salt: Zeroizing::new(*salt) }
}

fn cbc_of(keys: &Keys, mac: MacKey) -> Algorithm {
    let cbc = Cbc::new(&keys.encryption).expect("the key has the suite's length");
    Algorithm::Cbc(Box::new((cbc, mac)))
}
