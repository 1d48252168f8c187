//! Requests that a peer refuses or does not hear: what is in force goes on, and numbers, lists and costs stay bounded.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::hosts::*;
use polypath_hip::*;
use polypath_wire::Duration;
use polypath_wire::hip::{EspInfo, PacketType, PacketView, Param};

const SECS: fn(u64) -> Duration = Duration::from_secs;

fn params(sent: &Sent) -> Vec<Param> {
    PacketView::new(sent.packet()).unwrap().values().unwrap()
}

/// ESP_INFO of a request.
fn request(sent: &Sent) -> Option<EspInfo> {
    let params = params(sent);
    let answers = params.iter().any(|p| matches!(p, Param::Ack(_)));
    let info = params.iter().find_map(|p| if let Param::EspInfo(info) = p { Some(*info) } else { None });
    info.filter(|_| sent.packet_type() == PacketType::Update && !answers)
}

fn rekeys(sent: &Sent) -> bool {
    request(sent).is_some_and(|info| ![0, info.old_spi].contains(&info.new_spi) && info.old_spi != 0)
}

fn removes(sent: &Sent) -> bool {
    request(sent).is_some_and(|info| info.new_spi == 0)
}

/// Requests of `kind` are lost, and nothing else.
fn without(kind: fn(&Sent) -> bool) -> impl FnMut(&Sent) -> Fate {
    move |sent| if kind(sent) { vec![] } else { sent.intact() }
}

/// `secs` in which data flows on all SAs, each way.
fn flow(pair: &mut Pair, secs: u64) {
    for _ in 0..secs {
        pair.run(SECS(1));
        for host in 0..2 {
            let spis: Vec<u32> = pair.sas(host).iter().map(|sa| sa.inbound).collect();
            spis.iter().for_each(|spi| act(pair, host, |h, now, peer| h.on_data(now, peer, *spi, 1000)));
        }
    }
}

/// The numbers of UPDATEs that host 0 sent from the `first` packet on.
fn numbers(pair: &Pair, first: usize) -> BTreeSet<u32> {
    let updates = pair.sent[first..].iter().filter(|s| s.from == 0 && s.packet_type() == PacketType::Update);
    updates.flat_map(params).filter_map(|p| if let Param::Seq(id) = p { Some(id) } else { None }).collect()
}

#[test]
fn new_keys_that_a_live_peer_refuses_end_nothing_hold_up_nothing_and_are_had_when_it_gives_in() {
    for new_dh in [false, true] {
        let mut pair = Pair::quick().established();
        pair.set_network(without(rekeys));
        let old = pair.sas(0)[0].inbound;
        act(&mut pair, 0, |h, now, peer| h.rekey(now, peer, old, new_dh));
        flow(&mut pair, 120);
        for (host, n) in [(0, 1), (1, 2)] {
            add(&mut pair, host, n);
            flow(&mut pair, 10);
        }
        assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [3; 2], "paths are had meanwhile");
        let second =
            pair.association(0).unwrap().paths().iter().find(|p| p.route == route(0, 1)).unwrap().inbound;
        act(&mut pair, 0, |h, now, peer| h.remove_path(now, peer, second));
        act(&mut pair, 0, |h, now, peer| h.move_path(now, peer, old, route(0, 5)));
        flow(&mut pair, 2000);
        assert_eq!(pair.states(), [State::Established; 2]);
        assert_eq!(pair.association(1).unwrap().paths().len(), 2);
        assert!(pair.association(0).unwrap().paths().iter().any(|p| p.route == route(0, 5)));
        pair.set_network(Sent::intact);
        flow(&mut pair, 40);
        assert!(pair.sas(0).iter().any(|sa| sa.replaces == Some(old)), "it gives in");
        pair.assert_sas_match();
        add(&mut pair, 1, 3);
        flow(&mut pair, 5);
        assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [3; 2]);
        pair.assert_sas_match();
    }
}

#[test]
fn a_peer_that_falls_silent_after_it_refused_new_keys_ends_the_association() {
    let mut pair = Pair::quick().established();
    pair.set_network(without(rekeys));
    let old = pair.sas(0)[0].inbound;
    act(&mut pair, 0, |h, now, peer| h.rekey(now, peer, old, true));
    flow(&mut pair, 1000);
    assert_eq!(pair.state(0), State::Established);
    pair.set_network(|_| vec![]);
    pair.run(SECS(890));
    assert_eq!(pair.state(0), State::Established);
    pair.run(SECS(40));
    assert_ne!(pair.state(0), State::Established);
}

