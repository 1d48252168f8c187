//! Two hosts whose packets a flow carries over links, and what comes of it.

use bytes::Bytes;
use polypath_hop::FqCodelConfig;
use polypath_testing::{Bed as _, CLIENT, Link, Wire};
use polypath_transport::flow::{Packet, PacketConfig, PacketFlow};
use polypath_transport::{CcConfig, ConnectionConfig, PathConfig, Pattern, SchedulerConfig, Segment};
use polypath_wire::{Duration, Ecn, Instant, PathId, Rate, Seed};

use crate::lane::queue::Fair;
use crate::packet::encode_packet;
use crate::{ConnectionHandle, Endpoint, EndpointConfig, Event, Input, ListenConfig, Locators, Outlet, pump};

const MS: fn(u64) -> Duration = Duration::from_millis;
const START: Instant = Instant::ZERO;
/// IPv4, UDP and ESP around a frame, bytes.
const COVER: u32 = 20 + 8 + 8 + 16 + 2;
/// Flows of the packets inside.
const TCP: u16 = 1;
const CALL: u16 = 2;
const MUCH: u16 = 3;
/// A packet of the call, bytes, and the time between two.
const CALLED: usize = 200;
const PAUSE: Duration = Duration::from_millis(20);
/// How many may be under way.
const UNDER_WAY: usize = 50;

/// A link of this rate and delay, in ms, with drop-tail queues of one and a half round trips.
pub fn link(mbps: u64, delay: u64) -> Link {
    Link::new(MS(delay)).with_rate(Rate::from_mbps(mbps), MS(delay).times(3))
}

/// What the connection and the call got in a part of the run.
#[derive(Debug)]
pub struct Carried {
    /// Data of the connection, as a part of the sum of the links' rates.
    pub share: f64,
    /// How long packets of the call took, ascending.
    pub call: Vec<Duration>,
    /// How many of them did not come.
    pub lost: usize,
}

/// Two hosts, between which a call sends 50 packets a second, and one TCP CUBIC connection as much as it can.
pub struct Bed {
    now: Instant,
    hosts: [Endpoint; 2],
    server: Option<ConnectionHandle>,
    flows: [PacketFlow; 2],
    /// A link for each path.
    wire: Wire<(PathId, Bytes)>,
    /// Heartbeats so far, one a second on each path.
    beats: u64,
    received: u64,
    /// How long each packet of the call took.
    calls: Vec<Option<Duration>>,
}

impl Bed {
    pub fn new(links: &[Link]) -> Self {
        Self { hosts: hosts(), ..Self::calling(links) }
    }

    /// The call alone.
    pub fn calling(links: &[Link]) -> Self {
        Self {
            now: START,
            hosts: [1, 2].map(|seed| Endpoint::new(EndpointConfig::default(), Seed(seed))),
            server: None,
            flows: [1, 2].map(|seed| flow(seed, links.len())),
            wire: Wire::new(links.to_vec()),
            beats: 0,
            received: 0,
            calls: Vec::new(),
        }
    }

    /// Half a megabyte leaves as packets that are not answered.
    pub fn send_much(&mut self) {
        let packet = |_| Packet { flow: MUCH, bytes: vec![0; 1000].into(), ..Packet::default() };
        (0..500).map(packet).for_each(|packet| self.flows[0].push(self.now, packet).unwrap());
    }

    /// From now on other traffic delays each packet to the server by `wait` on the first link.
    pub fn others_queue(&mut self, wait: Duration) {
        let way = &mut self.wire.links[0].ways[CLIENT];
        (way.jumpy, way.late) = (1, wait);
    }

    /// What is got in the next `time`; packets of the call that are under way at its end do not count.
    pub fn measure(&mut self, time: Duration) -> Carried {
        let (received, calls) = (self.received, self.calls.len());
        self.run_for(time);
        let rates = self.wire.links.iter().flat_map(|link| link.rate);
        let capacity: u64 = rates.map(|rate| rate.bytes_in(time)).sum();
        let called = &self.calls[calls..self.calls.len() - UNDER_WAY];
        let mut call: Vec<_> = called.iter().flatten().copied().collect();
        call.sort_unstable();
        let (share, lost) = ((self.received - received) as f64 / capacity as f64, called.len() - call.len());
        Carried { share, call, lost }
    }
}

impl Bed {
    fn next_beat(&self) -> Instant {
        START + Duration::from_secs(self.beats)
    }

    fn beat(&mut self) {
        self.beats += 1;
        for (n, link) in self.wire.links.iter().enumerate() {
            let (path, round_trip) = (PathId(n as u16), link.delay.times(2) + link.ways[CLIENT].late);
            self.flows.iter_mut().for_each(|flow| flow.path_answered(self.now, path, round_trip));
        }
    }

    fn next_call(&self) -> Instant {
        START + PAUSE.times(self.calls.len() as u64)
    }

