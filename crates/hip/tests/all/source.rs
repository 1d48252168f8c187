//! Data that comes from elsewhere than the peer is known to be: behind a NAT that gives other ports, or copied by somebody.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::net::SocketAddr;

use crate::hosts::*;
use polypath_hip::*;
use polypath_wire::Duration;
use polypath_wire::hip::{Kind, PacketType, PacketView};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// What a NAT makes of the address of host 0, for the `n`-th time.
fn outside(n: u16) -> SocketAddr {
    ([192, 0, 2, 1], 4000 + n).into()
}

/// From host 1 to there.
fn to(remote: SocketAddr) -> Route {
    Route { local: address(1, 0), remote }
}

/// Two hosts, and data came from host 0.
fn flowing() -> Pair {
    let mut pair = Pair::quick().established();
    data_from(&mut pair, address(0, 0));
    pair.sent.clear();
    pair
}

/// The newest data of host 0 comes to host 1 from there.
fn data_from(pair: &mut Pair, remote: SocketAddr) {
    let spi = pair.association(1).unwrap().paths()[0].inbound;
    act(pair, 1, |h, now, peer| {
        h.on_data(now, peer, spi, 1400);
        h.on_source(now, peer, spi, to(remote));
    });
}

/// Hands `check` of host 1 to host 0 as a NAT does, and the answer to host 1 as from `remote`.
fn pass(pair: &mut Pair, check: &Sent, remote: SocketAddr) {
    let now = pair.now;
    pair.hosts[0].handle(now, route(0, 0), &check.payload);
    let answer = pair.hosts[0].poll_transmit().unwrap();
    pair.hosts[1].handle(now, to(remote), &answer.payload);
}

/// Where host 1 has its path.
fn path(pair: &Pair) -> SocketAddr {
    pair.association(1).unwrap().paths()[0].route.remote
}

/// The packets that host 1 sent to `remote`.
fn checks(pair: &mut Pair, remote: SocketAddr) -> Vec<Sent> {
    pair.run(Duration::ZERO);
    pair.sent.iter().filter(|s| s.from == 1 && s.route.remote == remote).cloned().collect()
}

#[test]
fn a_path_leads_to_where_its_data_comes_from_once_that_is_proved() {
    let mut pair = flowing();
    pair.set_network(|_| vec![]);
    for n in 0..3 {
        let before = path(&pair);
        data_from(&mut pair, outside(n));
        let sent = checks(&mut pair, outside(n));
        assert_eq!((sent.len(), path(&pair)), (1, before), "not before the proof");
        pair.now += MS(20);
        pass(&mut pair, &sent[0], outside(n));
        pair.run(Duration::ZERO);
        assert_eq!(path(&pair), outside(n), "at once also when the NAT changes again");
        let inbound = pair.association(1).unwrap().paths()[0].inbound;
        assert_eq!(pair.events[1].last(), Some(&Event::Reachable { inbound, route: to(outside(n)) }));
    }
    pair.run(Duration::from_secs(100));
    assert_eq!(pair.count(PacketType::Update), 3, "nothing is sent again");
}

#[test]
fn a_check_asks_what_any_hipv2_host_answers_and_is_paid_with_credit() {
    let mut pair = flowing();
    pair.set_network(|_| vec![]);
    data_from(&mut pair, outside(0));
    let sent = checks(&mut pair, outside(0)).remove(0);
    let kinds: Vec<Kind> = PacketView::new(sent.packet()).unwrap().params().map(|p| p.kind).collect();
    assert_eq!(kinds, [Kind::SEQ, Kind::ECHO_REQUEST_SIGNED, Kind::HIP_MAC, Kind::HIP_SIGNATURE]);
    assert!(sent.payload.len() < 250, "{}", sent.payload.len());
    // Who has sent too little is asked for nothing.
    let mut pair = Pair::quick().established();
    let spi = pair.association(1).unwrap().paths()[0].inbound;
    for (bytes, asked) in [(300, 0), (300, 0), (300, 1)] {
        act(&mut pair, 1, |h, now, peer| {
            h.on_data(now, peer, spi, bytes);
            h.on_source(now, peer, spi, to(outside(0)));
        });
        assert_eq!(checks(&mut pair, outside(0)).len(), asked);
    }
}

