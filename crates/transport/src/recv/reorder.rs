//! The reorder buffer: fixed capacity, holds what came early until what comes before it is there.

use std::collections::VecDeque;

use polypath_wire::Instant;

use super::blocking::Blocking;
use crate::payload::Payload;
use crate::ranges::Ranges;

/// What became of the bytes of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inserted {
    /// Bytes that became readable in order, of this and of earlier segments.
    pub delivered: u64,
    /// Bytes that were there already.
    pub duplicate: u64,
    /// Bytes beyond the window, or in too small pieces, dropped.
    pub refused: u64,
    /// Bytes that were there already, but other ones: the first ones stay.
    pub mismatch: bool,
}

/// An early chunk takes at least this much of the capacity, bytes, and readable ones below it are merged.
/// Otherwise a peer could make us keep millions of chunks of one byte, which cost far more than their bytes.
const SMALLEST_CHUNK: u64 = 256;

/// Early chunks that fit whatever the capacity.
const FEWEST_CHUNKS: u64 = 64;

/// Orders what arrives. Readable bytes and early ones share one capacity, which is the window.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReorderBuffer {
    /// Next offset expected.
    next: u64,
    capacity: u64,
    ready_bytes: u64,
    occupancy: u64,
    ready: VecDeque<Payload>,
    /// Early chunks by offset; they do not overlap.
    early: VecDeque<(u64, Payload)>,
    held: Ranges,
    /// Bytes held early, at most; by default all of it.
    store: Option<u64>,
    /// Until the occupancy changed last.
    blocking: Blocking,
    changed: Instant,
}

impl ReorderBuffer {
    /// An empty buffer of `capacity` bytes, of which `store` may be taken by what comes early; by default
    /// all.
    pub(crate) fn new(capacity: u64, store: Option<u64>) -> Self {
        Self {
            capacity,
            store,
            next: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            early: VecDeque::new(),
            held: Ranges::default(),
            occupancy: 0,
            blocking: Blocking::NONE,
            changed: Instant::ZERO,
        }
    }

    /// Gives back the memory of what was held.
    pub(crate) fn shrink(&mut self) {
        self.ready.shrink_to_fit();
        self.early.shrink_to_fit();
    }

    /// Makes the capacity `capacity`. What is held beyond it stays.
    pub(crate) fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    /// Next offset expected (RCV.NXT).
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Offset after the last byte taken, in order or early.
    pub(crate) fn end(&self) -> u64 {
        self.early.back().map_or(self.next, |(offset, chunk)| offset + chunk.len())
    }

    /// Bytes held out of order.
    pub(crate) fn occupancy(&self) -> u64 {
        self.occupancy
    }

    /// Head-of-line blocking until `now`.
    pub(crate) fn blocking(&self, now: Instant) -> Blocking {
        self.blocking.after(self.occupancy, now.since(self.changed))
    }

    /// Bytes that may arrive beyond [`next`](Self::next): the window.
    pub(crate) fn window(&self) -> u64 {
        self.capacity.saturating_sub(self.ready_bytes)
    }

    /// Readable bytes.
    pub(crate) fn readable(&self) -> u64 {
        self.ready_bytes
    }

    /// The early ranges.
    pub(crate) fn held(&self) -> &Ranges {
        &self.held
    }

    /// Takes the bytes `data` at `offset`, as far as the window reaches.
    #[inline]
    pub(crate) fn insert(&mut self, now: Instant, offset: u64, data: Payload) -> Inserted {
        let edge = self.next + self.window();
        if offset == self.next && offset + data.len() <= edge && self.early.is_empty() {
            return Inserted { delivered: self.deliver(data), ..Default::default() };
        }
        self.insert_early(now, offset, data, edge)
    }

    #[inline(never)]
    fn insert_early(&mut self, now: Instant, offset: u64, data: Payload, edge: u64) -> Inserted {
        (self.blocking, self.changed) = (self.blocking(now), now);
        let end = offset + data.len();
        let mut result = Inserted { refused: end.saturating_sub(edge).min(data.len()), ..Default::default() };
        let end = end.min(edge).max(offset);
        let start = offset.max(self.next).min(end);
        result.duplicate = start - offset;
        self.fill(offset, start, end, &data, &mut result);
        result.delivered = self.release();
        result
    }

