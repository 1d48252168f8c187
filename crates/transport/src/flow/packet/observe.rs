//! What a flow of packets reports.

use polypath_wire::{Duration, PathId};

use super::again::Kept;
use super::{PacketFlow, PacketStats, QueueStats};
use crate::engine::stats::PathStats;
use crate::facts::PathState;

impl PacketFlow {
    /// Whether a path may carry packets.
    pub fn path_state(&self, path: PathId) -> PathState {
        self.engine.path_state(path)
    }

    /// Counters and state of one path; zeros for a path that is not there.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        match self.paths.contains(path) {
            true => self.engine.path_stats(path),
            false => PathStats::default(),
        }
    }

    /// Counters.
    pub fn stats(&self) -> PacketStats {
        let (gaps, waited) = self.resequencer.given_up();
        let QueueStats { dropped, marked: congested } = self.queue.stats();
        PacketStats { gaps, waited, dropped, congested, uncopied: self.copies.given_up(), ..self.stats }
    }

    /// Bytes of packets that wait for a path.
    pub fn waiting(&self) -> u64 {
        let again: u64 = self.again.iter().map(Kept::len).sum();
        self.queue.bytes() + self.head.as_ref().map_or(0, |head| head.bytes.len() as u64) + again
    }

    /// For how long a gap is waited for now, at most.
    pub fn allowance(&self) -> Duration {
        self.resequencer.allowance()
    }
}
