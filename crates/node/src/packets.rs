//! Packets of other transports, exchanged with the peers of a node.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use polypath_endpoint::{LaneConfig, LaneReport, NotSent, PacketClass};
use polypath_transport::ConfigError;
use polypath_wire::hip::Hit;

use crate::node::Node;
use crate::shared::{Shared, Stop};
use crate::wishes::wait;

/// Packets taken at once, at most: the driver waits for the lock meanwhile.
const BATCH: usize = 256;

/// Exchanges packets with peers.
pub struct PacketLane {
    shared: Arc<Shared>,
}

impl Node {
    /// From now on a secure node exchanges packets of other transports with its peers.
    pub fn carry_packets(&self, config: LaneConfig) -> Result<PacketLane, ConfigError> {
        self.shared.act(|state, now| state.endpoint.carry_packets(now, config))?;
        Ok(PacketLane { shared: self.shared.clone() })
    }
}

impl PacketLane {
    /// Sends IP packets, each to a peer, without a promise. Returns those that do not travel, and why.
    pub fn send(&self, packets: Vec<(Hit, Bytes)>) -> Vec<(Bytes, NotSent)> {
        let mut refused = Vec::new();
        let mut packets = packets.into_iter().peekable();
        while packets.peek().is_some() {
            self.shared.act(|state, now| {
                for (peer, packet) in packets.by_ref().take(BATCH) {
                    if let Err(why) = state.endpoint.send_to_peer(now, peer, packet.clone()) {
                        refused.push((packet, why));
                    }
                }
            });
        }
        refused
    }

    /// From now on a copy of each packet of these classes leaves on a second path, if there is one.
    pub fn send_twice(&self, classes: Vec<PacketClass>) {
        self.shared.act(|state, _| state.endpoint.send_twice(classes));
    }

    /// The packets that came since the last call, and from which peers; waits for some. `None` when the node has stopped.
    pub async fn next(&self) -> Option<Vec<(Hit, Bytes)>> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let came: Vec<_> = std::iter::from_fn(|| state.endpoint.poll_carried()).take(BATCH).collect();
            if !came.is_empty() {
                return Poll::Ready(Some(came));
            }
            if matches!(state.stop, Stop::Done(_)) {
                return Poll::Ready(None);
            }
            wait(&mut state.carried, cx);
            Poll::Pending
        })
        .await
    }

    /// What the flow with each peer did.
    pub fn reports(&self) -> Vec<LaneReport> {
        self.shared.lock().endpoint.lane_reports().collect()
    }

    /// Packets of peers that were dropped because too many waited.
    pub fn untaken(&self) -> u64 {
        self.shared.lock().endpoint.untaken_packets()
    }
}
