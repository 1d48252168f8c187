//! A TCP segment as bytes whose lengths were checked.

use super::flags::TcpFlags;
use super::{CHECKSUM_AT, MIN_HEADER_LEN, PROTOCOL, WHAT};
use crate::checksum::Checksum;
use crate::error::{WireError, split, u16_at, u32_at};
use crate::units::Seq;

/// A segment whose header lies within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    bytes: &'a [u8],
    fixed: &'a [u8; MIN_HEADER_LEN],
    header_len: usize,
}

impl<'a> TcpView<'a> {
    /// A view of the segment `bytes`: header, options and all of its data.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (fixed, _) = split(WHAT, bytes)?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        if header_len < MIN_HEADER_LEN {
            return Err(WireError::new(WHAT, "data offset", MIN_HEADER_LEN, header_len));
        }
        if header_len > bytes.len() {
            return Err(WireError::new(WHAT, "length", header_len, bytes.len()));
        }
        Ok(Self { bytes, fixed, header_len })
    }

    /// Checks the checksum over header and data.
    pub fn verify(&self, checksum: Checksum) -> Result<(), WireError> {
        checksum.verify(WHAT, PROTOCOL, self.bytes, CHECKSUM_AT)
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        u16_at(self.fixed, 0)
    }
    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        u16_at(self.fixed, 2)
    }
    /// Sequence number.
    pub fn seq(&self) -> Seq {
        Seq(u32_at(self.fixed, 4))
    }
    /// Acknowledgment number.
    pub fn ack(&self) -> Seq {
        Seq(u32_at(self.fixed, 8))
    }
    /// Control bits.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.fixed[13])
    }
    /// Window, not scaled.
    pub fn window(&self) -> u16 {
        u16_at(self.fixed, 14)
    }
    /// Checksum as it stands there.
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed, CHECKSUM_AT)
    }
    /// Urgent pointer.
    pub fn urgent(&self) -> u16 {
        u16_at(self.fixed, 18)
    }
    /// Length of the header with its options, bytes.
    pub fn header_len(&self) -> usize {
        self.header_len
    }
    /// The bytes of the options, padding included.
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[MIN_HEADER_LEN..self.header_len]
    }
    /// The data.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len..]
    }
}
