//! Copies of segments that were sent on several paths at once (Rojviboonchai, Osuga and Aida, §2.1: duplication mode).
//!
//! The stream's map knows a segment on one path. Its copies on others are here: they take room there until
//! the acknowledgment that answers them on their own path comes, whoever delivered the data first. A path
//! keeps the order of what was sent on it: copies sent before one that was answered, and not answered
//! themselves, did not arrive.

use std::collections::VecDeque;

use polypath_wire::{Instant, PathId};

use crate::path_map::{OfPath, PathMap};

/// A transmission of data that was sent on another path too.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Copy {
    /// Offset in the stream.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// When it was sent.
    pub sent_at: Instant,
    /// Its data may have left on this path before.
    pub again: bool,
}

/// What an acknowledgment says of the copies of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Answered {
    /// The one it answers.
    pub copy: Copy,
    /// Bytes of earlier ones that did not arrive.
    pub missing: u64,
    /// When the last of those was sent.
    pub missing_sent: Instant,
}

/// The copies under way, by path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Copies {
    paths: PathMap<UnderWay>,
    /// Each acknowledgment answers one segment: both ends know of routes.
    one_by_one: bool,
}

/// In the order in which they were sent, with the sum of their bytes.
#[derive(Clone, PartialEq, Debug)]
struct UnderWay {
    path: PathId,
    copies: VecDeque<Copy>,
    bytes: u64,
    /// Acknowledgments on the path have covered everything below.
    covered: u64,
    /// Copies sent before this have had their reduction.
    reduced: Instant,
}

impl OfPath for UnderWay {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl UnderWay {
    fn new(path: PathId) -> Self {
        Self { path, copies: VecDeque::new(), bytes: 0, covered: 0, reduced: Instant::ZERO }
    }
}

impl Copies {
    /// Both ends agreed on the multi-route option, or did not.
    pub(super) fn agree(&mut self, multi_route: bool) {
        self.one_by_one = multi_route;
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.paths.iter().all(|p| p.copies.is_empty())
    }

    /// Bytes under way on `path`.
    pub(super) fn in_flight(&self, path: PathId) -> u64 {
        self.paths.get(path).map_or(0, |p| p.bytes)
    }

    /// A copy was sent on `path`, or what had been sent there has become one.
    pub(super) fn add(&mut self, path: PathId, copy: Copy) {
        let UnderWay { copies, bytes, .. } = self.paths.or_insert(path, UnderWay::new);
        *bytes += u64::from(copy.len);
        let at = copies.partition_point(|c| c.sent_at <= copy.sent_at);
        copies.insert(at, copy);
    }

    /// The copy of `offset` on `path` was answered by an acknowledgment there. Copies of what none had covered of
    /// there before may have come with it, if acknowledgments may be of several segments.
    pub(super) fn answer(&mut self, path: PathId, offset: u64) -> Option<Answered> {
        let UnderWay { copies, bytes, covered, .. } = self.paths.get_mut(path)?;
        let at = copies.iter().position(|c| c.offset == offset)?;
        let (mut missing, mut missing_sent) = (0, Instant::ZERO);
        for before in copies.drain(..at) {
            *bytes -= u64::from(before.len);
            if self.one_by_one || before.offset < *covered {
                missing += u64::from(before.len);
                missing_sent = before.sent_at;
            }
        }
        let copy = copies.pop_front()?;
        *bytes -= u64::from(copy.len);
        Some(Answered { copy, missing, missing_sent })
    }

    /// Whether each acknowledgment answers one segment.
    pub(super) fn are_answered_one_by_one(&self) -> bool {
        self.one_by_one
    }

    /// When the copy of `offset` left on `path`, if it is under way.
    pub(super) fn left(&self, path: PathId, offset: u64) -> Option<Instant> {
        let copies = &self.paths.get(path)?.copies;
        copies.iter().find(|copy| copy.offset == offset).map(|copy| copy.sent_at)
    }

    /// Whether copies on `path` that did not arrive, the last sent at `sent`, are a loss: once a window.
    pub(super) fn is_loss(&mut self, now: Instant, path: PathId, sent: Instant) -> bool {
        let Some(under_way) = self.paths.get_mut(path).filter(|p| sent >= p.reduced) else { return false };
        under_way.reduced = now;
        true
    }

    /// An acknowledgment of everything below `una` came on `path`.
    pub(super) fn tell(&mut self, path: PathId, una: u64) {
        if let Some(under_way) = self.paths.get_mut(path) {
            under_way.covered = under_way.covered.max(una);
        }
    }

    /// What was sent on `path` found that `offset` had arrived before: so a copy on another path did. That
    /// one's own acknowledgment, on a path with more delay, may come later and be no news then. Returns whether there was one.
    pub(super) fn overtook(&mut self, path: PathId, offset: u64) -> bool {
        let mut was_copied = false;
        for UnderWay { path: other, copies, bytes, .. } in self.paths.iter_mut() {
            if *other != path
                && let Some(at) = copies.iter().position(|c| c.offset == offset)
            {
                *bytes -= copies.remove(at).map_or(0, |copy| u64::from(copy.len));
                was_copied = true;
            }
        }
        was_copied
    }

    /// The path is gone.
    pub(super) fn remove(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// Everything on `path` is lost.
    pub(super) fn lose(&mut self, path: PathId) {
        if let Some(UnderWay { copies, bytes, .. }) = self.paths.get_mut(path) {
            copies.clear();
            *bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_clears_what_was_sent_before_it() {
        let mut copies = Copies::default();
        let copy = |n: u64| Copy { offset: n * 10, len: 10, sent_at: Instant(n), again: false };
        [0, 1, 3, 4, 2].into_iter().for_each(|n| copies.add(PathId(1), copy(n)));
        assert_eq!((copies.in_flight(PathId(0)), copies.in_flight(PathId(1))), (0, 50));
        let none = Answered { copy: copy(0), missing: 0, missing_sent: Instant::ZERO };
        assert_eq!(copies.answer(PathId(1), 0), Some(none));
        let answered = Answered { copy: copy(3), missing: 20, missing_sent: Instant(2) };
        copies.tell(PathId(1), 50);
        assert_eq!(copies.answer(PathId(1), 30), Some(answered));
        assert_eq!((copies.answer(PathId(1), 20), copies.answer(PathId(0), 40)), (None, None));
        copies.lose(PathId(1));
        assert!(copies.is_empty() && copies.in_flight(PathId(1)) == 0);
    }

    #[test]
    fn a_copy_is_known_by_its_path_and_offset() {
        let mut copies = Copies::default();
        copies.add(PathId(1), Copy { offset: 10, len: 10, sent_at: Instant(3), again: false });
        assert_eq!(copies.left(PathId(1), 10), Some(Instant(3)));
        assert_eq!((copies.left(PathId(1), 0), copies.left(PathId(0), 10)), (None, None));
    }

    #[test]
    fn what_arrived_without_an_answer_of_its_own_is_not_missing() {
        let mut copies = Copies::default();
        let copy = |n: u64| Copy { offset: n * 10, len: 10, sent_at: Instant(n), again: false };
        (0..5).for_each(|n| copies.add(PathId(1), copy(n)));
        copies.overtook(PathId(0), 10); // the other transmission of 1 found that it had come
        let answered = Answered { copy: copy(4), missing: 10, missing_sent: Instant(0) };
        copies.tell(PathId(1), 20);
        assert_eq!(copies.answer(PathId(1), 40), Some(answered), "2 and 3 are news like 4");
        assert!(copies.is_empty());
        assert_eq!(copies.in_flight(PathId(1)), 0);
    }
}
