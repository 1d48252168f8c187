//! Paths in virtual time: added, verified, moved, rekeyed and removed during an association.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use crate::hosts::*;
use polypath_hip::*;
use polypath_wire::hip::{Kind, LocatorAddress, PacketType, PacketView, Param};
use polypath_wire::{Duration, Instant};

/// All locators of the last LOCATOR_SET that `host` sent.
fn announced(pair: &Pair, host: usize) -> Vec<(u32, std::net::IpAddr)> {
    let of =
        |s: &Sent| PacketView::new(s.packet()).unwrap().param(Kind::LOCATOR_SET).map(|p| p.contents.to_vec());
    let last = pair.sent.iter().rev().filter(|s| s.from == host).find_map(of).unwrap();
    let Param::LocatorSet(set) = Param::parse(Kind::LOCATOR_SET, &last).unwrap() else { panic!() };
    let end = |l: &polypath_wire::hip::Locator| match l.address {
        LocatorAddress::Esp { spi, address } => (spi, address),
        ref other => panic!("{other:?}"),
    };
    set.iter().map(end).collect()
}

#[test]
fn each_path_gets_its_own_sa_pair_after_a_proof() {
    let mut pair = Pair::quick().established();
    for n in 1..4 {
        add(&mut pair, 0, n);
        pair.run(Duration::from_millis(29));
        assert_eq!(reachable(&pair, 1), n as usize, "not before the nonce came back");
        pair.run(SOON);
        assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [n as usize + 1; 2]);
    }
    pair.assert_sas_match();
    assert_eq!(pair.sas(0).len(), 4);
    let ends: Vec<_> = pair.sas(0).iter().map(|s| (s.inbound, s.route.local.ip())).collect();
    assert_eq!(announced(&pair, 0), ends, "always the complete list");
    assert_eq!(pair.count(PacketType::Update), 9, "request, answer and echo for each");
    for sa in pair.sas(1) {
        assert!(
            pair.events[1].contains(&Event::Reachable { inbound: sa.inbound, route: sa.route })
                || sa.route == route(1, 0)
        );
    }
}

#[test]
fn paths_are_had_through_loss_and_disorder() {
    let mut complete = 0;
    for seed in 0..60u8 {
        let mut random = Random::from_seed([seed; 32]);
        let mut pair = Pair::quick().established();
        pair.set_network(move |sent| {
            let copies = [0, 1, 1, 2][random.u32() as usize % 4];
            let delay = |r: &mut Random| Duration::from_millis(u64::from(r.u32() % 900));
            (0..copies).map(|_| (delay(&mut random), sent.payload.clone())).collect()
        });
        for n in 1..3 {
            add(&mut pair, usize::from(seed % 2), n);
        }
        if seed % 3 == 0 {
            add(&mut pair, 1 - usize::from(seed % 2), 3);
        }
        for host in 0..2 {
            pair.hosts[host].set_addresses(vec![address(host, 8).ip()]);
            act(&mut pair, host, |h, now, peer| h.announce(now, peer, true));
        }
        pair.run(Duration::from_secs(200));
        if pair.states() != [State::Established; 2] || pair.sas(0).len() != pair.sas(1).len() {
            // A path whose every answer was lost is given up by one end first; that is said.
            let said = pair.events.iter().flatten().any(|e| matches!(e, Event::PathFailed { .. }));
            assert!(said, "seed {seed}: {:?}", pair.states());
            continue;
        }
        pair.assert_sas_match();
        complete += 1;
    }
    assert!(complete > 45, "only {complete} of 60");
}

#[test]
fn both_ask_at_once_and_never_draw_the_same_keys() {
    for seed in 0..40u8 {
        let mut random = Random::from_seed([seed; 32]);
        let mut pair = Pair::quick().established();
        pair.set_network(move |s| {
            vec![(Duration::from_millis(u64::from(random.u32() % 80)), s.payload.clone())]
        });
        for n in 1..3 {
            add(&mut pair, 0, n);
            add(&mut pair, 1, n + 2);
        }
        pair.run(Duration::from_secs(100));
        assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [5; 2], "seed {seed}");
        pair.assert_sas_match();
    }
}

#[test]
fn a_dead_path_costs_nothing_but_itself() {
    let mut pair = Pair::quick().established();
    let dead = address(0, 1).ip();
    pair.set_network(move |s| {
        if [s.route.local.ip(), s.route.remote.ip()].contains(&dead) { vec![] } else { s.intact() }
    });
    add(&mut pair, 0, 1);
    add(&mut pair, 0, 2);
    pair.run(Duration::from_secs(60));
    assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [2; 2]);
    assert!(pair.events[0].contains(&Event::PathFailed { route: route(0, 1) }));
    assert_eq!(pair.states(), [State::Established; 2]);
    pair.assert_sas_match();
}

