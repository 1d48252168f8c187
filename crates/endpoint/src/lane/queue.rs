//! What waits for a path: FQ-CoDel over flows of IP packets, which marks those that may be marked.

use polypath_hop::{FairQueue, FqCodelConfig, Label};
use polypath_transport::flow::{Packet, PacketQueue, QueueStats, Tolerable};
use polypath_wire::{Instant, Seed};

use crate::inner::{InnerPacket, marked};

/// Packets that wait in turns of their flows.
#[derive(Debug)]
pub struct Fair {
    config: FqCodelConfig,
    most: u64,
    salt: Seed,
    /// Made for the first packet: most peers of a server are idle.
    queue: Option<Box<FairQueue<Packet>>>,
}

impl Fair {
    /// Holds up to `most` bytes.
    pub fn new(config: FqCodelConfig, most: u64, salt: Seed) -> Self {
        Self { config, most, salt, queue: None }
    }
}

impl PacketQueue for Fair {
    fn push(&mut self, now: Instant, packet: Packet) -> bool {
        let ecn_capable = InnerPacket::parse(&packet.bytes).is_ok_and(|looked| looked.is_ecn_capable());
        let label = Label { size: packet.bytes.len() as u32, flow: packet.flow.into(), ecn_capable };
        let new = || Box::new(FairQueue::new(self.config, self.most, self.salt));
        self.queue.get_or_insert_with(new).push(now, label, packet);
        true
    }

    fn pop(&mut self, now: Instant, tolerable: Tolerable) -> Option<Packet> {
        let (packet, congested) = self.queue.as_mut()?.pop(now, |packet| tolerable.of(packet))?;
        Some(match congested {
            true => Packet { bytes: marked(&packet.bytes), ..packet },
            false => packet,
        })
    }

    fn bytes(&self) -> u64 {
        self.queue.as_ref().map_or(0, |queue| queue.bytes())
    }

    fn forget(&mut self, now: Instant) -> bool {
        self.queue.as_mut().is_some_and(|queue| queue.forget(now))
    }

    fn stats(&self) -> QueueStats {
        let of = |queue: &FairQueue<Packet>| QueueStats { dropped: queue.dropped(), marked: queue.marked() };
        self.queue.as_deref().map_or(QueueStats::default(), of)
    }
}
