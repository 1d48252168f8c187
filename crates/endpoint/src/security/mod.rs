//! HIP and ESP under the connections: who the peer is, with which keys, over which addresses.
//!
//! A connection sees a path as a pair of HITs with the path's number for a port: so it is the same
//! path when its addresses or its keys change (BEET mode, RFC 7402 §3.1), and nobody but the peer can
//! join it.

mod config;
mod events;
mod heartbeat;
mod path;
mod reach;
mod report;
mod sas;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use polypath_hip::{ConnectError, Host, Identity, Link, Route, State};
use polypath_transport::{PathConfig, Segment};
use polypath_wire::hip::{Hit, udp};
use polypath_wire::{Duration, Instant};

use crate::paths::Locators;
use crate::pump::Outlet;
use heartbeat::Heard;
use path::{Content, ROOM, SecurePath};
use reach::Wanted;

pub use config::SecurityConfig;
pub use reach::Reach;
pub use report::{PathReport, PeerEvent, PeerFailure, SecurityStats};

/// What a local address is good for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LocalInfo {
    /// Largest IP packet of its link, bytes.
    pub mtu: Option<u32>,
    /// What is known of its link before anything was measured.
    pub link: Link,
}

/// Associations, SAs and secure paths of one endpoint.
#[derive(Debug)]
pub(crate) struct Security {
    config: SecurityConfig,
    hip: Host,
    ours: Hit,
    locals: BTreeMap<SocketAddr, LocalInfo>,
    peers: BTreeMap<Hit, Peer>,
    /// By their numbers.
    paths: BTreeMap<u16, SecurePath>,
    next_number: u16,
    spis: BTreeMap<u32, u16>,
    /// HIP packets and heartbeats that wait to be sent.
    outbox: VecDeque<(Locators, Vec<u8>)>,
    changes: VecDeque<Change>,
    events: VecDeque<(Hit, PeerEvent)>,
    due: Option<Instant>,
    scratch: Vec<u8>,
    stats: SecurityStats,
}

/// One peer.
#[derive(Debug, Default)]
struct Peer {
    /// Set if it was we who began.
    reach: Option<Reach>,
    wanted: Vec<Wanted>,
    /// What it says of its own addresses.
    links: BTreeMap<IpAddr, Link>,
    up: bool,
    refused: bool,
    /// SA pairs since its key material was new.
    draws: u32,
}

/// What connections must be told, by the inner locators of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Change {
    Up(Locators),
    Down(Locators),
    Sample(Locators, Duration),
    Over(Hit),
}

/// SA pairs drawn from one key material after which it is renewed; HKDF would give some 300.
const MAX_DRAWS: u32 = 100;

impl Security {
    pub fn new(config: SecurityConfig, identity: Identity, seed: [u8; 32], generation: u64) -> Self {
        let ours = identity.hit();
        Self {
            hip: Host::new(identity, config.hip.clone(), seed, generation, Instant::ZERO),
            config,
            ours,
            locals: BTreeMap::new(),
            peers: BTreeMap::new(),
            paths: BTreeMap::new(),
            next_number: 1,
            spis: BTreeMap::new(),
            outbox: VecDeque::new(),
            changes: VecDeque::new(),
            events: VecDeque::new(),
            due: None,
            scratch: vec![0; ROOM],
            stats: SecurityStats::default(),
        }
    }

    pub fn hit(&self) -> Hit {
        self.ours
    }

    /// Begins an association.
    pub fn associate(&mut self, now: Instant, peer: Hit, reach: Reach) -> Result<(), ConnectError> {
        let pairs = reach.pairs(&self.local_addresses());
        self.hip.connect(now, peer, pairs.iter().map(|p| route(*p)).collect())?;
        let entry = self.peers.entry(peer).or_default();
        entry.wanted = pairs.into_iter().map(|p| Wanted::new(p, now)).collect();
        (entry.reach, entry.refused) = (Some(reach), false);
        self.settle(now);
        Ok(())
    }

    /// Ends an association.
    pub fn dissociate(&mut self, now: Instant, peer: Hit) {
        self.hip.close(now, peer);
        self.settle(now);
    }

