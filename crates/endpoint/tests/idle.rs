//! What a server pays for clients that are there and silent: memory, packets a second. What the cipher library allocates in C
//! is not counted. Nothing more is kept of a client that carried thousands of flows.
#![allow(clippy::unwrap_used)]

#[path = "common/out.rs"]
mod out;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use polypath_endpoint::*;
use polypath_hip::{Accept, HipConfig, Identity, KeyKind, Random};
use polypath_testing::Wire;
use polypath_transport::flow::PacketConfig;
use polypath_transport::{AckConfig, CcConfig, ConnectionConfig, Pattern, SchedulerConfig};
use polypath_wire::deadlines::Named;
use polypath_wire::ipv4::Ipv4Header;
use polypath_wire::{Duration, Ecn, Instant, udp};

use out::Out;

const PORT: u16 = 80;
/// The port whose connections are as a daemon has them.
const LANE: u16 = 81;
/// Paths of each client.
const LINKS: u8 = 2;
const DELAY: Duration = Duration::from_millis(10);
/// Bytes of a heartbeat: an echo with its header and an instant (16) in ESP without an IV (28).
const HEARTBEAT: usize = 44;
const MOST_PER_CLIENT: i64 = 50_000;

/// A server, number 0, and clients at addresses of their own.
struct Star {
    now: Instant,
    hosts: Vec<Endpoint>,
    at: BTreeMap<SocketAddr, usize>,
    due: Named<usize>,
    wire: Wire<(Locators, Vec<u8>)>,
    /// Packets that the server sent, and the longest of them.
    sent: usize,
    longest: usize,
    /// Packets of programs that came to any host.
    came: usize,
}

fn address(host: usize, link: u8) -> SocketAddr {
    SocketAddr::from(([10, link, (host >> 8) as u8, host as u8], 10_500))
}

/// Of UDP, from the host of that number to the other of numbers 0 and 1.
fn datagram(host: usize, port: u16) -> Bytes {
    let at = |host: usize| Ipv4Addr::new(10, 99, 0, host as u8);
    let mut packet = vec![0; 1228];
    Ipv4Header::new(udp::PROTOCOL, at(host), at(1 - host), 1208).emit(&mut packet).unwrap();
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet.into()
}

fn identity(host: usize) -> Identity {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&host.to_be_bytes());
    Identity::generate(KeyKind::P256, &mut Random::from_seed(seed)).unwrap()
}

/// As a daemon has it.
fn endpoint(host: usize, accept: Accept, limits: EndpointConfig) -> Endpoint {
    let hip = HipConfig { accept, retransmit: Duration::from_millis(500), ..HipConfig::of_today() };
    let security = SecurityConfig { hip, ..SecurityConfig::default() };
    let mut endpoint = Endpoint::secure(limits, security, identity(host), [host as u8; 32], 1);
    let packets = PacketConfig {
        cc: CcConfig::usual().of_today(),
        scheduler: SchedulerConfig::EarliestCompletion,
        ..PacketConfig::default()
    };
    endpoint.carry_packets(Instant::ZERO, LaneConfig { packets, ..LaneConfig::default() }).unwrap();
    endpoint.listen(PORT, ListenConfig::default()).unwrap();
    endpoint.listen(LANE, ListenConfig { connection: connection(), ..ListenConfig::default() }).unwrap();
    endpoint
}

impl Star {
    fn new(clients: usize) -> Self {
        Self::limited(clients, &EndpointConfig::default())
    }

    fn limited(clients: usize, limits: &EndpointConfig) -> Self {
        let accept = Accept::Only((1..=clients).map(|n| identity(n).hit()).collect());
        let mut star = Self {
            now: Instant::ZERO,
            hosts: Vec::new(),
            at: BTreeMap::new(),
            due: Named::default(),
            wire: Wire::new([]),
            sent: 0,
            longest: 0,
            came: 0,
        };
        star.add(endpoint(0, accept, limits.clone()));
        for n in 1..=clients {
            star.add(endpoint(n, Accept::Nobody, limits.clone()));
            let reach = Reach::Addresses((0..LINKS).map(|link| address(0, link)).collect());
            let server = star.hosts[0].hit().unwrap();
            star.hosts[n].associate(star.now, server, reach).unwrap();
            star.turn(n);
            star.run(Duration::from_millis(10));
        }
        star
    }

