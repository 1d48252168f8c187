//! Packets of other transports between this host and its peers: with each association one flow of packets, over all its
//! paths. In front of it stands FQ-CoDel.

mod class;
mod flow;
mod queue;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use polypath_hop::FqCodelConfig;
use polypath_transport::flow::{PacketConfig, PacketStats};
use polypath_transport::{PathConfig, PathStats};
use polypath_wire::deadlines::Named;
use polypath_wire::hip::Hit;
use polypath_wire::{Ecn, Instant, Seed, WireError};
use thiserror::Error;

use crate::cover::name_of;
use crate::inner::InnerPacket;
use crate::paths::Locators;
pub use class::PacketClass;
use flow::PeerFlow;

/// How packets of other transports are carried.
#[derive(Clone, PartialEq, Debug)]
pub struct LaneConfig {
    /// The flow with each peer. A class is a differentiated services code point.
    pub packets: PacketConfig,
    /// The queue in front of each.
    pub queue: FqCodelConfig,
    /// It holds at most this many bytes.
    pub queued: u64,
    /// Packets of which a copy leaves on a second path.
    pub twice: Vec<PacketClass>,
}

impl Default for LaneConfig {
    fn default() -> Self {
        let (packets, queue) = (PacketConfig::default(), FqCodelConfig::default());
        Self { packets, queue, queued: 8 << 20, twice: Vec::new() }
    }
}

/// Why a packet does not travel.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotSent {
    /// There is no association with the peer, or the endpoint carries no packets.
    #[error("no association")]
    NoAssociation,
    /// No path carries it.
    #[error("larger than the {most} bytes that the paths carry")]
    TooBig {
        /// The largest that one carries, bytes.
        most: u32,
    },
    /// So far no path carries it, but it is being found out how much they carry.
    #[error("larger than the confirmed path MTU")]
    SizeUnknown,
    /// The queue did not take it.
    #[error("the queue is full")]
    Full,
    /// It is no IP packet.
    #[error(transparent)]
    Malformed(#[from] WireError),
}

/// The flow of packets with one peer.
#[derive(Clone, Debug)]
pub struct LaneReport {
    /// The peer.
    pub peer: Hit,
    /// Counters.
    pub stats: PacketStats,
    /// Bytes of packets that wait for a path.
    pub waiting: u64,
    /// Of each path, with the locators that connections know it by.
    pub paths: Vec<(Locators, PathStats)>,
}

/// Packets that wait for whoever takes them, at most.
const MAX_CARRIED: usize = 8192;

/// The flows of one endpoint.
#[derive(Debug)]
pub(crate) struct PacketLane {
    config: LaneConfig,
    seed: Seed,
    /// By the names of associations.
    flows: BTreeMap<Hit, PeerFlow>,
    /// Flows that may have something to send.
    ready: VecDeque<Hit>,
    /// When something is due, and of which flow.
    due: Named<Hit>,
    /// What came from peers.
    carried: VecDeque<(Hit, Bytes)>,
    /// What came when too much waited.
    untaken: u64,
}

impl PacketLane {
    pub fn new(config: LaneConfig, seed: Seed) -> Self {
        let (flows, ready, due, carried) = Default::default();
        Self { config, seed, flows, ready, due, carried, untaken: 0 }
    }

    /// From now on a copy of each packet of these classes leaves on a second path.
    pub fn send_twice(&mut self, classes: Vec<PacketClass>) {
        self.config.twice = classes;
    }

    /// A path of the association that `inner` names, with `peer`, may be used.
    pub fn path_up(&mut self, now: Instant, peer: Hit, inner: Locators, config: &PathConfig) {
        let Some(name) = name_of(inner.remote.ip()) else { return };
        let flow =
            self.flows.entry(name).or_insert_with(|| PeerFlow::new(now, peer, &self.config, self.seed));
        flow.add_path(now, inner, config);
        self.mark(name);
    }

    /// Does something to the flow that has that path.
    pub fn on_path(&mut self, inner: &Locators, act: impl FnOnce(&mut PeerFlow)) {
        let Some(name) = name_of(inner.remote.ip()) else { return };
        if let Some(flow) = self.flows.get_mut(&name) {
            act(flow);
            self.mark(name);
        }
    }

    /// The association is over: what waited for it is gone.
    pub fn over(&mut self, name: Hit) {
        self.flows.remove(&name);
        self.due.set(name, None);
    }

    /// Takes a packet for the peer whose association has this name.
    pub fn push(&mut self, now: Instant, name: Hit, packet: Bytes) -> Result<(), NotSent> {
        let flow = self.flows.get_mut(&name).ok_or(NotSent::NoAssociation)?;
        let looked = InnerPacket::parse(&packet)?;
        let twice = self.config.twice.iter().any(|class| class.contains(&looked));
        let sent = flow.push(now, &looked, twice, packet.slice(..looked.len));
        self.mark(name);
        sent
    }

    /// A frame came on a path. Whether somebody cares for it.
    pub fn handle(&mut self, now: Instant, inner: &Locators, ecn: Ecn, frame: Bytes) -> bool {
        let Some(name) = name_of(inner.remote.ip()) else { return false };
        let Some(flow) = self.flows.get_mut(&name) else { return false };
        let known = flow.handle(now, inner, ecn, frame);
        self.mark(name);
        known
    }

    /// Lets what is due happen.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(name) = self.due.pop_due(now) {
            if let Some(flow) = self.flows.get_mut(&name) {
                flow.handle_timeout(now);
                self.mark(name);
            }
        }
    }

    /// When that must be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.next()
    }

    fn mark(&mut self, name: Hit) {
        if let Some(flow) = self.flows.get_mut(&name)
            && !std::mem::replace(&mut flow.queued, true)
        {
            self.ready.push_back(name);
        }
    }

    /// The next flow that may have something to send, until it is [settled](Self::settle).
    pub fn next_ready(&mut self) -> Option<(Hit, &mut PeerFlow)> {
        while let Some(name) = self.ready.pop_front() {
            if self.flows.contains_key(&name) {
                return Some((name, self.flows.get_mut(&name)?));
            }
        }
        None
    }

    /// Everything of a flow was sent, or else it comes `again`, after the others.
    pub fn settle(&mut self, name: Hit, again: bool) {
        let Some(flow) = self.flows.get_mut(&name) else { return };
        while let Some(packet) = flow.poll_deliver() {
            match self.carried.len() < MAX_CARRIED {
                true => self.carried.push_back((flow.peer, packet)),
                false => self.untaken += 1,
            }
        }
        flow.queued = again;
        if again {
            self.ready.push_back(name);
        }
        self.due.set(name, flow.poll_timeout());
    }

    /// The next packet that came from a peer.
    pub fn poll_carried(&mut self) -> Option<(Hit, Bytes)> {
        self.carried.pop_front()
    }

    pub fn has_carried(&self) -> bool {
        !self.carried.is_empty()
    }

    /// Packets that came and were dropped, as nobody took those before them.
    pub fn untaken(&self) -> u64 {
        self.untaken
    }

    pub fn reports(&self) -> impl Iterator<Item = LaneReport> {
        self.flows.values().map(PeerFlow::report)
    }
}

#[cfg(test)]
mod tests;
