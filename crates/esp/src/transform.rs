//! The ciphers, over one packet in place.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{constant_time, hmac};
use polypath_wire::esp::{HEADER_LEN, SALT_LEN, Suite};
use zeroize::Zeroizing;

use crate::config::{EspConfig, Keys};
use crate::simulated;

/// A cipher with its keys and the places of IV and ICV. The library zeroes the keys it holds.
pub(crate) struct Transform {
    algorithm: Algorithm,
    iv_len: usize,
    icv_len: usize,
    extended: bool,
}

enum Algorithm {
    Aead { key: LessSafeKey, salt: Zeroizing<[u8; SALT_LEN]> },
    Cbc(Box<Cbc>),
    Null(Box<hmac::Key>),
    Simulated,
}

struct Cbc {
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
    mac: hmac::Key,
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
        let mac = || hmac::Key::new(hmac::HMAC_SHA256, &keys.authentication);
        let algorithm = match config.suite {
            Suite::Aes128Gcm | Suite::Aes128GcmImplicit => aead_of(&aead::AES_128_GCM, keys),
            Suite::Aes256Gcm => aead_of(&aead::AES_256_GCM, keys),
            Suite::Chacha20Poly1305 => aead_of(&aead::CHACHA20_POLY1305, keys),
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
                let tag = key
                    .seal_in_place_separate_tag(nonce(salt, iv), Aad::from(&aad[..len]), f.body)
                    .map_err(|_| Refused)?;
                f.icv.copy_from_slice(tag.as_ref());
            }
            Algorithm::Cbc(cbc) => {
                let f = self.fields(packet);
                let iv = unpredictable_iv(&cbc.encrypt, seq)?;
                f.iv.copy_from_slice(&iv);
                let context = EncryptionContext::Iv128(FixedLength::from(&iv));
                cbc.encrypt.less_safe_encrypt(f.body, context).map_err(|_| Refused)?;
                self.sign(&cbc.mac, number, packet);
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
                key.open_in_place_separate_tag(nonce(salt, iv), Aad::from(&aad[..len]), f.icv, f.body)
                    .map_err(|_| Refused)?;
            }
            Algorithm::Cbc(cbc) => {
                self.verify(&cbc.mac, number, packet)?;
                let f = self.fields(packet);
                let iv: &[u8; 16] = (&*f.iv).try_into().expect("the IV of AES-CBC has 16 bytes");
                let context = DecryptionContext::Iv128(FixedLength::from(iv));
                cbc.decrypt.decrypt(f.body, context).map_err(|_| Refused)?;
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

    fn sign(&self, mac: &hmac::Key, high: Option<[u8; 4]>, packet: &mut [u8]) {
        let (covered, icv) = packet.split_at_mut(packet.len() - self.icv_len);
        icv.copy_from_slice(&digest(mac, high, covered).as_ref()[..self.icv_len]);
    }

    fn verify(&self, mac: &hmac::Key, high: Option<[u8; 4]>, packet: &[u8]) -> Result<(), Refused> {
        let (covered, icv) = packet.split_at(packet.len() - self.icv_len);
        let ours = digest(mac, high, covered);
        constant_time::verify_slices_are_equal(&ours.as_ref()[..self.icv_len], icv).map_err(|_| Refused)
    }
}

/// HMAC over the packet up to the ICV, then the high half of the number (RFC 4303 §2.8).
fn digest(mac: &hmac::Key, high: Option<[u8; 4]>, covered: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(mac);
    context.update(covered);
    if let Some(high) = high {
        context.update(&high);
    }
    context.sign()
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
fn nonce(salt: &[u8; SALT_LEN], iv: [u8; 8]) -> Nonce {
    let mut nonce = [0; aead::NONCE_LEN];
    nonce[..SALT_LEN].copy_from_slice(salt);
    nonce[SALT_LEN..].copy_from_slice(&iv);
    Nonce::assume_unique_for_key(nonce)
}

/// The cipher over a number that is not used twice: unpredictable without the key and without a
/// source of randomness (NIST SP 800-38A, appendix C).
fn unpredictable_iv(key: &EncryptingKey, seq: u64) -> Result<[u8; 16], Refused> {
    let mut block = [0; 16];
    block[8..].copy_from_slice(&seq.to_be_bytes());
    let zero = EncryptionContext::Iv128(FixedLength::from(&[0; 16]));
    key.less_safe_encrypt(&mut block, zero).map_err(|_| Refused)?;
    Ok(block)
}

fn aead_of(algorithm: &'static aead::Algorithm, keys: &Keys) -> Algorithm {
    let (key, salt) = keys.encryption.split_last_chunk::<SALT_LEN>().expect("the suite's key has a salt");
    let key = UnboundKey::new(algorithm, key).expect("the key has the suite's length");
    Algorithm::Aead { key: LessSafeKey::new(key), salt: Zeroizing::new(*salt) }
}

fn cbc_of(keys: &Keys, mac: hmac::Key) -> Algorithm {
    let cipher = if keys.encryption.len() == 16 { &AES_128 } else { &AES_256 };
    let key = || UnboundCipherKey::new(cipher, &keys.encryption).expect("the key has the suite's length");
    Algorithm::Cbc(Box::new(Cbc {
        encrypt: EncryptingKey::cbc(key()).expect("AES has a CBC mode"),
        decrypt: DecryptingKey::cbc(key()).expect("AES has a CBC mode"),
        mac,
    }))
}
