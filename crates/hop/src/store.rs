//! Packets that wait until the server takes them: which leaves next, and whether it leaves, is decided then.

use std::collections::VecDeque;

use polypath_wire::{Instant, Seed};

use crate::codel::{Codel, CodelConfig};
use crate::config::Discipline;
use crate::fifo::Fifo;
use crate::fq_codel::FqCodel;
use crate::limit::QueueLimit;
use crate::stats::Drop;

pub(crate) use crate::fifo::Waiting;

/// What waits, under a discipline that decides when the server takes a packet.
#[derive(Debug)]
pub(crate) struct Store<T> {
    queue: Queue<T>,
    limit: QueueLimit,
    packets: usize,
    bytes: u64,
    /// When the server takes the next one, if one waits.
    pub next: Instant,
    /// Dropped, when and why, and not reported yet.
    pub dropped: VecDeque<(Instant, Waiting<T>, Drop)>,
}

#[derive(Debug)]
enum Queue<T> {
    Codel(CodelConfig, Codel, Fifo<T>),
    FqCodel(FqCodel<T>),
}

impl<T> Store<T> {
    /// None under a discipline that decides when a packet comes.
    pub fn new(discipline: &Discipline, limit: QueueLimit, seed: Seed) -> Option<Self> {
        let queue = match discipline {
            Discipline::DropTail | Discipline::Red(_) => return None,
            Discipline::Codel(config) => Queue::Codel(*config, Codel::default(), Fifo::default()),
            Discipline::FqCodel(config) => Queue::FqCodel(FqCodel::new(*config, seed)),
        };
        let (next, dropped) = (Instant::MAX, VecDeque::new());
        Some(Self { queue, limit, packets: 0, bytes: 0, next, dropped })
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
        match &mut self.queue {
            Queue::Codel(_, _, fifo) => {
                let free = self.limit.holds(self.packets as u64 + 1, self.bytes + u64::from(size));
                if !free && !at_once {
                    return Err(Drop::QueueFull);
                }
                fifo.push(packet);
            }
            Queue::FqCodel(queues) => queues.push(packet),
        }
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + u64::from(size));
        if !at_once {
            self.shed(now);
        }
        Ok(())
    }

    /// Gives up packets of the longest queue while all hold more than the limit (RFC 8290 §4.1).
    fn shed(&mut self, now: Instant) {
        let Queue::FqCodel(queues) = &mut self.queue else { return };
        while !self.limit.holds(self.packets as u64, self.bytes) {
            for packet in queues.shed() {
                (self.packets, self.bytes) = (self.packets - 1, self.bytes - u64::from(packet.label.size));
                self.dropped.push_back((now, packet, Drop::QueueFull));
            }
        }
    }

    /// The packet that is served from `now` on.
    pub fn dequeue(&mut self, now: Instant) -> Option<Waiting<T>> {
        let mut dropped = Vec::new();
        let packet = match &mut self.queue {
            Queue::Codel(config, codel, fifo) => codel.dequeue(config, now, fifo, &mut dropped),
            Queue::FqCodel(queues) => queues.dequeue(now, &mut dropped),
        };
        for gone in dropped.iter().chain(&packet) {
            (self.packets, self.bytes) = (self.packets - 1, self.bytes - u64::from(gone.label.size));
        }
        self.dropped.extend(dropped.into_iter().map(|packet| (now, packet, Drop::Aqm)));
        packet
    }

    /// Loses all that wait to `cause`.
    pub fn clear(&mut self, now: Instant, cause: Drop) {
        loop {
            let packet = match &mut self.queue {
                Queue::Codel(_, _, fifo) => fifo.pop(),
                Queue::FqCodel(queues) => queues.pop(),
            };
            let Some(packet) = packet else { break };
            self.dropped.push_back((now, packet, cause));
        }
        (self.packets, self.bytes) = (0, 0);
    }
}