#[test]
fn a_move_that_a_live_peer_does_not_answer_fails_alone() {
    let mut pair = Pair::quick().established();
    let spi = pair.sas(0)[0].inbound;
    pair.set_network(|s| if s.route == route(0, 7) { vec![] } else { s.intact() });
    act(&mut pair, 0, |h, now, peer| h.move_path(now, peer, spi, route(0, 7)));
    flow(&mut pair, 1000);
    assert_eq!(pair.states(), [State::Established; 2]);
    assert!(pair.events[0].contains(&Event::PathFailed { route: route(0, 7) }));
}

#[test]
fn requests_in_the_dark_take_no_more_numbers_than_a_peer_must_accept() {
    let mut pair = Pair::quick().established();
    pair.set_network(|_| vec![]);
    let first = pair.sent.len();
    for n in 0..120 {
        add(&mut pair, 0, 1 + n);
        pair.run(SECS(6));
    }
    let numbers = numbers(&pair, first);
    assert!((40..=64).contains(&numbers.len()), "{}", numbers.len());
    let lit = [0, 120, 121].map(|n| address(0, n).ip());
    pair.set_network(move |s| {
        if [s.route.local.ip(), s.route.remote.ip()].iter().any(|ip| lit.contains(ip)) {
            s.intact()
        } else {
            vec![]
        }
    });
    pair.run(SECS(60));
    assert_eq!(pair.states(), [State::Established; 2]);
    add(&mut pair, 1, 121);
    pair.run(SECS(5));
    let is_there =
        |n: u8| pair.association(0).unwrap().paths().iter().any(|p| p.route == route(0, n) && p.reachable);
    assert!(is_there(120), "what waits is had when the peer is back");
    pair.assert_sas_match();
}

#[test]
fn of_many_moves_in_the_dark_the_last_one_counts() {
    let mut pair = Pair::quick().established();
    pair.set_network(|_| vec![]);
    let spi = pair.sas(0)[0].inbound;
    for n in 1..=30 {
        act(&mut pair, 0, |h, now, peer| h.move_path(now, peer, spi, route(0, n)));
        pair.run(SECS(2));
    }
    pair.run(SECS(60));
    let before = pair.count(PacketType::Update);
    pair.run(SECS(160));
    let asked = pair.count(PacketType::Update) - before;
    assert!((9..=11).contains(&asked), "one request is under way: {asked}");
    pair.set_network(Sent::intact);
    pair.run(SECS(20));
    for host in 0..2 {
        let paths = pair.association(host).unwrap().paths();
        assert_eq!((paths.len(), paths[0].route, paths[0].reachable), (1, route(host, 30), true));
    }
}

#[test]
fn an_address_that_is_withdrawn_while_both_ends_ask_for_new_keys_is_gone_after_them() {
    let mut pair = Pair::quick().established();
    add(&mut pair, 0, 1);
    pair.run(SOON);
    pair.set_network(without(rekeys));
    let first = |pair: &Pair, host: usize| {
        pair.association(host).unwrap().paths().iter().find(|p| p.route == route(host, 0)).cloned()
    };
    for host in 0..2 {
        let spi = first(&pair, host).unwrap().inbound;
        act(&mut pair, host, |h, now, peer| h.rekey(now, peer, spi, true));
    }
    let leaving = first(&pair, 0).unwrap().inbound;
    act(&mut pair, 0, |h, now, peer| {
        h.remove_path(now, peer, leaving);
        h.announce(now, peer, false);
    });
    pair.run(SOON);
    assert!(first(&pair, 1).unwrap().reachable, "its new keys are under way");
    pair.set_network(without(removes));
    pair.run(SECS(8));
    assert!(first(&pair, 1).is_none_or(|path| path.withdrawn), "{:?}", first(&pair, 1));
    pair.set_network(Sent::intact);
    pair.run(SECS(40));
    assert_eq!((first(&pair, 0), first(&pair, 1)), (None, None));
    assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [1; 2]);
}

#[test]
fn a_path_whose_removal_is_lost_does_not_stay_for_ever() {
    let mut pair = Pair::quick().established();
    add(&mut pair, 0, 1);
    pair.run(SOON);
    pair.set_network(without(removes));
    let gone = pair.sas(0)[0].inbound;
    act(&mut pair, 0, |h, now, peer| h.remove_path(now, peer, gone));
    flow(&mut pair, 60);
    act(&mut pair, 0, |h, now, peer| h.announce(now, peer, false));
    flow(&mut pair, 60);
    assert_eq!([0, 1].map(|host| pair.association(host).unwrap().paths().len()), [1, 2]);
    pair.set_network(Sent::intact);
    flow(&mut pair, 1000);
    assert_eq!([0, 1].map(|host| pair.association(host).unwrap().paths().len()), [1, 1]);
    pair.assert_sas_match();
}