    /// A local address can be used.
    pub fn local_up(&mut self, now: Instant, local: SocketAddr, info: LocalInfo) {
        self.hip.set_link(local.ip(), info.link);
        self.locals.insert(local, info);
        self.want_anew(now);
        self.settle(now);
    }

    /// A local address can be used no longer: its paths are given up, the last one of a peer when
    /// there is another.
    pub fn local_down(&mut self, now: Instant, local: SocketAddr) {
        self.locals.remove(&local);
        let gone: Vec<_> =
            self.paths.iter().filter(|(_, p)| p.locators.local == local).map(|(n, _)| *n).collect();
        gone.into_iter().for_each(|number| self.abandon(now, number));
        self.want_anew(now);
        self.settle(now);
    }

    fn local_addresses(&self) -> Vec<SocketAddr> {
        self.locals.keys().copied().collect()
    }

    /// The pairs of locators that should be paths may be others now.
    fn want_anew(&mut self, now: Instant) {
        let locals = self.local_addresses();
        for peer in self.peers.values_mut() {
            let Some(reach @ Reach::Addresses(_)) = &peer.reach else { continue };
            let pairs = reach.pairs(&locals);
            peer.wanted.retain(|w| pairs.contains(&w.locators));
            for pair in pairs {
                if !peer.wanted.iter().any(|w| w.locators == pair) {
                    peer.wanted.push(Wanted::new(pair, now));
                }
            }
        }
    }

    /// Connections use the path no longer; HIP takes it away if it is not the peer's last.
    fn abandon(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(&number) else { return };
        let (peer, spi, locators) = (path.peer, path.spi(), path.locators);
        if std::mem::take(&mut path.up) {
            let inner = inner(self.ours, peer, number);
            self.changes.push_back(Change::Down(inner));
            self.events.push_back((peer, PeerEvent::PathDown(locators)));
        }
        let others = self.hip.association(peer).is_some_and(|a| a.paths().iter().any(|p| p.inbound != spi));
        if let Some(path) = self.paths.get_mut(&number).filter(|p| others && !p.gone) {
            path.gone = true;
            self.hip.remove_path(now, peer, spi);
        }
    }

    /// A UDP payload came. A segment in it is returned with the inner locators of its path.
    pub fn handle(
        &mut self,
        now: Instant,
        locators: &Locators,
        mut bytes: BytesMut,
    ) -> Option<(Locators, Segment)> {
        match udp::classify(&bytes) {
            udp::Payload::Hip(_) => {
                self.hip.handle(now, route(*locators), &bytes);
                self.settle(now);
            }
            udp::Payload::Esp(packet) => {
                let spi = packet.first_chunk().map_or(0, |spi| u32::from_be_bytes(*spi));
                let Some(&number) = self.spis.get(&spi) else {
                    self.stats.unknown_spi += 1;
                    return None;
                };
                let path = self.paths.get_mut(&number)?;
                let Some(Ok(opened)) = path.open(spi, &mut bytes) else {
                    self.stats.refused += 1;
                    return None;
                };
                self.stats.opened += 1;
                path.heart.hear(now);
                path.untold += bytes.len() as u64;
                if path.fresh && path.spi() == spi {
                    path.fresh = false;
                    path.use_next();
                    self.tell_hip(now, number);
                }
                return self.opened(now, number, opened, bytes);
            }
            udp::Payload::Keepalive => {}
            udp::Payload::Unknown => self.stats.unknown += 1,
        }
        None
    }

    fn opened(
        &mut self,
        now: Instant,
        number: u16,
        opened: polypath_esp::Opened,
        bytes: BytesMut,
    ) -> Option<(Locators, Segment)> {
        let path = self.paths.get_mut(&number)?;
        match path.content(self.ours, &opened, bytes) {
            Some(Content::Segment(segment)) => return Some((inner(self.ours, path.peer, number), segment)),
            Some(Content::Icmp(mut message)) => {
                match heartbeat::read(&message, number, path.family(self.ours, true)) {
                    Heard::Request { id, seq } => {
                        heartbeat::reply(id, seq, path.family(self.ours, false), &mut message);
                        let write = |out: &mut [u8]| out.copy_from_slice(&message);
                        let len = path.seal_icmp(message.len(), &mut self.scratch, write);
                        self.send_scratch(now, number, len);
                    }
                    Heard::Reply(sent) => {
                        self.stats.heartbeats += 1;
                        let inner = inner(self.ours, path.peer, number);
                        self.changes.push_back(Change::Sample(inner, now.since(sent)));
                    }
                    Heard::Other => self.stats.other += 1,
                }
            }
            Some(Content::Other) if opened.is_dummy() => {}
            Some(Content::Other) | None => self.stats.other += 1,
        }
        None
    }

