//! Two hosts in virtual time, with a network between them that a test may edit.
#![allow(clippy::unwrap_used, dead_code, reason = "shared by several tests, which use parts of it")]

use std::net::SocketAddr;

use polypath_hip::*;
use polypath_testing::{self as testing, Bed as _, Link, Wire};
use polypath_wire::hip::{Hit, PacketType, udp};
use polypath_wire::{Duration, Instant};

/// What goes on in place of a packet: each copy with its extra delay.
pub type Fate = Vec<(Duration, Vec<u8>)>;

/// A packet that a host sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub from: usize,
    pub route: Route,
    pub payload: Vec<u8>,
}

impl Sent {
    /// The HIP packet, without the marker of UDP.
    pub fn packet(&self) -> &[u8] {
        if self.route.remote.port() == 0 { &self.payload } else { &self.payload[udp::HIP_MARKER.len()..] }
    }
    pub fn packet_type(&self) -> PacketType {
        PacketType::from(self.packet()[2] & 0x7f)
    }
    /// Arrives as it was sent.
    pub fn intact(&self) -> Fate {
        vec![(Duration::ZERO, self.payload.clone())]
    }
}

pub struct Pair {
    pub now: Instant,
    pub hosts: [Host; 2],
    pub events: [Vec<Event>; 2],
    pub sent: Vec<Sent>,
    wire: Wire<Sent>,
}

pub const DELAY: Duration = Duration::from_millis(10);

/// Our address number `n` as host `host`, behind UDP.
pub fn address(host: usize, n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, n, host as u8 + 1], 10_500))
}

/// From address `n` of host `host` to address `n` of the other.
pub fn route(host: usize, n: u8) -> Route {
    Route { local: address(host, n), remote: address(1 - host, n) }
}

/// The same without UDP.
pub fn native(host: usize, n: u8) -> Route {
    let bare = |a: SocketAddr| SocketAddr::new(a.ip(), 0);
    Route { local: bare(address(host, n)), remote: bare(address(1 - host, n)) }
}

/// Fast algorithms, for tests that run many exchanges.
pub fn quick() -> HipConfig {
    HipConfig { dh_groups: vec![dh::DhGroup::P256, dh::DhGroup::P384], ..HipConfig::default() }
}

pub fn identity(kind: KeyKind, seed: u8) -> Identity {
    Identity::generate(kind, &mut Random::from_seed([seed; 32])).unwrap()
}

impl Pair {
    pub fn new(configs: [HipConfig; 2], kinds: [KeyKind; 2]) -> Self {
        let mut n = 0;
        let hosts = configs.map(|config| {
            n += 1;
            Host::new(identity(kinds[n - 1], n as u8), config, [n as u8; 32], 100, Instant::ZERO)
        });
        Self {
            now: Instant::ZERO,
            hosts,
            events: [Vec::new(), Vec::new()],
            sent: Vec::new(),
            wire: Wire::new([Link::new(DELAY)]),
        }
    }

    pub fn quick() -> Self {
        Self::new([quick(), quick()], [KeyKind::P256; 2])
    }

    /// With a network that does `edit` to every packet.
    pub fn with_network(mut self, edit: impl FnMut(&Sent) -> Fate + 'static) -> Self {
        self.set_network(edit);
        self
    }
    pub fn set_network(&mut self, mut edit: impl FnMut(&Sent) -> Fate + 'static) {
        self.wire.script(move |sent| {
            let copy = |(late, payload)| (late, Sent { payload, ..sent.clone() });
            testing::Fate::Instead(edit(sent).into_iter().map(copy).collect())
        });
    }

