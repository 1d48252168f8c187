//! Selective acknowledgments: what they deliver, for which lane they are evidence, and what if they are taken back.

use polypath_wire::{Instant, PathId};

use super::{Status, StreamMap};
use crate::engine::Engine;
use crate::path::bandwidth::DeliveryMark;
use crate::path::transmission::{Cargo, Fate, History, Transmission};

impl StreamMap {
    /// The peer holds `start..end`. Returns whether the block can be true.
    pub(crate) fn sack(&mut self, start: u64, end: u64, engine: &mut Engine) -> bool {
        if start >= end || end > self.nxt {
            return false;
        }
        let start = start.max(self.una);
        if start >= end {
            return true; // a duplicate reported (RFC 2883), or an old acknowledgment
        }
        let mut gaps = std::mem::take(&mut self.gaps);
        let mut from = start;
        while let Some(gap) = self.sacked.first_gap(from, end) {
            gaps.push(gap);
            from = gap.1;
        }
        if !gaps.is_empty() {
            let known = self.sacked.insert(start, end);
            for gap in gaps.drain(..) {
                self.sack_gap(gap, known, engine);
            }
            engine.trim();
        }
        self.gaps = gaps;
        true
    }

    fn sack_gap(&mut self, gap: (u64, u64), known: (u64, u64), engine: &mut Engine) {
        let mut i = self.sent.partition_point(|s| s.end() <= gap.0);
        while let Some(sent) = self.sent.get(i).copied()
            && sent.offset < gap.1
        {
            if known.0 <= sent.offset && sent.end() <= known.1 {
                self.deliver(&sent, false, engine);
                self.sent[i].status = Status::Sacked;
            }
            i += 1;
        }
    }

    /// An acknowledgment of everything below `una` and of `blocks` came on `path`: what it covers there.
    #[inline]
    pub(crate) fn vouch(&self, path: PathId, una: u64, blocks: &[(u64, u64)], engine: &mut Engine) {
        let covers = |transmission: &Transmission| {
            let Cargo { key, len, .. } = transmission.cargo;
            let end = key + u64::from(len);
            match end <= self.una {
                true => una == self.una,
                false => blocks.iter().any(|b| b.0 <= key && end <= b.1),
            }
        };
        engine.flight_mut(path).into_iter().for_each(|flight| flight.vouch(covers));
    }

    /// The peer took back what it had acknowledged selectively (RFC 2018 §8), as a timeout with the
    /// head selectively acknowledged shows: all of it counts as lost.
    pub(crate) fn renege(&mut self, engine: &mut Engine) {
        self.sacked.clear();
        for sent in self.sent.iter_mut().filter(|s| s.status == Status::Sacked) {
            let known = engine.flight_mut(sent.path).and_then(|flight| flight.renege(sent.number));
            // of what the lane has forgotten nothing can be measured any more
            let cargo = Cargo { key: sent.offset, len: sent.len, history: History::Again };
            let forgotten = Transmission::new(cargo, Instant::ZERO, DeliveryMark::default());
            sent.status = Status::Lost;
            self.lost.insert(sent.offset, known.unwrap_or(Transmission { fate: Fate::Lost, ..forgotten }));
        }
    }
}

#[cfg(test)]
mod tests;
