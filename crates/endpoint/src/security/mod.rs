//! HIP and ESP under the connections: who the peer is, with which keys, over which addresses.
//!
//! A connection sees a path as a pair of HITs with the path's number for a port: so it is the same
//! path when its addresses or its keys change (BEET mode, RFC 7402 §3.1), and nobody but the peer can
//! join it.

mod care;
mod config;
mod cover;
mod ecn;
mod events;
mod heartbeat;
mod links;
mod locals;
mod mtu;
mod packets;
mod path;
mod reach;
mod report;
mod sas;
mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use polypath_hip::{Accept, ConnectError, DropReason, Host, Identity, Link, Route, State};
use polypath_transport::PathConfig;
use polypath_wire::hip::{Hit, udp::HIP_MARKER};
use polypath_wire::{Duration, Ecn, Instant, Rate};

use crate::cover::Change;
use crate::paths::Locators;
use path::{ROOM, SecurePath};
use reach::{Pair, Wanted};
use table::{Paths, Peers};

pub use config::SecurityConfig;
pub use reach::{Reach, is_public};
pub use report::{HipRecord, PathLoad, PathReport, PeerEvent, PeerFailure, SecurityStats};

/// Unanswered heartbeats after which a path may be lost, or the peer if all its paths are so.
const UNANSWERED: u32 = 3;

/// How long an address that a silent peer should have a path to, and has none, is asked for that path before it is asked for a
/// new association: a peer that has only moved answers the first.
const UNHEARD: Duration = Duration::from_secs(3);

/// How often an R1 of a silent peer is answered by heartbeats on all paths before one is taken: links that come back lose some
/// packets, and these may be heartbeats.
const DOUBTED: u32 = 3;

/// The least time that heartbeats have for their answers before another R1 counts.
const DOUBT: Duration = Duration::from_millis(100);

/// What a local address is good for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LocalInfo {
    /// Largest IP packet of its link, bytes.
    pub mtu: Option<u32>,
    /// What is known of its link before anything was measured.
    pub link: Link,
    /// The number of its interface, from 1: addresses of one interface are one link. Without, it is a link of its own.
    pub interface: Option<u32>,
    /// What data sent through it on one path never exceed, headers included; above 0.
    pub limit: Option<Rate>,
}

/// Associations, SAs and secure paths of one endpoint.
#[derive(Debug)]
pub(crate) struct Security {
    config: SecurityConfig,
    hip: Host,
    ours: Hit,
    locals: BTreeMap<SocketAddr, LocalInfo>,
    peers: Peers,
    /// Peers whom we ask for a new association as they are silent.
    renewing: BTreeMap<Hit, Renewal>,
    paths: Paths,
    next_number: u16,
    spis: BTreeMap<u32, u16>,
    /// HIP packets and heartbeats that wait to be sent.
    outbox: VecDeque<(Locators, Ecn, Vec<u8>)>,
    changes: VecDeque<Change>,
    events: VecDeque<(Hit, PeerEvent)>,
    /// Changes of state, if they are observed.
    records: Option<VecDeque<HipRecord>>,
    due: Option<Instant>,
    scratch: Vec<u8>,
    stats: SecurityStats,
}

/// A new association is asked for.
#[derive(Debug)]
struct Renewal {
    since: Instant,
    /// How often heartbeats were the answer to an R1, and when last.
    doubted: u32,
    asked: Instant,
}

/// One peer.
#[derive(Debug, Default)]
struct Peer {
    /// Set if it was we who began.
    reach: Option<Reach>,
    wanted: Vec<Wanted>,
    /// What it says all its addresses are.
    announced: Vec<IpAddr>,
    /// Ours, as last announced to it.
    told: Option<Vec<IpAddr>>,
    /// It delivers data that comes directly behind a SYN.
    early_data: bool,
    /// What it says of its own links, and what it measured.
    links: BTreeMap<IpAddr, Link>,
    measured: BTreeMap<IpAddr, Link>,
    /// What we last announced to it of ours, and when we may announce more.
    links_told: BTreeMap<IpAddr, Link>,
    tell_links_at: Instant,
    up: bool,
    refused: bool,
    /// When data was last seen to flow.
    flowed: Option<Instant>,
}

