//! Paths that carry data before the peer answers the request for them (`association/ahead.rs`), in virtual time.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use crate::hosts::*;
use polypath_hip::*;
use polypath_wire::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn today() -> HipConfig {
    HipConfig { same_spi: true, ..quick() }
}

/// Two hosts, of which the first has asked at the first `n` pairs of addresses and has its R2.
fn met(peer: HipConfig, n: u8) -> Pair {
    let mut pair = Pair::new([today(), peer], [KeyKind::P256; 2]);
    let hit = pair.hit(1);
    pair.hosts[0].connect(pair.now, hit, (0..n).map(|n| route(0, n)).collect()).unwrap();
    pair.run(MS(40));
    assert_eq!((pair.state(0), pair.sas(0).len()), (State::Established, 1));
    pair
}

/// The peer comes up just after it was asked, and one pair of addresses works: a retry asks at the first pairs again, and at another one.
#[test]
fn a_peer_that_comes_up_is_met_at_the_first_retry_at_pairs_that_were_asked_before() {
    let first = quick().retransmit;
    for (works, within) in [(0, first), (1, first), (2, first), (3, first), (4, first.times(3))] {
        let mut pair = Pair::new([today(), today()], [KeyKind::P256; 2]);
        pair.set_network(|_| vec![]);
        let hit = pair.hit(1);
        pair.hosts[0].connect(pair.now, hit, (0..5).map(|n| route(0, n)).collect()).unwrap();
        pair.run(MS(1));
        pair.set_network(move |sent| {
            let ends = [sent.route.local, sent.route.remote];
            if ends.contains(&address(0, works)) { sent.intact() } else { vec![] }
        });
        pair.run(within - MS(2));
        assert_eq!(pair.state(0), State::I1Sent, "{works}");
        pair.run(MS(50));
        assert_eq!(pair.state(0), State::Established, "{works}");
    }
}

fn add(pair: &mut Pair, n: u8) {
    let (now, hit) = (pair.now, pair.hit(1));
    pair.hosts[0].add_path(now, hit, route(0, n));
}

#[test]
fn a_path_whose_r1_came_is_there_with_its_request_and_the_answer_confirms_it() {
    let mut pair = met(today(), 3);
    (1..3).for_each(|n| add(&mut pair, n));
    pair.run(Duration::ZERO);
    let ahead = pair.sas(0);
    assert_eq!(ahead.len(), 3);
    let paths = pair.association(0).unwrap().paths().to_vec();
    assert!(paths.iter().all(|p| p.reachable && p.round_trip == MS(20)), "{paths:?}");
    pair.run(MS(10));
    assert_eq!(pair.sas(1).len(), 3, "the peer has them when the request comes");
    assert!(pair.association(1).unwrap().paths()[1..].iter().all(|p| !p.reachable), "and no proof");
    pair.run(MS(1000));
    assert_eq!(pair.sas(0), ahead, "nothing else came of the answers");
    assert!(pair.sas(0)[1..].iter().all(|sa| sa.inbound == sa.outbound));
    pair.assert_sas_match();
    assert!(pair.association(1).unwrap().paths().iter().all(|p| p.reachable));
}

#[test]
fn what_no_r1_showed_waits_for_the_answer() {
    let mut pair = met(today(), 1);
    add(&mut pair, 1);
    pair.run(MS(19));
    assert_eq!(pair.sas(0).len(), 1);
    pair.run(MS(1));
    assert_eq!(pair.sas(0).len(), 2);
    pair.assert_sas_match();
}

#[test]
fn a_peer_that_does_not_know_of_it_is_waited_for() {
    let mut pair = met(quick(), 2);
    add(&mut pair, 1);
    pair.run(MS(19));
    assert_eq!(pair.sas(0).len(), 1);
    pair.run(MS(1000));
    assert_eq!(pair.sas(0).len(), 2);
    pair.assert_sas_match();
}

#[test]
fn a_path_that_is_never_answered_goes() {
    let mut pair = met(today(), 2);
    pair.set_network(|sent| if sent.route.local == address(0, 1) { vec![] } else { sent.intact() });
    add(&mut pair, 1);
    pair.run(Duration::ZERO);
    assert_eq!(pair.sas(0).len(), 2);
    pair.run(Duration::from_secs(60));
    assert_eq!(pair.sas(0).len(), 1);
    assert!(pair.events[0].contains(&Event::PathFailed { route: route(0, 1) }));
    assert_eq!(pair.state(0), State::Established);
}

/// Its SA pair stays until then, on which the peer may come back at any time.
#[test]
fn a_path_that_is_asked_for_again_waits_for_the_answer() {
    for n in 0..2 {
        let mut pair = met(today(), 2);
        add(&mut pair, 1);
        pair.run(MS(1000));
        let before = pair.sas(0);
        pair.set_network(move |sent| if sent.route.local == address(0, n) { vec![] } else { sent.intact() });
        add(&mut pair, n);
        pair.run(MS(1000));
        assert_eq!(pair.sas(0), before, "path {n}");
    }
}

/// Its list crosses the request for the path.
#[test]
fn a_list_of_before_the_answer_withdraws_no_path() {
    let mut pair = met(today(), 2);
    let (now, hit, first) = (pair.now, pair.hit(0), pair.sas(1)[0].inbound);
    pair.hosts[1].on_data(now, hit, first, 100);
    add(&mut pair, 1);
    pair.hosts[1].announce(now, hit, false);
    pair.run(MS(1000));
    assert!(pair.events[0].iter().any(|e| matches!(e, Event::Locators(listed) if listed.len() == 1)));
    assert!(!pair.events[0].iter().any(|e| matches!(e, Event::Withdrawn { .. })));
    assert!(pair.association(0).unwrap().paths().iter().all(|p| p.reachable && !p.withdrawn));
}

#[test]
fn no_keys_serve_two_sas_through_loss_and_disorder() {
    for seed in 0..40u8 {
        let mut random = Random::from_seed([seed; 32]);
        let mut pair = met(today(), 3);
        pair.set_network(move |sent| {
            let copies = [0, 1, 1, 2][random.u32() as usize % 4];
            (0..copies).map(|_| (MS(u64::from(random.u32() % 900)), sent.payload.clone())).collect()
        });
        (1..4).for_each(|n| add(&mut pair, n));
        let (now, hit) = (pair.now, pair.hit(0));
        pair.hosts[1].add_path(now, hit, route(1, 4));
        pair.run(Duration::from_secs(200));
        for events in &pair.events {
            let added =
                |e: &Event| if let Event::SaAdded(sa) = e { Some(sa.keys.outgoing.clone()) } else { None };
            let keys: Vec<_> = events.iter().filter_map(added).collect();
            for (n, key) in keys.iter().enumerate() {
                assert!(!keys[..n].contains(key), "seed {seed}");
            }
        }
        let failed = pair.events.iter().flatten().any(|e| matches!(e, Event::PathFailed { .. }));
        if !failed && pair.states() == [State::Established; 2] {
            pair.assert_sas_match();
        }
    }
}