#[test]
fn paths_do_not_wait_for_dead_ones() {
    // Whichever end asks, and whichever has the greater HIT.
    for asks in 0..2 {
        let mut pair = Pair::quick().established();
        let is_dead = |s: &Sent, n| [s.route.local.ip(), s.route.remote.ip()].contains(&address(0, n).ip());
        pair.set_network(move |s| if is_dead(s, 1) || is_dead(s, 2) { vec![] } else { s.intact() });
        (1..4).for_each(|n| add(&mut pair, asks, n));
        add(&mut pair, 1 - asks, 4);
        pair.run(Duration::from_millis(100));
        assert_eq!([reachable(&pair, 0), reachable(&pair, 1)], [3; 2], "within two round trips, {asks}");
        pair.assert_sas_match();
        // New keys wait until the dead ones are given up; then keys are drawn where nobody drew.
        act(&mut pair, 1 - asks, |h, now, peer| {
            let inbound = h.association(peer).unwrap().paths()[0].inbound;
            h.rekey(now, peer, inbound, true);
            h.add_path(now, peer, route(1 - asks, 5));
        });
        pair.run(Duration::from_secs(60));
        let failed = |e: &&Event| matches!(e, Event::PathFailed { .. });
        assert!(pair.events[asks].iter().filter(failed).count() >= 2, "{asks}");
        assert_eq!(pair.states(), [State::Established; 2], "{asks}");
        assert_eq!(pair.sas(0).len(), 5, "three paths, one of them with its old SAs, and the new one");
        pair.assert_sas_match();
    }
}

#[test]
fn key_material_is_renewed_before_it_ends() {
    let mut pair = Pair::quick().established();
    for n in 0..400 {
        add(&mut pair, n % 2, 1);
        pair.run(SOON);
        pair.assert_sas_match();
        let newest = pair.sas(0).last().unwrap().clone();
        // Data on the new SAs retires those that a rekeying replaced.
        for (host, inbound) in [(0, newest.inbound), (1, newest.outbound)] {
            act(&mut pair, host, |h, now, peer| h.on_data(now, peer, inbound, 100));
        }
        let added =
            pair.association(0).unwrap().paths().iter().find(|p| p.route == route(0, 1)).unwrap().inbound;
        act(&mut pair, 0, |h, now, peer| h.remove_path(now, peer, added));
        pair.run(SOON);
        assert_eq!(pair.association(0).unwrap().paths().len(), 1, "{n}");
    }
    let with_dh = |s: &&Sent| PacketView::new(s.packet()).unwrap().param(Kind::DIFFIE_HELLMAN).is_some();
    let updates = pair.sent.iter().filter(|s| s.packet_type() == PacketType::Update);
    let renewed = updates.filter(with_dh).count();
    assert!((4..=8).contains(&renewed), "twice, by request and answer, or by both ends at once: {renewed}");
    assert_eq!(pair.states(), [State::Established; 2]);
}

#[test]
fn removal_withdraws_both_sas_but_never_the_last() {
    let mut pair = Pair::quick().established();
    add(&mut pair, 0, 1);
    pair.run(SOON);
    let [first, second] = [0, 1].map(|n| pair.sas(0)[n].inbound);
    act(&mut pair, 0, |h, now, peer| h.remove_path(now, peer, first));
    pair.run(SOON);
    assert_eq!(pair.sas(0).len(), 1);
    assert_eq!(pair.sas(0)[0].inbound, second);
    pair.assert_sas_match();
    act(&mut pair, 0, |h, now, peer| h.remove_path(now, peer, second));
    pair.run(SOON);
    assert_eq!(pair.sas(0).len(), 1);
    // What is left carries the end.
    act(&mut pair, 0, |h, now, peer| h.close(now, peer));
    pair.run(SOON);
    assert_eq!(pair.states(), [State::Unassociated, State::Closed]);
}

#[test]
fn a_responder_tells_of_all_its_addresses() {
    for lost in 0..3 {
        let mut pair = Pair::quick().established();
        let mut updates = 0;
        pair.set_network(move |s| {
            updates += usize::from(s.packet_type() == PacketType::Update);
            if updates <= lost { vec![] } else { s.intact() }
        });
        let ours: Vec<_> = [0, 5, 6].map(|n| address(1, n).ip()).to_vec();
        pair.hosts[1].set_addresses(ours.clone());
        act(&mut pair, 1, |h, now, peer| h.announce(now, peer, true));
        pair.run(Duration::from_secs(20));
        assert!(pair.events[0].contains(&Event::Locators(ours.clone())), "{lost}");
        let known: Vec<_> =
            pair.association(0).unwrap().locators().iter().map(|l| (l.address, l.state)).collect();
        use LocatorState::{Active, Unverified};
        assert_eq!(known, [(ours[0], Active), (ours[1], Unverified), (ours[2], Unverified)]);
        // Every later set has them too, for a set is complete; and the peer may ask there.
        act(&mut pair, 0, |h, now, peer| {
            h.add_path(now, peer, Route { local: address(0, 5), remote: address(1, 5) });
        });
        pair.run(SOON);
        pair.assert_sas_match();
        assert_eq!(pair.sas(0).len(), 2);
        pair.hosts[1].set_addresses(ours[..2].to_vec());
        act(&mut pair, 1, |h, now, peer| h.announce(now, peer, true));
        pair.run(SOON);
        let last = pair.association(0).unwrap().locators().iter().last().unwrap().clone();
        assert_eq!((last.address, last.state), (ours[2], LocatorState::Deprecated));
    }
}

