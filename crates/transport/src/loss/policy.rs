//! The seam between the connection and what it takes for a loss.

use polypath_wire::{Duration, Instant, PathId};

use super::scoreboard::{Scoreboard, SentId};
use crate::facts::{Episode, LossCause, PathView};

/// A judgement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Verdict {
    /// The segment is lost and has to be sent again. A new episode costs the path a reduction.
    Lost {
        /// Which segment.
        id: SentId,
        /// Why.
        cause: LossCause,
        /// In which episode.
        episode: Episode,
    },
    /// A tail probe brought what had been lost: no segment is missing, but the path owes a reduction.
    Repaired(Episode),
    /// The episode is over: the path's window may grow again.
    Recovered(Episode),
    /// The episode was reordering.
    Undo(Episode),
    /// Ask again at this instant, whatever arrives.
    RecheckAt(Instant),
}

/// Judges losses after every acknowledgment. The retransmission timer stands behind every policy.
pub trait LossPolicy: std::fmt::Debug + Send {
    /// Judges `path`; called for every path after every acknowledgment, and at the instants asked for.
    fn judge(
        &mut self,
        now: Instant,
        path: PathId,
        board: &Scoreboard,
        view: &PathView,
        out: &mut Vec<Verdict>,
    );

    /// Whether what was just acknowledged ends the present episode of `path`: [`judge`](Self::judge) is about
    /// to say so, and the window may grow by this acknowledgment already.
    fn recovers(&self, _path: PathId, _board: &Scoreboard) -> bool {
        false
    }

    /// The retransmission timer of `path` expired and all that was in flight there counts as lost, in
    /// the episode returned.
    fn on_timeout(&mut self, path: PathId, board: &Scoreboard) -> Episode;

    /// Whether it ever probes tails.
    fn probes(&self) -> bool {
        false
    }

    /// After how long without news of `path` its tail is probed (RFC 8985 §7.2), if at all.
    fn probe_after(&self, _path: PathId, _board: &Scoreboard, _view: &PathView) -> Option<Duration> {
        None
    }

    /// The tail of `path` is probed by what will be its next transmission.
    fn on_probe(&mut self, _path: PathId, _board: &Scoreboard) {}

    /// The present episode of `path` proved to be reordering: it is over.
    fn on_undo(&mut self, _path: PathId) {}

    /// Whether a timeout is undone that turns out to have been for nothing (RFC 4015).
    fn undoes_timeouts(&self) -> bool {
        false
    }

    /// How many duplicates let a new segment leave each before they mean a loss, without SACK: limited
    /// transmit (RFC 3042), extended to larger thresholds (RFC 4653 §3.2).
    fn limited_transmit(&self) -> u32 {
        2
    }

    /// Whether the timer goes on running through this acknowledgment (RFC 6582 §4, "impatient").
    fn holds_timer(&self, _path: PathId) -> bool {
        false
    }
}