    pub fn hit(&self, host: usize) -> Hit {
        self.hosts[host].hit()
    }
    pub fn connect(&mut self, host: usize) {
        let peer = self.hit(1 - host);
        self.hosts[host].connect(self.now, peer, vec![route(host, 0)]).unwrap();
    }
    pub fn association(&self, host: usize) -> Option<&Association> {
        self.hosts[host].association(self.hit(1 - host))
    }
    pub fn state(&self, host: usize) -> State {
        self.association(host).map_or(State::Unassociated, Association::state)
    }
    pub fn states(&self) -> [State; 2] {
        [self.state(0), self.state(1)]
    }
    /// Whether both may send data.
    pub fn is_up(&self) -> bool {
        self.states().iter().all(|s| matches!(s, State::R2Sent | State::Established))
    }
    pub fn established(mut self) -> Self {
        self.connect(0);
        self.run(Duration::from_secs(40));
        assert_eq!(self.states(), [State::Established; 2]);
        self
    }

    pub fn run(&mut self, span: Duration) {
        self.run_for(span);
    }

    /// Hands `sent` to the other host now.
    pub fn deliver(&mut self, sent: &Sent) {
        let Route { local, remote } = sent.route;
        self.hosts[1 - sent.from].handle(self.now, Route { local: remote, remote: local }, &sent.payload);
    }

    /// The SA pairs that host `host` has: added and not removed.
    pub fn sas(&self, host: usize) -> Vec<SaPair> {
        let mut sas = Vec::new();
        for event in &self.events[host] {
            match event {
                Event::SaAdded(sa) => sas.push(sa.clone()),
                Event::SaRemoved { inbound, .. } => sas.retain(|sa: &SaPair| sa.inbound != *inbound),
                _ => {}
            }
        }
        sas
    }

    /// Every SA of one host is one of the other's, with the same keys.
    pub fn assert_sas_match(&self) {
        let (a, b) = (self.sas(0), self.sas(1));
        assert_eq!(a.len(), b.len(), "{a:?} {b:?}");
        for sa in &a {
            let other = b.iter().find(|o| o.inbound == sa.outbound).expect("the other end of this SA");
            assert_eq!(other.outbound, sa.inbound);
            assert_eq!(other.suite, sa.suite);
            assert!(other.keys.outgoing == sa.keys.incoming && other.keys.incoming == sa.keys.outgoing);
            assert!(sa.keys.outgoing != sa.keys.incoming);
        }
        for (n, sa) in a.iter().enumerate() {
            assert!(a[..n].iter().all(|o| o.keys.outgoing != sa.keys.outgoing), "keys are used once");
        }
    }

    pub fn count(&self, packet_type: PacketType) -> usize {
        self.sent.iter().filter(|s| s.packet_type() == packet_type).count()
    }
}

impl testing::Bed for Pair {
    type Packet = Sent;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn wire(&mut self) -> &mut Wire<Sent> {
        &mut self.wire
    }

    fn arrive(&mut self, _: usize, sent: Sent) {
        self.deliver(&sent);
    }

    fn turn(&mut self, from: usize) -> Option<Instant> {
        while let Some(Transmit { route, payload }) = self.hosts[from].poll_transmit() {
            let sent = Sent { from, route, payload };
            self.sent.push(sent.clone());
            self.wire.send(self.now, from, 0, 0, sent);
        }
        self.events[from]
            .extend(std::iter::from_fn(|| self.hosts[from].poll_event()).map(|(_, event)| event));
        self.hosts[from].poll_timeout()
    }

    fn expire(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
    }
}

pub const SOON: Duration = Duration::from_secs(1);

pub fn act(pair: &mut Pair, host: usize, what: impl FnOnce(&mut Host, Instant, polypath_wire::hip::Hit)) {
    let (now, peer) = (pair.now, pair.hit(1 - host));
    what(&mut pair.hosts[host], now, peer);
}

pub fn add(pair: &mut Pair, host: usize, n: u8) {
    act(pair, host, |h, now, peer| h.add_path(now, peer, route(host, n)));
}

/// Paths of which the peer has proved its end.
pub fn reachable(pair: &Pair, host: usize) -> usize {
    pair.association(host).map_or(0, |a| a.paths().iter().filter(|p| p.reachable).count())
}