    /// Gives `outlet` a segment on the path with these inner locators, sealed.
    pub fn send(&mut self, now: Instant, inner: &Locators, segment: &Segment, outlet: &mut impl Outlet) {
        let path = self.paths.get_mut(&inner.local.port());
        let Some(path) = path.filter(|p| p.peer.as_ipv6() == inner.remote.ip()) else {
            self.stats.unsent += 1;
            return;
        };
        let Some(len) = path.seal_segment(self.ours, segment, &mut self.scratch) else {
            self.stats.unsent += 1;
            return;
        };
        if path.reachable || self.hip.may_send(now, path.peer, path.spi(), len as u64) {
            outlet.send_datagram(now, &path.locators, &self.scratch[..len]);
        } else {
            self.stats.unsent += 1;
        }
    }

    /// The next HIP packet or heartbeat to be sent.
    pub fn poll_transmit(&mut self) -> Option<(Locators, Vec<u8>)> {
        self.outbox.pop_front()
    }

    fn send_scratch(&mut self, now: Instant, number: u16, len: Option<usize>) {
        let Some(path) = self.paths.get(&number) else { return };
        match len {
            Some(len) if path.reachable || self.hip.may_send(now, path.peer, path.spi(), len as u64) => {
                self.outbox.push_back((path.locators, self.scratch[..len].to_vec()));
            }
            _ => self.stats.unsent += 1,
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.hip.handle_timeout(now);
        let numbers: Vec<u16> =
            self.paths.iter().filter(|(_, p)| p.heart.next <= now).map(|(n, _)| *n).collect();
        numbers.into_iter().for_each(|number| self.beat(now, number));
        self.settle(now);
    }

    /// Sends the heartbeat of a path and looks after it.
    fn beat(&mut self, now: Instant, number: u16) {
        let (silence, every) = match self.config.heartbeat {
            Duration::ZERO => (true, Duration::from_secs(1)),
            every => (false, every),
        };
        let Some(path) = self.paths.get_mut(&number) else { return };
        let (peer, silent) = (path.peer, path.heart.silent() >= self.config.missed_heartbeats.max(2));
        if path.is_worn() {
            path.rekeying = true;
            let spi = path.spi();
            self.hip.rekey(now, peer, spi, true);
        }
        if silence {
            self.paths.get_mut(&number).into_iter().for_each(|p| p.heart.next = now + every);
        } else if let Some(path) = self.paths.get_mut(&number) {
            let len = path.beat(self.ours, number, now, every, &mut self.scratch);
            self.send_scratch(now, number, len);
        }
        self.tell_hip(now, number);
        if silent {
            self.seek_anew(now, number);
        }
    }

    /// A path from which nothing comes any more, among others or alone: whoever began the association
    /// asks for another one between the same locators.
    fn seek_anew(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get(&number) else { return };
        let (peer, locators) = (path.peer, path.locators);
        let others = self.paths.values().any(|p| p.peer == peer && p.up && p.locators != locators);
        let ours = self.peers.get(&peer).is_some_and(|p| p.wanted.iter().any(|w| w.locators == locators));
        if ours && others {
            self.abandon(now, number);
        }
    }

    /// HIP hears what came on a path since it heard last.
    fn tell_hip(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(&number).filter(|p| p.untold > 0) else { return };
        let (peer, spi, bytes) = (path.peer, path.used_spi(), std::mem::take(&mut path.untold));
        self.hip.on_data(now, peer, spi, bytes);
        self.settle(now);
    }

    /// Asks for wanted paths that there are not, when their time has come.
    fn ask_for_paths(&mut self, now: Instant) {
        for (&hit, peer) in &mut self.peers {
            if self.hip.association(hit).is_none_or(|a| a.state() != State::Established) {
                continue;
            }
            for wanted in peer.wanted.iter_mut().filter(|w| !w.asked && w.at <= now) {
                let live = |p: &SecurePath| {
                    p.peer == hit
                        && p.locators == wanted.locators
                        && p.heart.silent() < self.config.missed_heartbeats.max(2)
                };
                if !self.paths.values().any(live) {
                    wanted.asked = true;
                    self.hip.add_path(now, hit, route(wanted.locators));
                }
            }
        }
    }

    /// When [`Self::handle_timeout`] must be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// After anything that HIP did: takes its packets and events, and sets the alarm.
    fn settle(&mut self, now: Instant) {
        loop {
            self.take_events(now);
            self.ask_for_paths(now);
            let mut more = false;
            while let Some(transmit) = self.hip.poll_transmit() {
                let Route { local, remote } = transmit.route;
                self.outbox.push_back((Locators { local, remote }, transmit.payload));
                more = true;
            }
            if !more {
                break;
            }
        }
        let hearts = self.paths.values().map(|p| p.heart.next);
        let wanted = self.peers.values().filter(|p| p.up).flat_map(|p| &p.wanted);
        let wanted = wanted.filter(|w| !w.asked && w.at > now).map(|w| w.at);
        self.due = hearts.chain(wanted).chain(self.hip.poll_timeout()).min();
    }

    pub fn poll_change(&mut self) -> Option<Change> {
        self.changes.pop_front()
    }

    pub fn poll_event(&mut self) -> Option<(Hit, PeerEvent)> {
        self.events.pop_front()
    }

    /// The paths to `peer` that connections may use, with what they are told of them.
    pub fn usable(&self, peer: Hit) -> Vec<(Locators, PathConfig)> {
        let usable = |(number, path): (&u16, &SecurePath)| {
            (path.peer == peer && path.up).then(|| (inner(self.ours, peer, *number), self.path_config(path)))
        };
        self.paths.iter().filter_map(usable).collect()
    }

    /// What a connection is told of the path with these inner locators.
    pub fn config_of(&self, inner: &Locators) -> Option<PathConfig> {
        self.paths.get(&inner.local.port()).map(|path| self.path_config(path))
    }

    fn path_config(&self, path: &SecurePath) -> PathConfig {
        let local = self.locals.get(&path.locators.local).copied().unwrap_or_default();
        let remote = self.peers.get(&path.peer).and_then(|p| p.links.get(&path.locators.remote.ip()));
        let remote = remote.copied().unwrap_or_default();
        let rates = [local.link.bandwidth, remote.bandwidth];
        let delays = [local.link.delay, remote.delay];
        PathConfig {
            rate: rates.into_iter().flatten().min(),
            one_way: delays.into_iter().flatten().reduce(|a, b| a + b),
            ..path.config(local.mtu.unwrap_or(self.config.mtu))
        }
    }

    /// The state of the association with `peer`.
    pub fn state(&self, peer: Hit) -> Option<State> {
        self.hip.association(peer).map(polypath_hip::Association::state)
    }

    /// Peers with an association of any state.
    pub fn peers(&self) -> impl Iterator<Item = Hit> {
        self.hip.associations().map(polypath_hip::Association::peer)
    }

    pub fn reports(&self) -> impl Iterator<Item = PathReport> {
        self.paths.iter().map(|(number, path)| PathReport {
            peer: path.peer,
            inner: inner(self.ours, path.peer, *number),
            locators: path.locators,
            suite: path.suite,
            inbound: path.spi(),
            outbound: path.outbound.spi().0,
            up: path.up,
            rekeyed: path.rekeyed,
            sealed: path.sealed_before + path.outbound.sealed(),
        })
    }

    pub fn stats(&self) -> &SecurityStats {
        &self.stats
    }
}

/// A path as connections see it.
fn inner(ours: Hit, peer: Hit, number: u16) -> Locators {
    let end = |hit: Hit| SocketAddr::new(hit.as_ipv6().into(), number);
    Locators { local: end(ours), remote: end(peer) }
}

fn route(locators: Locators) -> Route {
    Route { local: locators.local, remote: locators.remote }
}
