//! Two secure endpoints in virtual time, with links between them that a test may cut.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use bytes::BytesMut;
use polypath_endpoint::*;
use polypath_hip::{HipConfig, Identity, KeyKind, Random, dh::DhGroup};
use polypath_testing::{self as testing, Wire};
pub use polypath_testing::{Bed as _, CLIENT, SERVER};
use polypath_transport::{ConnectionConfig, Pattern, Payload};
use polypath_wire::hip::Hit;
use polypath_wire::{Duration, Ecn, Instant, Rate};

pub use crate::common::out::Out;

pub const PORT: u16 = 80;
pub const KEY: u32 = 5;
/// Of every link.
const RATE: Rate = Rate::from_mbps(8);
const QUEUE: Duration = Duration::from_millis(60);

/// A link between one address of each side.
pub struct Link {
    pub ends: [SocketAddr; 2],
    pub up: bool,
    /// What the server sees in place of the client's address.
    pub nat: Option<SocketAddr>,
    /// The same at the other end: what the client sees, and where alone the server is then.
    pub far: Option<SocketAddr>,
    /// The largest IP packet that gets through, and whether somebody tells the sender of a larger one.
    pub mtu: Option<(u32, bool)>,
    /// Packets that were too big.
    pub too_big: u64,
    /// Bytes of user data that arrived at the server.
    pub bytes: u64,
}

pub struct Bed {
    pub now: Instant,
    pub endpoints: [Endpoint; 2],
    pub links: Vec<Link>,
    /// How fast each link is.
    pub wire: Wire<Flying>,
    pub events: [Vec<PeerEvent>; 2],
    pub client: Option<ConnectionHandle>,
    pub server: Option<ConnectionHandle>,
    pub received: u64,
    pub finished: bool,
    /// Bytes that the server sends on each connection that it accepts, and those of them that the client read.
    pub offered: u64,
    pub fetched: u64,
    /// Whether to keep all that travels: `seen`, `log`, `sent`.
    pub keeps: bool,
    /// All that travels.
    pub seen: Vec<Vec<u8>>,
    /// What the server is given, nothing in a turn without arrival; and what it sends.
    pub log: Vec<(Instant, Option<Input>)>,
    pub sent: Vec<(Instant, Locators, Vec<u8>)>,
    /// All links lead through the queue of the first.
    pub joined: bool,
    pub loss: Option<Loss>,
    /// How many ESP packets of each side are lost next, on whatever link.
    pub lost: [u32; 2],
    /// Packets of each side that left for where nobody is: from an address that is gone, or to one that a NAT has forgotten.
    pub astray: [u64; 2],
}

/// A large packet of the client is lost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Loss {
    /// The next one on this link.
    Due(usize),
    /// One was, and the next one on this link shows it.
    Done(usize),
    /// Which arrives then.
    Shown(Instant),
}

/// A packet on its way: on which link, between which locators as seen where it arrives, and what.
#[derive(Clone)]
pub struct Flying {
    link: usize,
    locators: Locators,
    payload: Vec<u8>,
}

pub fn quick() -> SecurityConfig {
    let retransmit = Duration::from_millis(100);
    let hip = HipConfig { dh_groups: vec![DhGroup::P256], retransmit, ..HipConfig::default() };
    SecurityConfig { hip, ..SecurityConfig::default() }
}

/// The same as today's programs have it.
pub fn today() -> SecurityConfig {
    let mut config = quick();
    config.hip = HipConfig { early_data: true, same_spi: true, no_checksums: true, ..config.hip };
    config
}

pub fn identity(seed: u8) -> Identity {
    Identity::generate(KeyKind::P256, &mut Random::from_seed([seed; 32])).unwrap()
}

pub fn v4(side: u8, link: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, link, side + 1], 10_500))
}

pub fn v6(side: u8, link: u8) -> SocketAddr {
    format!("[fd00:{link}::{}]:10500", side + 1).parse().unwrap()
}

