//! The endpoint over HIP and ESP.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use polypath_hip::{Accept, ConnectError, Identity, State as HipState};
use polypath_transport::{Connection, ConnectionConfig};
use polypath_wire::hip::Hit;
use polypath_wire::{Instant, PathId, Seed};

use super::Endpoint;
use crate::config::EndpointConfig;
use crate::demux::Route;
use crate::error::OpenError;
use crate::paths::Locators;
use crate::pump::Outlet;
use crate::security::{
    Arrived, Change, HipRecord, LocalInfo, PathLoad, PathReport, PeerEvent, Reach, Security, SecurityConfig,
    SecurityStats,
};
use crate::slots::{ConnectionHandle, Slot};

impl Endpoint {
    /// An endpoint whose segments travel in ESP, with keys from base exchanges. Its connections are with
    /// HITs. `secret` is the source of its keys and must be random; `generation` must not fall from one
    /// run of the same identity to the next (see [`polypath_hip::Host::new`]).
    pub fn secure(
        config: EndpointConfig,
        security: SecurityConfig,
        identity: Identity,
        secret: [u8; 32],
        generation: u64,
    ) -> Self {
        let (first, _) = secret.split_first_chunk().expect("32 bytes have 8");
        let seed = Seed(u64::from_le_bytes(*first)).child("endpoint");
        let mut security = Security::new(security, identity, secret, generation);
        security.observe(config.record.events);
        Self { security: Some(Box::new(security)), ..Self::new(config, seed) }
    }

    /// Signs now what the first peers to ask will be given, so that none of them waits for it.
    pub fn prepare(&mut self, now: Instant) {
        if let Some(security) = &mut self.security {
            security.prepare(now);
        }
    }

    /// Our HIT, if the endpoint is secure.
    pub fn hit(&self) -> Option<Hit> {
        self.security.as_ref().map(|s| s.hit())
    }

    /// From now on answers those peers and no others. Associations that there are stay.
    pub fn accept_peers(&mut self, accept: Accept) {
        if let Some(security) = &mut self.security {
            security.accept(accept);
        }
    }

    /// Begins an association with `peer`, unless there is one: [`PeerEvent::Up`] or
    /// [`PeerEvent::Failed`] tells what came of it. Its paths are looked after from now on.
    pub fn associate(&mut self, now: Instant, peer: Hit, reach: Reach) -> Result<(), ConnectError> {
        let security = self.security.as_mut().ok_or(ConnectError::NoRoute)?;
        let result = security.associate(now, peer, reach);
        self.apply(now);
        result
    }

    /// Ends the association with `peer`; its connections are reset.
    pub fn dissociate(&mut self, now: Instant, peer: Hit) {
        if let Some(security) = &mut self.security {
            security.dissociate(now, peer);
            self.apply(now);
        }
    }

    /// Opens a connection to port `port` of `peer`, with which there is an association, over all its
    /// paths, those to come included. What is written before the peer answers leaves at once if `config` has
    /// [`early_data`](ConnectionConfig::early_data) and the peer takes it.
    pub fn connect_peer(
        &mut self,
        now: Instant,
        mut config: ConnectionConfig,
        peer: Hit,
        port: u16,
    ) -> Result<ConnectionHandle, OpenError> {
        config.early_data &= self.security.as_ref().is_some_and(|s| s.takes_early_data(peer));
        let paths = self.security.as_mut().map(|s| s.usable(peer)).unwrap_or_default();
        self.connect(now, config, port, &paths)
    }

    /// The HIT at the other end of a connection, if it is secure.
    pub fn peer(&self, handle: ConnectionHandle) -> Option<Hit> {
        self.slots.find(handle)?.peer
    }

    /// The state of the association with `peer`; `None` if there is none.
    pub fn association(&self, peer: Hit) -> Option<HipState> {
        self.security.as_ref()?.state(peer)
    }

    /// Peers with an association in any state: their HITs, and the names of further associations with them.
    pub fn associations(&self) -> impl Iterator<Item = Hit> {
        self.security.iter().flat_map(|s| s.peers())
    }

