//! A TCP segment as bytes whose lengths were checked.

use super::header::TcpFlags;
use super::options::{MULTI_ROUTE_EXID, MultiRoute, SackBlock, SackBlocks, Timestamps};
use super::{CHECKSUM_AT, MIN_HEADER_LEN, PROTOCOL, WHAT, kind};
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

/// One option as it stands in a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption<'a> {
    /// Maximum segment size.
    Mss(u16),
    /// Window scale shift, as it came: may exceed 14.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK blocks.
    Sack(SackBlocks),
    /// Timestamps.
    Timestamps(Timestamps),
    /// Multi-route.
    MultiRoute(MultiRoute),
    /// Any other: its kind, length and data.
    Unknown(&'a [u8]),
}

/// The options of a segment in order, without padding. After an error there are no more.
#[derive(Clone, Debug)]
pub struct TcpOptionsIter<'a> {
    rest: &'a [u8],
}

impl<'a> TcpOptionsIter<'a> {
    /// The options in `bytes`, the part of the header after its first 20 bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for TcpOptionsIter<'a> {
    type Item = Result<TcpOption<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.rest {
                [kind::NOP, ref rest @ ..] => self.rest = rest,
                [] | [kind::END, ..] => return None,
                _ => break,
            }
        }
        let bytes = std::mem::take(&mut self.rest);
        let len = usize::from(*bytes.get(1).unwrap_or(&0));
        if len < 2 || len > bytes.len() {
            let need = if len < 2 { 2 } else { len };
            let got = if len < 2 { len } else { bytes.len() };
            return Some(Err(WireError::new(WHAT, "option length", need, got)));
        }
        let (option, rest) = bytes.split_at(len);
        let option = parse(option);
        if option.is_ok() {
            self.rest = rest;
        }
        Some(option)
    }
}

/// Reads one option: kind, length (checked to be that of `bytes`), data.
fn parse(bytes: &[u8]) -> Result<TcpOption<'_>, WireError> {
    let bad = |field, need| Err(WireError::new(WHAT, field, need, bytes.len()));
    let (kind, data) = (bytes[0], &bytes[2..]);
    Ok(match (kind, data) {
        (kind::MSS, &[a, b]) => TcpOption::Mss(u16::from_be_bytes([a, b])),
        (kind::MSS, _) => return bad("MSS option length", 4),
        (kind::WINDOW_SCALE, &[shift]) => TcpOption::WindowScale(shift),
        (kind::WINDOW_SCALE, _) => return bad("window scale option length", 3),
        (kind::SACK_PERMITTED, []) => TcpOption::SackPermitted,
        (kind::SACK_PERMITTED, _) => return bad("SACK-permitted option length", 2),
        (kind::TIMESTAMPS, data) if data.len() == 8 => {
            TcpOption::Timestamps(Timestamps { value: u32_at(data, 0), echo: u32_at(data, 4) })
        }
        (kind::TIMESTAMPS, _) => return bad("timestamps option length", 10),
        (kind::SACK, data) => match data.as_chunks::<8>() {
            (blocks @ ([_] | [_, _] | [_, _, _] | [_, _, _, _]), []) => TcpOption::Sack(sack(blocks)),
            _ => return bad("SACK option length", (data.len() / 8).clamp(1, 4) * 8 + 2),
        },
        (kind::EXPERIMENT_1 | kind::EXPERIMENT_2, data) if data.starts_with(&MULTI_ROUTE_EXID) => {
            match data[MULTI_ROUTE_EXID.len()..] {
                [route, reply] => TcpOption::MultiRoute(MultiRoute {
                    route,
                    reply: (reply != MultiRoute::NO_REPLY).then_some(reply),
                }),
                _ => return bad("multi-route option length", 8),
            }
        }
        _ => TcpOption::Unknown(bytes),
    })
}

fn sack(blocks: &[[u8; 8]]) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for b in blocks {
        sack.push(SackBlock { start: Seq(u32_at(b, 0)), end: Seq(u32_at(b, 4)) });
    }
    sack
}
