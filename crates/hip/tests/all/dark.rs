//! UPDATEs that nobody answers for long: the peer may come back, and what was asked for is had then.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use crate::hosts::*;
use polypath_hip::*;
use polypath_wire::Duration;
use polypath_wire::hip::PacketType;

/// The first request given up ends the association, and the others with it (found by fuzzing).
#[test]
fn requests_that_nobody_answers_are_given_up_together() {
    let mut pair = Pair::quick().established();
    pair.set_network(|_| vec![]);
    act(&mut pair, 0, |h, now, peer| {
        let inbound = h.association(peer).unwrap().paths()[0].inbound;
        (5..8).for_each(|n| h.move_path(now, peer, inbound, route(0, n)));
    });
    pair.run(Duration::from_secs(600));
    assert_eq!(pair.state(0), State::Established, "the peer may come back");
    pair.run(Duration::from_secs(400));
    assert!(pair.association(0).is_none_or(|a| a.state() != State::Established));
}

#[test]
fn a_peer_that_is_lost_for_longer_than_an_association_may_be_idle_ends_it() {
    let mut pair = Pair::quick().established();
    add(&mut pair, 0, 1);
    pair.run(SOON);
    pair.set_network(|_| vec![]);
    let spi = pair.sas(0)[0].inbound;
    act(&mut pair, 0, |h, now, peer| h.rekey(now, peer, spi, false));
    let before = pair.count(PacketType::Update);
    pair.run(Duration::from_secs(890));
    assert_eq!(pair.state(0), State::Established);
    let asked = pair.count(PacketType::Update) - before;
    assert!((50..=60).contains(&asked), "every 16 s at last: {asked}");
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.state(0), State::Closing);
    assert!(pair.sas(0).is_empty());
}

/// The network is dark for `secs` from `after` on.
fn darken(pair: &mut Pair, after: Duration, secs: u64) {
    pair.run(after);
    pair.set_network(|_| vec![]);
    pair.run(Duration::from_secs(secs));
    pair.set_network(Sent::intact);
}

#[test]
fn silence_while_keys_are_renewed_ends_nothing_and_they_are_renewed_after_it() {
    // Before the request leaves, the answer, the proof; then either end asks.
    for (asks, step, secs) in
        [0, 5, 15].into_iter().flat_map(|step| [0, 1].map(|asks| (asks, step, [20, 300][asks])))
    {
        for new_dh in [false, true] {
            let mut pair = Pair::quick().established();
            let old = pair.sas(asks)[0].inbound;
            act(&mut pair, asks, |h, now, peer| h.rekey(now, peer, old, new_dh));
            darken(&mut pair, Duration::from_millis(step), secs);
            assert_eq!(pair.states(), [State::Established; 2], "{asks} {step} {secs}");
            assert!(pair.sas(asks).iter().any(|sa| sa.inbound == old), "the old keys are good meanwhile");
            pair.run(Duration::from_secs(40));
            let renewed = pair.sas(asks).iter().any(|sa| sa.replaces == Some(old));
            assert!(renewed, "{asks} {step} {secs}");
            pair.assert_sas_match();
            add(&mut pair, 1 - asks, 1);
            pair.run(SOON);
            assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [2; 2], "and paths are had");
            pair.assert_sas_match();
        }
    }
}

/// The first path falls silent, and `asks` asks for new keys of it; its SPI.
fn rekey_in_the_dark(pair: &mut Pair, asks: usize) -> u32 {
    let dead = address(0, 0).ip();
    pair.set_network(move |s| {
        if [s.route.local.ip(), s.route.remote.ip()].contains(&dead) { vec![] } else { s.intact() }
    });
    let old = pair.sas(asks)[0].inbound;
    act(pair, asks, |h, now, peer| h.rekey(now, peer, old, true));
    old
}

#[test]
fn a_dead_path_gets_new_keys_by_another_one() {
    for asks in 0..2 {
        let mut pair = Pair::quick().established();
        add(&mut pair, 0, 1);
        pair.run(SOON);
        let old = rekey_in_the_dark(&mut pair, asks);
        pair.run(Duration::from_secs(3));
        assert!(pair.sas(asks).iter().any(|sa| sa.replaces == Some(old)), "{asks}");
        pair.assert_sas_match();
    }
}

#[test]
fn a_host_that_moves_while_keys_are_renewed_gets_its_new_path_and_loses_the_old_one() {
    // Whichever end asks, with another path or without.
    for (asks, others) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let mut pair = Pair::quick().established();
        (0..others).for_each(|_| add(&mut pair, 0, 1));
        pair.run(SOON);
        rekey_in_the_dark(&mut pair, asks);
        pair.run(Duration::from_millis(100));
        add(&mut pair, 0, 2);
        if others == 0 {
            pair.run(Duration::from_secs(20));
        }
        let first = pair.association(0).unwrap().paths().iter().find(|p| p.route == route(0, 0));
        let gone = first.unwrap().inbound;
        act(&mut pair, 0, |h, now, peer| h.remove_path(now, peer, gone));
        pair.run(Duration::from_secs(20));
        for host in 0..2 {
            let of_host = pair.association(host).unwrap().paths();
            let mut routes: Vec<_> = of_host.iter().filter(|p| p.reachable).map(|p| p.route).collect();
            routes.sort();
            let expected = [&[route(host, 1)][..others], &[route(host, 2)]].concat();
            assert_eq!((routes, of_host.len()), (expected, others + 1), "{asks} {others} {host}");
        }
    }
}
