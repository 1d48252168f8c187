//! What a hop wants of active queue management (RFC 7567): a discipline either judges packets when they come, or keeps them
//! until the server takes them.

use std::fmt::Debug;

use polypath_wire::{Duration, Instant, Rate};

use crate::fifo::Waiting;

/// A discipline that decides when a packet comes.
pub(crate) trait Judge: Debug + Send {
    /// What becomes of a packet that finds the queue so.
    fn judge(&mut self, found: &Found, ecn_capable: bool) -> Verdict;
}

/// The queue and the server behind it, as a packet finds them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Packets that wait.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// For how long the server has had nothing to do.
    pub idle: Duration,
    pub rate: Rate,
}

/// What a [`Judge`] does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// A discipline that decides when the server takes a packet.
pub(crate) trait Queue<T>: Debug + Send {
    /// A packet comes.
    fn push(&mut self, packet: Waiting<T>);

    /// The packet that is served from `now` on; those dropped before it are appended to `dropped`.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>>;

    /// Any packet, to empty it.
    fn pop(&mut self) -> Option<Waiting<T>>;

    /// Whether what comes to a full queue is refused. Otherwise it is taken in, and others are [shed](Self::shed).
    fn refuses(&self) -> bool {
        true
    }

    /// Packets given up because it holds too much.
    fn shed(&mut self) -> Vec<Waiting<T>> {
        Vec::new()
    }
}
