//! What one peer costs beside many others: looks at connections, peers and paths.

#[path = "../../tests/common/out.rs"]
mod out;

use std::collections::BTreeSet;

use bytes::BytesMut;
use polypath_hip::{Identity, KeyKind, Random};
use polypath_transport::{ConnectionConfig, DropReason};
use polypath_wire::{Duration, Ecn, tcp};

use super::*;
use crate::security::tests::name;
use crate::security::{Security, SecurityConfig};
use out::Out;

const PORT: u16 = 80;

/// An endpoint connected with itself: each packet that it sends comes back as one from a peer.
struct Mirror {
    endpoint: Endpoint,
    now: Instant,
}

impl Mirror {
    /// With a connection to a first peer at 0, and to each of the `others` 300 ms later.
    fn beside(others: u16) -> Self {
        let identity = Identity::generate(KeyKind::P256, &mut Random::from_seed([1; 32])).unwrap();
        let security = SecurityConfig { simulation: true, ..SecurityConfig::default() };
        let endpoint = Endpoint::secure(EndpointConfig::default(), security, identity, [1; 32], 1);
        let mut mirror = Self { endpoint, now: Instant::ZERO };
        mirror.endpoint.listen(PORT, ListenConfig::default()).unwrap();
        mirror.meet(0);
        mirror.now = Instant::ZERO + Duration::from_millis(300);
        (1..=others).for_each(|n| mirror.meet(n));
        let now = mirror.now;
        mirror.security().look_after_all(now);
        mirror
    }

    fn meet(&mut self, n: u16) {
        let now = self.now;
        self.security().add_mirror(now, n);
        self.run();
        self.connect(n);
    }

    fn connect(&mut self, n: u16) -> ConnectionHandle {
        let config = ConnectionConfig::default();
        let handle = self.endpoint.connect_peer(self.now, config, name(n), PORT).unwrap();
        self.run();
        assert_eq!(self.endpoint.connection(handle).unwrap().state(), State::Established);
        handle
    }

    fn run_until(&mut self, end: Instant) {
        while let Some(due) = self.endpoint.poll_timeout().filter(|due| *due < end) {
            self.now = due;
            self.run();
        }
        self.now = end;
    }

    fn security(&mut self) -> &mut Security {
        self.endpoint.cover.security_mut().unwrap()
    }

    /// Sends and receives all that is due at this instant.
    fn run(&mut self) {
        loop {
            let mut out = Out::default();
            self.endpoint.handle_timeout(self.now);
            self.endpoint.transmit(self.now, &mut out);
            if out.0.is_empty() {
                break;
            }
            for (locators, payload) in out.0 {
                self.endpoint.handle_datagram(self.now, &locators, Ecn::None, BytesMut::from(&payload[..]));
            }
        }
    }

    /// How much is looked at while `act` runs.
    fn looks(&mut self, act: impl FnOnce(&mut Self)) -> usize {
        let count = |m: &mut Self| m.endpoint.slots.looks.get() + m.security().looks();
        let before = count(self);
        act(self);
        count(self) - before
    }

    /// For a heartbeat of the first peer, what it says on its connection, and the loss of its path.
    fn costs(&mut self) -> [usize; 3] {
        let second = Instant::ZERO + Duration::from_secs(1);
        self.run_until(second);
        assert_eq!(self.endpoint.poll_timeout(), Some(self.now));
        assert_eq!(self.security().concerned(second), BTreeSet::from([name(0)]));
        let beats = self.security().stats().heartbeats;
        let beat = self.looks(Self::run);
        assert_eq!(self.security().stats().heartbeats, beats + 1);
        let handle = self.endpoint.connections().next().unwrap().0;
        let data = self.looks(|m| {
            m.endpoint.connection_mut(handle).unwrap().write(Bytes::from_static(b"data").into());
            m.run();
        });
        assert!(self.endpoint.connections().any(|(_, c)| c.stats().bytes_received == 4));
        let loss = self.looks(|m| {
            m.security().remove_mirror(second, 0);
            m.endpoint.apply(second);
        });
        [beat, data, loss]
    }
}

