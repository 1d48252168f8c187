//! Packets that wait until the server takes them: which leaves next, and whether it leaves, is decided then.

use std::collections::VecDeque;

use polypath_wire::Instant;

use crate::aqm::Queue;
use crate::limit::QueueLimit;
use crate::stats::Drop;

pub(crate) use crate::fifo::Waiting;

/// What waits, under a discipline that decides when the server takes a packet.
#[derive(Debug)]
pub(crate) struct Store<T> {
    queue: Box<dyn Queue<T>>,
    limit: QueueLimit,
    packets: usize,
    bytes: u64,
    /// When the server takes the next one, if one waits.
    pub next: Instant,
    /// Dropped, when and why, and not reported yet.
    pub dropped: VecDeque<(Instant, Waiting<T>, Drop)>,
}

impl<T> Store<T> {
    pub fn new(queue: Box<dyn Queue<T>>, limit: QueueLimit) -> Self {
        Self { queue, limit, packets: 0, bytes: 0, next: Instant::MAX, dropped: VecDeque::new() }
    }

    /// Packets that wait, and their bytes.
    pub fn waiting(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// When something happens to what waits or to what was dropped; `MAX` if nothing does.
    pub fn due(&self) -> Instant {
        let next = if self.is_empty() { Instant::MAX } else { self.next };
        self.dropped.front().map_or(next, |(at, ..)| next.min(*at))
    }

    /// Takes a packet in; it needs no place if the server takes it `at_once`.
    pub fn enqueue(&mut self, now: Instant, packet: Waiting<T>, at_once: bool) -> Result<(), Drop> {
        let size = packet.label.size;
        let free = self.limit.holds(self.packets as u64 + 1, self.bytes + u64::from(size));
        if self.queue.refuses() && !free && !at_once {
            return Err(Drop::QueueFull);
        }
        self.queue.push(packet);
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + u64::from(size));
        if !at_once {
            self.shed(now);
        }
        Ok(())
    }

    /// Gives up packets while more wait than the limit allows.
    fn shed(&mut self, now: Instant) {
        while !self.queue.refuses() && !self.limit.holds(self.packets as u64, self.bytes) {
            for packet in self.queue.shed() {
                (self.packets, self.bytes) = (self.packets - 1, self.bytes - u64::from(packet.label.size));
                self.dropped.push_back((now, packet, Drop::QueueFull));
            }
        }
    }

    /// The packet that is served from `now` on.
    pub fn dequeue(&mut self, now: Instant) -> Option<Waiting<T>> {
        let mut dropped = Vec::new();
        let packet = self.queue.dequeue(now, &mut dropped);
        for gone in dropped.iter().chain(&packet) {
            (self.packets, self.bytes) = (self.packets - 1, self.bytes - u64::from(gone.label.size));
        }
        self.dropped.extend(dropped.into_iter().map(|packet| (now, packet, Drop::Aqm)));
        packet
    }

    /// Loses all that wait to `cause`.
    pub fn clear(&mut self, now: Instant, cause: Drop) {
        while let Some(packet) = self.queue.pop() {
            self.dropped.push_back((now, packet, cause));
        }
        (self.packets, self.bytes) = (0, 0);
    }
}