    fn call(&mut self) {
        let mut packet = vec![0; CALLED];
        packet[..8].copy_from_slice(&(self.calls.len() as u64).to_be_bytes());
        self.calls.push(None);
        let packet = Packet { flow: CALL, bytes: packet.into(), ..Packet::default() };
        self.flows[0].push(self.now, packet).unwrap();
    }

    fn hand_over(&mut self, side: usize) {
        while let Some(packet) = self.flows[side].poll_deliver() {
            match packet.flow {
                CALL => self.answer(&packet.bytes),
                MUCH => {}
                _ => self.hosts[side].handle(self.now, Input::Packet { bytes: packet.bytes }),
            }
        }
    }

    fn send(&mut self, side: usize) {
        while let Some(leaving) = self.flows[side].poll_transmit(self.now) {
            let (frame, link) = (leaving.to_bytes(), leaving.path.index());
            self.wire.send(self.now, side, link, frame.len() + COVER as usize, (leaving.path, frame));
        }
    }

    fn answer(&mut self, packet: &[u8]) {
        let number = u64::from_be_bytes(packet[..8].try_into().unwrap());
        self.calls[number as usize] = Some(self.now.since(START + PAUSE.times(number)));
    }

    fn read(&mut self) {
        while let Some((handle, event)) = self.hosts[1].poll_event() {
            if matches!(event, Event::Accepted { .. }) {
                self.server = Some(handle);
            }
        }
        if let Some(connection) = self.server.and_then(|handle| self.hosts[1].connection_mut(handle)) {
            while let Some(payload) = connection.read(u64::MAX) {
                self.received += payload.len();
            }
        }
    }
}

impl polypath_testing::Bed for Bed {
    type Packet = (PathId, Bytes);

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn wire(&mut self) -> &mut Wire<(PathId, Bytes)> {
        &mut self.wire
    }

    fn arrive(&mut self, side: usize, (path, frame): (PathId, Bytes)) {
        self.flows[side].handle(self.now, path, frame, Ecn::None).unwrap();
    }

    fn turn(&mut self, side: usize) -> Option<Instant> {
        if self.flows[side].poll_timeout().is_some_and(|at| at <= self.now) {
            self.flows[side].handle_timeout(self.now);
        }
        self.hand_over(side);
        self.read();
        let mut packets = Packets::default();
        let due = pump(&mut self.hosts[side], self.now, &mut packets);
        for bytes in packets.0 {
            let packet = Packet { flow: TCP, repaired: true, bytes, ..Packet::default() };
            self.flows[side].push(self.now, packet).unwrap();
        }
        self.send(side);
        let timed = [self.next_call(), self.next_beat()].into_iter().filter(|_| side == CLIENT);
        due.into_iter().chain(self.flows[side].poll_timeout()).chain(timed).min()
    }

    fn expire(&mut self) {
        if self.next_beat() <= self.now {
            self.beat();
        }
        if self.next_call() <= self.now {
            self.call();
        }
    }
}

/// What a host sends.
#[derive(Default)]
struct Packets(Vec<Bytes>);

impl Outlet for Packets {
    fn send(&mut self, _: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        let mut packet = vec![0; 1500];
        let len = encode_packet(locators, segment, &mut packet).unwrap();
        packet.truncate(len);
        self.0.push(packet.into());
    }
}

/// Two hosts with the buffers of today's systems; the first one sends without end.
fn hosts() -> [Endpoint; 2] {
    let config = ConnectionConfig {
        cc: CcConfig::Cubic(Default::default()).of_today(),
        receive_buffer: 6 << 20,
        send_buffer: 8 << 20,
        ..ConnectionConfig::default()
    };
    let mut hosts = [1, 2].map(|seed| Endpoint::new(EndpointConfig::default(), Seed(seed)));
    hosts[1].listen(80, ListenConfig { connection: config.clone(), ..ListenConfig::default() }).unwrap();
    let end = |last| ([10, 9, 0, last], 0).into();
    let locators = Locators { local: end(1), remote: end(2) };
    let path = PathConfig { mss: 1360, ..PathConfig::default() };
    let client = hosts[0].connect(START, config, 80, &[(locators, path)]).unwrap();
    hosts[0].connection_mut(client).unwrap().write(Pattern { key: 1, offset: 0, len: 1 << 40 }.into());
    hosts
}

/// A flow of packets as the daemon has it.
fn flow(seed: u64, paths: usize) -> PacketFlow {
    let queue = Box::new(Fair::new(FqCodelConfig::default(), 8 << 20, Seed(seed)));
    let config = PacketConfig {
        cc: CcConfig::default().of_today(),
        scheduler: SchedulerConfig::EarliestCompletion,
        ..PacketConfig::default()
    };
    let mut flow = PacketFlow::new(START, &config, seed, queue);
    for path in 0..paths {
        let config = PathConfig { mss: 1440, overhead: COVER, ..PathConfig::default() };
        flow.add_path(START, PathId(path as u16), &config, 0);
    }
    flow
}
