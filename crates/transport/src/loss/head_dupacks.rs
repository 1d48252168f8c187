//! SACK with the SMART option, read to the letter of paper 000 §IV.E: the first missing packet is what
//! duplicates are about, and its path is charged with them.
//!
//! | text | here |
//! |---|---|
//! | "determines from which path the next expected packet is missing" | the path of the head of the scoreboard |
//! | "three consecutive acknowledgements about the missing packet" | duplicates since the cumulative acknowledgment moved, at least `threshold` |
//! | "does not retransmit the reordered packets, which are buffered" | the scoreboard: only the head is ever judged lost |
//!
//! The other reading, in which only packets of the same path count as evidence (a virtual queue per
//! path), is `virtual_queue.rs`. This one takes what overtook on another path for evidence too, so it
//! wants a `threshold` of the order of the reordering.
//!
//! Each path recovers on its own: a hole found on a path that is not recovering is a new episode there.
//! A partial acknowledgment retransmits nothing by itself, for what is missing next may be late only.

use polypath_wire::{Instant, PathId};

use super::episodes::Episodes;
use super::policy::{LossPolicy, Verdict};
use super::scoreboard::Scoreboard;
use crate::facts::{Episode, LossCause, PathView};

/// Duplicates about the first missing packet, per path.
#[derive(Debug)]
pub struct HeadDupacks {
    threshold: u32,
    /// Each lasts until everything below the offset that was next when it began has arrived.
    episodes: Episodes,
}

impl HeadDupacks {
    /// `threshold` duplicates about a packet mean that it is lost.
    pub fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), episodes: Episodes::default() }
    }
}

impl LossPolicy for HeadDupacks {
    fn judge(&mut self, _: Instant, path: PathId, board: &Scoreboard, _: &PathView, out: &mut Vec<Verdict>) {
        let over = self.episodes.end_if(path, |begun| board.una() >= begun.until);
        out.extend(over.map(|begun| Verdict::Recovered(begun.episode)));
        let Some((id, head)) = board.head().filter(|(_, head)| head.path == path) else { return };
        if board.dupacks() < self.threshold || head.retransmitted() || !board.is_in_flight(id) {
            return;
        }
        let present = self.episodes.present(path);
        let begun = present.unwrap_or_else(|| self.episodes.begin(path, board.nxt()));
        out.push(Verdict::Lost { id, cause: LossCause::DupAck, episode: begun.episode });
    }

    fn on_timeout(&mut self, path: PathId, board: &Scoreboard) -> Episode {
        self.episodes.begin(path, board.nxt()).episode
    }

    fn on_undo(&mut self, path: PathId) {
        self.episodes.forget(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::bandwidth::DeliveryMark;

    const PATHS: [PathId; 2] = [PathId(0), PathId(1)];

    /// Segments of 10 bytes sent in turn on two paths: even numbers on the first.
    fn in_turn(n: usize) -> Scoreboard {
        let mut board = Scoreboard::default();
        PATHS.iter().for_each(|path| board.add_lane(*path));
        (0..n).for_each(|i| board.send_new(Instant::ZERO, PATHS[i % 2], 10, DeliveryMark::default()));
        board
    }

    fn judge(policy: &mut HeadDupacks, board: &Scoreboard) -> Vec<Verdict> {
        let mut out = Vec::new();
        PATHS.iter().for_each(|p| policy.judge(Instant::ZERO, *p, board, &PathView::new(*p, 10), &mut out));
        out
    }

    fn lost(id: u64, episode: u32) -> Verdict {
        Verdict::Lost { id, cause: LossCause::DupAck, episode: Episode(episode) }
    }

    #[test]
    fn the_path_of_the_first_missing_packet_is_charged() {
        let (mut policy, mut board) = (HeadDupacks::new(3), in_turn(10));
        board.ack_up_to(10); // 1 is missing, on the second path; 2, 4 and 6 arrive on the first
        for (n, start) in [20, 40, 60].into_iter().enumerate() {
            assert_eq!(judge(&mut policy, &board), [], "after {n} duplicates");
            board.sack(start, start + 10);
            board.count_dupack();
        }
        assert_eq!(judge(&mut policy, &board), [lost(1, 1)]);
        board.mark_lost(1);
        assert_eq!(judge(&mut policy, &board), [], "once");
    }

    #[test]
    fn a_hole_on_another_path_is_another_episode() {
        let (mut policy, mut board) = (HeadDupacks::new(1), in_turn(10));
        board.count_dupack();
        assert_eq!(judge(&mut policy, &board), [lost(0, 1)]);
        board.mark_lost(0);
        board.ack_up_to(10); // partial: nothing goes again on its word
        assert_eq!(judge(&mut policy, &board), []);
        board.count_dupack();
        assert_eq!(judge(&mut policy, &board), [lost(1, 2)]);
        board.mark_lost(1);
        board.ack_up_to(20);
        board.count_dupack();
        assert_eq!(judge(&mut policy, &board), [lost(2, 1)], "the first path still recovers");
        board.mark_lost(2);
        board.ack_up_to(100);
        assert_eq!(
            judge(&mut policy, &board),
            [Verdict::Recovered(Episode(1)), Verdict::Recovered(Episode(2))]
        );
    }
}
