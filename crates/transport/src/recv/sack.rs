//! Which SACK blocks to send (RFC 2018 §4): first the one that the triggering segment is part of, then
//! the most recently reported others.

use polypath_wire::Seq;
use polypath_wire::tcp::{SackBlock, SackBlocks};

use crate::ranges::Ranges;

/// Remembers the order in which blocks changed.
#[derive(Clone, Debug, Default)]
pub struct SackReporter {
    /// One offset in each of the blocks changed last, latest first.
    recent: Vec<u64>,
}

/// Blocks remembered beyond the ones that fit one acknowledgment.
const MEMORY: usize = 8;

impl SackReporter {
    /// Something at `offset` arrived out of order.
    pub fn touch(&mut self, offset: u64) {
        self.recent.retain(|o| *o != offset);
        self.recent.truncate(MEMORY - 1);
        self.recent.insert(0, offset);
    }

    /// Up to `max` blocks of `held`, written with `seq`. Forgets what is not held any more.
    pub fn blocks(
        &mut self,
        trigger: u64,
        held: &Ranges,
        max: usize,
        seq: impl Fn(u64) -> Seq,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if held.is_empty() {
            self.recent.clear();
            return blocks;
        }
        self.recent.retain(|o| held.containing(*o).is_some());
        let mut chosen: [(u64, u64); 4] = [(0, 0); 4];
        let mut n = 0;
        for offset in std::iter::once(trigger).chain(self.recent.iter().copied()) {
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
            sack.touch(start);
        }
        let starts = |b: SackBlocks| b.iter().map(|b| (b.start.0, b.end.0)).collect::<Vec<_>>();
        let seq = |o: u64| Seq(o as u32);
        assert_eq!(starts(sack.blocks(20, &held, 3, seq)), [(10, 40), (70, 80), (50, 60)]);
        held.remove_below(60);
        assert_eq!(starts(sack.blocks(20, &held, 4, seq)), [(70, 80)]);
    }
}
