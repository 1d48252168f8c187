//! The TCP header as a value.

use super::flags::TcpFlags;
use super::options::TcpOptions;
use super::view::TcpView;
use super::{CHECKSUM_AT, MAX_OPTIONS_LEN, MIN_HEADER_LEN, PROTOCOL, WHAT};
use crate::checksum::Checksum;
use crate::error::{WireError, room};
use crate::units::Seq;

/// A TCP header as a value.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte (of SYN, if set).
    pub seq: Seq,
    /// Next sequence number expected, if ACK is set.
    pub ack: Seq,
    /// Control bits.
    pub flags: TcpFlags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// The header at the start of the segment `bytes`, and where the data begins. All of `bytes`
    /// belongs to the segment: the checksum covers it.
    pub fn parse(bytes: &[u8], checksum: Checksum) -> Result<(Self, usize), WireError> {
        let view = TcpView::new(bytes)?;
        view.verify(checksum)?;
        Ok((Self::from_view(&view)?, view.header_len()))
    }

    /// The value of `view`; fails on options with bad lengths.
    pub fn from_view(view: &TcpView<'_>) -> Result<Self, WireError> {
        Ok(Self {
            src_port: view.src_port(),
            dst_port: view.dst_port(),
            seq: view.seq(),
            ack: view.ack(),
            flags: view.flags(),
            window: view.window(),
            urgent: view.urgent(),
            options: TcpOptions::parse(view.options())?,
        })
    }

    /// Length on the wire, options included, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }

    /// Writes the header to the start of `segment`, whose bytes from [`len`](Self::len) on are the
    /// data and in place already, and returns its length. Fails if it does not fit, or if options
    /// other than SACK blocks take more than 40 bytes.
    pub fn emit(&self, segment: &mut [u8], checksum: Checksum) -> Result<usize, WireError> {
        let len = self.len();
        if len > MIN_HEADER_LEN + MAX_OPTIONS_LEN {
            return Err(WireError::new(WHAT, "options", MAX_OPTIONS_LEN, len - MIN_HEADER_LEN));
        }
        let header = room(WHAT, segment, len)?;
        header[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        header[12] = (len as u8 / 4) << 4;
        header[13] = self.flags.0;
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[16..18].fill(0);
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        self.options.emit(&mut header[MIN_HEADER_LEN..]);
        if let Some(sum) = checksum.compute(PROTOCOL, segment) {
            segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(len)
    }
}
