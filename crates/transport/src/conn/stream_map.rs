//! From offsets of the stream to transmissions: on which path, and with which number there, each segment left last, and
//! what is known of it (mechanism only: policies judge).
//!
//! All paths share one sequence space. Here is what was sent; `acks.rs` takes cumulative acknowledgments, `sack.rs`
//! selective ones, `lost.rs` what was judged lost.

mod acks;
mod lost;
mod sack;

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::PathId;

use crate::loss::policy::{Departure, Order};
use crate::path::transmission::Transmission;
use crate::ranges::Ranges;
pub(super) use lost::Lost;

/// One segment that is not yet acknowledged cumulatively.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    /// Offset in sequence space.
    offset: u64,
    /// Number of its last transmission.
    number: u64,
    /// Length in sequence space (a FIN counts 1).
    len: u32,
    /// Path of its last transmission.
    path: PathId,
    /// What is known of it.
    status: Status,
}

impl Sent {
    /// Offset after its last byte.
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// What is known of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    /// On its way.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Judged lost and not sent again yet.
    Lost,
}

/// The segments that the peer has not acknowledged cumulatively.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct StreamMap {
    una: u64,
    nxt: u64,
    /// Below this, segments may have been sent again, later than those that follow them.
    orderly_from: u64,
    dupacks: u32,
    sent: VecDeque<Sent>,
    /// Waiting to be sent again: by offset, the transmissions that were given up.
    lost: BTreeMap<u64, Transmission>,
    sacked: Ranges,
    /// Bytes that the present acknowledgment delivered of what was sent last on paths that are gone.
    stranded: u64,
    /// Room to work in for [`sack`](Self::sack).
    gaps: Vec<(u64, u64)>,
}

impl StreamMap {
    /// New data of `len` left on `path` with this `number`.
    #[inline]
    pub(super) fn send_new(&mut self, path: PathId, number: u64, len: u32) {
        self.sent.push_back(Sent { offset: self.nxt, number, len, path, status: Status::InFlight });
        self.nxt += u64::from(len);
    }

    /// First offset not acknowledged cumulatively (SND.UNA).
    #[inline]
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// First offset not sent (SND.NXT).
    #[inline]
    pub(super) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Whether nothing is outstanding on any path.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.sent.is_empty()
    }

    /// Nothing is outstanding: gives back the memory of what was.
    pub(super) fn shrink(&mut self) {
        self.sent.shrink_to_fit();
        self.gaps.shrink_to_fit();
    }

    /// Duplicate acknowledgments since `una` moved.
    pub(super) fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// A duplicate acknowledgment arrived.
    pub(super) fn count_dupack(&mut self) {
        self.dupacks += 1;
    }

    /// Whether any segment is acknowledged selectively and not yet cumulatively.
    pub(super) fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// The path of the oldest segment, if it was acknowledged selectively and yet nothing acknowledges it
    /// cumulatively: the peer may have taken it back (RFC 2018 §8).
    pub(super) fn reneged(&self) -> Option<PathId> {
        self.sent.front().filter(|head| head.status == Status::Sacked).map(|head| head.path)
    }

    /// Whether the oldest segment is in flight on another path than `path`.
    pub(super) fn oldest_is_elsewhere(&self, path: PathId) -> bool {
        self.sent.front().is_some_and(|head| head.path != path && head.status == Status::InFlight)
    }

    /// Whether the segment that begins at `offset` is on its way, and by another path than `path`.
    pub(super) fn is_under_way_beside(&self, offset: u64, path: PathId) -> bool {
        let sent = self.position(offset).map(|at| &self.sent[at]);
        sent.is_some_and(|sent| sent.status == Status::InFlight && sent.path != path)
    }

    /// Where the segment that begins at `offset` is.
    fn position(&self, offset: u64) -> Option<usize> {
        let at = self.sent.partition_point(|s| s.offset < offset);
        self.sent.get(at).filter(|s| s.offset == offset).map(|_| at)
    }
}

impl Order for StreamMap {
    fn una(&self) -> u64 {
        self.una
    }

    fn nxt(&self) -> u64 {
        self.nxt
    }

    fn duplicates(&self) -> u32 {
        self.dupacks
    }

    fn head(&self) -> Option<Departure> {
        let head = self.sent.front()?;
        Some(Departure { path: head.path, number: head.number, cargo: head.offset })
    }

    fn has_arrived(&self, offset: u64) -> bool {
        offset < self.una || self.sacked.containing(offset).is_some()
    }
}
