//! Time that a host takes before it sends new data, as ns-2's agents do with `overhead_`.

use polypath_transport::Segment;
use polypath_wire::{Duration, Seed, Seq};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::events::Event;
use crate::net::Net;
use crate::packet::PacketId;
use crate::topology::NodeId;

/// Holds back the new data of each connection. The first segment after a pause draws the time;
/// all that come until then leave with it.
#[derive(Debug)]
pub(crate) struct Jitter {
    most: Duration,
    seed: Seed,
    batches: Vec<Batch>,
}

#[derive(Debug)]
struct Batch {
    ports: (u16, u16),
    /// New data begins here.
    next: Seq,
    rng: Pcg64Mcg,
    held: Vec<PacketId>,
}

impl Jitter {
    pub fn new(most: Duration, seed: Seed) -> Self {
        Self { most, seed, batches: Vec::new() }
    }

    /// The batch that a segment belongs to, if it is held back: it carries new data.
    pub fn batch_for(&mut self, segment: &Segment) -> Option<u32> {
        let header = &segment.header;
        let len = segment.payload.len() as u32;
        if len == 0 {
            return None;
        }
        let ports = (header.src_port, header.dst_port);
        let i = self.batches.iter().position(|b| b.ports == ports).unwrap_or_else(|| {
            let seed = self.seed.child(&format!("{}", header.dst_port));
            let rng = Pcg64Mcg::seed_from_u64(seed.0);
            self.batches.push(Batch { ports, next: header.seq, rng, held: Vec::new() });
            self.batches.len() - 1
        });
        let batch = &mut self.batches[i];
        if header.seq.before(batch.next) {
            return None;
        }
        batch.next = header.seq.plus(len);
        Some(i as u32)
    }

    /// Holds a packet back.
    pub fn hold(&mut self, batch: u32, packet: PacketId, node: NodeId, net: &mut Net) {
        let most = self.most;
        let b = &mut self.batches[batch as usize];
        if b.held.is_empty() {
            let share = u128::from(b.rng.next_u64());
            let wait = Duration(((share * u128::from(most.0)) >> 64) as u64);
            net.events.push(net.now + wait, Event::Release(node, batch));
        }
        b.held.push(packet);
    }

    /// Sends what a batch held back.
    pub fn release(&mut self, batch: u32, net: &mut Net) {
        self.batches[batch as usize].held.drain(..).for_each(|packet| net.send(packet));
    }
}