    fn add(&mut self, mut host: Endpoint) {
        for link in 0..LINKS {
            let local = address(self.hosts.len(), link);
            let info = LocalInfo { mtu: Some(1500), ..LocalInfo::default() };
            host.handle(self.now, Input::LocalUp { local, info });
            self.at.insert(local, self.hosts.len());
        }
        self.hosts.push(host);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let next = self.wire.next_arrival().into_iter().chain(self.due.next()).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = next.max(self.now);
            while let Some(host) = self.due.pop_due(self.now) {
                self.turn(host);
            }
            while let Some((host, (locators, bytes))) = self.wire.arrived(self.now) {
                self.hosts[host].handle(
                    self.now,
                    Input::Datagram { locators, ecn: Ecn::None, bytes: BytesMut::from(&bytes[..]) },
                );
                self.turn(host);
            }
        }
        self.now = end;
    }

    fn turn(&mut self, host: usize) {
        let mut out = Out::default();
        let due = pump(&mut self.hosts[host], self.now, &mut out);
        self.due.set(host, due);
        while self.hosts[host].poll_peer_event().is_some() {}
        self.came += std::iter::from_fn(|| self.hosts[host].poll_carried()).count();
        for (locators, bytes) in out.0 {
            if host == 0 {
                self.sent += 1;
                self.longest = self.longest.max(bytes.len());
            }
            if let Some(to) = self.at.get(&locators.remote) {
                self.wire.fly(self.now + DELAY, *to, (locators.reversed(), bytes));
            }
        }
    }

    fn connect(&mut self, client: usize, connections: usize) {
        self.connect_with(&ConnectionConfig::default(), client, PORT, connections);
    }

    fn connect_with(&mut self, config: &ConnectionConfig, client: usize, port: u16, connections: usize) {
        let server = self.hosts[0].hit().unwrap();
        for _ in 0..connections {
            self.hosts[client].connect_peer(self.now, config.clone(), server, port).unwrap();
        }
        self.turn(client);
    }

    /// The server and the clients send each other `len` bytes on each connection.
    fn transfer(&mut self, len: u64) {
        let hosts = 0..self.hosts.len();
        let handles: Vec<Vec<_>> =
            hosts.map(|host| self.hosts[host].connections().map(|(handle, _)| handle).collect()).collect();
        let mut left: BTreeMap<_, _> = handles
            .iter()
            .enumerate()
            .flat_map(|(host, all)| all.iter().map(move |one| ((host, *one), (len, len))))
            .collect();
        for _ in 0..3000 {
            for ((host, handle), (unwritten, unread)) in &mut left {
                let connection = self.hosts[*host].connection_mut(*handle).unwrap();
                *unwritten -=
                    connection.write(Pattern { key: 7, offset: len - *unwritten, len: *unwritten }.into());
                while let Some(data) = connection.read(u64::MAX) {
                    *unread -= data.len();
                }
            }
            (0..self.hosts.len()).for_each(|host| self.turn(host));
            self.run(Duration::from_millis(10));
        }
        assert!(left.values().all(|(unwritten, unread)| unwritten + unread == 0), "{left:?}");
    }

    /// The server and a client send each other `datagrams` datagrams, spread over `flows` flows.
    fn exchange(&mut self, client: usize, datagrams: u16, flows: u16) {
        let hits = [0, client].map(|host| self.hosts[host].hit().unwrap());
        let before = self.came;
        for n in 0..datagrams {
            for (from, to) in [(0, 1), (1, 0)] {
                let (host, packet) = ([0, client][from], datagram(from, n % flows));
                assert_eq!(self.hosts[host].send_to_peer(self.now, hits[to], packet), Ok(()));
                self.turn(host);
            }
            self.run(Duration::from_micros(500));
        }
        self.run(Duration::from_secs(1));
        assert_eq!(self.came - before, 2 * usize::from(datagrams));
    }

    fn paths_up(&self) -> usize {
        self.hosts[0].secure_paths().filter(|path| path.up).count()
    }
}

/// The bytes that a server with `clients` allocates, each with that many open `connections`, and the packets that it sends in
/// 10 s once all clients are silent.
fn idle(clients: usize, connections: usize) -> (i64, usize) {
    let (mut left, mut sent) = (None, 0);
    let counted = allocation_counter::measure(|| {
        let mut star = Star::new(clients);
        star.run(Duration::from_secs(10));
        (1..=clients).for_each(|client| star.connect(client, connections));
        star.run(Duration::from_secs(10));
        assert_eq!(star.paths_up(), clients * usize::from(LINKS));
        (star.sent, star.longest) = (0, 0);
        star.run(Duration::from_secs(10));
        assert_eq!(star.longest, HEARTBEAT);
        sent = star.sent;
        left = Some(star.hosts.swap_remove(0));
    });
    assert!(left.is_some());
    (counted.bytes_current, sent)
}

#[test]
fn an_idle_client_costs_a_server_at_most_50_kb_and_its_heartbeats() {
    for connections in [0, 1] {
        let ((few, _), (many, sent)) = (idle(10, connections), idle(1000, connections));
        let each = (many - few) / 990;
        println!("{each} bytes for each idle client with {LINKS} paths and {connections} connections");
        assert!(each <= MOST_PER_CLIENT, "{each} bytes");
        // A heartbeat, and the answer to the client's, on each path in each second.
        assert_eq!(sent, 1000 * usize::from(LINKS) * 2 * 10);
    }
}