impl Bed {
    pub fn new(configs: [SecurityConfig; 2], addresses: [fn(u8, u8) -> SocketAddr; 2]) -> Self {
        let mut side = 0;
        let endpoints = configs.map(|config| {
            side += 1;
            Endpoint::secure(EndpointConfig::default(), config, identity(side), [side; 32], 1)
        });
        let link = |n: u8| {
            let address = addresses[usize::from(n)];
            Link {
                ends: [address(0, n), address(1, n)],
                up: true,
                nat: None,
                far: None,
                mtu: None,
                too_big: 0,
                bytes: 0,
            }
        };
        let speed = |delay| testing::Link::new(Duration::from_millis(delay)).with_rate(RATE, QUEUE);
        let mut bed = Self {
            now: Instant::ZERO,
            endpoints,
            links: vec![link(0), link(1)],
            wire: Wire::new([10, 20].map(speed)),
            events: [Vec::new(), Vec::new()],
            client: None,
            server: None,
            received: 0,
            finished: false,
            offered: 0,
            fetched: 0,
            keeps: true,
            seen: Vec::new(),
            log: Vec::new(),
            sent: Vec::new(),
            joined: false,
            loss: None,
            lost: [0; 2],
            astray: [0; 2],
        };
        bed.endpoints[SERVER].listen(PORT, ListenConfig::default()).unwrap();
        (0..2).for_each(|link| (0..2).for_each(|side| bed.local(side, link, true)));
        bed
    }

    pub fn quick() -> Self {
        Self::new([quick(), quick()], [v4, v4])
    }

    pub fn hit(&self, side: usize) -> Hit {
        self.endpoints[side].hit().unwrap()
    }

    /// Tells `side` that its address on `link` is there, or is not.
    pub fn local(&mut self, side: usize, link: usize, up: bool) {
        let local = self.links[link].ends[side];
        let input = match up {
            true => Input::LocalUp { local, info: LocalInfo { mtu: Some(1500), ..LocalInfo::default() } },
            false => Input::LocalDown { local },
        };
        self.give(side, input);
    }

    pub fn associate(&mut self) {
        self.associate_at(&[0, 1]);
    }

    /// The client knows the server's addresses on these links only.
    pub fn associate_at(&mut self, links: &[usize]) {
        let remotes = links.iter().map(|n| self.links[*n].ends[SERVER]).collect();
        let peer = self.hit(SERVER);
        self.endpoints[CLIENT].associate(self.now, peer, Reach::Addresses(remotes)).unwrap();
    }

    /// Opens a connection and sends `len` bytes.
    pub fn send(&mut self, len: u64) {
        let config = ConnectionConfig { cc: polypath_transport::CcConfig::default(), ..Default::default() };
        self.send_with(len, config);
    }

    /// The same with that configuration of the connection.
    pub fn send_with(&mut self, len: u64, config: ConnectionConfig) {
        let peer = self.hit(SERVER);
        let handle = self.endpoints[CLIENT].connect_peer(self.now, config, peer, PORT).unwrap();
        let connection = self.endpoints[CLIENT].connection_mut(handle).unwrap();
        connection.write(Pattern { key: KEY, offset: 0, len }.into());
        connection.close();
        self.client = Some(handle);
    }

    /// An association with both paths up.
    pub fn established() -> Self {
        Self::established_as(quick)
    }

    /// The same, with both ends configured so.
    pub fn established_as(config: fn() -> SecurityConfig) -> Self {
        let mut bed = Self::new([config(), config()], [v4, v4]);
        bed.associate();
        bed.run(Duration::from_secs(1));
        assert_eq!(bed.paths_up(), [2, 2]);
        bed
    }

    pub fn paths_up(&self) -> [usize; 2] {
        [CLIENT, SERVER].map(|side| self.endpoints[side].secure_paths().filter(|p| p.up).count())
    }

    pub fn run(&mut self, span: Duration) {
        self.run_for(span);
    }

    pub fn give(&mut self, side: usize, input: Input) {
        if side == SERVER && self.keeps {
            self.log.push((self.now, Some(input.clone())));
        }
        self.endpoints[side].handle(self.now, input);
    }

    fn react(&mut self, side: usize) -> bool {
        while let Some((_, event)) = self.endpoints[side].poll_peer_event() {
            self.events[side].push(event);
        }
        let mut acted = false;
        while let Some((handle, event)) = self.endpoints[side].poll_event() {
            if side == SERVER && matches!(event, Event::Accepted { .. }) {
                self.server = Some(handle);
                acted |= self.offer();
            }
            acted |= if side == SERVER { self.read() } else { self.fetch() };
        }
        acted
    }

