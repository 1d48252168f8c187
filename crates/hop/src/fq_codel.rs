//! FQ-CoDel (RFC 8290): packets are hashed by flow into queues, each under CoDel. Queues take turns of `quantum`
//! bytes; one that was empty goes first.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use polypath_wire::{Instant, Seed};
use serde::{Deserialize, Serialize};

use crate::aqm::Queue;
use crate::codel::{Codel, CodelConfig};
use crate::error::{HopError, check};
use crate::fifo::{Fifo, Waiting};

/// Parameters of FQ-CoDel. Its limit, over all queues, is the hop's: RFC 8290 §5.2.3, 10240 packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FqCodelConfig {
    /// CoDel in each queue.
    pub codel: CodelConfig,
    /// Queues: RFC 8290 §5.2.5, 1024; 1 to 65536.
    pub flows: u32,
    /// Bytes a queue may send in its turn: RFC 8290 §5.2.4, 1514; at least 1.
    pub quantum: u32,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self { codel: CodelConfig::default(), flows: 1024, quantum: 1514 }
    }
}

impl FqCodelConfig {
    /// Checks the ranges of its parameters.
    pub(crate) fn check(&self) -> Result<(), HopError> {
        check((1..=65_536).contains(&self.flows), "fq_codel.flows", "1 to 65536 queues", self.flows)?;
        check(self.quantum > 0, "fq_codel.quantum", "at least 1 byte", 0)?;
        self.codel.check()
    }
}

/// Most packets given up at once (§4.1).
const MOST_SHED: usize = 64;

/// The queues of a hop.
#[derive(Debug)]
pub(crate) struct FqCodel<T> {
    config: FqCodelConfig,
    salt: Seed,
    /// Those that hold packets, or have dropped some lately: an idle sender has thousands of the others.
    queues: BTreeMap<usize, Box<OfFlows<T>>>,
    /// Indices of the queues that became active since their last turn …
    new: VecDeque<usize>,
    /// … and of the other active ones.
    old: VecDeque<usize>,
}

/// The queue of the flows with one hash.
#[derive(Debug)]
struct OfFlows<T> {
    fifo: Fifo<T>,
    codel: Codel,
    /// Bytes it may still send in its turn.
    credits: i64,
    /// It is in one of the lists.
    active: bool,
}

impl<T> Default for OfFlows<T> {
    fn default() -> Self {
        Self { fifo: Fifo::default(), codel: Codel::default(), credits: 0, active: false }
    }
}

impl<T> FqCodel<T> {
    pub fn new(config: FqCodelConfig, salt: Seed) -> Self {
        Self { config, salt, queues: BTreeMap::new(), new: VecDeque::new(), old: VecDeque::new() }
    }

    /// CoDel in each queue.
    pub fn codel(&self) -> CodelConfig {
        self.config.codel
    }

