//! What waits to be sent.

use bytes::Bytes;
use polypath_wire::{Duration, Instant};

/// A packet of somebody else's transport.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packet {
    /// Which packets are one flow, that is, in an order that somebody cares for.
    pub flow: u16,
    /// Class, for queues.
    pub class: u8,
    /// Sent again if it is lost: what follows in its flow waits for that.
    pub repaired: bool,
    /// A copy of it leaves on a second path.
    pub twice: bool,
    /// When it was taken, if nothing else of its flow was lately.
    pub alone: Option<Instant>,
    /// The packet.
    pub bytes: Bytes,
}

/// How much more than usual packets may wait, as they would have arrived no sooner otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tolerable {
    /// Those that go again if they are lost.
    pub repaired: Duration,
    /// Others.
    pub others: Duration,
}

impl Tolerable {
    /// For `packet`.
    pub fn of(&self, packet: &Packet) -> Duration {
        if packet.repaired { self.repaired } else { self.others }
    }
}

/// A queue of packets; it may drop.
pub trait PacketQueue: std::fmt::Debug + Send {
    /// Adds `packet`. Returns whether it was taken.
    fn push(&mut self, now: Instant, packet: Packet) -> bool;
    /// The next to be sent.
    fn pop(&mut self, now: Instant, tolerable: Tolerable) -> Option<Packet>;
    /// Bytes that wait.
    fn bytes(&self) -> u64;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.bytes() == 0
    }
    /// Forgets what matters no more; whether there is something to forget later.
    fn forget(&mut self, _now: Instant) -> bool {
        false
    }
    /// What became of packets that it had taken.
    fn stats(&self) -> QueueStats {
        QueueStats::default()
    }
}

/// What a queue did to packets that it had taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Dropped.
    pub dropped: u64,
    /// Marked with congestion experienced (RFC 3168).
    pub marked: u64,
}
