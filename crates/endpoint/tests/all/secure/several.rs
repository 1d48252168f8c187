//! Two programs of one host, with one identity, and one peer: each has an association and connections of its own.

use std::net::SocketAddr;

use bytes::BytesMut;
use polypath_endpoint::*;
use polypath_testing::Wire;
use polypath_transport::{ConnectionConfig, Pattern};
use polypath_wire::hip::Hit;
use polypath_wire::{Duration, Ecn, Instant};

use super::bed::{Out, identity, quick};

const MS: fn(u64) -> Duration = Duration::from_millis;
const PORT: u16 = 80;
/// Of the first client.
const FIRST_PORT: u16 = 4000;
const LEN: u64 = 1_000_000;

/// A server and any number of clients with the same identity, each at two addresses with ports of its own, all 10 ms apart.
struct Hosts {
    now: Instant,
    server: Endpoint,
    clients: Vec<Option<Endpoint>>,
    /// Between which locators, and what.
    wire: Wire<(Locators, Vec<u8>)>,
    accepted: Vec<ConnectionHandle>,
    received: Vec<u64>,
    ended: Vec<PeerEvent>,
    /// Nothing gets through.
    cut: bool,
}

fn server_at(link: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, link, 2], 10_500))
}

fn client_at(client: usize, link: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, link, 1], FIRST_PORT + client as u16))
}

fn up(endpoint: &mut Endpoint, now: Instant, local: SocketAddr) {
    endpoint
        .handle(now, Input::LocalUp { local, info: LocalInfo { mtu: Some(1500), ..LocalInfo::default() } });
}

impl Hosts {
    fn new() -> Self {
        Self::with(quick())
    }

    fn with(config: SecurityConfig) -> Self {
        let mut server = Endpoint::secure(EndpointConfig::default(), config, identity(2), [2; 32], 1);
        server.listen(PORT, ListenConfig::default()).unwrap();
        (0..2).for_each(|link| up(&mut server, Instant::ZERO, server_at(link)));
        Self {
            now: Instant::ZERO,
            server,
            clients: Vec::new(),
            wire: Wire::new([]),
            accepted: Vec::new(),
            received: Vec::new(),
            ended: Vec::new(),
            cut: false,
        }
    }

    /// Another client, which has met the server by the time this returns.
    fn add(&mut self) -> usize {
        let n = self.clients.len();
        let seed = [100 + n as u8; 32];
        let mut client = Endpoint::secure(EndpointConfig::default(), quick(), identity(1), seed, 1);
        (0..2).for_each(|link| up(&mut client, self.now, client_at(n, link)));
        let at = (0..2).map(server_at).collect();
        client.associate(self.now, self.server.hit().unwrap(), Reach::Addresses(at)).unwrap();
        self.clients.push(Some(client));
        self.run(MS(500));
        assert_eq!(self.paths(n), 2);
        n
    }

    fn paths(&self, n: usize) -> usize {
        self.clients[n].as_ref().map_or(0, |c| c.secure_paths().filter(|p| p.up).count())
    }

    /// Opens a connection of client `n` and writes to it.
    fn send(&mut self, n: usize, len: u64) {
        let (now, hit): (Instant, Hit) = (self.now, self.server.hit().unwrap());
        let client = self.clients[n].as_mut().unwrap();
        let config = ConnectionConfig { fail_silent: true, ..Default::default() };
        let handle = client.connect_peer(now, config, hit, PORT).unwrap();
        client.connection_mut(handle).unwrap().write(Pattern { key: 1, offset: 0, len }.into());
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += MS(1);
            let now = self.now;
            while let Some((to, (locators, bytes))) = self.wire.arrived(now) {
                let input = Input::Datagram { locators, ecn: Ecn::None, bytes: BytesMut::from(&bytes[..]) };
                if !self.cut
                    && let Some(host) = self.host(to)
                {
                    host.handle(now, input);
                }
            }
            (0..=self.clients.len()).for_each(|host| self.turn(host));
            self.listen();
        }
    }

    /// The server is host 0, and client `n` is host `n + 1`.
    fn host(&mut self, host: usize) -> Option<&mut Endpoint> {
        match host.checked_sub(1) {
            None => Some(&mut self.server),
            Some(n) => self.clients[n].as_mut(),
        }
    }

    fn turn(&mut self, from: usize) {
        let (now, mut out) = (self.now, Out::default());
        let Some(host) = self.host(from) else { return };
        host.handle_timeout(now);
        pump(host, now, &mut out);
        for (locators, bytes) in out.0 {
            let to = if from == 0 { usize::from(locators.remote.port() - FIRST_PORT) + 1 } else { 0 };
            self.wire.fly(now + MS(10), to, (locators.reversed(), bytes));
        }
    }

    fn listen(&mut self) {
        while let Some((handle, event)) = self.server.poll_event() {
            if matches!(event, Event::Accepted { .. }) {
                assert_eq!(
                    self.server.peer(handle),
                    self.clients.iter().flatten().next().and_then(Endpoint::hit)
                );
                self.accepted.push(handle);
                self.received.push(0);
            }
        }
        for (handle, received) in self.accepted.iter().zip(&mut self.received) {
            let Some(connection) = self.server.connection_mut(*handle) else { continue };
            while let Some(payload) = connection.read(u64::MAX) {
                *received += payload.len();
            }
        }
        while let Some((_, event)) = self.server.poll_peer_event() {
            self.ended.push(event);
        }
    }
}