    /// The next readable bytes, at most `max`.
    #[inline]
    pub(crate) fn read(&mut self, max: u64) -> Option<Payload> {
        let chunk = self.ready.pop_front()?;
        let len = chunk.len();
        if len <= max {
            self.ready_bytes -= len;
            return Some(chunk);
        }
        self.ready_bytes -= max;
        self.ready.push_front(chunk.slice(max, len));
        Some(chunk.slice(0, max)).filter(|c| !c.is_empty())
    }

    /// Puts the parts of `start..end` that are missing among the early chunks.
    fn fill(&mut self, offset: u64, start: u64, end: u64, data: &Payload, result: &mut Inserted) {
        let mut from = start;
        while from < end {
            let (gap_start, gap_end) = self.held.first_gap(from, end).unwrap_or((end, end));
            if gap_start > from {
                result.duplicate += gap_start - from;
                result.mismatch |= !self.agrees(from, &data.slice(from - offset, gap_start - offset));
            }
            if gap_start < gap_end && gap_start > self.next && !self.has_room(gap_end - gap_start) {
                result.refused += gap_end - gap_start;
            } else if gap_start < gap_end {
                let at = match self.early.back() {
                    Some((last, _)) if *last > gap_start => {
                        self.early.partition_point(|(o, _)| *o < gap_start)
                    }
                    _ => self.early.len(),
                };
                self.early.insert(at, (gap_start, data.slice(gap_start - offset, gap_end - offset)));
                self.held.insert(gap_start, gap_end);
                self.occupancy += gap_end - gap_start;
            }
            from = gap_end;
        }
    }

    /// Whether one more early chunk of `len` bytes fits.
    fn has_room(&self, len: u64) -> bool {
        let most_chunks = (self.capacity / SMALLEST_CHUNK).max(FEWEST_CHUNKS);
        self.occupancy + len <= self.store.unwrap_or(self.capacity) && (self.early.len() as u64) < most_chunks
    }

    /// Whether what we hold from `offset` on is `data`.
    fn agrees(&self, offset: u64, data: &Payload) -> bool {
        let end = offset + data.len();
        let first = self.early.partition_point(|(o, c)| o + c.len() <= offset);
        let overlapping = self.early.iter().skip(first).take_while(|(o, _)| *o < end);
        overlapping.into_iter().all(|(o, chunk)| {
            let (from, to) = (offset.max(*o), end.min(o + chunk.len()));
            chunk.slice(from - o, to - o).same_bytes(&data.slice(from - offset, to - offset))
        })
    }

    /// Moves early chunks that are next to the readable ones.
    fn release(&mut self) -> u64 {
        let mut delivered = 0;
        while let Some((_, chunk)) = self.early.pop_front_if(|(o, _)| *o == self.next) {
            self.occupancy -= chunk.len();
            delivered += self.deliver(chunk);
        }
        if delivered > 0 {
            self.held.remove_below(self.next);
        }
        delivered
    }

    #[inline]
    fn deliver(&mut self, chunk: Payload) -> u64 {
        let len = chunk.len();
        if len < SMALLEST_CHUNK {
            return self.deliver_small(chunk);
        }
        self.next += len;
        self.ready_bytes += len;
        self.ready.push_back(chunk);
        len
    }

