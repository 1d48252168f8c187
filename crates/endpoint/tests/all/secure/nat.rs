//! NATs that give other ports, and copies of packets that come from elsewhere.

use std::net::SocketAddr;

use bytes::BytesMut;
use polypath_endpoint::*;
use polypath_transport::{CcConfig, ConnectionConfig};
use polypath_wire::{Duration, Ecn};

use super::bed::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Two round trips, with a full queue.
const SOON: Duration = Duration::from_millis(160);
const LEN: u64 = 64 << 20;

/// An association on both links; the client sends `up` bytes and the server `down`, for a second so far.
fn flowing(up: u64, down: u64) -> Bed {
    let mut bed = Bed::established_as(today);
    bed.offered = down;
    bed.send_with(up, ConnectionConfig { cc: CcConfig::default().of_today(), ..Default::default() });
    bed.run(MS(1000));
    bed.astray = [0; 2];
    bed
}

/// What a NAT gives on `link` for the `n`-th time.
fn outside(link: usize, n: usize) -> SocketAddr {
    ([192, 0, 2, link as u8 + 1], 4000 + n as u16).into()
}

/// Where each path of `side` leads to, in the order of the links.
fn remotes(bed: &Bed, side: usize) -> Vec<SocketAddr> {
    let mut paths: Vec<_> =
        bed.endpoints[side].secure_paths().map(|p| (p.locators.local, p.locators.remote)).collect();
    paths.sort();
    paths.into_iter().map(|(_, remote)| remote).collect()
}

/// The server's paths as connections know them.
fn inner(bed: &Bed, side: usize) -> Vec<Locators> {
    bed.endpoints[side].secure_paths().map(|p| p.inner).collect()
}

/// How long until the paths of `side` lead there.
fn until(bed: &mut Bed, side: usize, there: &[SocketAddr]) -> Duration {
    let began = bed.now;
    bed.run_until_done(began + MS(10_000), |bed| remotes(bed, side) == there);
    bed.now.since(began)
}

#[test]
fn other_ports_for_one_path_or_both_cost_a_round_trip_when_data_flows_and_a_heartbeat_when_it_comes() {
    for (links, up, down, most) in [
        (&[0][..], LEN, 0, SOON),
        (&[1], LEN, 0, SOON),
        (&[0, 1], LEN, 0, SOON),
        (&[0, 1], 1, LEN, MS(1100)),
        (&[0, 1], 1, 0, MS(1100)),
    ] {
        let mut bed = flowing(up, down);
        let before = inner(&bed, SERVER);
        for n in 0..5 {
            for &link in links {
                bed.links[link].nat = Some(outside(link, n));
            }
            let there = [0, 1].map(|link| bed.links[link].nat.unwrap_or(bed.links[link].ends[CLIENT]));
            let took = until(&mut bed, SERVER, &there);
            assert!(took <= most, "{links:?} {up} {down}: {took:?}");
            bed.run(MS(310));
        }
        assert_eq!(
            inner(&bed, SERVER),
            before,
            "they are the paths of before: connections keep what they know of them"
        );
        assert_eq!(bed.paths_up(), [2, 2]);
        let (received, fetched) = (bed.received, bed.fetched);
        bed.run(MS(2000));
        let rate = |bytes: u64| bytes * 8 / 2;
        assert!(
            up < LEN || rate(bed.received - received) > 13_000_000,
            "{links:?}: {}",
            bed.received - received
        );
        assert!(
            down < LEN || rate(bed.fetched - fetched) > 13_000_000,
            "{links:?}: {}",
            bed.fetched - fetched
        );
        let events: Vec<_> = bed
            .events
            .iter()
            .flatten()
            .filter(|e| matches!(e, PeerEvent::PathDown(_) | PeerEvent::Down))
            .collect();
        assert!(events.is_empty(), "{links:?} {up} {down}: {events:?}");
    }
}

#[test]
fn a_connection_opens_at_once_though_its_syn_is_the_first_packet_from_another_port() {
    for syn in [MS(200), MS(1500)] {
        let mut bed = Bed::new([today(), today()], [v4, v4]);
        [CLIENT, SERVER].into_iter().for_each(|side| bed.local(side, 1, false));
        bed.associate_at(&[0]);
        bed.run(MS(60));
        bed.links[0].nat = Some(outside(0, 1));
        bed.run(syn);
        bed.send_with(LEN, ConnectionConfig { cc: CcConfig::default().of_today(), ..Default::default() });
        bed.run(MS(500));
        assert!(bed.received > 100_000, "{syn:?}: {}", bed.received);
    }
}

#[test]
fn the_end_that_began_follows_too_and_finds_back_to_the_address_that_it_knows() {
    let mut bed = flowing(1, LEN);
    let before = inner(&bed, CLIENT);
    bed.links[0].far = Some(outside(0, 0));
    let there = [outside(0, 0), bed.links[1].ends[SERVER]];
    let took = until(&mut bed, CLIENT, &there);
    assert!(took <= SOON, "{took:?}");
    bed.run(MS(20_000));
    assert_eq!(
        (remotes(&bed, CLIENT), inner(&bed, CLIENT)),
        (there.to_vec(), before),
        "it seeks no second path beside it"
    );
    // What the NAT made of the server's address is no more; only the server's own leads there.
    bed.links[0].up = false;
    bed.run(MS(8000));
    (bed.links[0].far, bed.links[0].up) = (None, true);
    bed.run(MS(20_000));
    let there = [0, 1].map(|link| bed.links[link].ends[SERVER]);
    assert_eq!((remotes(&bed, CLIENT), bed.paths_up()), (there.to_vec(), [2, 2]));
}

#[test]
fn a_copy_from_elsewhere_draws_one_check_and_moves_no_path() {
    let mut bed = flowing(LEN, 0);
    let (thief, before) = (outside(0, 9), remotes(&bed, SERVER));
    for copies in 1..=3 {
        // It overtakes the packet, which is still on its way.
        let is_copy = |p: &&Vec<u8>| p.len() > 1000;
        let packet = bed.seen.iter().rev().find(is_copy).unwrap().clone();
        for remote in [thief, thief] {
            let locators = Locators { local: bed.links[0].ends[SERVER], remote };
            let locators = [locators, Locators { local: bed.links[1].ends[SERVER], ..locators }];
            for locators in locators {
                bed.give(
                    SERVER,
                    Input::Datagram { locators, ecn: Ecn::None, bytes: BytesMut::from(&packet[..]) },
                );
            }
        }
        bed.run(MS(3000));
        let sent: Vec<_> = bed.sent.iter().filter(|(_, to, _)| to.remote == thief).collect();
        assert!(sent.len() <= copies, "{}", sent.len());
        assert!(
            sent.iter().all(|(_, _, bytes)| bytes.starts_with(&[0; 4]) && bytes.len() < 250),
            "a small UPDATE"
        );
        assert_eq!(remotes(&bed, SERVER), before);
    }
    assert!(bed.sent.iter().any(|(_, to, _)| to.remote == thief), "the copies were the newest");
    let stats = bed.endpoints[SERVER].security_stats().unwrap();
    assert!(stats.refused >= 9, "the packets themselves, and further copies, are counted drops: {stats:?}");
    bed.run_until_done(bed.now + MS(200_000), |bed| bed.finished);
    assert_eq!(bed.received, LEN);
}