#[test]
fn a_packet_and_a_heartbeat_look_at_no_more_beside_a_thousand_peers() {
    let alone = Mirror::beside(0).costs();
    assert_eq!(Mirror::beside(999).costs(), alone);
    assert!(alone.iter().all(|looks| (1..100).contains(looks)), "{alone:?}");
}

/// What a HIP packet of a stranger costs beside `others` that are silent and asked for new associations.
fn cost_of_strangers(others: u16) -> usize {
    let mut mirror = Mirror::beside(0);
    let now = mirror.now;
    (1..=others).for_each(|n| mirror.security().renew_mirror(now, n));
    let ends = Locators { local: ([10, 0, 0, 1], 10_500).into(), remote: ([10, 2, 0, 1], 10_500).into() };
    let header =
        [&[59, 4, 1, 0x21, 0, 0, 0, 0], &name(9999).0[..], &mirror.endpoint.hit().unwrap().0].concat();
    let cost = mirror.looks(|m| {
        m.endpoint.handle_datagram(
            now,
            &ends,
            Ecn::None,
            BytesMut::from(&[&[0; 4], &header[..]].concat()[..]),
        );
    });
    assert_eq!(mirror.security().stats().uninvited, 1);
    cost
}

#[test]
fn a_strangers_packet_looks_at_no_silent_peer() {
    assert_eq!(cost_of_strangers(999), cost_of_strangers(0));
}

/// With `idle` more connections to the peer: what four seconds of heartbeats cost, and a lost packet.
fn cost_of_waiting(idle: usize) -> [usize; 2] {
    let mut mirror = Mirror::beside(0);
    (0..idle).for_each(|_| _ = mirror.connect(0));
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    mirror.run_until(at(10));
    let beats = mirror.security().stats().heartbeats;
    let waiting = mirror.looks(|m| m.run_until(at(14)));
    assert!(mirror.security().stats().heartbeats >= beats + 4);
    let loss = mirror.looks(|m| {
        let _lost = m.security().sealed(0, 200, &[7; 10]);
        let (locators, packet) = m.security().sealed(0, 200, &[7; 10]);
        m.endpoint.handle_datagram(at(14), &locators, Ecn::None, BytesMut::from(&packet[..]));
    });
    [waiting, loss]
}

#[test]
fn heartbeats_and_losses_look_at_no_idle_connection() {
    let alone = cost_of_waiting(0);
    assert_eq!(cost_of_waiting(500), alone);
    assert!(alone.iter().all(|looks| (1..200).contains(looks)), "{alone:?}");
}

/// What it missed it hears before it sends.
#[test]
fn an_idle_connection_knows_its_path_when_it_sends() {
    let mut mirror = Mirror::beside(0);
    let handle = mirror.connect(0);
    mirror.run_until(Instant::ZERO + Duration::from_secs(10));
    let path = mirror.endpoint.locators(handle, PathId::FIRST).unwrap();
    let srtt = |m: &Mirror| m.endpoint.connection(handle).unwrap().path_stats(PathId::FIRST).srtt.unwrap();
    let (before, now, slow) = (srtt(&mirror), mirror.now, Duration::from_millis(80));
    (0..20).for_each(|_| mirror.endpoint.news.answered(now, path, slow));
    assert_eq!(srtt(&mirror), before);
    mirror.endpoint.connection_mut(handle).unwrap().write(Bytes::from_static(b"data").into());
    mirror.endpoint.transmit(now, &mut Out::default());
    assert!(srtt(&mirror) >= slow.times(9).over(10), "{:?} after {before:?}", srtt(&mirror));
}

#[test]
fn a_sealed_payload_that_nobody_can_read_is_a_malformed_segment_or_counted_as_another_protocol() {
    let mut mirror = Mirror::beside(0);
    let now = mirror.now;
    for next_header in [tcp::PROTOCOL, 200] {
        let (locators, packet) = mirror.security().sealed(0, next_header, &[7; 10]);
        assert_eq!(
            mirror.endpoint.handle_datagram(now, &locators, Ecn::None, BytesMut::from(&packet[..])),
            None
        );
    }
    let malformed = mirror.endpoint.stats().drops[DropReason::Malformed as usize];
    assert_eq!((malformed, mirror.security().stats().other), (1, 1));
}
