//! TCP segments (RFC 9293 §3.1) with the options we speak.

use crate::units::Seq;

/// Control bits of a TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
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
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    len: u8,
}

impl SackBlocks {
    /// Appends a block; `false` if there are four already.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len += 1;
        true
    }
}

impl std::ops::Deref for SackBlocks {
    type Target = [SackBlock];
    fn deref(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
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

/// The options of one segment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TcpOptions {
    /// Maximum segment size (SYN only), bytes.
    pub mss: Option<u16>,
    /// Window scale shift (SYN only), 0 to 14 (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted (SYN only, RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Options we do not know, as they came (kind, length, data each), for the round trip.
    pub unknown: Option<Box<[u8]>>,
}

/// A TCP header as a value.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
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

impl std::fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = (0..8).filter(|i| self.0 >> i & 1 == 1).map(|i| NAMES[i]);
        f.write_str(&set.collect::<Vec<_>>().join("|"))
    }
}
