//! What happens next: by time, and among equals in the order in which it was said.
//!
//! Nearly all events are of something that has one to come at most: a hop's next departure, a host's next
//! wake-up. Each of those has a slot, whose time may be moved at will. Because time does not run backwards, a radix heap
//! holds them (Ahuja, Mehlhorn, Orlin and Tarjan, 1990): an event lies in the bucket of the highest bit in which its time
//! differs from the present. It only ever moves to a lower one, behind those that were said before, and few times however
//! many wait.

use std::collections::VecDeque;

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
    slots: Vec<Slotted>,
    /// Slots for what happens once.
    free: Vec<Slot>,
    /// The time of the entry that was taken last.
    now: Instant,
    /// What else happens now.
    due: VecDeque<Entry>,
    /// What happens later, by the highest bit in which its time differs from `now`.
    buckets: [Vec<Entry>; 64],
    /// The buckets with entries, a bit each.
    filled: u64,
    said: u64,
}

/// What is in a slot.
#[derive(Clone, Copy, Debug)]
struct Slotted {
    event: Event,
    once: bool,
    /// The mark of the entry that counts: others are of times that the event had before.
    mark: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    /// Its number, then its slot.
    mark: u64,
}

const SLOT_BITS: u32 = 22;
const NEVER: u64 = 0;

impl Entry {
    fn slot(self) -> u32 {
        self.mark as u32 & ((1 << SLOT_BITS) - 1)
    }
}

impl Default for Events {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            now: Instant::ZERO,
            due: VecDeque::new(),
            buckets: [const { Vec::new() }; 64],
            filled: 0,
            said: 0,
        }
    }
}

impl Events {
    /// A slot for `event`, which is not to happen yet.
    pub fn slot(&mut self, event: Event) -> Slot {
        self.add(event, false)
    }

    /// The event of `slot` happens at `at` and not when it was to happen; `Instant::MAX` is never. A time before
    /// the last event that was taken counts as the time of that event.
    #[inline]
    pub fn set(&mut self, Slot(slot): Slot, at: Instant) {
        let slotted = &mut self.slots[slot as usize];
        if at == Instant::MAX {
            slotted.mark = NEVER;
            return;
        }
        self.said += 1;
        slotted.mark = self.said << SLOT_BITS | u64::from(slot);
        let entry = Entry { at: at.max(self.now), mark: slotted.mark };
        self.put(entry);
    }

    /// Adds an event that happens once.
    pub fn push(&mut self, at: Instant, event: Event) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot.0 as usize].event = event;
                slot
            }
            None => self.add(event, true),
        };
        self.set(slot, at);
    }

    /// The next event not after `until`. The event of a slot happens once each time the slot is set. After `None` the caller sets nothing
    /// before `until`.
    #[inline]
    pub fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
        while self.now <= until {
            let entry = self.due.pop_front().or_else(|| self.advance(until))?;
            let slotted = &mut self.slots[entry.slot() as usize];
            if slotted.mark == entry.mark {
                slotted.mark = NEVER;
                if slotted.once {
                    self.free.push(Slot(entry.slot()));
                }
                return Some((entry.at, slotted.event));
            }
        }
        None
    }

    fn add(&mut self, event: Event, once: bool) -> Slot {
        let slot = self.slots.len();
        assert!(slot < 1 << SLOT_BITS, "a world of more than 4 million hops, hosts and events to come");
        self.slots.push(Slotted { event, once, mark: NEVER });
        Slot(slot as u32)
    }

    /// Goes on to the first entry of those to come, unless that is after `until`.
    fn advance(&mut self, until: Instant) -> Option<Entry> {
        let lowest = self.filled.trailing_zeros() as usize;
        let bucket = self.buckets.get_mut(lowest)?;
        let n = (1..bucket.len()).fold(0, |n, other| if bucket[other].at < bucket[n].at { other } else { n });
        let first = bucket.get(n).copied().filter(|first| first.at <= until)?;
        self.now = first.at;
        self.filled &= !(1 << lowest);
        let mut entries = std::mem::take(bucket);
        entries[..n].iter().for_each(|entry| self.put(*entry));
        entries[n + 1..].iter().for_each(|entry| self.put(*entry));
        entries.clear();
        self.buckets[lowest] = entries;
        Some(first)
    }

    #[inline]
    fn put(&mut self, entry: Entry) {
        match (entry.at.0 ^ self.now.0).checked_ilog2() {
            None => self.due.push_back(entry),
            Some(bit) => {
                self.buckets[bit as usize].push(entry);
                self.filled |= 1 << bit;
            }
        }
    }
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
                        now = expected.map_or(at, |(first, _)| first);
                        if expected.is_some() {
                            list.remove(0);
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