    fn offer(&mut self) -> bool {
        let Some(connection) = self.server.and_then(|h| self.endpoints[SERVER].connection_mut(h)) else {
            return false;
        };
        if self.offered > 0 {
            connection.write(Pattern { key: KEY, offset: 0, len: self.offered }.into());
        }
        self.offered > 0
    }

    fn fetch(&mut self) -> bool {
        let Some(connection) = self.client.and_then(|h| self.endpoints[CLIENT].connection_mut(h)) else {
            return false;
        };
        let before = self.fetched;
        while let Some(payload) = connection.read(u64::MAX) {
            self.fetched += payload.len();
        }
        self.fetched > before
    }

    fn read(&mut self) -> bool {
        let Some(connection) = self.server.and_then(|h| self.endpoints[SERVER].connection_mut(h)) else {
            return false;
        };
        let before = self.received;
        while let Some(payload) = connection.read(u64::MAX) {
            let len = payload.len();
            let expected = Payload::from(Pattern { key: KEY, offset: self.received, len });
            assert!(payload.same_bytes(&expected), "at {}", self.received);
            self.received += len;
        }
        if connection.state() == polypath_transport::State::CloseWait && !self.finished {
            self.finished = true;
            connection.close();
            return true;
        }
        self.received > before
    }

    fn carry(&mut self, side: usize, locators: &Locators, payload: Vec<u8>) {
        let outside = |l: &Link, side: usize| [l.nat, l.far][side].unwrap_or(l.ends[side]);
        let remote = |l: &Link| outside(l, 1 - side);
        let is_on = |l: &Link| l.up && locators.local == l.ends[side] && locators.remote == remote(l);
        let Some(index) = self.links.iter().position(is_on) else {
            self.astray[side] += 1;
            return;
        };
        if self.lost[side] > 0 && !payload.starts_with(&[0; 4]) {
            self.lost[side] -= 1;
            return;
        }
        let link = &mut self.links[index];
        let size = payload.len() as u32 + if locators.local.is_ipv4() { 28 } else { 48 };
        if let Some((mtu, said)) = link.mtu.filter(|(mtu, _)| *mtu < size) {
            link.too_big += 1;
            if said {
                self.give(side, Input::PathMtu { locators: *locators, mtu });
            }
            return;
        }
        let is_data = side == CLIENT && payload.len() > 500;
        if is_data && self.loss == Some(Loss::Due(index)) {
            self.loss = Some(Loss::Done(index));
            return;
        }
        let queue = if self.joined { 0 } else { index };
        let Some(left) = self.wire.links[queue].serve(self.now, side, payload.len()) else { return };
        let arrival = left + self.wire.links[index].delay;
        if is_data && self.loss == Some(Loss::Done(index)) {
            self.loss = Some(Loss::Shown(arrival));
        }
        let link = &self.links[index];
        let locators = Locators { local: link.ends[1 - side], remote: outside(link, side) };
        if self.keeps {
            self.seen.push(payload.clone());
        }
        self.wire.fly(arrival, 1 - side, Flying { link: index, locators, payload });
    }
}

impl testing::Bed for Bed {
    type Packet = Flying;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn wire(&mut self) -> &mut Wire<Flying> {
        &mut self.wire
    }

    fn arrive(&mut self, side: usize, Flying { link, locators, payload }: Flying) {
        if side == SERVER && payload.len() > 500 {
            self.links[link].bytes += payload.len() as u64;
        }
        let input = Input::Datagram { locators, ecn: Ecn::None, bytes: BytesMut::from(&payload[..]) };
        self.give(side, input);
    }

    fn turn(&mut self, side: usize) -> Option<Instant> {
        loop {
            let mut out = Out::default();
            let due = pump(&mut self.endpoints[side], self.now, &mut out);
            if side == SERVER && self.keeps {
                self.log.push((self.now, None));
                self.sent.extend(out.0.iter().map(|(locators, bytes)| (self.now, *locators, bytes.clone())));
            }
            out.0.into_iter().for_each(|(locators, payload)| self.carry(side, &locators, payload));
            if !self.react(side) {
                return due;
            }
        }
    }
}
