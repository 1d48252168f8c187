//! What a connection reports: one channel for traces, metrics and plots.

use polypath_wire::{Duration, Instant, PathId, Rate};
use serde::{Deserialize, Serialize};

use crate::facts::{Episode, LossCause, PathState, Why};

/// One observation.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// On which path, where that has a meaning.
    pub path: Option<PathId>,
    /// What.
    pub what: Observation,
}

/// What was observed.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Observation {
    /// The path was picked, of several that the connection has, for the segment that leaves next.
    Picked {
        /// Stream offset.
        offset: u64,
        /// Why this one.
        why: Why,
    },
    /// A data segment left.
    Sent {
        /// Stream offset.
        offset: u64,
        /// Bytes.
        len: u32,
        /// Sent before.
        retransmission: bool,
    },
    /// The peer acknowledged up to `una`; `newly` bytes were delivered on this path.
    Acked {
        /// First unacknowledged stream offset.
        una: u64,
        /// Bytes.
        newly: u64,
    },
    /// A segment was judged lost.
    Lost {
        /// Stream offset.
        offset: u64,
        /// Bytes.
        len: u32,
        /// Why.
        cause: LossCause,
        /// In which episode.
        episode: Episode,
    },
    /// A loss episode was reordering.
    Undone {
        /// Which.
        episode: Episode,
    },
    /// The controller's state.
    Window {
        /// Congestion window, bytes.
        cwnd: u64,
        /// Slow start threshold, bytes.
        ssthresh: Option<u64>,
        /// In flight, bytes.
        in_flight: u64,
    },
    /// The estimator's state.
    Estimate {
        /// Smoothed round trip time.
        srtt: Duration,
        /// Latest round trip time.
        rtt: Duration,
        /// Delivery rate.
        rate: Option<Rate>,
    },
    /// The reorder buffer changed.
    Reorder {
        /// Bytes held out of order.
        occupancy: u64,
    },
    /// Bytes became readable in order.
    Delivered {
        /// Stream offset after them.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Something was dropped.
    Dropped {
        /// Why.
        reason: DropReason,
    },
    /// From now on the path is taken to have a bottleneck of its own, or to share another's.
    Bottleneck {
        /// The first path that leads through it.
        of: PathId,
    },
    /// The path changed its state.
    PathState {
        /// To this.
        state: PathState,
    },
}

/// Why a segment or a part of it was dropped. Each has a counter in the connection's statistics.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// Not parseable: see the wire error.
    Malformed,
    /// Wrong checksum.
    Checksum,
    /// No connection, no listener.
    NoConnection,
    /// Sequence number outside the window.
    OutsideWindow,
    /// Data we had already.
    Duplicate,
    /// Data we had already, with other bytes: the first ones stay.
    OverlapMismatch,
    /// Acknowledges what was never sent.
    AckOfUnsent,
    /// Acknowledges less than any segment that the peer may still have in the network (RFC 5961 §5).
    OldAck,
    /// A SACK block for data never sent, or not a range.
    BadSack,
    /// Timestamp older than the last one of its path (RFC 7323 §5).
    OldTimestamp,
    /// Without the timestamp that both sides agreed to put into every segment (RFC 7323 §3.2).
    MissingTimestamp,
    /// A SYN, RST or FIN where none may be.
    UnexpectedFlag,
    /// Not in the state for it.
    WrongState,
    /// The receive buffer is full.
    BufferFull,
    /// The path is not one of ours.
    UnknownPath,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = Self::UnknownPath as usize + 1;
}

/// Which observations a connection makes. Those not asked for cost one branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordFilter {
    /// `Picked`, `Sent`, `Acked`, `Delivered`, `Reorder`: one or more a packet.
    pub packets: bool,
    /// `Window`, `Estimate`: one an acknowledgment.
    pub state: bool,
    /// `Lost`, `Undone`, `Dropped`, `PathState`, `Bottleneck`, and an endpoint's states of HIP: rare.
    pub events: bool,
}