#[test]
fn a_host_moves_and_keeps_its_sa() {
    let mut pair = Pair::quick().established();
    let before = pair.sas(0);
    let spi = before[0].inbound;
    let new = Route { local: address(0, 7), remote: address(1, 0) };
    act(&mut pair, 0, |h, now, peer| h.move_path(now, peer, spi, new));
    pair.run(Duration::from_millis(29));
    assert_eq!(pair.association(1).unwrap().paths()[0].route, route(1, 0), "not before the proof");
    let best = |pair: &Pair| pair.association(1).unwrap().locators().best().unwrap().clone();
    assert_eq!((best(&pair).address, best(&pair).state), (new.local.ip(), LocatorState::Unverified));
    pair.run(SOON);
    assert_eq!(pair.association(0).unwrap().paths()[0].route, new);
    assert_eq!(pair.association(1).unwrap().paths()[0].route.remote, new.local);
    assert_eq!(pair.sas(0), before, "SPIs and keys stay");
    assert_eq!((best(&pair).address, best(&pair).state), (new.local.ip(), LocatorState::Active));
}

#[test]
fn what_is_said_while_a_path_moves_leaves_from_the_new_address_and_lists_it_alone() {
    let mut pair = Pair::quick().established();
    let spi = pair.association(0).unwrap().paths()[0].inbound;
    let (new, all) =
        (Route { local: address(0, 7), remote: address(1, 0) }, [7, 8].map(|n| address(0, n).ip()));
    pair.hosts[0].set_addresses(all.to_vec());
    let before = pair.sent.len();
    act(&mut pair, 0, |h, now, peer| {
        h.move_path(now, peer, spi, new);
        h.announce(now, peer, true);
    });
    pair.run(SOON);
    assert!(pair.sent[before..].iter().filter(|s| s.from == 0).all(|s| s.route == new));
    assert!(pair.events[1].contains(&Event::Locators(all.to_vec())), "{:?}", pair.events[1]);
}

#[test]
fn a_thief_of_addresses_gets_nothing() {
    // The mover announces an address that is not its own: the nonce goes there and never comes back.
    let mut pair = Pair::quick().established();
    let victim = address(0, 9);
    pair.set_network(move |s| if s.route.remote == victim { vec![] } else { s.intact() });
    let spi = pair.sas(0)[0].inbound;
    act(&mut pair, 0, |h, now, peer| {
        h.move_path(now, peer, spi, Route { local: victim, remote: address(1, 0) });
    });
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.association(1).unwrap().paths()[0].route, route(1, 0));
    let to_victim = pair.sent.iter().filter(|s| s.route.remote == victim).count();
    assert!(to_victim <= 10, "a bounded number of packets: {to_victim}");
}

#[test]
fn rekeying_with_and_without_a_new_exchange() {
    for new_dh in [false, true] {
        let mut pair = Pair::quick().established();
        add(&mut pair, 0, 1);
        pair.run(SOON);
        let old = pair.sas(0);
        act(&mut pair, 1, |h, now, peer| {
            let inbound = h.association(peer).unwrap().paths()[0].inbound;
            h.rekey(now, peer, inbound, new_dh);
        });
        pair.run(SOON);
        assert_eq!(pair.sas(0).len(), 3, "the old SAs stay until data comes on the new ones");
        let replaces: Vec<_> = pair.sas(0).iter().map(|sa| sa.replaces).collect();
        assert_eq!(replaces, [None, None, Some(old[0].inbound)], "new keys, and of which path");
        pair.assert_sas_match();
        for host in 0..2 {
            let inbound = pair.sas(host)[2].inbound;
            act(&mut pair, host, |h, now, peer| h.on_data(now, peer, inbound, 100));
        }
        pair.run(SOON);
        assert_eq!(pair.sas(0).len(), 2);
        pair.assert_sas_match();
        assert!(pair.sas(0).iter().all(|s| *s != old[0]), "new_dh {new_dh}");
        let with_dh = pair.sent.iter().filter(|s| s.packet_type() == PacketType::Update);
        let with_dh =
            with_dh.filter(|s| PacketView::new(s.packet()).unwrap().param(Kind::DIFFIE_HELLMAN).is_some());
        assert_eq!(with_dh.count(), if new_dh { 2 } else { 0 });
        // And the path can be rekeyed again.
        act(&mut pair, 0, |h, now, peer| {
            let inbound = h.association(peer).unwrap().paths()[0].inbound;
            h.rekey(now, peer, inbound, new_dh);
        });
        pair.run(SOON);
        pair.assert_sas_match();
        assert_eq!(pair.sas(0).len(), 3);
    }
}