/// Bytes that remain allocated at `host` (the server is host 0) after each of `clients` exchanged datagrams of `flows` flows with the
/// server and then fell silent.
fn after(clients: usize, flows: u16, host: usize) -> i64 {
    let mut left = None;
    let counted = allocation_counter::measure(|| {
        let mut star = Star::new(clients);
        star.run(Duration::from_secs(10));
        (1..=clients).for_each(|client| star.exchange(client, 2000, flows));
        star.run(Duration::from_secs(150));
        left = Some(star.hosts.swap_remove(host));
    });
    assert!(left.is_some());
    counted.bytes_current
}

/// As a daemon has its connections with peers.
fn connection() -> ConnectionConfig {
    ConnectionConfig {
        cc: CcConfig::usual().of_today(),
        acks: AckConfig::thinned(),
        scheduler: SchedulerConfig::EarliestCompletion,
        fail_silent: true,
        keep_alive: Duration::from_secs(60),
        ..ConnectionConfig::default()
    }
}

/// Bytes that remain allocated at `host` of a client and its server, whose `connections` carried `len` bytes in each direction
/// and were idle for three minutes.
fn after_data(connections: usize, len: u64, host: usize) -> i64 {
    let mut left = None;
    let counted = allocation_counter::measure(|| {
        let mut star = Star::new(1);
        star.run(Duration::from_secs(10));
        star.connect_with(&connection(), 1, LANE, connections);
        star.run(Duration::from_secs(1));
        star.transfer(len);
        star.run(Duration::from_secs(180));
        assert_eq!(star.hosts[host].connections().count(), connections);
        left = Some(star.hosts.swap_remove(host));
    });
    assert!(left.is_some());
    counted.bytes_current
}

#[test]
fn a_connection_that_carried_data_over_two_paths_keeps_little_more_than_one_that_did_not() {
    for host in [0, 1] {
        let each = |len| (after_data(11, len, host) - after_data(1, len, host)) / 10;
        let (unused, used) = (each(0), each(1_000_000));
        println!("host {host}: {unused} bytes for each idle connection, {used} if it carried data");
        assert!(used < unused + 15_000, "host {host}: {unused} and {used} bytes");
    }
}

/// Most bytes of a connection beside what it holds.
const MOST_PER_CONNECTION: u64 = 20_000;
/// What a connection may always hold in each direction.
const LEAST: u64 = 16 << 10;
/// What is written on a busy connection, and read by nobody.
const UNREAD: u64 = 1 << 20;

#[test]
fn ten_thousand_idle_connections_and_500_busy_ones_that_nobody_reads_hold_what_they_may() {
    let (idle, busy) = (10_000, 500);
    let (all, memory) = ((idle + busy) as u32, busy as u64 * UNREAD / 4);
    let limits = EndpointConfig {
        max_connections: all,
        max_half_open: all,
        max_unserved: all,
        max_unserved_of_peer: all,
        memory: Some(memory),
        ..EndpointConfig::default()
    };
    let (mut left, mut held) = (None, 0);
    let counted = allocation_counter::measure(|| {
        let mut star = Star::limited(1, &limits);
        star.run(Duration::from_secs(10));
        star.connect_with(&connection(), 1, LANE, idle + busy);
        star.run(Duration::from_secs(20));
        assert_eq!(star.hosts[0].connections().count(), idle + busy);
        let handles: Vec<_> = star.hosts[1].connections().map(|(handle, _)| handle).take(busy).collect();
        for handle in handles {
            let data = Pattern { key: 7, offset: 0, len: UNREAD }.into();
            assert_eq!(star.hosts[1].connection_mut(handle).unwrap().write(data), UNREAD);
        }
        star.turn(1);
        star.run(Duration::from_secs(60));
        held = star.hosts[0].memory();
        left = Some(star.hosts.swap_remove(0));
    });
    assert!(left.is_some());
    let allocated = counted.bytes_current as u64;
    println!(
        "{idle} idle connections, {busy} busy ones: {held} of {memory} bytes held, {allocated} allocated"
    );
    assert!((memory / 2..=memory + busy as u64 * LEAST).contains(&held), "{held}");
    // What is held lies in the packets that brought it.
    assert!(allocated < held * 5 / 4 + u64::from(all) * MOST_PER_CONNECTION, "{allocated}");
}

#[test]
fn flows_that_ended_leave_nothing_at_either_end() {
    for host in [0, 1] {
        let [one, many] = [1, 2000].map(|flows| after(1, flows, host));
        println!("host {host}: {one} bytes after one flow, {many} after 2,000");
        assert!(many - one < 1000, "host {host}: {one} and {many} bytes");
    }
}

#[test]
fn a_client_that_is_idle_again_costs_at_most_50_kb_too() {
    let each = (after(11, 2000, 0) - after(1, 2000, 0)) / 10;
    println!("{each} bytes for each client that is idle again");
    assert!(each <= MOST_PER_CLIENT, "{each} bytes");
}
