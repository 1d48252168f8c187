//! Which SACK blocks to send (RFC 2018 §4): ahead of all what arrived again (RFC 2883 §4), then the one that the triggering segment is part of, then
//! the most recently reported others that arrived on the path the acknowledgment takes. Blocks of
//! another path would arrive out of turn: this path may be the faster one, and what it tells first of
//! the other's latest segments makes the sender believe that the ones before them are lost.

use polypath_wire::tcp::{SackBlock, SackBlocks};
use polypath_wire::{PathId, Seq};

use crate::ranges::Ranges;

/// Remembers the order in which blocks changed.
#[derive(Clone, Debug, Default)]
pub struct SackReporter {
    /// One offset in each of the blocks changed last, latest first, and on which path it came.
    recent: Vec<(PathId, u64)>,
}

/// Blocks remembered of one path, beyond the ones that fit one acknowledgment.
const MEMORY: usize = 8;

impl SackReporter {
    /// What is held now at `offset` arrived out of order on `path`.
    pub fn touch(&mut self, path: PathId, offset: u64) {
        let mut kept = 1;
        self.recent.retain(|&(p, o)| {
            kept += usize::from(p == path);
            p != path || (o != offset && kept <= MEMORY)
        });
        self.recent.insert(0, (path, offset));
    }

    /// Up to `max` blocks of `held` for an acknowledgment on `path`, written with `seq`, after the
    /// `duplicate` that caused it. Forgets what is not held any more.
    pub fn blocks(
        &mut self,
        path: PathId,
        trigger: u64,
        duplicate: Option<(u64, u64)>,
        held: &Ranges,
        max: usize,
        seq: impl Fn(u64) -> Seq,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some((start, end)) = duplicate {
            blocks.push(SackBlock { start: seq(start), end: seq(end) });
        }
        let max = max - usize::from(duplicate.is_some());
        if held.is_empty() {
            self.recent.clear();
            return blocks;
        }
        let next = held.iter().next().map_or(0, |(start, _)| start);
        self.recent.retain(|(_, o)| *o >= next); // what is held is held until all before it has come
        let mut chosen: [(u64, u64); 4] = [(0, 0); 4];
        let mut n = 0;
        let recent = self.recent.iter().filter(|(p, _)| *p == path).map(|(_, o)| *o);
        for offset in std::iter::once(trigger).chain(recent) {
            let Some(range) = held.containing(offset) else { continue };
            if n == max.min(4) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_block_comes_first_and_none_twice() {
        let (mut held, mut sack) = (Ranges::default(), SackReporter::default());
        for start in [10, 30, 50, 70, 20] {
            held.insert(start, start + 10);
            sack.touch(PathId(0), start);
        }
        let starts = |b: SackBlocks| b.iter().map(|b| (b.start.0, b.end.0)).collect::<Vec<_>>();
        let seq = |o: u64| Seq(o as u32);
        assert_eq!(starts(sack.blocks(PathId(0), 20, None, &held, 3, seq)), [(10, 40), (70, 80), (50, 60)]);
        held.remove_below(60);
        assert_eq!(starts(sack.blocks(PathId(0), 20, None, &held, 4, seq)), [(70, 80)]);
        let again = Some((72, 75));
        assert_eq!(starts(sack.blocks(PathId(0), 72, again, &held, 4, seq)), [(72, 75), (70, 80)]);
    }

    #[test]
    fn an_acknowledgment_tells_of_its_own_path() {
        let (mut held, mut sack) = (Ranges::default(), SackReporter::default());
        for (path, start) in [(0, 10), (1, 30), (1, 50), (0, 70), (1, 90)] {
            held.insert(start, start + 10);
            sack.touch(PathId(path), start);
        }
        let starts = |b: SackBlocks| b.iter().map(|b| b.start.0).collect::<Vec<_>>();
        let seq = |o: u64| Seq(o as u32);
        assert_eq!(starts(sack.blocks(PathId(0), 70, None, &held, 4, seq)), [70, 10]);
        assert_eq!(starts(sack.blocks(PathId(1), u64::MAX, None, &held, 4, seq)), [90, 50, 30]);
    }
}
