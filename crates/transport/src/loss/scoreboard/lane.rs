//! The transmissions of one path, in their order.

use std::collections::VecDeque;

use polypath_wire::PathId;

use super::{Sent, SentId, Status};
use crate::path_map::OfPath;

/// What one acknowledgment delivered on one lane.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Delivery {
    /// Bytes of sequence space.
    pub bytes: u64,
    /// Segments.
    pub segments: u32,
    /// The segment among them that was sent last.
    pub newest: Option<Sent>,
    /// One of them, sent once, had been passed by later ones that earlier acknowledgments told of.
    pub reordered: bool,
    /// The acknowledgment, which came on the lane's path, reports a duplicate (RFC 2883).
    pub duplicate: bool,
}

/// In the place of a transmission that counts no more.
pub(super) const GONE: SentId = SentId::MAX;

/// The virtual queue of one path.
#[derive(Debug)]
pub(super) struct Lane {
    path: PathId,
    /// Transmissions in the order sent, numbered from `first`; [`GONE`] once judged lost.
    pub(super) order: VecDeque<SentId>,
    pub(super) first: u64,
    pub(super) in_flight: u64,
    /// Entries of `order` that were delivered.
    pub(super) delivered: u32,
    /// Entries of `order` whose fate is known: delivered, or judged lost.
    pub(super) settled: u32,
    pub(super) highest_delivered: Option<u64>,
    /// Acknowledgments on the lane's own path have told of everything delivered below this number.
    pub(super) told: u64,
    /// Entries of `order` below `told` that were delivered.
    pub(super) vouched: u32,
    /// Bytes that duplicate acknowledgments without SACK report as having left the network.
    pub(super) credit: u64,
    pub(super) fresh: Delivery,
    /// What is delivered below this number by the present acknowledgment was passed by others.
    pub(super) passed: u64,
}

impl OfPath for Lane {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl Lane {
    /// An empty one; `told`: see there.
    pub(super) fn new(path: PathId, told: u64) -> Self {
        Self {
            path,
            order: VecDeque::new(),
            first: 0,
            in_flight: 0,
            delivered: 0,
            settled: 0,
            highest_delivered: None,
            told,
            vouched: 0,
            credit: 0,
            fresh: Delivery::default(),
            passed: 0,
        }
    }

    pub(super) fn push(&mut self, id: SentId, len: u32) -> u64 {
        let tx = self.next_tx();
        self.in_flight += u64::from(len);
        self.order.push_back(id);
        tx
    }

    pub(super) fn next_tx(&self) -> u64 {
        self.first + self.order.len() as u64
    }

    /// The transmission `tx` counts no more. Whether it did.
    pub(super) fn forget(&mut self, tx: u64) -> bool {
        let entry = tx.checked_sub(self.first).and_then(|i| self.order.get_mut(i as usize));
        entry.is_some_and(|id| std::mem::replace(id, GONE) != GONE)
    }

    /// The transmission `tx` of `len`, of which nothing was known, is judged lost.
    pub(super) fn lose(&mut self, tx: u64, len: u64) {
        self.in_flight -= len;
        self.settled += u32::from(self.forget(tx));
    }

    /// The transmission `tx` of the segment `id`, which was judged lost, is on its way after all.
    pub(super) fn take_back(&mut self, tx: u64, id: SentId, len: u64) {
        while self.first > tx {
            self.order.push_front(GONE);
            self.first -= 1;
            self.settled += 1;
        }
        self.order[(tx - self.first) as usize] = id;
        self.settled -= 1;
        self.in_flight += len;
    }

    /// The transmission `tx` of `len`, of which nothing was known, was delivered.
    #[inline]
    pub(super) fn deliver(&mut self, tx: u64, len: u64) {
        self.in_flight -= len;
        self.highest_delivered = self.highest_delivered.max(Some(tx));
        if tx == self.first {
            self.order.pop_front();
            self.first += 1;
            return;
        }
        self.settled += 1;
        self.delivered += 1;
        self.vouched += u32::from(tx < self.told);
    }

    /// Forgets the front of the lane as far as its fate is known.
    #[inline]
    pub(super) fn trim(&mut self, base: SentId, segments: &VecDeque<Sent>) {
        if self.settled > 0 {
            self.trim_front(base, segments);
        }
    }

    fn trim_front(&mut self, base: SentId, segments: &VecDeque<Sent>) {
        while let Some(id) = self.order.front().copied() {
            if id != GONE {
                if id >= base && segments[(id - base) as usize].status != Status::Sacked {
                    break;
                }
                self.delivered -= 1;
                self.vouched -= u32::from(self.first < self.told);
            }
            self.order.pop_front();
            self.first += 1;
            self.settled -= 1;
        }
    }
}
