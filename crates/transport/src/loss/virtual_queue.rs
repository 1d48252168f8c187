//! Selective acknowledgments, counted per path (RFC 6675 with one virtual queue per path).
//!
//! A segment is lost once `threshold` segments sent after it *on the same path* were delivered; what
//! overtook it on other paths says nothing. On one path, with nothing sent twice, this is IsLost() of
//! RFC 6675 §4; since retransmissions are numbered anew, a lost retransmission is noticed too, as in
//! RFC 8985.
//!
//! An episode lasts until everything sent on the path before it is accounted for and something sent
//! after it was delivered. Losses of what was sent after it began are a new episode.

use polypath_wire::{Instant, PathId};

use super::policy::{LossPolicy, Verdict};
use super::scoreboard::Scoreboard;
use crate::facts::{Episode, LossCause, PathView};

/// One virtual queue per path.
#[derive(Debug)]
pub struct VirtualQueue {
    threshold: u32,
    episode: Episode,
    /// Per path: the first transmission after the present episode began, and the episode.
    recovering: Vec<Option<(u64, Episode)>>,
}

impl VirtualQueue {
    /// `threshold` later packets delivered on a path mean a loss there.
    pub fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), episode: Episode::default(), recovering: Vec::new() }
    }

    fn slot(&mut self, path: PathId) -> &mut Option<(u64, Episode)> {
        if self.recovering.len() <= path.index() {
            self.recovering.resize(path.index() + 1, None);
        }
        &mut self.recovering[path.index()]
    }

    fn begin(&mut self, path: PathId, board: &Scoreboard) -> (u64, Episode) {
        self.episode.0 += 1;
        let began = (board.next_tx(path), self.episode);
        *self.slot(path) = Some(began);
        began
    }
}

impl LossPolicy for VirtualQueue {
    fn judge(&mut self, _: Instant, path: PathId, board: &Scoreboard, _: &PathView, out: &mut Vec<Verdict>) {
        let mut present = *self.slot(path);
        for (id, sent) in board.overtaken(path, self.threshold) {
            let (_, episode) = match present {
                Some((after, episode)) if sent.tx < after => (after, episode),
                _ => *present.insert(self.begin(path, board)),
            };
            out.push(Verdict::Lost { id, cause: LossCause::LaterDelivered, episode });
        }
        let Some((after, episode)) = present.filter(|_| out.is_empty()) else { return };
        let resolved = board.oldest_in_flight(path).is_none_or(|s| s.tx >= after);
        if resolved && board.highest_delivered(path).is_some_and(|tx| tx >= after) {
            *self.slot(path) = None;
            out.push(Verdict::Recovered(episode));
        }
    }

    fn on_timeout(&mut self, path: PathId, board: &Scoreboard) -> Episode {
        self.begin(path, board).1
    }
    fn on_undo(&mut self, path: PathId) {
        *self.slot(path) = None;
    }
}