    /// A small chunk becomes one with a small one before it.
    #[inline(never)]
    fn deliver_small(&mut self, chunk: Payload) -> u64 {
        let len = chunk.len();
        self.next += len;
        self.ready_bytes += len;
        let small = self.ready.back_mut().filter(|last| last.len() < SMALLEST_CHUNK);
        match small.and_then(|last| Some((last.join(&chunk)?, last))) {
            Some((both, last)) => *last = both,
            None if len > 0 => self.ready.push_back(chunk),
            None => {}
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use polypath_wire::Duration;
    use proptest::prelude::*;

    use super::*;

    const AT: Instant = Instant::ZERO;

    fn text(s: &'static str) -> Payload {
        Bytes::from_static(s.as_bytes()).into()
    }

    fn all(b: &mut ReorderBuffer) -> Vec<u8> {
        std::iter::from_fn(|| b.read(u64::MAX)).flat_map(|c| c.to_bytes().to_vec()).collect()
    }

    #[test]
    fn orders_and_counts() {
        let mut b = ReorderBuffer::new(10, None);
        assert_eq!(b.insert(AT, 3, text("def")), Inserted::default());
        assert_eq!((b.occupancy(), b.window()), (3, 10));
        assert_eq!(
            b.insert(AT, 0, text("abcd")),
            Inserted { delivered: 6, duplicate: 1, ..Default::default() }
        );
        assert_eq!((b.occupancy(), b.window(), b.readable()), (0, 4, 6));
        assert_eq!(
            b.insert(AT, 5, text("fghijkl")),
            Inserted { delivered: 4, duplicate: 1, refused: 2, ..Default::default() }
        );
        assert_eq!(b.insert(AT, 10, text("k")), Inserted { refused: 1, ..Default::default() });
        assert_eq!(all(&mut b), b"abcdefghij");
        assert_eq!(b.window(), 10);
    }

    #[test]
    fn a_full_store_refuses_what_is_early_but_never_the_next() {
        let mut b = ReorderBuffer::new(20, Some(4));
        assert_eq!(b.insert(AT, 2, text("cde")), Inserted::default());
        assert_eq!(b.insert(AT, 8, text("ij")), Inserted { refused: 2, ..Default::default() });
        assert_eq!((b.occupancy(), b.window()), (3, 20));
        assert_eq!(b.insert(AT, 0, text("ab")), Inserted { delivered: 5, ..Default::default() });
        assert_eq!(all(&mut b), b"abcde");
    }

    #[test]
    fn first_bytes_stay_when_others_come() {
        let mut b = ReorderBuffer::new(10, None);
        b.insert(AT, 2, text("cd"));
        assert!(b.insert(AT, 1, text("bXdE")).mismatch);
        b.insert(AT, 0, text("a"));
        assert_eq!(all(&mut b), b"abcdE");
    }

    #[test]
    fn data_that_came_early_blocks_until_all_before_it_is_there() {
        let mut b = ReorderBuffer::new(20, None);
        let at = |ns| Instant::ZERO + Duration(ns);
        b.insert(at(10), 0, text("ab")); // in order
        b.insert(at(20), 4, text("ef")); // two bytes wait for c
        b.insert(at(25), 4, text("ef")); // again
        b.insert(at(30), 7, text("hij")); // five wait
        assert_eq!(b.blocking(at(32)), Blocking { time: Duration(12), byte_ns: 2 * 10 + 5 * 2 });
        b.insert(at(40), 2, text("cd")); // three wait for g
        b.insert(at(47), 6, text("g"));
        let all = Blocking { time: Duration(27), byte_ns: 2 * 20 + 3 * 17 };
        assert_eq!((b.blocking(at(47)), b.blocking(at(90))), (all, all));
        b.insert(at(95), 10, text("k"));
        b.insert(at(96), 11, text("lm"));
        assert_eq!(b.blocking(at(99)), all);
    }

    proptest! {
        #[test]
        fn every_byte_once_and_in_order(
            parts in prop::collection::vec((0u64..64, 1u64..16, 0u64..4), 1..200), capacity in 1u64..64,
        ) {
            let whole: Vec<u8> = (0..128).collect();
            let whole = Payload::from(Bytes::from(whole));
            let (mut b, mut got) = (ReorderBuffer::new(capacity, None), Vec::new());
            for (offset, len, read) in parts {
                let before = b.next();
                let r = b.insert(AT, offset, whole.slice(offset, offset + len));
                prop_assert!(!r.mismatch);
                prop_assert_eq!(b.next() - before, r.delivered);
                prop_assert!(b.occupancy() <= b.window());
                prop_assert!(b.occupancy() + b.readable() <= capacity);
                got.extend(b.read(read).map(|c| c.to_bytes().to_vec()).unwrap_or_default());
            }
            got.extend(all(&mut b));
            prop_assert_eq!(got.len() as u64, b.next());
            prop_assert!(got.iter().enumerate().all(|(i, x)| *x == i as u8));
        }
    }
}
