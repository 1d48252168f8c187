//! Copies of packets, each of which leaves on another path than the packet, once one has room for it.

use std::collections::VecDeque;

use bytes::Bytes;
use polypath_wire::shim::Shim;
use polypath_wire::{Duration, Instant, PathSet};

/// Longest that a copy waits for a path: a round trip, after which one that lost something has room again.
const PATIENCE: Duration = Duration::from_millis(200);
/// Copies that wait, at most.
const MOST: usize = 64;

/// A copy.
#[derive(Debug)]
pub(super) struct Copy {
    /// What it says of itself; its number on the path is not known yet.
    pub(super) shim: Shim,
    /// The packet.
    pub(super) bytes: Bytes,
    /// It leaves on one of these.
    pub(super) to: PathSet,
    until: Instant,
}

/// The copies that wait for a path.
#[derive(Debug, Default)]
pub(super) struct Copies {
    waiting: VecDeque<Copy>,
    given_up: u64,
}

impl Copies {
    /// One more, to leave on any of `to`. The oldest makes room for it.
    pub(super) fn push(&mut self, now: Instant, shim: Shim, bytes: Bytes, to: PathSet) {
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
            self.given_up += 1;
        }
        self.waiting.push_back(Copy { shim, bytes, to, until: now + PATIENCE });
    }

    /// Takes the first for which `path` has an answer, with that answer. Those that waited too long are given up.
    pub(super) fn take<T>(
        &mut self,
        now: Instant,
        mut path: impl FnMut(&Copy) -> Option<T>,
    ) -> Option<(Copy, T)> {
        while self.waiting.pop_front_if(|copy| copy.until < now).is_some() {
            self.given_up += 1;
        }
        let (at, path) = self.waiting.iter().enumerate().find_map(|(at, copy)| Some((at, path(copy)?)))?;
        Some((self.waiting.remove(at)?, path))
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Copies that never left.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::PathId;

    use super::*;

    fn copies(count: u32) -> Copies {
        let mut copies = Copies::default();
        let to: PathSet = [PathId(1)].into_iter().collect();
        let shim = |sequence| Shim {
            class: 0,
            repaired: false,
            flow: 0,
            previous: 0,
            stamp: 0,
            sequence,
            number: 0,
        };
        (0..count).for_each(|n| copies.push(Instant::ZERO, shim(n), Bytes::new(), to));
        copies
    }

    #[test]
    fn the_first_that_a_path_takes_leaves() {
        let mut copies = copies(3);
        let odd = |copy: &Copy| (copy.shim.sequence % 2 == 1).then_some(7);
        let taken = copies.take(Instant::ZERO, odd).map(|(copy, path)| (copy.shim.sequence, path));
        assert_eq!((taken, copies.waiting.len()), (Some((1, 7)), 2));
    }

    #[test]
    fn none_waits_for_long_and_there_are_never_many() {
        let mut copies = copies(MOST as u32 + 8);
        assert_eq!((copies.waiting.len(), copies.given_up()), (MOST, 8));
        let late = Instant::ZERO + PATIENCE + Duration::from_nanos(1);
        assert!(copies.take(late, |_| Some(())).is_none());
        assert_eq!((copies.is_empty(), copies.given_up()), (true, MOST as u64 + 8));
    }
}
