//! What happens next: by time, and among equals in the order in which it was said.
//!
//! Nearly all events are of something that has one to come at most: a hop's next departure, a host's next
//! wake-up. Each of those has a slot, whose time may be moved at will. The slots are the leaves of a tree in
//! which every node holds the earliest of each of the four below it, so that a change is one way up, of
//! known length and without a branch to guess. All others wait in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use polypath_wire::Instant;

use crate::packet::PacketId;
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
    /// A host hears that a packet of its was too big for a hop.
    TooBig(HopId, PacketId),
    /// A TCP flow opens its connection.
    Start(u32),
    /// A TCP flow is aborted.
    Stop(u32),
    /// A source of datagrams sends its next one.
    Datagram(u32),
}

/// Where an event stands that comes again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u32);

/// All events to come.
#[derive(Debug)]
pub(crate) struct Events {
    /// The events of the slots.
    repeated: Vec<Event>,
    /// The tree. Node 0 is the root; the earliest of node `4 i + 1 + side` stands in node `i` at `side`; those
    /// from `leaves` on hold the slots.
    tree: Vec<Node>,
    leaves: usize,
    /// The earliest of all slots.
    next: Key,
    /// The slot whose event was taken last, until it is set again.
    taken: Option<Slot>,
    once: BinaryHeap<Reverse<(Key, Event)>>,
    said: u64,
}

/// One line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node([Key; 4]);

/// Time, then number, then slot: one comparison, and no two are equal.
type Key = u128;

const NEVER: Key = Key::MAX;
const SLOT_BITS: u32 = 22;

impl Default for Events {
    fn default() -> Self {
        let (repeated, once) = (Vec::new(), BinaryHeap::new());
        Self { repeated, tree: vec![Node([NEVER; 4])], leaves: 0, next: NEVER, taken: None, once, said: 0 }
    }
}

impl Events {
    /// A slot for `event`, which is not to happen yet.
    pub fn slot(&mut self, event: Event) -> Slot {
        let slot = self.repeated.len();
        assert!(slot < 1 << SLOT_BITS, "a world of more than 4 million hops and hosts");
        self.repeated.push(event);
        if slot / 4 >= self.tree.len() - self.leaves {
            self.grow();
        }
        Slot(slot as u32)
    }

    /// The event of `slot` happens at `at` and not when it was to happen; `Instant::MAX` is never.
    #[inline]
    pub fn set(&mut self, slot: Slot, at: Instant) {
        if self.taken == Some(slot) {
            self.taken = None;
        }
        let key = if at == Instant::MAX { NEVER } else { self.key(at) | Key::from(slot.0) };
        self.put(slot, key);
    }

    /// Adds an event that happens once.
    pub fn push(&mut self, at: Instant, event: Event) {
        let key = self.key(at);
        self.once.push(Reverse((key, event)));
    }

    /// The next event not after `until`. A slot's happens no more until it is set again.
    #[inline]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
        if let Some(slot) = self.taken.take() {
            self.put(slot, NEVER);
        }
        let next = self.next;
        if let Some(&Reverse((key, event))) = self.once.peek()
            && key < next
        {
            let at = Some(time(key)).filter(|at| *at <= until)?;
            self.once.pop();
            return Some((at, event));
        }
        let at = Some(time(next)).filter(|at| *at <= until && next != NEVER)?;
        let slot = Slot(next as u32 & ((1 << SLOT_BITS) - 1));
        self.taken = Some(slot);
        Some((at, self.repeated[slot.0 as usize]))
    }

    /// Makes room for four times as many slots: one more level.
    fn grow(&mut self) {
        let slots = self.tree.split_off(self.leaves);
        self.leaves = 4 * self.leaves + 1;
        self.tree = vec![Node([NEVER; 4]); self.leaves + 4 * slots.len()];
        self.tree[self.leaves..self.leaves + slots.len()].copy_from_slice(&slots);
        (1..self.tree.len())
            .rev()
            .for_each(|i| self.tree[(i - 1) / 4].0[(i - 1) % 4] = earliest(&self.tree[i]));
    }

    fn key(&mut self, at: Instant) -> Key {
        self.said += 1;
        Key::from(at.0) << 64 | Key::from(self.said) << SLOT_BITS
    }

    fn put(&mut self, slot: Slot, key: Key) {
        let mut key = key;
        let (mut i, mut side) = (self.leaves + slot.0 as usize / 4, slot.0 as usize % 4);
        loop {
            let Node(node) = &mut self.tree[i];
            node[side] = key;
            // The others first: they are known long before `key` is.
            let [a, b, c] = [1, 2, 3].map(|other| node[side ^ other]);
            key = key.min(a.min(b).min(c));
            if i == 0 {
                self.next = key;
                return;
            }
            (i, side) = ((i - 1) / 4, (i - 1) % 4);
        }
    }
}

fn earliest(Node([a, b, c, d]): &Node) -> Key {
    (*a.min(b)).min(*c.min(d))
}

fn time(key: Key) -> Instant {
    Instant((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use polypath_wire::Duration;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_said() {
        let mut events = Events::default();
        let hops = [0, 1, 2].map(|i| events.slot(Event::Hop(HopId(i))));
        events.push(Instant(5), Event::Start(0));
        events.set(hops[2], Instant(3));
        events.set(hops[0], Instant(5));
        events.push(Instant(3), Event::Start(1));
        events.set(hops[1], Instant(9));
        let order: Vec<_> = std::iter::from_fn(|| events.pop(Instant(5))).collect();
        let hop = |i| Event::Hop(HopId(i));
        let expected = [(3, hop(2)), (3, Event::Start(1)), (5, Event::Start(0)), (5, hop(0))];
        assert_eq!(order, expected.map(|(at, event)| (Instant(at), event)));
        assert_eq!(events.pop(Instant(9)), Some((Instant(9), hop(1))));
        assert_eq!(events.pop(Instant::MAX), None);
    }

    #[test]
    fn an_event_taken_comes_again_when_it_is_set_for_the_same_instant() {
        let mut events = Events::default();
        let hop = events.slot(Event::Hop(HopId(0)));
        events.set(hop, Instant(5));
        let expected = Some((Instant(5), Event::Hop(HopId(0))));
        assert_eq!(events.pop(Instant(5)), expected);
        events.set(hop, Instant(5));
        assert_eq!((events.pop(Instant(5)), events.pop(Instant::MAX)), (expected, None));
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0u32..4, 0u32..40, 0u32..70), 1..300)) {
            let mut events = Events::default();
            let slots: Vec<_> = (0..70).map(|i| events.slot(Event::Hop(HopId(i)))).collect();
            let (mut list, mut now) = (Vec::new(), Instant::ZERO);
            for (number, (what, shift, slot)) in (0..).zip(steps) {
                let at = now + Duration((u64::from(number) << shift) >> 8);
                match what {
                    0 | 1 => {
                        let expected = list.first().copied().filter(|(first, _)| *first <= at);
                        prop_assert_eq!(events.pop(at), expected);
                        if let Some((first, _)) = expected {
                            (now, _) = (first, list.remove(0));
                        }
                        continue;
                    }
                    2 => {
                        events.push(at, Event::Start(number));
                        list.push((at, Event::Start(number)));
                    }
                    _ => {
                        events.set(slots[slot as usize], at);
                        let event = Event::Hop(HopId(slot));
                        list.retain(|(_, e)| *e != event);
                        list.push((at, event));
                    }
                }
                list.sort_by_key(|(at, _)| *at); // stable
            }
        }
    }
}
