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
    /// Duplicates that let a packet go each.
    limited_transmit: u32,
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
            limited_transmit: threshold.max(1) - 1,
            episode,
            recover: None,
            recovering: None,
        }
    }

    /// So many duplicates let a packet go each, before they mean a loss (RFC 3042).
    pub fn limited_transmit_of(self, duplicates: u32) -> Self {
        Self { limited_transmit: duplicates, ..self }
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
        if self.recovers(path, board) {
            self.recovering = None;
            return out.push(Verdict::Recovered(self.episode));
        }
        let Some(recovery) = &mut self.recovering else { return self.enter(path, board, out) };
        if recovery.path != path || recovery.una == board.una() {
            return;
        }
        recovery.una = board.una(); // §3.2 step 3, partial acknowledgment
        recovery.partial_acks += 1;
        if let Some((id, _)) = board.head() {
            out.push(Verdict::Lost { id, cause: LossCause::PartialAck, episode: self.episode });
        }
    }

    /// By a full acknowledgment (§3.2 step 3), or in Reno by any that is new (RFC 5681 §3.2 step 6).
    fn recovers(&self, path: PathId, board: &Scoreboard) -> bool {
        let advanced = |r: &Recovery| r.path == path && r.una < board.una();
        let full = || self.recover.is_none_or(|recover| board.una() >= recover);
        self.recovering.as_ref().is_some_and(advanced) && (!self.partial_acks || full())
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
        self.limited_transmit
    }

    fn holds_timer(&self, path: PathId) -> bool {
        let held = |r: &Recovery| r.path == path && r.partial_acks > 1;
        self.impatient && self.recovering.as_ref().is_some_and(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::bandwidth::DeliveryMark;

    const A: PathId = PathId(0);

    fn judge(policy: &mut Dupack, board: &Scoreboard) -> Vec<Verdict> {
        let mut out = Vec::new();
        policy.judge(Instant::ZERO, A, board, &PathView::new(A, 10), &mut out);
        out
    }

    /// Ten segments of 10 bytes, the first of which is lost.
    fn recovering(partial_acks: bool) -> (Dupack, Scoreboard) {
        let mut board = Scoreboard::default();
        board.add_lane(A);
        (0..10).for_each(|_| board.send_new(Instant::ZERO, A, 10, DeliveryMark::default()));
        (0..3).for_each(|_| board.count_dupack());
        let mut policy = Dupack::new(3, partial_acks, true);
        assert!(matches!(judge(&mut policy, &board)[..], [Verdict::Lost { id: 0, .. }]));
        board.mark_lost(0);
        assert!(!policy.recovers(A, &board));
        (policy, board)
    }

    #[test]
    fn newreno_recovers_by_the_full_acknowledgment() {
        let (mut policy, mut board) = recovering(true);
        board.ack_up_to(40);
        assert!(!policy.recovers(A, &board), "it is partial");
        assert!(matches!(judge(&mut policy, &board)[..], [Verdict::Lost { id: 4, .. }]));
        board.ack_up_to(100);
        assert!(policy.recovers(A, &board));
        assert_eq!(judge(&mut policy, &board), [Verdict::Recovered(Episode(1))]);
        assert!(!policy.recovers(A, &board), "it has recovered");
    }

    #[test]
    fn reno_recovers_by_any_new_acknowledgment() {
        let (mut policy, mut board) = recovering(false);
        board.ack_up_to(40);
        assert!(policy.recovers(A, &board));
        assert_eq!(judge(&mut policy, &board), [Verdict::Recovered(Episode(1))]);
    }
}