impl Peer {
    /// These pairs of locators should be paths from now on. Of those that should be already, attempts go on.
    fn want(&mut self, now: Instant, pairs: Vec<Pair>) {
        let before = std::mem::take(&mut self.wanted);
        let known = |pair: &Pair| before.iter().find(|w| w.locators == pair.locators).cloned();
        let wanted = |pair: Pair| match known(&pair) {
            Some(wanted) => wanted.placed(pair),
            None => Wanted::new(pair, now),
        };
        self.wanted = pairs.into_iter().map(wanted).collect();
    }

    /// When a path is asked for next.
    fn next_ask(&self, now: Instant) -> Option<Instant> {
        let wanted = self.wanted.iter().filter(|w| self.up && !w.asked && w.at > now);
        wanted.map(|w| w.at).min()
    }
}

impl Security {
    pub fn new(config: SecurityConfig, identity: Identity, seed: [u8; 32], generation: u64) -> Self {
        let ours = identity.hit();
        Self {
            hip: Host::new(identity, config.hip.clone(), seed, generation, Instant::ZERO),
            config,
            ours,
            locals: BTreeMap::new(),
            peers: Peers::default(),
            renewing: BTreeMap::new(),
            paths: Paths::default(),
            next_number: 1,
            spis: BTreeMap::new(),
            outbox: VecDeque::new(),
            changes: VecDeque::new(),
            events: VecDeque::new(),
            records: None,
            due: None,
            scratch: vec![0; ROOM],
            stats: SecurityStats::default(),
        }
    }

    /// Whether to observe the states of associations.
    pub fn observe(&mut self, states: bool) {
        self.records = states.then(VecDeque::new);
    }

    /// Makes the key and the signatures for the first R1s in advance, unless nobody is let in.
    pub fn prepare(&mut self, now: Instant) {
        if self.config.hip.accept != Accept::Nobody {
            self.hip.prepare(now);
        }
    }

    pub fn hit(&self) -> Hit {
        self.ours
    }

    /// From now on answers those peers.
    pub fn accept(&mut self, accept: Accept) {
        self.hip.accept(accept);
    }

    /// Begins an association, unless there is one: its paths, also those that are asked for, stay. A peer that is silent is
    /// sought where it was and where it should be now.
    pub fn associate(&mut self, now: Instant, peer: Hit, reach: Reach) -> Result<(), ConnectError> {
        let pairs = reach.pairs(&self.local_ends(), &[], |_| false);
        self.hip.connect(now, peer, pairs.iter().map(|p| route(p.locators)).collect())?;
        let moves = matches!(reach, Reach::Addresses(_));
        let silent = moves && self.is_silent_for(now, peer, Duration::ZERO);
        let entry = self.peers.named(peer);
        (entry.reach, entry.refused) = (Some(reach), false);
        match silent {
            true => self.seek(now, peer),
            false => entry.want(now, pairs),
        }
        self.settle_for(now, peer);
        Ok(())
    }

    /// Ends an association.
    pub fn dissociate(&mut self, now: Instant, peer: Hit) {
        self.hip.close(now, peer);
        self.settle_for(now, peer);
    }

    /// After anything that HIP did for a peer.
    fn settle_for(&mut self, now: Instant, peer: Hit) {
        self.peers.touch(peer);
        self.settle(now);
    }

    /// After anything that HIP did: takes its packets and events, looks after the peers that are concerned, and sets the
    /// alarm.
    fn settle(&mut self, now: Instant) {
        loop {
            self.take_events(now);
            self.ask_for_paths(now);
            let mut more = false;
            while let Some(transmit) = self.hip.poll_transmit() {
                let Route { local, remote } = transmit.route;
                let marker: &[u8] = if transmit.route.is_udp() { &[] } else { &HIP_MARKER };
                let packet = [marker, &transmit.payload].concat();
                self.outbox.push_back((Locators { local, remote }, Ecn::None, packet));
                more = true;
            }
            if !more {
                break;
            }
        }
        let concerned = self.peers.concerned(now);
        self.peers.leave(now, concerned);
        let dues = [self.paths.next_beat(), self.peers.next_ask(), self.hip.poll_timeout()];
        self.due = dues.into_iter().flatten().min();
    }

