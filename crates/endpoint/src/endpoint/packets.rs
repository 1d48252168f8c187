//! Packets of other transports, exchanged with peers over the paths of their associations.

use bytes::Bytes;
use polypath_transport::ConfigError;
use polypath_wire::hip::Hit;
use polypath_wire::{Ecn, Instant};

use super::Endpoint;
use crate::cover::{Cargo, Change, Cover};
use crate::lane::{LaneConfig, LaneReport, NotSent, PacketClass, PacketLane};
use crate::outlet::Outlet;
use crate::paths::Locators;

impl Endpoint {
    /// From now on a secure endpoint exchanges [packets](Self::send_to_peer) with its peers, if they do so too.
    pub fn carry_packets(&mut self, now: Instant, config: LaneConfig) -> Result<(), ConfigError> {
        config.packets.check()?;
        let seed = self.isn.child("lane");
        self.lane = Some(Box::new(PacketLane::new(config, seed)));
        let peers: Vec<Hit> = self.associations().collect();
        peers.into_iter().for_each(|name| self.tell_lane(now, Change::Over(name)));
        Ok(())
    }

    /// Sends an IP packet to `peer`, in the order of its flow but without a promise: pump afterwards.
    pub fn send_to_peer(&mut self, now: Instant, peer: Hit, packet: Bytes) -> Result<(), NotSent> {
        let lane = self.lane.as_mut().ok_or(NotSent::NoAssociation)?;
        match lane.push(now, peer, packet) {
            Err(NotSent::TooBig { .. }) if !self.cover.knows_sizes(peer) => Err(NotSent::SizeUnknown),
            sent => sent,
        }
    }

    /// From now on a copy of each packet of these classes leaves on a second path, if there is one.
    pub fn send_twice(&mut self, classes: Vec<PacketClass>) {
        self.lane.iter_mut().for_each(|lane| lane.send_twice(classes.clone()));
    }

    /// The next IP packet that a peer sent, and which one.
    #[must_use]
    pub fn poll_carried(&mut self) -> Option<(Hit, Bytes)> {
        self.lane.as_mut()?.poll_carried()
    }

    /// Whether there is one.
    pub fn has_carried(&self) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.has_carried())
    }

    /// The flows of packets with all peers.
    pub fn lane_reports(&self) -> impl Iterator<Item = LaneReport> {
        self.lane.iter().flat_map(|lane| lane.reports())
    }

    /// Packets of peers that were dropped because nobody took those that came before.
    pub fn untaken_packets(&self) -> u64 {
        self.lane.as_ref().map_or(0, |lane| lane.untaken())
    }

    /// A frame came on a path.
    pub(super) fn handle_frame(&mut self, now: Instant, inner: &Locators, ecn: Ecn, frame: &[u8]) {
        // A copy: a packet that waits holds no train.
        let handle = |lane: &mut Box<PacketLane>| lane.handle(now, inner, ecn, Bytes::copy_from_slice(frame));
        let known = self.lane.as_mut().is_some_and(handle);
        if !known {
            self.cover.note_other();
        }
    }

    /// Gives `outlet` the frames that are due.
    pub(super) fn transmit_frames(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(lane) = &mut self.lane else { return };
        while !outlet.is_full()
            && let Some((name, flow)) = lane.next_ready()
        {
            let mut more = false;
            while let Some((inner, leaving)) = flow.poll_transmit(now) {
                self.cover.seal(now, &inner, Cargo::Frame(&leaving), outlet);
                if outlet.is_full() {
                    more = true;
                    break;
                }
            }
            lane.settle(name, more);
        }
    }

    /// Tells the flow of an association what became of its paths.
    pub(super) fn tell_lane(&mut self, now: Instant, change: Change) {
        let (Some(lane), cover) = (&mut self.lane, &self.cover) else { return };
        match change {
            Change::Up(inner) => add_path(lane, cover, now, inner),
            Change::Down(inner) => lane.on_path(&inner, |flow| flow.remove_path(now, &inner)),
            Change::Sample(inner, rtt) => lane.on_path(&inner, |flow| flow.path_answered(now, &inner, rtt)),
            Change::Carries(inner, mss) => lane.on_path(&inner, |flow| flow.path_carries(now, &inner, mss)),
            Change::Spills(inner, spill) => lane.on_path(&inner, |flow| flow.path_spills(&inner, spill)),
            Change::Moved(_) | Change::Skipped(_) => {}
            Change::Over(name) => {
                lane.over(name);
                // The peer began anew: a new flow, on the paths that outlived it.
                let outlived = cover.live_paths(name);
                outlived.into_iter().for_each(|inner| add_path(lane, cover, now, inner));
            }
        }
    }
}

fn add_path(lane: &mut PacketLane, cover: &impl Cover, now: Instant, inner: Locators) {
    if let (Some(config), Some(peer)) = (cover.config_of(&inner), cover.peer_at(inner.remote.ip())) {
        lane.path_up(now, peer, inner, &config);
    }
}
