//! UDP headers (RFC 768).

use crate::checksum::Checksum;
use crate::error::{WireError, room, split, u16_at};

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 8;
/// The protocol number of UDP.
pub const PROTOCOL: u8 = 17;

const WHAT: &str = "UDP";
const CHECKSUM_AT: usize = 6;

/// A UDP header as a value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Bytes after the header, at most 65527.
    pub payload_len: u16,
}

impl UdpHeader {
    /// The header at the start of the datagram `bytes`, and where the data begins. There may be
    /// padding after the datagram.
    pub fn parse(bytes: &[u8], checksum: Checksum) -> Result<(Self, usize), WireError> {
        let view = UdpView::new(bytes)?;
        view.verify(checksum)?;
        Ok((Self::from_view(&view), HEADER_LEN))
    }

    /// The value of `view`.
    pub fn from_view(view: &UdpView<'_>) -> Self {
        Self {
            src_port: view.src_port(),
            dst_port: view.dst_port(),
            payload_len: view.payload().len() as u16,
        }
    }

    /// Length on the wire, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the start of `datagram`, whose bytes after it are the data and in place
    /// already, and returns its length. Fails if they do not fit, or are more than 65535 together.
    pub fn emit(&self, datagram: &mut [u8], checksum: Checksum) -> Result<usize, WireError> {
        let total = HEADER_LEN + usize::from(self.payload_len);
        let length = u16::try_from(total).map_err(|_| WireError::new(WHAT, "length", 0xffff, total))?;
        let datagram = room(WHAT, datagram, total)?;
        datagram[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        datagram[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        datagram[4..6].copy_from_slice(&length.to_be_bytes());
        datagram[6..8].fill(0);
        if let Some(sum) = checksum.compute(PROTOCOL, datagram) {
            // 0 stands for no checksum; its other representation is sent.
            let sum = if sum == 0 { 0xffff } else { sum };
            datagram[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(HEADER_LEN)
    }
}

/// A datagram that lies within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a> {
    bytes: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// A view of the datagram at the start of `bytes`, all of which is there.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (fixed, _) = split::<HEADER_LEN>(WHAT, bytes)?;
        let len = usize::from(u16_at(fixed, 4));
        if len < HEADER_LEN {
            return Err(WireError::new(WHAT, "length", HEADER_LEN, len));
        }
        let datagram = bytes.get(..len).ok_or_else(|| WireError::new(WHAT, "length", len, bytes.len()))?;
        Ok(Self { bytes: datagram })
    }

    /// Checks the checksum. There need not be one, except over IPv6 (RFC 8200 §8.1).
    pub fn verify(&self, checksum: Checksum) -> Result<(), WireError> {
        match (self.checksum(), checksum) {
            (0, Checksum::Ipv6 { .. }) => Err(WireError::checksum(WHAT, 1, 0)),
            (0, _) => Ok(()),
            _ => checksum.verify(WHAT, PROTOCOL, self.bytes, CHECKSUM_AT),
        }
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        u16_at(self.bytes, 0)
    }
    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        u16_at(self.bytes, 2)
    }
    /// Checksum as it stands there; 0 is none.
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, CHECKSUM_AT)
    }
    /// The data.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}
