//! ADDR, the allowable delay due to reordering (paper 000 §IV.D): what arrives after all within this
//! time of being reported missing was late, not lost, and the path gets back what it had.
//!
//! | text | here |
//! |---|---|
//! | ADDR | `allowance`, from the report of the congestion on |
//! | "the missing sequence number has arrived … and the corresponding ACK arrives" | every segment judged lost in the episode is acknowledged, cumulatively or selectively |
//! | "cwnd and ssthresh … returned to the values prior" | [`Verdict::Undo`], which the controller carries out |
//!
//! ADDR is smaller than the smallest round trip time (`LossConfig::check` sees to it), so no
//! retransmission can be answered in time: whatever is acknowledged was the original.
//!
//! The text speaks of one missing number. Where an episode has several, all of them must arrive.

use polypath_wire::{Duration, Instant, PathId};

use super::policy::{LossPolicy, Verdict};
use super::scoreboard::Scoreboard;
use crate::facts::{Episode, PathView};
use crate::path_map::{OfPath, PathMap};

/// Gives another policy second thoughts.
#[derive(Debug)]
pub struct Addr {
    inner: Box<dyn LossPolicy>,
    allowance: Duration,
    /// Episodes that may still prove to be reordering.
    doubts: Vec<Doubt>,
    /// The last episode seen on each path: only its beginning is a report of congestion.
    latest: PathMap<Latest>,
}

#[derive(Debug)]
struct Latest {
    path: PathId,
    episode: Option<Episode>,
}

impl OfPath for Latest {
    fn path(&self) -> PathId {
        self.path
    }
}

#[derive(Debug)]
struct Doubt {
    path: PathId,
    episode: Episode,
    until: Instant,
    /// First offsets of what is missing.
    missing: Vec<u64>,
}

impl Addr {
    /// What `inner` judges lost may still arrive within `allowance`.
    pub fn new(inner: Box<dyn LossPolicy>, allowance: Duration) -> Self {
        Self { inner, allowance, doubts: Vec::new(), latest: PathMap::default() }
    }

    /// The episode of `path` in which nothing is missing any more, if there is one.
    fn resolved(&mut self, now: Instant, path: PathId, board: &Scoreboard) -> Option<Episode> {
        self.doubts.retain(|d| now <= d.until);
        let arrived = |d: &Doubt| d.path == path && d.missing.iter().all(|o| board.is_delivered(*o));
        let i = self.doubts.iter().position(arrived)?;
        Some(self.doubts.swap_remove(i).episode)
    }

    fn remember(&mut self, now: Instant, path: PathId, episode: Episode, offset: u64) {
        if let Some(doubt) = self.doubts.iter_mut().find(|d| d.path == path && d.episode == episode) {
            return doubt.missing.push(offset);
        }
        let latest = self.latest.or_insert(path, |path| Latest { path, episode: None });
        if latest.episode.replace(episode) != Some(episode) {
            let until = now + self.allowance;
            self.doubts.push(Doubt { path, episode, until, missing: vec![offset] });
        }
    }
}

impl LossPolicy for Addr {
    fn judge(
        &mut self,
        now: Instant,
        path: PathId,
        board: &Scoreboard,
        view: &PathView,
        out: &mut Vec<Verdict>,
    ) {
        if let Some(episode) = self.resolved(now, path, board) {
            self.inner.on_undo(path);
            return out.push(Verdict::Undo(episode));
        }
        let before = out.len();
        self.inner.judge(now, path, board, view, out);
        for verdict in &out[before..] {
            if let Verdict::Lost { id, episode, .. } = *verdict
                && let Some(sent) = board.segment(id)
            {
                self.remember(now, path, episode, sent.offset);
            }
        }
    }

    fn recovers(&self, path: PathId, board: &Scoreboard) -> bool {
        self.inner.recovers(path, board)
    }

    fn on_timeout(&mut self, path: PathId, board: &Scoreboard) -> Episode {
        self.doubts.retain(|d| d.path != path);
        self.inner.on_timeout(path, board)
    }

    fn on_undo(&mut self, path: PathId) {
        self.inner.on_undo(path);
    }

    fn probes(&self) -> bool {
        self.inner.probes()
    }

    fn probe_after(&self, path: PathId, board: &Scoreboard, view: &PathView) -> Option<Duration> {
        self.inner.probe_after(path, board, view)
    }

    fn on_probe(&mut self, path: PathId, board: &Scoreboard) {
        self.inner.on_probe(path, board);
    }

    fn limited_transmit(&self) -> u32 {
        self.inner.limited_transmit()
    }

    fn holds_timer(&self, path: PathId) -> bool {
        self.inner.holds_timer(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::dupack::Dupack;
    use crate::path::bandwidth::DeliveryMark;

    const A: PathId = PathId(0);
    const MS: fn(u64) -> Instant = |n| Instant(n * 1_000_000);

    /// Ten segments of 10 bytes, of which the first is missing: three duplicates report it at 100 ms.
    fn reported(allowance: u64) -> (Addr, Scoreboard, Vec<Verdict>) {
        let mut board = Scoreboard::default();
        board.add_lane(A);
        (0..10).for_each(|_| board.send_new(MS(0), A, 10, DeliveryMark::default()));
        (0..3).for_each(|_| board.count_dupack());
        let mut addr = Addr::new(Box::new(Dupack::new(3, true, true)), Duration::from_millis(allowance));
        let out = judge(&mut addr, &board, MS(100));
        (addr, board, out)
    }

    fn judge(addr: &mut Addr, board: &Scoreboard, now: Instant) -> Vec<Verdict> {
        let mut out = Vec::new();
        addr.judge(now, A, board, &PathView::new(A, 10), &mut out);
        out
    }

    #[test]
    fn what_arrives_in_time_was_reordering() {
        let (mut addr, mut board, out) = reported(50);
        assert!(matches!(out[..], [Verdict::Lost { id: 0, episode: Episode(1), .. }]));
        board.mark_lost(0);
        assert_eq!(judge(&mut addr, &board, MS(120)), []);
        board.ack_up_to(40);
        assert_eq!(judge(&mut addr, &board, MS(150)), [Verdict::Undo(Episode(1))]);
        // and the next report is a new episode
        (0..3).for_each(|_| board.count_dupack());
        let again = judge(&mut addr, &board, MS(160));
        assert!(matches!(again[..], [Verdict::Lost { id: 4, episode: Episode(2), .. }]), "{again:?}");
    }

    #[test]
    fn what_arrives_later_was_lost() {
        let (mut addr, mut board, _) = reported(50);
        board.mark_lost(0);
        board.ack_up_to(100);
        assert_eq!(judge(&mut addr, &board, MS(151)), [Verdict::Recovered(Episode(1))]);
    }

    #[test]
    fn a_timeout_leaves_no_doubt() {
        let (mut addr, mut board, _) = reported(50);
        board.mark_lost(0);
        addr.on_timeout(A, &board);
        board.ack_up_to(40);
        assert_eq!(judge(&mut addr, &board, MS(110)), []);
    }
}