#[test]
fn a_replayed_update_changes_nothing() {
    let mut pair = Pair::quick().established();
    add(&mut pair, 0, 1);
    pair.run(SOON);
    let sas = [pair.sas(0), pair.sas(1)];
    let sent: Vec<_> = pair.sent.iter().filter(|s| s.packet_type() == PacketType::Update).cloned().collect();
    for _ in 0..3 {
        for packet in &sent {
            pair.deliver(packet);
            pair.run(SOON);
        }
    }
    assert_eq!([pair.sas(0), pair.sas(1)], sas);
    assert_eq!(pair.states(), [State::Established; 2]);
    // A packet of an earlier association has other keys.
    let mut later = Pair::quick();
    later.hosts[0] = Host::new(identity(KeyKind::P256, 1), quick(), [77; 32], 100, Instant::ZERO);
    let mut later = later.established();
    for packet in &sent {
        later.deliver(packet);
    }
    let refused: u64 = later.hosts.iter().map(|h| h.dropped(DropReason::Mac)).sum();
    assert_eq!(refused, 3);
}

#[test]
fn a_peer_with_one_path_only_is_not_asked_for_more() {
    let single = HipConfig { max_paths: 1, ..quick() };
    let mut pair = Pair::new([quick(), single], [KeyKind::P256; 2]).established();
    assert!(pair.association(0).unwrap().multipath().is_none());
    add(&mut pair, 0, 1);
    pair.run(Duration::from_secs(60));
    assert_eq!([pair.sas(0).len(), pair.sas(1).len()], [1, 1]);
    assert_eq!(pair.states(), [State::Established; 2]);
}

#[test]
fn both_rekey_at_once() {
    for seed in 0..60u8 {
        let mut random = Random::from_seed([seed; 32]);
        let patient = HipConfig { retries: 9, ..quick() };
        let mut pair = Pair::new([patient.clone(), patient], [KeyKind::P256; 2]);
        pair.connect(0);
        pair.run(Duration::from_secs(600));
        assert_eq!(pair.states(), [State::Established; 2]);
        add(&mut pair, 0, 1);
        pair.run(SOON);
        pair.set_network(move |s| {
            let copies = [1, 1, 1, 0, 2][random.u32() as usize % 5];
            let delay = |r: &mut Random| Duration::from_millis(u64::from(r.u32() % 80));
            (0..copies).map(|_| (delay(&mut random), s.payload.clone())).collect()
        });
        for host in 0..2 {
            act(&mut pair, host, |h, now, peer| {
                let inbound = h.association(peer).unwrap().paths()[host].inbound;
                h.rekey(now, peer, inbound, seed & 1 << host != 0);
                h.add_path(now, peer, route(host, 2 + host as u8));
            });
        }
        pair.run(Duration::from_secs(800));
        assert_eq!(pair.states(), [State::Established; 2], "seed {seed}");
        pair.assert_sas_match();
        assert_eq!(pair.sas(0).len(), 6, "seed {seed}");
    }
}

#[test]
fn an_address_without_proof_gets_only_what_was_earned() {
    let mut pair = Pair::quick().established();
    // The echo never arrives, so host 1 has a path that nobody proved.
    let new = address(0, 1).ip();
    let mut answers = 0;
    pair.set_network(move |s| {
        answers += usize::from(s.route.local.ip() == new);
        if answers > 1 { vec![] } else { s.intact() }
    });
    add(&mut pair, 0, 1);
    pair.run(SOON);
    let unproved = pair.association(1).unwrap().paths()[1].clone();
    assert!(!unproved.reachable);
    let first = pair.sas(1)[0].inbound;
    act(&mut pair, 1, |h, now, peer| {
        assert!(h.may_send(now, peer, first, 1_000_000), "the proved path is free");
        assert!(!h.may_send(now, peer, unproved.inbound, 1));
        h.on_data(now, peer, first, 3_000);
        assert!(h.may_send(now, peer, unproved.inbound, 2_000));
        assert!(!h.may_send(now, peer, unproved.inbound, 2_000));
        assert!(!h.may_send(now, peer, 1, 1), "no such path");
    });
}