    /// The paths of all associations.
    pub fn secure_paths(&self) -> impl Iterator<Item = PathReport> {
        self.security.iter().flat_map(|s| s.reports())
    }

    /// The path behind one of a connection's.
    pub fn secure_path(&self, handle: ConnectionHandle, path: PathId) -> Option<PathReport> {
        self.security.as_ref()?.report_of(&self.locators(handle, path)?)
    }

    /// What open connections and flows of packets have on the paths, by the locators that they know these by.
    pub fn path_loads(&self) -> BTreeMap<Locators, PathLoad> {
        let mut loads: BTreeMap<Locators, PathLoad> = BTreeMap::new();
        for slot in self.slots.iter().filter(|slot| !slot.retired) {
            for (path, inner) in slot.paths.iter() {
                let stats = slot.connection.path_stats(path);
                let first =
                    stats.bottleneck.and_then(|first| slot.paths.iter().find(|(path, _)| *path == first));
                loads.entry(inner).or_default().add(&stats, first.map(|(_, inner)| inner));
            }
        }
        for report in self.lane_reports() {
            report.paths.iter().for_each(|(inner, stats)| loads.entry(*inner).or_default().add(stats, None));
        }
        loads
    }

    /// Counters of what came in ESP.
    pub fn security_stats(&self) -> Option<&SecurityStats> {
        self.security.as_ref().map(|s| s.stats())
    }

    /// The next observation of an association, made if [`EndpointConfig::record`] has events.
    #[must_use]
    pub fn poll_hip_record(&mut self) -> Option<HipRecord> {
        self.security.as_mut()?.poll_record()
    }

    /// The next event of an association.
    #[must_use]
    pub fn poll_peer_event(&mut self) -> Option<(Hit, PeerEvent)> {
        self.security.as_mut()?.poll_event()
    }

    pub(super) fn local_up(&mut self, now: Instant, local: SocketAddr, info: LocalInfo) {
        if let Some(security) = &mut self.security {
            security.local_up(now, local, info);
            self.apply(now);
        }
    }

    pub(super) fn local_down(&mut self, now: Instant, local: SocketAddr) {
        if let Some(security) = &mut self.security {
            security.local_down(now, local);
            self.apply(now);
        }
    }

    pub(super) fn path_mtu(&mut self, now: Instant, locators: &Locators, mtu: u32) {
        if let Some(security) = &mut self.security {
            self.stats.too_big += 1;
            security.too_big(now, locators, mtu);
            self.apply(now);
        }
    }

    /// A UDP payload of HIP or ESP came. Returns the connection that it belongs to.
    pub fn handle_sealed(
        &mut self,
        now: Instant,
        locators: &Locators,
        bytes: BytesMut,
    ) -> Option<ConnectionHandle> {
        let arrived = self.security.as_mut()?.handle(now, locators, bytes);
        self.apply(now);
        match arrived? {
            Arrived::Segment(inner, mut segment) => self.handle_segment(now, &inner, &mut segment),
            Arrived::Frame(inner, frame) => {
                self.handle_frame(now, &inner, frame);
                None
            }
        }
    }

    pub(super) fn security_timeout(&mut self, now: Instant) {
        if let Some(security) = self.security.as_mut().filter(|s| s.is_due(now)) {
            let concerned = security.concerned(now);
            let with = |name: &Hit| self.slots.with_peer(name.as_ipv6().into());
            let indices: Vec<u32> = concerned.iter().flat_map(with).collect();
            for slot in indices.iter().filter_map(|index| self.slots.get(*index)) {
                for (path, inner) in slot.paths.iter() {
                    security.measured(now, &inner, &slot.connection.path_stats(path));
                }
            }
            security.handle_timeout(now);
            indices.into_iter().for_each(|index| self.remember(now, index));
            self.apply(now);
        }
    }

    /// Gives `outlet` what HIP wants to be sent.
    pub(super) fn transmit_datagrams(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(security) = &mut self.security else { return };
        while !outlet.is_full()
            && let Some((locators, payload)) = security.poll_transmit()
        {
            outlet.send_datagram(now, &locators, &payload);
        }
    }

