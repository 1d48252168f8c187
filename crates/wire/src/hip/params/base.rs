//! Parameters of the base exchange and of ESP.

use crate::error::WireError;
use crate::hip::cursor::Cursor;
use crate::hip::kind::NotifyType;
use crate::units::Duration;

/// ESP_INFO (RFC 7402 §5.1.1). Both SPIs are those of the sender's inbound SA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EspInfo {
    /// Where in KEYMAT the ESP keys begin, bytes.
    pub keymat_index: u16,
    /// The SPI that is replaced; 0 for a new SA.
    pub old_spi: u32,
    /// The SPI from now on; 0 to withdraw the SA.
    pub new_spi: u32,
}

impl EspInfo {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        c.u16()?;
        Ok(Self { keymat_index: c.u16()?, old_spi: c.u32()?, new_spi: c.u32()? })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.keymat_index.to_be_bytes());
        out.extend_from_slice(&self.old_spi.to_be_bytes());
        out.extend_from_slice(&self.new_spi.to_be_bytes());
    }
}

/// R1_COUNTER (RFC 7401 §5.2.3). I2 carries it back whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct R1Counter {
    /// Four bytes without meaning, echoed as they came.
    pub reserved: u32,
    /// The generation of valid puzzles.
    pub counter: u64,
}

impl R1Counter {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(Self { reserved: c.u32()?, counter: c.u64()? })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.reserved.to_be_bytes());
        out.extend_from_slice(&self.counter.to_be_bytes());
    }
}

/// PUZZLE (RFC 7401 §5.2.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Puzzle {
    /// K: how many low bits of the digest must be zero.
    pub difficulty: u8,
    /// The lifetime is 2^(this - 32) seconds.
    pub lifetime: u8,
    /// Comes back in the solution.
    pub opaque: [u8; 2],
    /// I, as long as the Responder's hash.
    pub random: Vec<u8>,
}

impl Puzzle {
    /// How long a solution is accepted.
    pub fn valid_for(&self) -> Duration {
        Duration::from_secs_f64(2f64.powi(i32::from(self.lifetime) - 32))
    }
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [difficulty, lifetime, a, b] = c.take()?;
        Ok(Self { difficulty, lifetime, opaque: [a, b], random: super::rest(c) })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.difficulty, self.lifetime, self.opaque[0], self.opaque[1]]);
        out.extend_from_slice(&self.random);
    }
}

/// SOLUTION (RFC 7401 §5.2.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solution {
    /// K of the puzzle.
    pub difficulty: u8,
    /// Zero; older implementations leave the puzzle's lifetime here.
    pub reserved: u8,
    /// As it stood in the puzzle.
    pub opaque: [u8; 2],
    /// I of the puzzle.
    pub random: Vec<u8>,
    /// J, as long as I.
    pub answer: Vec<u8>,
}

impl Solution {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [difficulty, reserved, a, b] = c.take()?;
        if !c.rest.len().is_multiple_of(2) {
            return Err(WireError::new(c.what, "length of I and J", c.rest.len() + 1, c.rest.len()));
        }
        let random = c.bytes(c.rest.len() / 2)?.to_vec();
        Ok(Self { difficulty, reserved, opaque: [a, b], random, answer: super::rest(c) })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.difficulty, self.reserved, self.opaque[0], self.opaque[1]]);
        out.extend_from_slice(&self.random);
        out.extend_from_slice(&self.answer);
    }
}

/// DIFFIE_HELLMAN (RFC 7401 §5.2.7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiffieHellman {
    /// The group.
    pub group: u8,
    /// The public value in the encoding of the group.
    pub public: Vec<u8>,
}

impl DiffieHellman {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let (group, len) = (c.u8()?, c.u16()?);
        Ok(Self { group, public: c.bytes(len.into())?.to_vec() })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.group);
        out.extend_from_slice(&(self.public.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.public);
    }
}

/// NOTIFICATION (RFC 7401 §5.2.19).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// What it says.
    pub notify_type: NotifyType,
    /// What it says that about.
    pub data: Vec<u8>,
}

impl Notification {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        c.u16()?;
        Ok(Self { notify_type: NotifyType(c.u16()?), data: super::rest(c) })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.notify_type.0.to_be_bytes());
        out.extend_from_slice(&self.data);
    }
}

/// HIP_SIGNATURE and HIP_SIGNATURE_2 (RFC 7401 §5.2.14).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The algorithm of the Host Identity.
    pub algorithm: u16,
    /// The signature in the encoding of the algorithm.
    pub signature: Vec<u8>,
}

impl Signature {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(Self { algorithm: c.u16()?, signature: super::rest(c) })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.algorithm.to_be_bytes());
        out.extend_from_slice(&self.signature);
    }
}