    pub fn poll_record(&mut self) -> Option<HipRecord> {
        self.records.as_mut()?.pop_front()
    }

    pub fn poll_event(&mut self) -> Option<(Hit, PeerEvent)> {
        self.events.pop_front()
    }

    /// The paths to `peer` that a new connection begins with, and their parameters. A silent path is left out, and joins
    /// the connection when it answers; if all paths are silent, none is left out. The quickest, which takes the SYN, comes first.
    pub fn usable(&mut self, peer: Hit) -> Vec<(Locators, PathConfig)> {
        let answers = |p: &SecurePath| p.heart.silent() <= UNANSWERED;
        let up = self.paths.of(peer).filter(|(_, p)| p.up);
        let up: Vec<(u16, bool)> = up.map(|(number, p)| (number, answers(p))).collect();
        let any = up.iter().any(|(_, answers)| *answers);
        let (used, left_out): (Vec<_>, Vec<_>) = up.into_iter().partition(|(_, answers)| *answers || !any);
        for (number, _) in left_out {
            self.paths.get_mut(number).into_iter().for_each(|path| path.left_out = true);
        }
        let config = |number| self.paths.get(number).map(|path| self.path_config(path));
        let paths = used.into_iter().filter_map(|(n, _)| Some((inner(self.ours, peer, n), config(n)?)));
        let mut paths: Vec<(Locators, PathConfig)> = paths.collect();
        paths.sort_by_key(|(_, config)| {
            let round_trip = config.one_way.map(|delay| delay.times(2)).or(config.round_trip);
            (config.spill, round_trip.unwrap_or(Duration::MAX))
        });
        paths
    }

    /// The state of the association with `peer`.
    pub fn state(&self, peer: Hit) -> Option<State> {
        self.hip.association(peer).map(polypath_hip::Association::state)
    }

    /// The names of all associations, whatever their state.
    pub fn peers(&self) -> impl Iterator<Item = Hit> {
        self.hip.names()
    }

    /// The HIT of the peer whose association has this `name`.
    fn hit_of(&self, name: Hit) -> Hit {
        self.hip.association(name).map_or(name, polypath_hip::Association::peer)
    }

    pub fn reports(&self) -> impl Iterator<Item = PathReport> {
        self.paths.iter().map(|(number, path)| self.report(number, path))
    }

    /// Of the path with these inner locators.
    pub fn report_of(&self, inner: &Locators) -> Option<PathReport> {
        let path =
            self.paths.get(inner.local.port()).filter(|path| path.peer.as_ipv6() == inner.remote.ip())?;
        Some(self.report(inner.local.port(), path))
    }

    fn report(&self, number: u16, path: &SecurePath) -> PathReport {
        let (mtu, carries) = path.sizes();
        PathReport {
            peer: path.hit,
            inner: inner(self.ours, path.peer, number),
            locators: path.locators,
            suite: path.suite,
            inbound: path.spi(),
            outbound: path.outbound.spi().0,
            up: path.up,
            answers: path.heart.answers(),
            mtu,
            carries,
            measured: path.measured,
            peer_measured: self.measured_by_peer(path),
            rekeyed: path.rekeyed,
            sealed: path.sealed_before + path.outbound.sealed(),
            sent: path.sent,
            received: path.received,
            ecn: path.marks.may_be(),
            marked: path.marked,
        }
    }

    pub fn stats(&self) -> SecurityStats {
        let dropped = |reasons: &[DropReason]| reasons.iter().map(|reason| self.hip.dropped(*reason)).sum();
        let malformed = dropped(&[DropReason::Malformed, DropReason::Checksum, DropReason::Unknown]);
        let late = dropped(&[DropReason::State, DropReason::Replay]);
        let uninvited = self.hip.dropped_total() - malformed - late;
        SecurityStats { malformed, late, uninvited, ..self.stats }
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
