//! What is remembered of a segment.

use polypath_wire::{Instant, PathId};

use crate::facts::LostSegment;
use crate::path::bandwidth::DeliveryMark;

/// Name of a segment in the scoreboard; it stays until the segment is acknowledged.
pub type SentId = u64;

/// One segment that is not yet acknowledged cumulatively.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// Offset in sequence space.
    pub offset: u64,
    /// Length in sequence space (a FIN counts 1).
    pub len: u32,
    /// Path of its last transmission.
    pub path: PathId,
    /// Number of its last transmission within the path's lane.
    pub tx: u64,
    /// When it was sent last.
    pub sent_at: Instant,
    /// The path's delivery state at that moment.
    pub mark: DeliveryMark,
    /// What is known of it.
    pub status: Status,
    /// Whether that was its first.
    pub history: History,
}

impl Sent {
    /// Sent more than once.
    pub fn retransmitted(&self) -> bool {
        self.history != History::Once
    }

    /// The same, as controllers hear of a loss.
    pub fn as_lost(&self) -> LostSegment {
        LostSegment { offset: self.offset, bytes: self.len.into(), sent_at: self.sent_at }
    }

    /// Offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// What is known of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// On its way.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Judged lost and not sent again yet.
    Lost,
}

/// How often a segment was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// Once.
    Once,
    /// More often.
    Again,
    /// More often, and the transmission before bore an older timestamp (of 1 ms): an echo tells which is
    /// answered.
    AgainLater,
}

/// Our timestamps count milliseconds, in nanoseconds.
pub const TIMESTAMP_TICK: u64 = 1_000_000;
