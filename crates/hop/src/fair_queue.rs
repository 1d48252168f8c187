//! FQ-CoDel (RFC 8290) in front of a sender that takes packets when it can, not at a rate.

use std::fmt::Debug;

use polypath_wire::{Duration, Instant, Seed};

use crate::aqm::Queue;
use crate::codel::CodelConfig;
use crate::fifo::Waiting;
use crate::fq_codel::{FqCodel, FqCodelConfig};
use crate::packet::Label;

/// Packets that wait in turns of their flows.
#[derive(Debug)]
pub struct FairQueue<T> {
    queues: FqCodel<T>,
    bytes: u64,
    most: u64,
    dropped: u64,
    marked: u64,
}

impl<T: Debug + Send> FairQueue<T> {
    /// Holds up to `most` bytes. `salt` decides which flows share a queue.
    pub fn new(config: FqCodelConfig, most: u64, salt: Seed) -> Self {
        Self { queues: FqCodel::new(config, salt), bytes: 0, most, dropped: 0, marked: 0 }
    }

    /// Adds a packet. If all hold too much, the queue with the most bytes gives up packets, maybe this one (§4.1).
    pub fn push(&mut self, now: Instant, label: Label, item: T) {
        self.bytes += u64::from(label.size);
        self.queues.push(Waiting { item, label, came: now, marked: false });
        while self.bytes > self.most {
            let shed = self.queues.shed();
            if shed.is_empty() {
                return;
            }
            self.lose(&shed);
        }
    }

    /// The next packet, and whether to mark it with congestion experienced. So much more than CoDel's target is a
    /// `tolerable` wait for a packet, and for those behind it.
    pub fn pop(&mut self, now: Instant, tolerable: impl Fn(&T) -> Duration) -> Option<(T, bool)> {
        let (mut dropped, codel) = (Vec::new(), self.queues.codel());
        let of = |item: &T| CodelConfig { target: codel.target + tolerable(item), ..codel };
        let packet = self.queues.dequeue_under(of, now, &mut dropped);
        self.lose(&dropped);
        let packet = packet?;
        self.bytes -= u64::from(packet.label.size);
        self.marked += u64::from(packet.marked);
        Some((packet.item, packet.marked))
    }

    /// Gives back the memory of flows that ended; whether there is more to give back later.
    pub fn forget(&mut self, now: Instant) -> bool {
        self.queues.forget(now)
    }

    fn lose(&mut self, packets: &[Waiting<T>]) {
        self.dropped += packets.len() as u64;
        self.bytes -= packets.iter().map(|packet| u64::from(packet.label.size)).sum::<u64>();
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets dropped, whether for want of room or by CoDel.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets marked.
    pub fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(flow: u64, ecn_capable: bool) -> Label {
        Label { size: 1000, flow, ecn_capable }
    }

    #[test]
    fn a_full_queue_gives_up_packets_of_its_longest_flow() {
        let mut queue = FairQueue::new(FqCodelConfig::default(), 10_000, Seed(1));
        queue.push(Instant::ZERO, label(2, false), 0);
        (1..=40).for_each(|n| queue.push(Instant::ZERO, label(1, false), n));
        assert!(queue.bytes() <= 10_000 && queue.dropped() >= 31, "{} bytes", queue.bytes());
        let left: Vec<_> = std::iter::from_fn(|| queue.pop(Instant::ZERO, |_| Duration::ZERO))
            .map(|(item, _)| item)
            .collect();
        assert!(left.contains(&0) && left.contains(&40), "{left:?}");
        assert_eq!((queue.bytes(), left.len() as u64 + queue.dropped()), (0, 41));
    }

    #[test]
    fn what_stands_for_long_is_marked_or_dropped() {
        for ecn_capable in [true, false] {
            let mut queue = FairQueue::new(FqCodelConfig::default(), 10_000_000, Seed(1));
            (0..1000).for_each(|n| queue.push(Instant::ZERO, label(1, ecn_capable), n));
            let at = |n: u64| Instant::ZERO + Duration::from_millis(50 + n);
            let popped = (0..500).filter_map(|n| queue.pop(at(n), |_| Duration::ZERO));
            let marked = popped.filter(|(_, marked)| *marked).count() as u64;
            let (expected, other) = match ecn_capable {
                true => (marked, queue.dropped()),
                false => (queue.dropped(), marked),
            };
            assert!(expected > 5 && other == 0, "{expected}, {other}");
            assert_eq!(queue.marked(), marked);
        }
    }

    #[test]
    fn what_may_wait_longer_is_left_alone_for_so_long() {
        let dropped = |tolerable| {
            let mut queue = FairQueue::new(FqCodelConfig::default(), 10_000_000, Seed(1));
            (0..1000).for_each(|n| queue.push(Instant::ZERO, label(1, false), n));
            let at = |n: u64| Instant::ZERO + Duration::from_millis(50) + Duration::from_micros(500 * n);
            (0..500).for_each(|n| _ = queue.pop(at(n), |_| Duration::from_millis(tolerable)));
            queue.dropped()
        };
        assert!(dropped(0) > 0 && dropped(100) > 0 && dropped(100) < dropped(0));
        assert_eq!(dropped(300), 0);
    }

    #[test]
    fn each_flow_waits_for_as_long_as_its_own_packets_may() {
        let mut queue = FairQueue::new(FqCodelConfig::default(), 10_000_000, Seed(1));
        (0..2000).for_each(|n| queue.push(Instant::ZERO, label(1 + n % 2, false), n));
        let patient = |n: &u64| if n.is_multiple_of(2) { Duration::from_millis(300) } else { Duration::ZERO };
        let at = |n: u64| Instant::ZERO + Duration::from_millis(50) + Duration::from_micros(250 * n);
        let sent: Vec<u64> =
            (0..800).filter_map(|n| queue.pop(at(n), patient)).map(|(item, _)| item).collect();
        let of = |flow: u64| sent.iter().filter(|n| **n % 2 == flow).copied().collect::<Vec<_>>();
        assert_eq!(of(0), (0..of(0).len() as u64).map(|n| 2 * n).collect::<Vec<_>>(), "none is missing");
        assert!(queue.dropped() > 0 && of(1).len() > 300, "{} dropped", queue.dropped());
    }
}