    /// Tells connections what became of their paths.
    pub(super) fn apply(&mut self, now: Instant) {
        while let Some(change) = self.security.as_mut().and_then(|s| s.poll_change()) {
            self.tell_lane(now, change);
            let peer = match change {
                Change::Up(inner)
                | Change::Down(inner)
                | Change::Sample(inner, _)
                | Change::Carries(inner, _)
                | Change::Skipped(inner) => inner.remote.ip(),
                Change::Over(hit) => hit.as_ipv6().into(),
            };
            for index in self.slots.with_peer(peer) {
                self.apply_to(now, index, change);
            }
        }
    }

    fn apply_to(&mut self, now: Instant, index: u32, change: Change) {
        match change {
            Change::Up(inner) => self.path_up(now, index, inner),
            Change::Down(inner) => self.path_down(now, index, inner),
            Change::Sample(inner, rtt) => {
                self.on_path(index, inner, |connection, path| connection.path_answered(now, path, rtt));
            }
            Change::Carries(inner, mss) => {
                self.on_path(index, inner, |connection, path| connection.path_carries(now, path, mss));
            }
            Change::Skipped(inner) => self.on_path(index, inner, Connection::path_skipped),
            Change::Over(_) => {
                if let Some(slot) = self.slots.at(index) {
                    slot.connection.abort(now);
                    self.mark(index);
                }
            }
        }
    }

    /// Does something to the connection that has that path.
    fn on_path(&mut self, index: u32, inner: Locators, act: impl FnOnce(&mut Connection, PathId)) {
        let Some(slot) = self.slots.at(index) else { return };
        let path = slot.paths.iter().find(|(_, l)| *l == inner);
        if let Some((path, _)) = path {
            act(&mut slot.connection, path);
            self.mark(index);
        }
    }

    /// A connection has one more path; what it kept for want of another goes.
    fn path_up(&mut self, now: Instant, index: u32, inner: Locators) {
        let (Some(security), max) = (&self.security, self.max_paths()) else { return };
        let config = self.recalled(now, &inner, security.config_of(&inner).unwrap_or_default());
        let Some(slot) = self.slots.at(index).filter(|s| s.takes_paths()) else { return };
        let known = slot.paths.iter().find(|(_, l)| *l == inner);
        if let Some((path, _)) = known {
            slot.connection.path_proved(now, path);
        } else if slot.paths.iter().filter(|(_, l)| security.is_up(l)).count() < max
            && let Some(path) = slot.connection.add_path(now, config)
        {
            slot.connection.announce(now, path);
            slot.paths.insert(path, inner);
            self.demux.insert(&inner, slot.ports, Route { index, path });
        }
        let stale: Vec<Locators> = slot.paths.iter().map(|(_, l)| l).filter(|l| !security.is_up(l)).collect();
        stale.into_iter().for_each(|inner| self.path_down(now, index, inner));
        self.mark(index);
    }

    /// A connection has a path less, unless it is its last: that one stays until there is another.
    fn path_down(&mut self, now: Instant, index: u32, inner: Locators) {
        let Some(slot) = self.slots.at(index) else { return };
        let others = || slot.paths.iter().map(|(_, l)| l).filter(|l| *l != inner);
        let some_proved = self.security.as_ref().is_none_or(|s| others().any(|l| s.is_up(&l)));
        if slot.paths.len() < 2 || !some_proved {
            return;
        }
        let (handle, path) = (slot.handle, slot.paths.iter().find(|(_, l)| *l == inner));
        if let Some((path, _)) = path {
            self.remove_path(now, handle, path);
        }
    }
}

impl Slot {
    /// Whether the peer has this address.
    pub(super) fn is_with(&self, peer: IpAddr) -> bool {
        self.remote == Some(peer)
    }

    fn takes_paths(&self) -> bool {
        use polypath_transport::State as S;
        !self.retired && !matches!(self.connection.state(), S::Closed | S::TimeWait)
    }
}