#[test]
fn a_copy_from_elsewhere_draws_one_check_and_moves_nothing() {
    let mut pair = flowing();
    let thief = outside(0);
    pair.set_network(|_| vec![]);
    data_from(&mut pair, thief);
    pair.run(Duration::from_secs(100));
    assert_eq!(checks(&mut pair, thief).len(), 1, "one, and never again");
    // The next packet comes from where the peer is. Then even an answer, which somebody brought to it and back, moves nothing.
    data_from(&mut pair, thief);
    let check = checks(&mut pair, thief).pop().unwrap();
    data_from(&mut pair, address(0, 0));
    pass(&mut pair, &check, thief);
    assert_eq!((path(&pair), pair.hosts[1].dropped(DropReason::Replay)), (address(0, 0), 1));
    // One that has copies of all packets, from wherever: one check in a second.
    pair.sent.clear();
    for n in 0..1000 {
        pair.run(MS(10));
        data_from(&mut pair, outside(1 + n % 7));
        data_from(&mut pair, address(0, 0));
    }
    let all = pair.count(PacketType::Update);
    assert!((9..=11).contains(&all), "{all} in 10 s");
    assert_eq!(path(&pair), address(0, 0));
    // The association is as it was.
    pair.set_network(Sent::intact);
    add(&mut pair, 0, 1);
    pair.run(SOON);
    assert_eq!([0, 1].map(|host| reachable(&pair, host)), [2, 2]);
}

#[test]
fn a_check_that_was_lost_is_repeated_while_data_comes_from_there() {
    let mut pair = flowing();
    pair.set_network(|_| vec![]);
    for _ in 0..25 {
        data_from(&mut pair, outside(0));
        pair.run(MS(100));
    }
    let sent = checks(&mut pair, outside(0));
    assert_eq!(sent.len(), 3, "after a second each");
    pass(&mut pair, &sent[0], outside(0));
    assert_eq!(path(&pair), address(0, 0), "too late");
    pass(&mut pair, &sent[2], outside(0));
    assert_eq!(path(&pair), outside(0));
}

#[test]
fn either_end_notices_and_others_of_its_paths_stay() {
    for host in [0, 1] {
        let mut pair = Pair::quick().established();
        add(&mut pair, 0, 1);
        pair.run(SOON);
        let before = pair.association(host).unwrap().paths().to_vec();
        let moved = Route { remote: outside(0), ..before[1].route };
        act(&mut pair, host, |h, now, peer| {
            h.on_data(now, peer, before[1].inbound, 1400);
            h.on_source(now, peer, before[1].inbound, moved);
        });
        let check = pair.hosts[host].poll_transmit().unwrap();
        assert_eq!(check.route, moved);
        let now = pair.now;
        pair.hosts[1 - host].handle(now, route(1 - host, 1), &check.payload);
        let answer = pair.hosts[1 - host].poll_transmit().unwrap();
        pair.hosts[host].handle(now, moved, &answer.payload);
        let after: Vec<Route> = pair.association(host).unwrap().paths().iter().map(|p| p.route).collect();
        assert_eq!(after, [before[0].route, moved]);
        // New keys go there, and the path goes on.
        pair.set_network(|_| vec![]);
        act(&mut pair, host, |h, now, peer| h.rekey(now, peer, before[1].inbound, false));
        assert_eq!(pair.hosts[host].poll_transmit().unwrap().route, moved);
    }
}

#[test]
fn a_path_without_its_first_proof_is_not_followed() {
    let mut pair = Pair::quick().established();
    pair.set_network(|s| if s.from == 1 { vec![] } else { s.intact() });
    add(&mut pair, 0, 1);
    pair.run(MS(100));
    let unproved = pair.association(1).unwrap().paths()[1].clone();
    assert!(!unproved.reachable);
    act(&mut pair, 1, |h, now, peer| {
        h.on_data(now, peer, unproved.inbound, 1400);
        h.on_source(now, peer, unproved.inbound, Route { remote: outside(0), ..unproved.route });
    });
    assert_eq!(checks(&mut pair, outside(0)).len(), 0);
}