    /// The queue of a flow (§4.1): its number, salted and mixed.
    fn index(&self, flow: u64) -> usize {
        let mut mixed = flow ^ self.salt.0;
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            mixed = (mixed ^ (mixed >> 31)).wrapping_mul(factor);
        }
        ((mixed >> 32) % u64::from(self.config.flows.max(1))) as usize
    }

    /// Forgets the queues that are empty and dropped nothing lately; whether any are left.
    pub fn forget(&mut self, now: Instant) -> bool {
        let config = self.config.codel;
        self.queues.retain(|_, queue| queue.active || queue.codel.dropped_lately(&config, now));
        self.new.shrink_to_fit();
        self.old.shrink_to_fit();
        !self.queues.is_empty()
    }

    /// The next packet by turns (§4.2), its queue under the CoDel that its first packet has; those that CoDel drops before it
    /// are appended to `dropped`.
    pub fn dequeue_under(
        &mut self,
        codel: impl Fn(&T) -> CodelConfig,
        now: Instant,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        loop {
            let was_new = !self.new.is_empty();
            let list = if was_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = self.queues.get_mut(&index).expect("a queue in a list is kept");
            if queue.credits <= 0 {
                queue.credits += i64::from(self.config.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let first = queue.fifo.front().map(|first| codel(&first.item));
            let codel = first.unwrap_or(self.config.codel);
            match queue.codel.dequeue(&codel, now, &mut queue.fifo, dropped) {
                Some(packet) => {
                    queue.credits -= i64::from(packet.label.size);
                    return Some(packet);
                }
                None => self.retire(now, index, was_new),
            }
        }
    }

    /// An empty queue leaves its list: a new one waits for a turn of all others first, so that it cannot starve them.
    fn retire(&mut self, now: Instant, index: usize, was_new: bool) {
        if was_new {
            self.new.pop_front();
            self.old.push_back(index);
            return;
        }
        self.old.pop_front();
        let Entry::Occupied(mut queue) = self.queues.entry(index) else { return };
        if queue.get().codel.dropped_lately(&self.config.codel, now) {
            (queue.get_mut().active, queue.get_mut().fifo) = (false, Fifo::default());
        } else {
            queue.remove();
        }
    }
}

impl<T: Debug + Send> Queue<T> for FqCodel<T> {
    fn push(&mut self, packet: Waiting<T>) {
        let index = self.index(packet.label.flow);
        let queue = self.queues.entry(index).or_default();
        queue.fifo.push(packet);
        if !queue.active {
            (queue.active, queue.credits) = (true, i64::from(self.config.quantum));
            self.new.push_back(index);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        let codel = self.config.codel;
        self.dequeue_under(|_| codel, now, dropped)
    }

    fn pop(&mut self) -> Option<Waiting<T>> {
        self.queues.values_mut().find_map(|queue| queue.fifo.pop())
    }

    fn refuses(&self) -> bool {
        false
    }

    /// Gives up half the packets of the queue with the most bytes, 64 at most, from its head.
    fn shed(&mut self) -> Vec<Waiting<T>> {
        let longest = self.queues.values_mut().rev().max_by_key(|queue| queue.fifo.bytes());
        let Some(OfFlows { fifo, .. }) = longest.map(Box::as_mut) else { return Vec::new() };
        let number = (fifo.len() / 2).clamp(1, MOST_SHED);
        std::iter::from_fn(|| fifo.pop()).take(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Duration;

    use super::*;
    use crate::Label;

    const NOW: Instant = Instant(1_000_000);

    fn queues(quantum: u32) -> FqCodel<u32> {
        FqCodel::new(FqCodelConfig { quantum, ..FqCodelConfig::default() }, Seed(1))
    }

    fn packet(item: u32, flow: u64, size: u32) -> Waiting<u32> {
        Waiting { item, label: Label { size, flow, ecn_capable: false }, came: NOW, marked: false }
    }

    fn order(queues: &mut FqCodel<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queues.dequeue(NOW, &mut Vec::new())).map(|packet| packet.item).collect()
    }

    #[test]
    fn queues_take_turns_of_a_quantum() {
        let mut queues = queues(2000);
        // Flow 1 has packets of 1000 bytes, two a turn; flow 2 has one of 3000, which takes two turns of credits.
        (10..14).for_each(|item| queues.push(packet(item, 1, 1000)));
        (20..22).for_each(|item| queues.push(packet(item, 2, 3000)));
        assert_eq!(order(&mut queues), [10, 11, 20, 12, 13, 21]);
    }

    #[test]
    fn a_flow_that_was_silent_goes_first() {
        let mut queues = queues(1000);
        (10..16).for_each(|item| queues.push(packet(item, 1, 1000)));
        let mut dropped = Vec::new();
        let taken: Vec<_> =
            (0..2).filter_map(|_| queues.dequeue(NOW, &mut dropped)).map(|p| p.item).collect();
        assert_eq!(taken, [10, 11]);
        queues.push(packet(20, 2, 100));
        assert_eq!(order(&mut queues), [20, 12, 13, 14, 15]);
    }

    /// §4.2: a sparse flow whose queue empties must wait for the others before it is new again.
    #[test]
    fn a_sparse_flow_cannot_starve_the_others() {
        let mut queues = queues(1000);
        (10..20).for_each(|item| queues.push(packet(item, 1, 1000)));
        let mut taken = Vec::new();
        for n in 0..10 {
            queues.push(packet(100 + n, 2, 1000));
            taken.extend(queues.dequeue(NOW, &mut Vec::new()).map(|p| p.item));
        }
        let bulk = taken.iter().filter(|item| **item < 100).count();
        assert!(bulk >= 4, "{taken:?}");
    }

    #[test]
    fn the_longest_queue_gives_up_half_from_its_head() {
        let mut queues = queues(1514);
        (0..9).for_each(|item| queues.push(packet(item, 1, 100)));
        (20..24).for_each(|item| queues.push(packet(item, 2, 1000)));
        let items: Vec<_> = queues.shed().into_iter().map(|p| p.item).collect();
        assert_eq!(items, [20, 21]);
        (30..530).for_each(|item| queues.push(packet(item, 3, 1500)));
        assert_eq!(queues.shed().len(), MOST_SHED);
    }

    #[test]
    fn each_queue_has_a_codel_of_its_own() {
        let mut queues = queues(1000);
        let mut lost = Vec::new();
        // Flow 1 keeps a standing queue of 50 packets, one a millisecond, flow 2 none: only flow 1 loses packets.
        (0..50).for_each(|_| queues.push(Waiting { came: Instant::ZERO, ..packet(1, 1, 1000) }));
        for n in 0..1000u64 {
            let now = Instant::ZERO + Duration::from_millis(n);
            for flow in [1, 2] {
                queues.push(Waiting { came: now, ..packet(flow as u32, flow, 1000) });
            }
            (0..2).for_each(|_| _ = queues.dequeue(now, &mut lost));
        }
        assert!(lost.len() > 10 && lost.iter().all(|p| p.item == 1), "{}", lost.len());
    }

    #[test]
    fn what_is_empty_holds_nothing_unless_it_dropped_packets_lately() {
        let mut queues = queues(1514);
        (0..500).for_each(|flow| queues.push(packet(0, flow, 100)));
        assert_eq!((order(&mut queues).len(), queues.queues.len()), (500, 0));
        (0..500).for_each(|_| queues.push(packet(0, 1, 1000)));
        let at = |n: u64| NOW + Duration::from_millis(10 * n);
        let left = (0..500).filter(|n| queues.dequeue(at(*n), &mut Vec::new()).is_some()).count();
        assert!(left < 500 && queues.queues.len() == 1);
        let later = at(500) + Duration::from_secs(10);
        assert!(queues.forget(at(left as u64)) && queues.queues.len() == 1);
        queues.push(Waiting { came: later, ..packet(0, 1, 1000) });
        assert!(queues.forget(later) && queues.queues.len() == 1);
        (0..2).for_each(|_| _ = queues.dequeue(later, &mut Vec::new()));
        assert!(queues.queues.is_empty() && !queues.forget(later));
    }

    #[test]
    fn flows_are_spread_over_all_queues() {
        let queues = queues(1514);
        let used: std::collections::BTreeSet<_> = (0..100).map(|flow| queues.index(flow)).collect();
        // RFC 8290 §5.3: with 100 flows no more than two collide at once in 99.57 of 100 cases.
        assert!(used.len() >= 90, "{}", used.len());
    }
}
