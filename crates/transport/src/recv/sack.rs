//! Which SACK blocks to send (RFC 2018 §4): ahead of all what arrived again (RFC 2883 §4), then the one that the triggering segment is part of, then
//! the most recently changed others that arrived on the path the acknowledgment takes. Blocks of
//! another path would arrive out of turn: this path may be the faster one, and what it tells first of
//! the other's latest segments makes the sender believe that the ones before them are lost.
//!
//! Where several segments share an acknowledgment, more blocks may have changed than fit. The oldest then go first,
//! and the others in the next acknowledgments: a sender that hears of later blocks first takes earlier segments
//! for lost. So it does if one of these acknowledgments is lost: each change is reported twice, and up to four
//! times once the peer has sent again what was reported.

use std::collections::VecDeque;

use polypath_wire::tcp::{SackBlock, SackBlocks};
use polypath_wire::{PathId, Seq};

use crate::path_map::{OfPath, PathMap};
use crate::ranges::Ranges;

/// Remembers the order in which blocks changed.
#[derive(Clone, Debug)]
pub(crate) struct SackReporter {
    paths: PathMap<Changed>,
    /// How often a change is reported, in acknowledgments that do not leave together.
    tells: u8,
    /// Several segments share an acknowledgment: blocks have turns, and none is remembered twice.
    shares: bool,
}

impl Default for SackReporter {
    fn default() -> Self {
        Self { paths: PathMap::default(), tells: FEWEST_TELLS, shares: false }
    }
}

/// Blocks in which something arrived out of order on one path.
#[derive(Clone, Debug, Default)]
struct Changed {
    path: PathId,
    /// Changed last, latest first.
    recent: VecDeque<Recent>,
    /// How many of them, from the latest on, have their turn now.
    due: usize,
}

impl OfPath for Changed {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    /// An offset in it.
    offset: u64,
    /// How many reports are still due.
    owed: u8,
}

/// Bounds of `tells`: acknowledgments seldom get lost, and one that does is seldom followed by three others.
const FEWEST_TELLS: u8 = 2;
const MOST_TELLS: u8 = 4;

/// Blocks of one path remembered after they were reported, beyond those that fit one acknowledgment.
const MEMORY: usize = 8;

impl SackReporter {
    /// How many blocks it remembers.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> usize {
        self.paths.iter().map(|changed| changed.recent.len()).sum()
    }

    /// From now on several segments share an acknowledgment, or each has its own.
    pub(crate) fn share(&mut self, shares: bool) {
        self.shares = shares;
    }

    /// A segment arrived out of order on `path`, at `offset`; it is part of `block` now, which is held.
    pub(crate) fn touch(&mut self, path: PathId, offset: u64, block: (u64, u64)) {
        let block = if self.shares { block } else { (offset, offset + 1) };
        let changed = self.paths.or_insert(path, |path| Changed { path, ..Changed::default() });
        changed.touch(block, self.tells);
    }

    /// The peer sent again what had arrived: a report of it may have been lost.
    pub(crate) fn was_not_heard(&mut self) {
        self.tells = (self.tells + 1).min(MOST_TELLS);
    }

    /// Whether there are blocks that changed on `path` and have their turn.
    pub(crate) fn has_news(&self, path: PathId) -> bool {
        self.paths.get(path).is_some_and(|changed| changed.due > 0)
    }

    /// Up to `max` blocks of `held` for an acknowledgment on `path`, written with `seq`, after the
    /// `duplicate` that caused it. The block of `trigger` goes first; without one the oldest news do. Forgets
    /// what is not held any more.
    pub(crate) fn blocks(
        &mut self,
        path: PathId,
        trigger: Option<u64>,
        duplicate: Option<(u64, u64)>,
        held: &Ranges,
        max: usize,
        seq: impl Fn(u64) -> Seq,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some((start, end)) = duplicate {
            blocks.push(SackBlock { start: seq(start), end: seq(end) });
        }
        let max = (max - usize::from(duplicate.is_some())).min(4);
        let Some((next, _)) = held.iter().next() else {
            self.paths.iter_mut().for_each(Changed::clear);
            return blocks;
        };
        // what is held is held until all before it has come
        self.paths.iter_mut().for_each(|changed| changed.forget(|offset| offset < next));
        let shares = self.shares && trigger.is_none();
        let Some(changed) = self.paths.get_mut(path) else { return blocks };
        let from = if shares { changed.due.saturating_sub(max) } else { 0 };
        let mut chosen: [(u64, u64); 4] = [(0, 0); 4];
        let mut n = 0;
        for offset in trigger.into_iter().chain(changed.turn(from)) {
            let Some(range) = held.containing(offset) else { continue };
            if n == max {
                break;
            }
            if !chosen[..n].contains(&range) {
                chosen[n] = range;
                n += 1;
                blocks.push(SackBlock { start: seq(range.0), end: seq(range.1) });
            }
        }
        blocks
    }
}

