//! Packets that go again if they are lost, as a link layer repairs what it loses (RFC 3366): whose sender would take each loss for
//! congestion of the whole way, though it was one path that was full.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use polypath_wire::Instant;
use polypath_wire::shim::Shim;

use super::PacketFlow;
use super::leaving::{Leaving, frame_len};
use super::resequencer::stamp_of;
use crate::facts::Parcel;
use crate::path::transmission::Transmission;

/// How often a packet leaves at most: its own sender repairs what is lost more often.
const MOST: u8 = 3;

/// A packet that left and is not known to have come.
#[derive(Debug)]
pub(super) struct Kept {
    /// As it left.
    pub(super) shim: Shim,
    /// The packet.
    pub(super) bytes: Bytes,
    /// How often it left.
    pub(super) times: u8,
    /// When it left first.
    pub(super) since: Instant,
}

impl Kept {
    /// Bytes of the packet.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// What has a number in `range` came.
pub(super) fn came(kept: &mut BTreeMap<u64, Kept>, (first, last): (u64, u64)) {
    while let Some((&number, _)) = kept.range(first..=last).next() {
        kept.remove(&number);
    }
}

impl PacketFlow {
    /// `kept` was lost.
    pub(super) fn send_again(&mut self, kept: Kept) {
        if kept.times < MOST {
            self.again.push_back(kept);
        }
    }

    /// What came after all does not leave again.
    pub(super) fn came_late(&mut self, late: &[(u64, Transmission)]) {
        if late.is_empty() || self.again.is_empty() {
            return;
        }
        let came: BTreeSet<_> = late.iter().map(|(_, transmission)| transmission.cargo.key).collect();
        self.again.retain(|kept| !came.contains(&u64::from(kept.shim.sequence)));
    }

    /// What was lost goes before what never left, unless it carries no longer or nobody waits for it any more: the peer for so long
    /// after what follows came, half a round trip after that left.
    pub(super) fn next_again(&mut self, now: Instant) -> Option<Leaving> {
        let largest = u64::from(self.largest()?);
        let round_trip = self.engine.views().iter().filter_map(|view| view.srtt).max().unwrap_or_default();
        let patience = self.resequencer.longest() + round_trip;
        let is_past = |kept: &Kept| kept.len() > largest || now.since(kept.since) > patience;
        while self.again.pop_front_if(|kept| is_past(kept)).is_some() {}
        let len = frame_len(self.again.front()?.bytes.len());
        let parcel =
            Parcel { len, retransmission: true, waiting: len.into(), window: u64::MAX, ..Parcel::default() };
        let choice = self.engine.pick_whole(now, &parcel);
        let (path, _) = self.engine.paths_of(now, &parcel, choice)?;
        let kept = self.again.pop_front()?;
        self.stats.again += 1;
        let shim = Shim { stamp: stamp_of(now), ..kept.shim };
        Some(self.leave(now, path, Kept { shim, times: kept.times + 1, ..kept }))
    }
}
