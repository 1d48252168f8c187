//! Duplicate acknowledgments: Reno (RFC 5681 §3.2) and NewReno (RFC 6582 §3.2).
//!
//! One recovery for the connection, charged to the path that the missing segment was sent on. On one
//! path this is RFC 6582 to the letter, with the "impatient" timer as an option.

use polypath_wire::{Instant, PathId};

use super::policy::{LossPolicy, Verdict};
use super::scoreboard::Scoreboard;
use crate::facts::{Episode, LossCause, PathView};

/// Reno or NewReno.
#[derive(Debug)]
pub struct Dupack {
    threshold: u32,
    partial_acks: bool,
    impatient: bool,
    episode: Episode,
    /// Nothing below was sent after the last reduction (RFC 6582's `recover`).
    recover: Option<u64>,
    recovering: Option<Recovery>,
}

#[derive(Debug)]
struct Recovery {
    path: PathId,
    /// Where the cumulative acknowledgment stood when we last looked.
    una: u64,
    partial_acks: u32,
}

impl Dupack {
    /// `threshold` duplicates mean a loss; without `partial_acks` any new acknowledgment ends it;
    /// `impatient`: only the first partial acknowledgment restarts the retransmission timer.
    pub fn new(threshold: u32, partial_acks: bool, impatient: bool) -> Self {
        let episode = Episode::default();
        Self {
            threshold: threshold.max(1),
            partial_acks,
            impatient,
            episode,
            recover: None,
            recovering: None,
        }
    }

    fn enter(&mut self, path: PathId, board: &Scoreboard, out: &mut Vec<Verdict>) {
        let Some((id, head)) = board.head() else { return };
        // §3.2 step 1: not for duplicates that our own retransmissions after a timeout caused
        let beyond = self.recover.is_none_or(|recover| board.una() > recover);
        if head.path != path || board.dupacks() < self.threshold || !beyond {
            return;
        }
        self.episode.0 += 1;
        self.recover = Some(board.nxt());
        self.recovering = Some(Recovery { path, una: board.una(), partial_acks: 0 });
        out.push(Verdict::Lost { id, cause: LossCause::DupAck, episode: self.episode });
    }
}

impl LossPolicy for Dupack {
    fn judge(&mut self, _: Instant, path: PathId, board: &Scoreboard, _: &PathView, out: &mut Vec<Verdict>) {
        let Some(recovery) = &mut self.recovering else { return self.enter(path, board, out) };
        if recovery.path != path || recovery.una == board.una() {
            return;
        }
        let full = self.recover.is_none_or(|recover| board.una() >= recover);
        if full || !self.partial_acks {
            self.recovering = None;
            return out.push(Verdict::Recovered(self.episode));
        }
        recovery.una = board.una(); // §3.2 step 3, partial acknowledgment
        recovery.partial_acks += 1;
        if let Some((id, _)) = board.head() {
            out.push(Verdict::Lost { id, cause: LossCause::PartialAck, episode: self.episode });
        }
    }

    fn on_timeout(&mut self, _: PathId, board: &Scoreboard) -> Episode {
        self.episode.0 += 1;
        self.recover = Some(board.nxt()); // §3.2 step 4
        self.recovering = None;
        self.episode
    }

    fn on_undo(&mut self, _: PathId) {
        self.recovering = None;
        self.recover = None;
    }

    fn limited_transmit(&self) -> u32 {
        self.threshold - 1
    }

    fn holds_timer(&self, path: PathId) -> bool {
        let held = |r: &Recovery| r.path == path && r.partial_acks > 1;
        self.impatient && self.recovering.as_ref().is_some_and(held)
    }
}