impl Changed {
    /// The block changed. If no other has its turn, all have it that are owed.
    fn touch(&mut self, block: (u64, u64), tells: u8) {
        self.forget(|offset| (block.0..block.1).contains(&offset));
        if self.due == 0 {
            self.due = self.recent.iter().rposition(|r| r.owed > 0).map_or(0, |oldest| oldest + 1);
        }
        self.recent.push_front(Recent { offset: block.0, owed: tells });
        self.due += 1;
        self.recent.truncate(self.due.max(MEMORY));
    }

    /// Those that have their turn but for the latest `later`, and older ones after them.
    fn turn(&mut self, later: usize) -> impl Iterator<Item = u64> {
        let told = self.recent.iter_mut().take(self.due).skip(later);
        told.for_each(|r| r.owed = r.owed.saturating_sub(1));
        self.due = later;
        self.recent.iter().skip(later).map(|r| r.offset)
    }

    fn clear(&mut self) {
        self.recent.clear();
        self.due = 0;
    }

    /// Most often there is nothing to forget, and to look is cheap.
    #[inline]
    fn forget(&mut self, what: impl Fn(u64) -> bool) {
        if self.recent.iter().any(|r| what(r.offset)) {
            self.due -= self.recent.iter().take(self.due).filter(|r| what(r.offset)).count();
            self.recent.retain(|r| !what(r.offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(offset: u64) -> Seq {
        Seq(offset as u32)
    }

    fn starts(blocks: SackBlocks) -> Vec<u32> {
        blocks.iter().map(|block| block.start.0).collect()
    }

    #[test]
    fn the_latest_block_comes_first_and_none_twice() {
        let (mut held, mut sack) = (Ranges::default(), SackReporter::default());
        for start in [10, 30, 50, 70, 20] {
            let block = held.insert(start, start + 10);
            sack.touch(PathId(0), start, block);
        }
        let blocks = |b: SackBlocks| b.iter().map(|b| (b.start.0, b.end.0)).collect::<Vec<_>>();
        assert_eq!(
            blocks(sack.blocks(PathId(0), Some(20), None, &held, 3, seq)),
            [(10, 40), (70, 80), (50, 60)]
        );
        held.remove_below(60);
        assert_eq!(blocks(sack.blocks(PathId(0), Some(20), None, &held, 4, seq)), [(70, 80)]);
        let again = Some((72, 75));
        assert_eq!(blocks(sack.blocks(PathId(0), Some(72), again, &held, 4, seq)), [(72, 75), (70, 80)]);
    }

    #[test]
    fn an_acknowledgment_tells_of_its_own_path() {
        let (mut held, mut sack) = (Ranges::default(), SackReporter::default());
        for (path, start) in [(0, 10), (1, 30), (1, 50), (0, 70), (1, 90)] {
            let block = held.insert(start, start + 10);
            sack.touch(PathId(path), start, block);
        }
        assert_eq!(starts(sack.blocks(PathId(0), Some(70), None, &held, 4, seq)), [70, 10]);
        assert_eq!(starts(sack.blocks(PathId(1), None, None, &held, 4, seq)), [90, 50, 30]);
    }

    #[test]
    fn more_news_than_fit_are_told_oldest_first_and_then_again() {
        let (mut held, mut sack) = (Ranges::default(), SackReporter::default());
        let path = PathId(0);
        sack.share(true);
        for start in [10, 30, 50, 70, 75, 90] {
            let block = held.insert(start, start + 10);
            sack.touch(path, start, block);
        }
        let next = |sack: &mut SackReporter| starts(sack.blocks(path, None, None, &held, 3, seq));
        assert_eq!(next(&mut sack), [50, 30, 10]);
        assert!(sack.has_news(path));
        assert_eq!(next(&mut sack), [90, 70, 50]);
        assert!(!sack.has_news(path));
    }

    #[test]
    fn each_change_is_told_in_two_acknowledgments_that_do_not_leave_together() {
        let (mut held, mut sack) = (Ranges::default(), SackReporter::default());
        let path = PathId(0);
        sack.share(true);
        let mut told = [0; 40];
        for round in 0..8 {
            for start in [0, 20, 40].map(|n| 100 * round + 10 + n) {
                let block = held.insert(start, start + 10);
                sack.touch(path, start, block);
            }
            let mut this_round = [0; 40];
            while sack.has_news(path) {
                for block in sack.blocks(path, None, None, &held, 3, |o| Seq(o as u32)).iter() {
                    this_round[block.start.0 as usize / 20] = 1;
                }
            }
            (0..40).for_each(|n| told[n] += this_round[n]);
        }
        let changed = (0..7).flat_map(|round| [0, 20, 40].map(|n| (100 * round + 10 + n) / 20));
        changed.for_each(|n| assert!(told[n] >= 2, "{n}: {told:?}"));
    }
}
