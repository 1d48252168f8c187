//! What the acknowledgments tell of a path that come back by the path itself.
//!
//! An acknowledgment on a quick path often covers a segment of a slow path first, but may leave long after the segment arrived.
//! The slow path's own acknowledgment comes later. It left when the newest segment that it covers arrived, so it shows how long that
//! segment waited in queues. In the first flight of a path the times between its own acknowledgments show the rate of the bottleneck
//! (`path/trains.rs`).

use std::collections::VecDeque;

use polypath_wire::{Instant, PathId};

use super::{Ack, Sender};
use crate::engine::Engine;
use crate::path_map::OfPath;

/// Segments of the first flight: an initial window.
const FIRST: usize = 10;

/// Most segments that are remembered of one path. If more are under way, all are forgotten.
const MOST: usize = 1 << 14;

/// A segment that left for the first time: its first offset, the offset behind its last, and when it left.
type Sent = (u64, u64, Instant);

/// The segments of one path that its own acknowledgments do not cover yet.
#[derive(Debug)]
pub(super) struct OwnAcks {
    path: PathId,
    /// In sending order, which is also stream order.
    sent: VecDeque<Sent>,
    /// How many of those at the front are of the first flight.
    first: usize,
    /// How many of the first flight left.
    began: usize,
}

/// What an acknowledgment covers that none before it on its path did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Covered {
    /// When the newest segment left.
    newest: Instant,
    /// The bytes of the first flight, and when the newest of these left.
    first: Option<(u64, Instant)>,
}

impl OfPath for OwnAcks {
    fn path(&self) -> PathId {
        self.path
    }
}

impl OwnAcks {
    fn new(path: PathId) -> Self {
        Self { path, sent: VecDeque::with_capacity(FIRST), first: 0, began: 0 }
    }

    /// Gives back the memory of what is covered.
    pub(super) fn shrink(&mut self) {
        self.sent.shrink_to_fit();
    }

    /// `sent` leaves; `all`: not only the first flight is of interest.
    fn note(&mut self, sent: Sent, all: bool) {
        let is_first = self.began < FIRST;
        if !is_first && !all {
            return;
        }
        if self.sent.len() == MOST {
            self.sent.clear();
            self.first = 0;
        }
        self.sent.push_back(sent);
        self.began += usize::from(is_first);
        self.first += usize::from(is_first);
    }

    /// What `ack` covers that none before it on this path did. Segments that left before the newest of these are forgotten: they were lost.
    fn hear(&mut self, ack: &Ack<'_>) -> Option<Covered> {
        let up_to = |bound: u64| self.sent.partition_point(|sent| sent.1 <= bound);
        let within = |&(from, to): &(u64, u64)| {
            let behind = up_to(to);
            let newest = behind.checked_sub(1).and_then(|at| self.sent.get(at));
            newest.filter(|sent| from <= sent.0).map(|_| behind)
        };
        let covered = ack.blocks.iter().filter_map(within).fold(up_to(ack.una), usize::max);
        let (_, _, newest) = *self.sent.get(covered.checked_sub(1)?)?;
        let of_first = covered.min(self.first);
        let has = |(from, to, _): &&Sent| {
            *to <= ack.una || ack.blocks.iter().any(|block| block.0 <= *from && *to <= block.1)
        };
        let heard = || self.sent.range(..of_first).filter(has);
        let first =
            heard().next_back().map(|(_, _, left)| (heard().map(|(from, to, _)| to - from).sum(), *left));
        self.sent.drain(..covered);
        self.first -= of_first;
        Some(Covered { newest, first })
    }

    /// `len` bytes from `offset` on leave once more: their acknowledgment does not show which transmission arrived.
    fn forget(&mut self, offset: u64, len: u32) {
        let before = |bound: u64| self.sent.partition_point(|sent| sent.0 < bound);
        let (from, to) = (before(offset), before(offset + u64::from(len)));
        self.sent.drain(from..to);
        self.first -= to.min(self.first) - from.min(self.first);
    }
}

impl Sender {
    /// `len` bytes from `offset` on leave on `path` for the first time.
    #[inline]
    pub(super) fn note_sent(&mut self, now: Instant, path: PathId, offset: u64, len: u32, engine: &Engine) {
        if engine.goes_by_trains() || engine.compares_paths() {
            let sent = (offset, offset + u64::from(len), now);
            self.own_acks.or_insert(path, OwnAcks::new).note(sent, engine.compares_paths());
        }
    }

