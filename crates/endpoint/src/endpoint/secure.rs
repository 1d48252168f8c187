//! The endpoint over HIP and ESP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_hip::{Accept, ConnectError, Identity, State as HipState};
use polypath_transport::ConnectionConfig;
use polypath_wire::hip::Hit;
use polypath_wire::{Duration, Instant, PathId, Seed};

use super::Endpoint;
use super::cover::AnyCover;
use crate::config::EndpointConfig;
use crate::cover::Cover;
use crate::error::OpenError;
use crate::paths::Locators;
use crate::security::{
    HipRecord, LocalInfo, PathLoad, PathReport, PeerEvent, Reach, Security, SecurityConfig, SecurityStats,
};
use crate::slots::ConnectionHandle;

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
        Self { cover: AnyCover::Secure(Box::new(security)), ..Self::new(config, seed) }
    }

    /// Signs now what the first peers to ask will be given, so that none of them waits for it.
    pub fn prepare(&mut self, now: Instant) {
        if let Some(security) = self.cover.security_mut() {
            security.prepare(now);
        }
    }

    /// Our HIT, if the endpoint is secure.
    pub fn hit(&self) -> Option<Hit> {
        self.cover.security().map(|s| s.hit())
    }

    /// From now on answers those peers and no others. Associations that there are stay.
    pub fn accept_peers(&mut self, accept: Accept) {
        if let Some(security) = self.cover.security_mut() {
            security.accept(accept);
        }
    }

    /// Begins an association with `peer`, unless there is one: [`PeerEvent::Up`] or
    /// [`PeerEvent::Failed`] tells what came of it. Its paths are looked after from now on. If it [is silent](Self::is_silent), it
    /// is asked at addresses that are new for a path, and from the next call on for a new association.
    pub fn associate(&mut self, now: Instant, peer: Hit, reach: Reach) -> Result<(), ConnectError> {
        let security = self.cover.security_mut().ok_or(ConnectError::NoRoute)?;
        let result = security.associate(now, peer, reach);
        self.apply(now);
        result
    }

    /// Ends the association with `peer`; its connections are reset.
    pub fn dissociate(&mut self, now: Instant, peer: Hit) {
        if let Some(security) = self.cover.security_mut() {
            security.dissociate(now, peer);
            self.apply(now);
        }
    }

    /// Whether there is an association with `peer`, and nothing came on any of its paths for `least`, despite heartbeats.
    pub fn is_silent(&self, now: Instant, peer: Hit, least: Duration) -> bool {
        self.cover.security().is_some_and(|s| s.is_silent_for(now, peer, least))
    }

    /// Has heartbeats to a silent peer leave as soon as the usual pause allows: somebody wants to use it.
    pub fn ask(&mut self, now: Instant, peer: Hit) {
        if let Some(security) = self.cover.security_mut() {
            security.ask(now, peer);
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
        config.early_data &= self.cover.takes_early_data(peer.as_ipv6().into());
        let paths = self.cover.security_mut().map(|s| s.usable(peer)).unwrap_or_default();
        self.connect(now, config, port, &paths)
    }

    /// The HIT at the other end of a connection, if it is secure.
    pub fn peer(&self, handle: ConnectionHandle) -> Option<Hit> {
        self.slots.find(handle)?.peer
    }

    /// The state of the association with `peer`; `None` if there is none.
    pub fn association(&self, peer: Hit) -> Option<HipState> {
        self.cover.security()?.state(peer)
    }

    /// Peers with an association in any state: their HITs, and the names of further associations with them.
    pub fn associations(&self) -> impl Iterator<Item = Hit> {
        self.cover.security().into_iter().flat_map(|s| s.peers())
    }

    /// The paths of all associations.
    pub fn secure_paths(&self) -> impl Iterator<Item = PathReport> {
        self.cover.security().into_iter().flat_map(|s| s.reports())
    }

    /// The path behind one of a connection's.
    pub fn secure_path(&self, handle: ConnectionHandle, path: PathId) -> Option<PathReport> {
        self.cover.security()?.report_of(&self.locators(handle, path)?)
    }

    /// What open connections and flows of packets have on the paths, by the locators that they know these by.
    pub fn path_loads(&self) -> BTreeMap<Locators, PathLoad> {
        let mut loads: BTreeMap<Locators, PathLoad> = BTreeMap::new();
        for slot in self.slots.iter().filter(|slot| !slot.retired) {
            for (path, inner) in slot.paths.iter() {
                let stats = slot.connection.path_stats(path);
                let first =
                    stats.bottleneck.and_then(|first| slot.paths.iter().find(|(path, _)| *path == first));
                let load = loads.entry(inner).or_default();
                load.multi_route += u32::from(slot.connection.is_multi_route());
                load.add(&stats, first.map(|(_, inner)| inner));
            }
        }
        for report in self.lane_reports() {
            report.paths.iter().for_each(|(inner, stats)| loads.entry(*inner).or_default().add(stats, None));
        }
        loads
    }

    /// Counters of what came in HIP and ESP.
    pub fn security_stats(&self) -> Option<SecurityStats> {
        self.cover.security().map(|s| s.stats())
    }

    /// The next observation of an association, made if [`EndpointConfig::record`] has events.
    #[must_use]
    pub fn poll_hip_record(&mut self) -> Option<HipRecord> {
        self.cover.security_mut()?.poll_record()
    }

    /// The next event of an association.
    #[must_use]
    pub fn poll_peer_event(&mut self) -> Option<(Hit, PeerEvent)> {
        self.cover.security_mut()?.poll_event()
    }

    pub(super) fn local_up(&mut self, now: Instant, local: SocketAddr, info: LocalInfo) {
        if let Some(security) = self.cover.security_mut() {
            security.local_up(now, local, info);
            self.apply(now);
        }
    }

    pub(super) fn local_down(&mut self, now: Instant, local: SocketAddr) {
        if let Some(security) = self.cover.security_mut() {
            security.local_down(now, local);
            self.apply(now);
        }
    }

    pub(super) fn path_mtu(&mut self, now: Instant, locators: &Locators, mtu: u32) {
        if let Some(security) = self.cover.security_mut() {
            self.stats.too_big += 1;
            security.too_big(now, locators, mtu);
            self.apply(now);
        }
    }
}
