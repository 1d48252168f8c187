//! What happens next: a queue ordered by time, and by insertion among equals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use polypath_wire::Instant;

use crate::topology::{HopId, NodeId};

/// Something that happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Event {
    /// A packet leaves a hop, or its schedule says something.
    Hop(HopId),
    /// A timer of a host's endpoint is due.
    Wake(NodeId),
    /// A host has processed the packets it held back, in this batch.
    Release(NodeId, u32),
    /// A TCP flow opens its connection.
    Start(u32),
    /// A TCP flow is aborted.
    Stop(u32),
    /// A source of datagrams sends its next one.
    Datagram(u32),
}

/// The queue of events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    inserted: u64,
}

impl Events {
    /// Adds an event.
    pub fn push(&mut self, at: Instant, event: Event) {
        self.inserted += 1;
        self.heap.push(Reverse((at, self.inserted, event)));
    }

    /// The next event not after `until`.
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
        self.heap.peek().filter(|Reverse((at, ..))| *at <= until)?;
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_added() {
        let mut events = Events::default();
        for (at, flow) in [(5, 0), (3, 1), (5, 2), (3, 3), (9, 4)] {
            events.push(Instant(at), Event::Start(flow));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop(Instant(5))).collect();
        let expected = [(3, 1), (3, 3), (5, 0), (5, 2)];
        assert_eq!(order, expected.map(|(at, flow)| (Instant(at), Event::Start(flow))));
        assert_eq!(events.pop(Instant(9)), Some((Instant(9), Event::Start(4))));
    }
}