    /// `len` bytes from `offset` on leave once more, on whatever path.
    #[cold]
    pub(super) fn note_sent_again(&mut self, offset: u64, len: u32) {
        self.own_acks.iter_mut().for_each(|own| own.forget(offset, len));
    }

    /// After `ack` was taken: what it says about the path that it came by.
    #[inline]
    pub(super) fn hear_own(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine) {
        let own = self.own_acks.get_mut(ack.path).filter(|own| !own.sent.is_empty() && ack.route == ack.path);
        let Some(covered) = own.and_then(|own| own.hear(ack)) else { return };
        if let Some((bytes, sent_at)) = covered.first.filter(|_| engine.goes_by_trains()) {
            engine.on_first_flight(now, ack.path, bytes, sent_at);
        }
        if engine.compares_paths() {
            engine.on_own_ack(now, ack.path, covered.newest, ack.reverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: Ack<'_> = Ack {
        path: PathId::FIRST,
        route: PathId::FIRST,
        una: 0,
        blocks: &[],
        bare: true,
        pure: true,
        echo: None,
        reverse: None,
    };

    /// Segments of 1000 bytes; the `n`th left at `n`.
    fn own(segments: u64) -> OwnAcks {
        let mut own = OwnAcks::new(PathId::FIRST);
        (0..segments).for_each(|n| own.note((1000 * n, 1000 * n + 1000, Instant(n)), true));
        own
    }

    fn covered(newest: u64, first: Option<(u64, u64)>) -> Option<Covered> {
        Some(Covered { newest: Instant(newest), first: first.map(|(bytes, left)| (bytes, Instant(left))) })
    }

    #[test]
    fn each_acknowledgment_tells_of_what_arrived_since_the_one_before() {
        let mut own = own(4);
        assert_eq!(own.hear(&Ack { una: 500, ..ACK }), None);
        assert_eq!(own.hear(&Ack { una: 2000, ..ACK }), covered(1, Some((2000, 1))));
        assert_eq!(own.hear(&Ack { una: 1000, ..ACK }), None, "an old one");
        assert_eq!(own.hear(&Ack { blocks: &[(0, 3500)], ..ACK }), covered(2, Some((1000, 2))));
        assert_eq!(own.hear(&Ack { una: 9000, ..ACK }), covered(3, Some((1000, 3))));
    }

    #[test]
    fn what_is_missing_before_the_newest_is_not_waited_for() {
        let mut own = own(14);
        let blocks = &[(5000, 6000), (2000, 3000), (9500, 20_000)];
        assert_eq!(own.hear(&Ack { una: 1000, blocks, ..ACK }), covered(13, Some((3000, 5))));
        assert_eq!(own.hear(&Ack { una: 14_000, ..ACK }), None);
    }

    #[test]
    fn the_first_flight_is_ten_segments_and_the_rest_is_kept_only_if_it_is_of_interest() {
        let mut own = own(12);
        assert_eq!(own.hear(&Ack { una: 12_000, ..ACK }), covered(11, Some((10_000, 9))));
        own.note((12_000, 13_000, Instant(12)), true);
        assert_eq!(own.hear(&Ack { una: 13_000, ..ACK }), covered(12, None));
        own.note((13_000, 14_000, Instant(13)), false);
        assert_eq!(own.hear(&Ack { una: 14_000, ..ACK }), None);
    }

    #[test]
    fn an_acknowledgment_of_what_left_twice_tells_nothing() {
        let mut own = own(3);
        own.forget(1000, 1000);
        own.forget(9000, 1000);
        assert_eq!(own.hear(&Ack { una: 2000, ..ACK }), covered(0, Some((1000, 0))));
        assert_eq!(own.hear(&Ack { una: 3000, ..ACK }), covered(2, Some((1000, 2))));
    }

    #[test]
    fn memory_is_bounded() {
        let mut own = own(MOST as u64 + 1);
        assert_eq!((own.sent.len(), own.first), (1, 0));
        assert_eq!(own.hear(&Ack { una: u64::MAX, ..ACK }), covered(MOST as u64, None));
    }
}
