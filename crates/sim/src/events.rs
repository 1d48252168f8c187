//! What happens next: a queue ordered by time, and by insertion among equals.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use polypath_wire::Instant;

use crate::packet::PacketId;
use crate::topology::{HopId, NodeId};

/// Something that happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A packet leaves a hop, or its schedule says something.
    Hop(HopId),
    /// A timer of a host's endpoint is due.
    Wake(NodeId),
    /// A host has processed the packets it held back, in this batch.
    Release(NodeId, u32),
    /// A host hears that a packet of its was too big for a hop.
    TooBig(HopId, PacketId),
    /// A TCP flow opens its connection.
    Start(u32),
    /// A TCP flow is aborted.
    Stop(u32),
    /// A source of datagrams sends its next one.
    Datagram(u32),
}

/// The queue of events. The one taken last stays at the top until the next is added, which then takes
/// its place: mostly its own successor, which thus costs one way down the heap instead of two.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Entry>,
    inserted: u64,
    /// The top was taken.
    taken: bool,
}

/// Time above, number below: one comparison, and no two are equal.
#[derive(Debug)]
struct Entry(u128, Event);

impl Events {
    /// Adds an event.
    pub fn push(&mut self, at: Instant, event: Event) {
        self.inserted += 1;
        let entry = Entry((u128::from(at.0) << 64) | u128::from(self.inserted), event);
        if std::mem::take(&mut self.taken)
            && let Some(mut top) = self.heap.peek_mut()
        {
            *top = entry;
        } else {
            self.heap.push(entry);
        }
    }

    /// The next event not after `until`.
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
        if std::mem::take(&mut self.taken) {
            self.heap.pop();
        }
        let next = self.heap.peek().filter(|entry| entry.at() <= until)?;
        self.taken = true;
        Some((next.at(), next.1))
    }
}

impl Entry {
    fn at(&self) -> Instant {
        Instant((self.0 >> 64) as u64)
    }
}

/// The earliest is the greatest: the heap gives the greatest first.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use polypath_wire::Duration;
    use proptest::prelude::*;

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
    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0u32..3, 0u32..40), 1..300)) {
            let (mut events, mut list, mut now) = (Events::default(), Vec::new(), Instant::ZERO);
            for (number, (what, shift)) in (0..).zip(steps) {
                let at = now + Duration((u64::from(number) << shift) >> 8);
                if what > 0 {
                    events.push(at, Event::Start(number));
                    list.push((at, Event::Start(number)));
                    list.sort_by_key(|(at, _)| *at); // stable
                    continue;
                }
                let expected = list.first().copied().filter(|(first, _)| *first <= at);
                prop_assert_eq!(events.pop(at), expected);
                if let Some((first, _)) = expected {
                    (now, _) = (first, list.remove(0));
                }
            }
        }
    }
}