#[test]
fn what_we_send_to_a_dead_peer_does_not_keep_its_association() {
    let mut pair = Pair::quick().established();
    pair.set_network(|_| vec![]);
    let spi = pair.sas(0)[0].inbound;
    for _ in 0..950 {
        pair.run(SECS(1));
        act(&mut pair, 0, |h, now, peer| {
            h.may_send(now, peer, spi, 100);
        });
    }
    assert_ne!(pair.state(0), State::Established);
}

#[test]
fn a_refused_request_that_is_repeated_costs_nothing_and_draws_no_packet_to_strangers() {
    // The end with the greater HIT asks for new keys and so refuses the other's request.
    let mut pair = Pair::quick().established();
    add(&mut pair, 0, 1);
    pair.run(SOON);
    pair.set_network(without(rekeys));
    let asks = usize::from(pair.hit(1) > pair.hit(0));
    for host in [asks, 1 - asks] {
        let spi = pair.sas(host)[usize::from(host != asks)].inbound;
        act(&mut pair, host, |h, now, peer| h.rekey(now, peer, spi, true));
        pair.run(Duration::from_millis(1));
    }
    let refused = pair.sent.iter().find(|s| s.from != asks && rekeys(s)).unwrap().clone();
    pair.deliver(&refused);
    let (effort, heard) = (pair.hosts[asks].effort(), pair.association(asks).unwrap().heard());
    let (first, stranger) = (pair.sent.len(), SocketAddr::from(([192, 0, 2, 66], 10_500)));
    for n in 0..2000u32 {
        let mut sent = refused.clone();
        if n % 2 == 0 {
            sent.route.local = stranger;
        }
        pair.now += Duration::from_millis(1);
        pair.deliver(&sent);
    }
    pair.run(Duration::from_millis(1));
    assert_eq!(pair.hosts[asks].effort(), effort, "no signature is checked twice");
    assert_eq!(pair.association(asks).unwrap().heard(), heard, "nor is the peer heard of");
    let drawn: Vec<_> =
        pair.sent[first..].iter().filter(|s| s.from == asks).map(|s| s.route.remote).collect();
    assert!(!drawn.contains(&stranger), "nothing goes where a repeated request says");
    assert!(drawn.len() <= 30, "{} packets", drawn.len());
}

/// `span` in which the NAT of `host` has another address: what that host sends arrives from there, and what goes to the old one is lost.
fn behind(pair: &mut Pair, host: usize, nat: SocketAddr, span: Duration) {
    let end = pair.now + span;
    pair.set_network(|_| vec![]);
    while pair.now < end {
        let first = pair.sent.len();
        pair.run(DELAY);
        for mut sent in pair.sent.split_off(first) {
            let inside = address(host, 0);
            let outside = if sent.from == host { &mut sent.route.local } else { &mut sent.route.remote };
            let (from, to) = if sent.from == host { (inside, nat) } else { (nat, inside) };
            if *outside == from {
                *outside = to;
                pair.deliver(&sent);
            }
        }
    }
}

#[test]
fn a_request_that_was_refused_is_heard_from_behind_another_nat_if_a_path_is_sought_there() {
    let mut pair = Pair::quick().established();
    pair.set_network(without(rekeys));
    let asks = usize::from(pair.hit(1) > pair.hit(0));
    let old = [0, 1].map(|host| pair.sas(host)[0].inbound);
    for host in [asks, 1 - asks] {
        act(&mut pair, host, |h, now, peer| h.rekey(now, peer, old[host], false));
        pair.run(Duration::from_millis(1));
    }
    let refused = pair.sent.iter().rfind(|s| s.from != asks && rekeys(s)).unwrap().clone();
    pair.deliver(&refused);
    pair.run(Duration::from_millis(1));
    let moved = pair.now;
    add(&mut pair, 1 - asks, 0);
    behind(&mut pair, 1 - asks, SocketAddr::from(([192, 0, 2, 7], 4000)), SECS(20));
    assert!(pair.association(1 - asks).unwrap().heard() > moved, "nobody answers there");
    assert!(pair.sas(asks).iter().any(|sa| sa.replaces == Some(old[asks])), "nor are there new keys");
}