#[test]
fn each_has_its_own_and_neither_hears_of_the_other() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.add(), hosts.add());
    assert_eq!((hosts.paths(a), hosts.paths(b)), (2, 2));
    for n in [a, b, a] {
        hosts.send(n, LEN);
    }
    hosts.run(MS(5000));
    assert_eq!(hosts.received, [LEN; 3]);
    // One ends its association: the other's goes on.
    let (now, hit) = (hosts.now, hosts.server.hit().unwrap());
    hosts.clients[a].as_mut().unwrap().dissociate(now, hit);
    hosts.run(MS(500));
    assert_eq!(hosts.paths(b), 2);
    hosts.send(b, LEN);
    hosts.run(MS(5000));
    assert_eq!(hosts.received, [LEN; 4]);
    assert!(hosts.server.stats().resets_sent == 0, "no segment reaches the wrong one");
}

/// The server learns of its death only by its silence, and looks at once when another one comes.
#[test]
fn one_that_was_killed_makes_way_within_a_second_for_the_next() {
    let mut hosts = Hosts::new();
    let a = hosts.add();
    hosts.send(a, 50 * LEN);
    hosts.run(MS(1000));
    hosts.clients[a] = None;
    hosts.run(MS(50));
    let b = hosts.add();
    hosts.run(MS(500));
    let first = hosts.accepted[0];
    let state = hosts.server.connection(first).map(|c| c.state());
    assert_eq!(state, Some(polypath_transport::State::Closed), "{:?}", hosts.ended);
    hosts.send(b, LEN);
    hosts.run(MS(5000));
    assert_eq!(hosts.received[1], LEN);
}

/// From the very addresses of the association that there is, an exchange replaces it (RFC 7401 §4.5.4).
#[test]
fn one_that_begins_anew_at_its_own_address_replaces_what_was() {
    let mut hosts = Hosts::new();
    let a = hosts.add();
    hosts.send(a, 50 * LEN);
    hosts.run(MS(1000));
    let (now, seed) = (hosts.now, [200; 32]);
    let mut anew = Endpoint::secure(EndpointConfig::default(), quick(), identity(1), seed, 2);
    (0..2).for_each(|link| up(&mut anew, now, client_at(a, link)));
    anew.associate(now, hosts.server.hit().unwrap(), Reach::Addresses(vec![server_at(0), server_at(1)]))
        .unwrap();
    hosts.clients[a] = Some(anew);
    hosts.run(MS(300));
    let state = hosts.server.connection(hosts.accepted[0]).map(|c| c.state());
    assert_eq!(state, Some(polypath_transport::State::Closed));
    hosts.send(a, LEN);
    hosts.run(MS(5000));
    assert_eq!(hosts.received[1], LEN);
}

/// Where a peer has one program, as a daemon's has, it need not be seen to be silent before the next is believed.
#[test]
fn one_that_begins_anew_elsewhere_replaces_what_was_where_several_are_not_configured() {
    let mut config = quick();
    config.hip.several = false;
    let mut hosts = Hosts::with(config);
    let a = hosts.add();
    hosts.send(a, 50 * LEN);
    hosts.run(MS(1000));
    hosts.clients[a] = None;
    let b = hosts.add();
    assert_eq!(
        hosts.server.associations().collect::<Vec<_>>(),
        [hosts.clients[b].as_ref().unwrap().hit().unwrap()]
    );
    let state = hosts.server.connection(hosts.accepted[0]).map(|c| c.state());
    assert_eq!(state, Some(polypath_transport::State::Closed));
    hosts.send(b, LEN);
    hosts.run(MS(5000));
    assert_eq!(hosts.received[1], LEN);
}

#[test]
fn a_thirty_third_takes_the_place_of_the_first_and_leaves_the_others_alone() {
    let mut hosts = Hosts::new();
    (0..33).for_each(|_| _ = hosts.add());
    hosts.run(MS(1000));
    assert_eq!(hosts.server.associations().count(), 32);
    (1..32).for_each(|n| hosts.send(n, 1000));
    hosts.run(MS(2000));
    assert_eq!(hosts.received, [1000; 31]);
}

/// Nobody can tell which of them is gone while no link works.
#[test]
fn two_that_send_while_all_links_are_away_go_on_when_they_are_back() {
    for away in [2000, 5000, 12_000] {
        let mut hosts = Hosts::new();
        (0..2).for_each(|_| _ = hosts.add());
        (0..2).for_each(|n| hosts.send(n, 50 * LEN));
        hosts.run(MS(300));
        hosts.cut = true;
        hosts.run(MS(away));
        hosts.cut = false;
        let before = hosts.received.clone();
        hosts.run(MS(2500));
        let went_on = hosts.received.iter().zip(before).all(|(now, before)| *now > before);
        assert!(went_on && hosts.ended.iter().all(|e| *e != PeerEvent::Down), "{away}: {:?}", hosts.received);
        hosts.run(MS(60_000));
        assert_eq!(hosts.received, [50 * LEN; 2], "{away}");
    }
}
