//! First in, first out.

use std::collections::VecDeque;

use polypath_wire::Instant;

use crate::packet::Label;

/// A packet whose turn has not come.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    pub item: T,
    pub label: Label,
    /// When it came.
    pub came: Instant,
    /// It leaves with Congestion Experienced.
    pub marked: bool,
}

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Fifo<T> {
    pub fn push(&mut self, packet: Waiting<T>) {
        self.bytes += u64::from(packet.label.size);
        self.packets.push_back(packet);
    }

    pub fn pop(&mut self) -> Option<Waiting<T>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.label.size);
        Some(packet)
    }

    pub fn front(&self) -> Option<&Waiting<T>> {
        self.packets.front()
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
