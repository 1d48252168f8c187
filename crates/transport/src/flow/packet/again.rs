//! Packets that go again if they are lost, as a link layer repairs what it loses (RFC 3366): whose sender would take each loss for
//! congestion of the whole way, though it was one path that was full.

use std::collections::BTreeMap;

use bytes::Bytes;
use polypath_wire::Instant;
use polypath_wire::shim::Shim;

use super::PacketFlow;
use super::leaving::Leaving;
use super::resequencer::stamp_of;
use super::send::frame_len;
use crate::facts::Parcel;

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

    /// What was lost goes before what never left.
    pub(super) fn next_again(&mut self, now: Instant) -> Option<Leaving> {
        let largest = u64::from(self.largest()?);
        while self.again.front().is_some_and(|kept| kept.len() > largest) {
            self.again.pop_front();
        }
        let len = frame_len(self.again.front()?.bytes.len());
        let parcel =
            Parcel { len, retransmission: true, waiting: len.into(), window: u64::MAX, ..Parcel::default() };
        let choice = self.engine.pick_whole(now, &parcel);
        let (path, _) = self.engine.paths_of(choice)?;
        let Kept { shim, bytes, times } = self.again.pop_front()?;
        self.stats.again += 1;
        Some(self.leave(now, path, Shim { stamp: stamp_of(now), ..shim }, bytes, times + 1))
    }
}
