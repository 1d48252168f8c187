//! Packets in a hop, and what the caller learns of them.

use polypath_wire::Instant;

use crate::stats::Drop;

/// What a queue discipline looks at in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Label {
    /// Size on the wire, bytes.
    pub size: u32,
    /// The packets of one flow have the same number; FQ-CoDel hashes it.
    pub flow: u64,
    /// ECT is set (RFC 3168): the packet is marked where another would be dropped.
    pub ecn_capable: bool,
}

impl From<u32> for Label {
    /// A packet of `size` bytes, of no flow in particular, not ECN-capable.
    fn from(size: u32) -> Self {
        Self { size, ..Self::default() }
    }
}

/// An item that left the hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure<T> {
    /// The item.
    pub item: T,
    /// Its size, bytes.
    pub size: u32,
    /// What happened to it.
    pub fate: Fate,
}

/// What happened to an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It reached the far end.
    Arrived {
        /// How often: 2 if the hop duplicated it, else 1.
        copies: u32,
        /// A random word that says which bits to flip, if it was corrupted.
        corrupted: Option<u64>,
        /// The queue set Congestion Experienced (RFC 3168).
        marked: bool,
    },
    /// It was lost on the way.
    Lost(Drop),
}

/// A packet that is served or on the wire: its times are known.
#[derive(Debug)]
pub(crate) struct Packet<T> {
    pub served_at: Instant,
    pub arrives_at: Instant,
    pub item: T,
    pub size: u32,
    pub chance: Chance,
}

/// What happens to a packet, in bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chance(u8);

impl Chance {
    pub const FINE: Self = Self(0);
    pub const LOST: Self = Self(1);
    pub const DOWN: Self = Self(2);
    pub const COPIED: Self = Self(4);
    pub const LATE: Self = Self(8);
    pub const CORRUPTED: Self = Self(16);
    pub const MARKED: Self = Self(32);

    pub fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }

    /// Both, or `self` unless `also`.
    pub fn with(self, what: Self, also: bool) -> Self {
        if also { Self(self.0 | what.0) } else { self }
    }
}

/// A packet that others pass, ordered by time and then by number.
#[derive(Debug)]
pub(crate) struct HeldBack<T> {
    pub until: Instant,
    pub number: u64,
    pub packet: Packet<T>,
}

impl<T> HeldBack<T> {
    fn key(&self) -> (Instant, u64) {
        (self.until, self.number)
    }
}
impl<T> PartialEq for HeldBack<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for HeldBack<T> {}
impl<T> PartialOrd for HeldBack<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for HeldBack<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
