//! What was sent, on which path, and what became of it (mechanism only: policies judge).
//!
//! All paths share one sequence space; each path also numbers its own transmissions. The order of
//! these numbers is the path's *lane*, the virtual queue in which reordering between paths does
//! not exist: a packet is overtaken only by later packets of the same lane.
//!
//! Here is what was sent. `sent.rs` tells what is remembered of one segment, `lane.rs` of one path; `acks.rs`
//! and `sack.rs` take acknowledgments, `lost.rs` verdicts; `queries.rs` answers who judges and who sends.

mod acks;
mod lane;
mod lost;
mod queries;
mod sack;
mod sent;

use std::collections::{BTreeSet, VecDeque};

use polypath_wire::{Instant, PathId};

use crate::path::bandwidth::DeliveryMark;
use crate::path_map::PathMap;
use crate::ranges::Ranges;
pub use lane::Delivery;
use lane::Lane;
pub use sent::{History, Sent, SentId, Status, TIMESTAMP_TICK};

/// The segments in flight of one connection.
#[derive(Debug, Default)]
pub struct Scoreboard {
    /// Name of the oldest segment.
    base: SentId,
    segments: VecDeque<Sent>,
    una: u64,
    nxt: u64,
    /// Below this, segments may have been sent again, later than those that follow them.
    orderly_from: u64,
    lanes: PathMap<Lane>,
    /// Bytes that the present acknowledgment delivered of what was sent last on paths that are gone.
    stranded: u64,
    /// Waiting to be sent again.
    lost: BTreeSet<SentId>,
    sacked: Ranges,
    dupacks: u32,
    /// Some lane has credit.
    credited: bool,
    /// Room to work in for [`sack`](Self::sack).
    gaps: Vec<(u64, u64)>,
}

impl Scoreboard {
    /// Adds the lane of `path`. An only lane is told of by its own acknowledgments alone, so all
    /// it hears is evidence at once.
    pub fn add_lane(&mut self, path: PathId) {
        for lane in self.lanes.iter_mut().filter(|l| l.told == u64::MAX) {
            lane.told = lane.highest_delivered.map_or(0, |tx| tx + 1);
        }
        let told = if self.lanes.is_empty() { u64::MAX } else { 0 };
        self.lanes.insert(Lane::new(path, told));
    }

    /// Removes the lane of `path`, on which nothing is in flight any more.
    pub fn remove_lane(&mut self, path: PathId) {
        self.lanes.remove(path);
    }

    /// New data of `len` was sent on `path`.
    #[inline]
    pub fn send_new(&mut self, now: Instant, path: PathId, len: u32, mark: DeliveryMark) {
        let id = self.base + self.segments.len() as u64;
        let tx = self.lanes[path].push(id, len);
        self.segments.push_back(Sent {
            offset: self.nxt,
            len,
            path,
            tx,
            sent_at: now,
            mark,
            status: Status::InFlight,
            history: History::Once,
        });
        self.nxt += u64::from(len);
    }

    /// The lost segment `id` was sent again on `path`.
    pub fn send_again(&mut self, now: Instant, path: PathId, id: SentId, mark: DeliveryMark) {
        if !self.lost.remove(&id) {
            return;
        }
        let sent = &mut self.segments[(id - self.base) as usize];
        let tx = self.lanes[path].push(id, sent.len);
        self.orderly_from = self.nxt;
        let later = now.0 / TIMESTAMP_TICK > sent.sent_at.0 / TIMESTAMP_TICK;
        let history = if later { History::AgainLater } else { History::Again };
        let status = Status::InFlight;
        *sent = Sent { path, tx, sent_at: now, mark, status, history, ..*sent };
    }
}
