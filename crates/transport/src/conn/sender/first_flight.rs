//! How fast the first segments of a path arrived, by the acknowledgments that come back by the path itself.
//!
//! Of several paths the acknowledgments of the quickest tell first, and all at once, what arrived on a slower one. Those of
//! the path itself come later and say nothing new. But they come as its bottleneck let the segments through, one after the
//! other: a train (`path/trains.rs`). So the rate of each path is known after its first flight.

use polypath_wire::{Instant, PathId};

use super::{Ack, Sender};
use crate::engine::Engine;
use crate::path_map::OfPath;

/// Segments that are remembered: an initial window.
const MOST: usize = 10;

/// The first segments of one path.
#[derive(Debug)]
pub(super) struct FirstFlight {
    path: PathId,
    /// First offset, the offset behind the last, and when it left.
    sent: Vec<(u64, u64, Instant)>,
    /// Of how many the path's own acknowledgments told.
    told: usize,
}

impl OfPath for FirstFlight {
    fn path(&self) -> PathId {
        self.path
    }
}

impl FirstFlight {
    /// What `ack`, which came by the path itself, tells for the first time: bytes, and when the newest of them left.
    fn hear(&mut self, ack: &Ack<'_>) -> Option<(u64, Instant)> {
        let has = |(from, to, _): &(u64, u64, Instant)| {
            *to <= ack.una || ack.blocks.iter().any(|block| block.0 <= *from && *to <= block.1)
        };
        let told = self.sent.iter().take_while(|segment| has(segment)).count();
        let news = self.sent.get(self.told..told)?;
        self.told = told.max(self.told);
        let (_, _, left) = news.last()?;
        Some((news.iter().map(|(from, to, _)| to - from).sum(), *left))
    }
}

impl Sender {
    /// `len` bytes from `offset` on leave on `path` for the first time.
    #[inline]
    pub(super) fn note_first(&mut self, now: Instant, path: PathId, offset: u64, len: u32, engine: &Engine) {
        if engine.goes_by_trains() {
            self.keep_first(now, path, offset, len);
        }
    }

    #[inline(never)]
    fn keep_first(&mut self, now: Instant, path: PathId, offset: u64, len: u32) {
        let new = |path| FirstFlight { path, sent: Vec::with_capacity(MOST), told: 0 };
        let sent = &mut self.first.or_insert(path, new).sent;
        if sent.len() < MOST {
            sent.push((offset, offset + u64::from(len), now));
        }
    }

    /// After `ack` was taken: what it tells of the first flight of the path that it came by.
    #[inline]
    pub(super) fn hear_first(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine) {
        if self.first.is_empty() {
            return;
        }
        let under_way = |first: &&mut FirstFlight| first.told < first.sent.len();
        let first = self.first.get_mut(ack.path).filter(under_way);
        if let Some((bytes, sent_at)) = first.and_then(|first| first.hear(ack)) {
            engine.on_first_flight(now, ack.path, bytes, sent_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_acknowledgment_tells_of_what_arrived_since_the_one_before() {
        let at = Instant;
        let sent = (0..4).map(|n| (1000 * n, 1000 * n + 1000, at(n))).collect();
        let mut first = FirstFlight { path: PathId::FIRST, sent, told: 0 };
        let ack = |una, blocks| Ack {
            path: PathId::FIRST,
            route: PathId::FIRST,
            una,
            blocks,
            bare: true,
            pure: true,
            echo: None,
            reverse: None,
        };
        assert_eq!(first.hear(&ack(500, &[])), None);
        assert_eq!(first.hear(&ack(2000, &[])), Some((2000, at(1))));
        assert_eq!(first.hear(&ack(1000, &[])), None, "an old one");
        assert_eq!(first.hear(&ack(0, &[(0, 3500)])), Some((1000, at(2))));
        assert_eq!(first.hear(&ack(9000, &[])), Some((1000, at(3))));
    }
}
