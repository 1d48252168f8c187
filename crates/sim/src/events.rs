//! What happens next: by time, and among equals in the order in which it was said.
//!
//! Nearly all events are of something that has one to come at most: a hop's next departure, a host's next
//! wake-up. Each of those has an alarm, which may be set anew at will. Because time does not run backwards, a radix heap
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

/// When a hop or a host is due next: its number among all that was said, 0 while it is not due, then whose it is. Its
/// owner keeps it, so that an event costs no more memory than what it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alarm(u64);

/// All events to come.
#[derive(Debug)]
pub(crate) struct Events {
    /// What happens once.
    once: Vec<Event>,
    /// Free places among these.
    free: Vec<u32>,
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

/// The next event. A hop or a host ignores it if its alarm was set anew since ([`Alarm::goes_off`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub at: Instant,
    pub event: Event,
    pub alarm: Alarm,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    alarm: Alarm,
}

const OWNER_BITS: u32 = 24;
/// The kinds of owners, in the last two bits.
const HOP: u64 = 0;
const HOST: u64 = 1;
const NOBODY: u64 = 2;

impl Alarm {
    /// Of a hop.
    pub fn of_hop(HopId(hop): HopId) -> Self {
        Self::new(HOP, hop)
    }

    /// Of a host.
    pub fn of_host(NodeId(host): NodeId) -> Self {
        Self::new(HOST, host)
    }

    fn new(kind: u64, index: u32) -> Self {
        assert!(
            index < 1 << (OWNER_BITS - 2),
            "a world of more than 4 million hops, hosts or events to come"
        );
        Self(u64::from(index) << 2 | kind)
    }

    fn owner(self) -> u64 {
        self.0 & ((1 << OWNER_BITS) - 1)
    }

    /// Whether it is set to what `next` says, and not to another time since. Then it is set no more.
    #[inline]
    pub fn goes_off(&mut self, next: &Next) -> bool {
        let due = *self == next.alarm;
        if due {
            self.0 = self.owner();
        }
        due
    }
}

impl Default for Events {
    fn default() -> Self {
        Self {
            once: Vec::new(),
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
    /// `alarm` is due at `at` and not when it was due before; `Instant::MAX` is never. A time before the last event that was
    /// taken counts as the time of that event.
    #[inline]
    pub fn set(&mut self, alarm: &mut Alarm, at: Instant) {
        alarm.0 = alarm.owner();
        if at == Instant::MAX {
            return;
        }
        self.said += 1;
        alarm.0 |= self.said << OWNER_BITS;
        self.put(Entry { at: at.max(self.now), alarm: *alarm });
    }

    /// Adds an event that happens once.
    pub fn push(&mut self, at: Instant, event: Event) {
        let place = self.free.pop().unwrap_or(self.once.len() as u32);
        match self.once.get_mut(place as usize) {
            Some(free) => *free = event,
            None => self.once.push(event),
        }
        self.set(&mut Alarm::new(NOBODY, place), at);
    }

    /// The next event not after `until`. It may be of an alarm that was set anew since ([`Alarm::goes_off`]). After `None` the
    /// caller sets nothing before `until`.
    #[inline]
    pub fn pop(&mut self, until: Instant) -> Option<Next> {
        if self.now > until {
            return None;
        }
        let Entry { at, alarm } = self.due.pop_front().or_else(|| self.advance(until))?;
        let index = (alarm.owner() >> 2) as u32;
        let event = match alarm.0 & 3 {
            HOP => Event::Hop(HopId(index)),
            HOST => Event::Wake(NodeId(index)),
            _ => self.take(index),
        };
        Some(Next { at, event, alarm })
    }

    fn take(&mut self, place: u32) -> Event {
        self.free.push(place);
        self.once[place as usize]
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

    /// Events, and the alarms of hops as a world has them.
    #[derive(Default)]
    struct Bench {
        events: Events,
        alarms: Vec<Alarm>,
    }

    impl Bench {
        fn new(hops: u32) -> Self {
            Self { alarms: (0..hops).map(|hop| Alarm::of_hop(HopId(hop))).collect(), ..Self::default() }
        }

        fn set(&mut self, hop: u32, at: Instant) {
            self.events.set(&mut self.alarms[hop as usize], at);
        }

        fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
            loop {
                let next = self.events.pop(until)?;
                match next.event {
                    Event::Hop(hop) if !self.alarms[hop.index()].goes_off(&next) => {}
                    event => return Some((next.at, event)),
                }
            }
        }
    }

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_said() {
        let mut bench = Bench::new(3);
        bench.events.push(Instant(5), Event::Start(0));
        bench.set(2, Instant(3));
        bench.set(0, Instant(5));
        bench.events.push(Instant(3), Event::Start(1));
        bench.set(1, Instant(9));
        let order: Vec<_> = std::iter::from_fn(|| bench.pop(Instant(5))).collect();
        let hop = |i| Event::Hop(HopId(i));
        let expected = [(3, hop(2)), (3, Event::Start(1)), (5, Event::Start(0)), (5, hop(0))];
        assert_eq!(order, expected.map(|(at, event)| (Instant(at), event)));
        assert_eq!(bench.pop(Instant(9)), Some((Instant(9), hop(1))));
        assert_eq!(bench.pop(Instant::MAX), None);
    }

    #[test]
    fn an_event_taken_comes_again_when_it_is_set_for_the_same_instant() {
        let mut bench = Bench::new(1);
        bench.set(0, Instant(5));
        let expected = Some((Instant(5), Event::Hop(HopId(0))));
        assert_eq!(bench.pop(Instant(5)), expected);
        bench.set(0, Instant(5));
        assert_eq!((bench.pop(Instant(5)), bench.pop(Instant::MAX)), (expected, None));
    }

    #[test]
    fn an_alarm_that_is_never_due_does_not_go_off() {
        let mut bench = Bench::new(1);
        bench.set(0, Instant(5));
        bench.set(0, Instant::MAX);
        assert_eq!(bench.pop(Instant::MAX), None);
    }

    #[test]
    fn a_host_is_no_hop() {
        let (mut events, mut host) = (Events::default(), Alarm::of_host(NodeId(7)));
        events.set(&mut host, Instant(5));
        let next = events.pop(Instant(5)).unwrap();
        assert_eq!((next.event, Alarm::of_hop(HopId(7)).goes_off(&next)), (Event::Wake(NodeId(7)), false));
        assert_eq!((host.goes_off(&next), host.goes_off(&next)), (true, false));
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0u32..4, 0u32..40, 0u32..70), 1..300)) {
            let (mut bench, mut list, mut now) = (Bench::new(70), Vec::new(), Instant::ZERO);
            for (number, (what, shift, hop)) in (0..).zip(steps) {
                let at = now + Duration((u64::from(number) << shift) >> 8);
                match what {
                    0 | 1 => {
                        let expected = list.first().copied().filter(|(first, _)| *first <= at);
                        prop_assert_eq!(bench.pop(at), expected);
                        now = expected.map_or(at, |(first, _)| first);
                        if expected.is_some() {
                            list.remove(0);
                        }
                        continue;
                    }
                    2 => {
                        bench.events.push(at, Event::Start(number));
                        list.push((at, Event::Start(number)));
                    }
                    _ => {
                        bench.set(hop, at);
                        let event = Event::Hop(HopId(hop));
                        list.retain(|(_, e)| *e != event);
                        list.push((at, event));
                    }
                }
                list.sort_by_key(|(at, _)| *at); // stable
            }
        }
    }
}
