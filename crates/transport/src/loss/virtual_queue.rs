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

use super::episodes::Episodes;
use super::policy::{LossPolicy, Verdict};
use super::scoreboard::Scoreboard;
use crate::facts::{Episode, LossCause, PathView};

/// One virtual queue per path.
#[derive(Debug)]
pub struct VirtualQueue {
    threshold: u32,
    episodes: Episodes,
}

impl VirtualQueue {
    /// `threshold` later packets delivered on a path mean a loss there.
    pub fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), episodes: Episodes::default() }
    }
}

impl LossPolicy for VirtualQueue {
    fn judge(&mut self, _: Instant, path: PathId, board: &Scoreboard, _: &PathView, out: &mut Vec<Verdict>) {
        for (id, sent) in board.overtaken(path, self.threshold) {
            let present = self.episodes.present(path).filter(|begun| sent.tx < begun.until);
            let begun = present.unwrap_or_else(|| self.episodes.begin(path, board.next_tx(path)));
            out.push(Verdict::Lost { id, cause: LossCause::LaterDelivered, episode: begun.episode });
        }
        if out.is_empty() {
            let over = self.episodes.end_if(path, |begun| begun.is_over(path, board));
            out.extend(over.map(|begun| Verdict::Recovered(begun.episode)));
        }
    }

    fn on_timeout(&mut self, path: PathId, board: &Scoreboard) -> Episode {
        self.episodes.begin(path, board.next_tx(path)).episode
    }

    fn on_undo(&mut self, path: PathId) {
        self.episodes.forget(path);
    }
}
