//! One option: what it says, and how it is read.

use super::{WHAT, kind};
use crate::error::{WireError, u32_at};
use crate::units::Seq;

/// Our experiment identifier, "Poly": 32 bits because it is not registered (RFC 6994 §3.1).
pub(super) const MULTI_ROUTE_EXID: [u8; 4] = *b"Poly";

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

/// Reads one option: kind, length (which `bytes` must have), data.
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

/// One SACK block: `start..end` arrived (RFC 2018 §3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: Seq,
    /// The sequence number after the last one of the block.
    pub end: Seq,
}

/// Up to four SACK blocks, most recent first.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackBlock; SackBlocks::CAPACITY],
}

impl SackBlocks {
    /// As many as fit in a header without other options.
    pub const CAPACITY: usize = 4;

    /// Appends a block; `false` if there are four already.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len += 1;
        true
    }

    /// Takes all blocks out.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl std::ops::Deref for SackBlocks {
    type Target = [SackBlock];
    fn deref(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SackBlocks {}

impl std::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock as last seen.
    pub echo: u32,
}

/// The multi-route option of R-M/TCP (§2.1, Fig. 4): kind, length, four bytes of experiment
/// identifier, route and reply in a byte each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MultiRoute {
    /// Route ID: the place of the path this segment took, among the sender's. 255 is no path.
    pub route: u8,
    /// Route ID Reply: the Route ID of the segment that this one acknowledges, if it does.
    pub reply: Option<u8>,
}

impl MultiRoute {
    /// Stands on the wire for no reply.
    pub(super) const NO_REPLY: u8 = u8::MAX;
}
