//! The TCP options as a value.

use super::kind;
use super::option::{
    MULTI_ROUTE_EXID, MultiRoute, SackBlock, SackBlocks, TcpOption, TcpOptionsIter, Timestamps,
};
use crate::error::WireError;

/// Room for options in a header, bytes (RFC 9293 §3.1: the data offset has four bits).
pub const MAX_OPTIONS_LEN: usize = 40;

/// The options of one segment; SACK blocks, which most do not have, at the end.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct TcpOptions {
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Maximum segment size (SYN only), bytes.
    pub mss: Option<u16>,
    /// Options we do not know, as they came (kind, length, data each), for the round trip.
    pub unknown: Option<Box<[u8]>>,
    /// Multi-route.
    pub multi_route: Option<MultiRoute>,
    /// Window scale shift (SYN only), 0 to 14 (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only, RFC 2018 §2).
    pub sack_permitted: bool,
    /// SACK blocks.
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// Reads the options of a header. Of an option that stands there twice the last counts; a
    /// window scale above 14 is 14 (RFC 7323 §2.3).
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let mut options = Self::default();
        let mut unknown = Vec::new();
        for option in TcpOptionsIter::new(bytes) {
            match option? {
                TcpOption::Mss(mss) => options.mss = Some(mss),
                TcpOption::WindowScale(shift) => options.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
                TcpOption::SackPermitted => options.sack_permitted = true,
                TcpOption::Sack(sack) => options.sack = sack,
                TcpOption::Timestamps(timestamps) => options.timestamps = Some(timestamps),
                TcpOption::MultiRoute(multi_route) => options.multi_route = Some(multi_route),
                TcpOption::Unknown(bytes) => unknown.extend_from_slice(bytes),
            }
        }
        options.unknown = (!unknown.is_empty()).then(|| unknown.into_boxed_slice());
        Ok(options)
    }

    /// Takes all options away. The memory of SACK blocks is left alone.
    #[inline]
    pub fn clear(&mut self) {
        let Self { timestamps, mss, unknown, multi_route, window_scale, sack_permitted, sack } = self;
        (*timestamps, *mss, *multi_route, *window_scale, *sack_permitted) = (None, None, None, None, false);
        *unknown = None;
        sack.clear();
    }

    /// Length on the wire, padding included, bytes. More than 40 cannot be emitted; SACK blocks
    /// beyond [`sack_room`](Self::sack_room) do not count.
    pub fn len(&self) -> usize {
        self.layout().len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many SACK blocks fit beside the other options: 4, or 3 with timestamps, or 2 with
    /// timestamps and multi-route. The blocks after them, the ones longest known (RFC 2018 §4), are
    /// not emitted.
    pub fn sack_room(&self) -> usize {
        let room = MAX_OPTIONS_LEN.saturating_sub(self.others(false) + SACK_HEADER);
        (room / SACK_BLOCK).min(SackBlocks::CAPACITY)
    }

    /// Length of all options but SACK; aligned ones are preceded by NOPs to a multiple of 4.
    fn others(&self, aligned: bool) -> usize {
        let size = |present: bool, packed: usize, padded: usize| match (present, aligned) {
            (false, _) => 0,
            (true, false) => packed,
            (true, true) => padded,
        };
        let timestamps = self.timestamps.is_some();
        size(self.mss.is_some(), 4, 4)
            + size(self.sack_permitted, 2, if timestamps { 0 } else { 4 })
            + size(timestamps, 10, 12)
            + size(self.multi_route.is_some(), 8, 8)
            + size(self.window_scale.is_some(), 3, 4)
            + self.unknown.as_deref().map_or(0, <[u8]>::len)
    }

    /// Numbers stand at multiples of 4, as is usual and fast for receivers, unless that takes more
    /// than 40 bytes: then there is no padding but at the end.
    fn layout(&self) -> Layout {
        let blocks = match self.sack.len() {
            0 => 0,
            held => held.min(self.sack_room()),
        };
        let with_sack = |others: usize, header: usize| match blocks {
            0 => others,
            n => others + header + n * SACK_BLOCK,
        };
        let len = with_sack(self.others(true), 2 + SACK_HEADER);
        let aligned = len <= MAX_OPTIONS_LEN;
        let len = if aligned { len } else { with_sack(self.others(false), SACK_HEADER) };
        Layout { aligned, blocks, len: len.next_multiple_of(4) }
    }

    /// Writes the options to `out`, which is as long as they are.
    pub(super) fn emit(&self, out: &mut [u8]) {
        let Layout { aligned, blocks, .. } = self.layout();
        let mut out = Writer { out, at: 0 };
        if let Some(mss) = self.mss {
            out.put(&[kind::MSS, 4]);
            out.put(&mss.to_be_bytes());
        }
        // SACK-permitted takes the place of the two NOPs before timestamps.
        if aligned && (self.sack_permitted != self.timestamps.is_some()) {
            out.put(&[kind::NOP; 2]);
        }
        if self.sack_permitted {
            out.put(&[kind::SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            out.put(&[kind::TIMESTAMPS, 10]);
            out.put(&value.to_be_bytes());
            out.put(&echo.to_be_bytes());
        }
        if let Some(MultiRoute { route, reply }) = self.multi_route {
            out.put(&[kind::EXPERIMENT_1, 8]);
            out.put(&MULTI_ROUTE_EXID);
            out.put(&[route, reply.unwrap_or(MultiRoute::NO_REPLY)]);
        }
        if let Some(shift) = self.window_scale {
            out.put(&[kind::NOP; 1][..usize::from(aligned)]);
            out.put(&[kind::WINDOW_SCALE, 3, shift.min(MAX_WINDOW_SCALE)]);
        }
        Self::emit_sack(&self.sack[..blocks], aligned, &mut out);
        out.put(self.unknown.as_deref().unwrap_or_default());
        out.end();
    }

    fn emit_sack(blocks: &[SackBlock], aligned: bool, out: &mut Writer<'_>) {
        if blocks.is_empty() {
            return;
        }
        out.put(&[kind::NOP; 2][..if aligned { 2 } else { 0 }]);
        out.put(&[kind::SACK, (SACK_HEADER + SACK_BLOCK * blocks.len()) as u8]);
        for block in blocks {
            out.put(&block.start.0.to_be_bytes());
            out.put(&block.end.0.to_be_bytes());
        }
    }
}

/// How the options of one header are laid out.
struct Layout {
    aligned: bool,
    /// SACK blocks that fit.
    blocks: usize,
    /// Length with padding, bytes.
    len: usize,
}

const MAX_WINDOW_SCALE: u8 = 14;
const SACK_HEADER: usize = 2;
const SACK_BLOCK: usize = 8;

/// Appends to a slice whose length was computed before.
struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn end(self) {
        self.out[self.at..].fill(kind::END);
    }
}
