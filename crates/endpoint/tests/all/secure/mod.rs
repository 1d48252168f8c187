//! Connections over HIP and ESP, end to end, in virtual time.
#![allow(clippy::unwrap_used)]

mod acks;
mod ahead;
mod bed;
mod bottlenecks;
mod checksums;
mod departure;
mod early;
mod mtu;
mod nat;
mod packets;
mod several;
mod silence;
mod soak;
mod trouble;

use std::collections::BTreeSet;

use bed::*;
use bytes::BytesMut;
use polypath_endpoint::*;
use polypath_hip::suite::EspSuite;
use polypath_hip::{Accept, State};
use polypath_wire::{Duration, Ecn, Instant, Rate};

const LEN: u64 = 4 << 20;

fn finish(bed: &mut Bed, within: u64) {
    let end = bed.now + Duration::from_secs(within);
    bed.run_until_done(end, |bed| bed.finished);
    assert_eq!(
        bed.received,
        LEN,
        "{:?} {:?}",
        bed.events,
        bed.endpoints[CLIENT].secure_paths().collect::<Vec<_>>()
    );
}

#[test]
fn a_file_crosses_two_paths_each_in_its_own_sas() {
    let mut bed = Bed::established();
    bed.send(LEN);
    finish(&mut bed, 60);
    assert!(
        bed.links.iter().all(|l| l.bytes > LEN / 10),
        "{:?}",
        bed.links.iter().map(|l| l.bytes).collect::<Vec<_>>()
    );
    let [ours, theirs] = [CLIENT, SERVER].map(|side| bed.endpoints[side].secure_paths().collect::<Vec<_>>());
    for path in &ours {
        let other = theirs.iter().find(|p| p.inbound == path.outbound).unwrap();
        assert_eq!(other.outbound, path.inbound);
        assert_eq!((path.peer, other.peer), (bed.hit(SERVER), bed.hit(CLIENT)));
        assert_eq!(path.suite, EspSuite::Aes128Gcm);
        assert!(path.sealed > 100);
    }
    assert_ne!(ours[0].outbound, ours[1].outbound);
    let stats = bed.endpoints[SERVER].security_stats().unwrap();
    assert_eq!((stats.refused, stats.unknown_spi, stats.other, stats.unsent), (0, 0, 0, 0), "{stats:?}");
}

#[test]
fn nothing_travels_in_the_clear() {
    let mut bed = Bed::established();
    bed.send(LEN);
    finish(&mut bed, 60);
    let plain = polypath_transport::Payload::from(polypath_transport::Pattern { key: 5, offset: 0, len: 64 })
        .to_bytes();
    assert!(bed.seen.iter().all(|p| p.windows(16).all(|w| w != &plain[..16])));
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let mut bed = Bed::established();
    bed.send(LEN);
    let soon = bed.now + Duration::from_secs(30);
    bed.run_until_done(soon, |bed| bed.received > LEN / 4);
    bed.links[0].up = false;
    (0..2).for_each(|side| bed.local(side, 0, false));
    bed.run_until_done(soon, |bed| bed.received > LEN / 2);
    assert!(bed.received > LEN / 2, "over the other path alone");
    assert_eq!(bed.paths_up(), [1, 1]);
    bed.links[0].up = true;
    (0..2).for_each(|side| bed.local(side, 0, true));
    let before = bed.links[0].bytes;
    finish(&mut bed, 60);
    assert!(bed.links[0].bytes > before, "it carries again: {:?}", bed.events);
    assert_eq!(bed.paths_up(), [2, 2]);
    assert_eq!(bed.endpoints[CLIENT].association(bed.hit(SERVER)), Some(State::Established));
}

#[test]
fn the_other_end_offers_addresses_that_we_do_not_know() {
    let mut bed = Bed::quick();
    bed.associate_at(&[0]);
    bed.run(Duration::from_secs(2));
    assert_eq!(bed.paths_up(), [2, 2], "{:?}", bed.events);
    let ends = |bed: &Bed| -> BTreeSet<_> {
        bed.endpoints[CLIENT].secure_paths().filter(|p| p.up).map(|p| p.locators.remote).collect()
    };
    assert_eq!(ends(&bed), bed.links.iter().map(|l| l.ends[SERVER]).collect());
    bed.send(LEN);
    finish(&mut bed, 60);
    assert!(bed.links.iter().all(|l| l.bytes > LEN / 10));
}

#[test]
fn addresses_of_the_other_end_come_and_go() {
    let mut bed = Bed::quick();
    bed.local(SERVER, 1, false);
    bed.associate_at(&[0]);
    bed.run(Duration::from_secs(1));
    assert_eq!(bed.paths_up(), [1, 1]);
    bed.send(LEN * 2);
    for _ in 0..2 {
        bed.local(SERVER, 1, true);
        bed.run(Duration::from_secs(1));
        assert_eq!(bed.paths_up(), [2, 2], "{:?}", bed.events);
        bed.local(SERVER, 1, false);
        bed.run(Duration::from_secs(1));
        assert_eq!(bed.paths_up(), [1, 1], "{:?}", bed.events);
    }
    assert!(bed.links[1].bytes > 100_000);
    let end = bed.now + Duration::from_secs(60);
    bed.run_until_done(end, |bed| bed.finished);
    assert_eq!(bed.received, LEN * 2);
}

#[test]
fn a_transfer_survives_without_any_path_for_a_while() {
    let mut bed = Bed::established();
    bed.send(LEN);
    let soon = bed.now + Duration::from_secs(30);
    bed.run_until_done(soon, |bed| bed.received > LEN / 4);
    for link in 0..2 {
        bed.links[link].up = false;
        bed.local(CLIENT, link, false);
    }
    bed.run(Duration::from_secs(8));
    bed.links[1].up = true;
    bed.local(CLIENT, 1, true);
    finish(&mut bed, 60);
}

/// Nothing flows meanwhile, so nobody misses it.
#[test]
fn the_only_path_is_up_again_when_its_interface_is() {
    for ends in [&[CLIENT][..], &[SERVER], &[CLIENT, SERVER]] {
        let mut bed = Bed::quick();
        bed.local(SERVER, 1, false);
        bed.local(CLIENT, 1, false);
        bed.associate_at(&[0]);
        bed.run(Duration::from_secs(1));
        for up in [false, true] {
            bed.links[0].up = up;
            ends.iter().for_each(|side| bed.local(*side, 0, up));
            bed.run(Duration::from_secs(1));
        }
        assert_eq!(bed.paths_up(), [1, 1], "{ends:?}: {:?}", bed.events);
        bed.send(LEN);
        finish(&mut bed, 60);
    }
}

#[test]
fn new_keys_in_the_middle_cost_nothing() {
    let config = || SecurityConfig { rekey_after: 500, ..quick() };
    let mut bed = Bed::new([config(), config()], [v4, v4]);
    bed.associate();
    bed.run(Duration::from_secs(1));
    bed.send(LEN * 4);
    let end = bed.now + Duration::from_secs(60);
    bed.run_until_done(end, |bed| bed.finished);
    assert_eq!(
        bed.received,
        LEN * 4,
        "{:?} {:#?} {:#?}",
        bed.events,
        bed.endpoints[0].secure_paths().collect::<Vec<_>>(),
        bed.endpoints[1].secure_paths().collect::<Vec<_>>()
    );
    let rekeyed: u32 = bed.endpoints[CLIENT].secure_paths().map(|p| p.rekeyed).sum();
    assert!(rekeyed > 0);
    bed.run(Duration::from_secs(5));
    for side in [CLIENT, SERVER] {
        let stats = bed.endpoints[side].security_stats().unwrap();
        assert_eq!(stats.refused, 0);
        assert!(stats.unknown_spi < 50, "only what was under way with the old keys: {stats:?}");
    }
}

#[test]
fn behind_a_nat_and_when_it_forgets() {
    let mut bed = Bed::quick();
    bed.links[0].nat = Some("192.0.2.1:4000".parse().unwrap());
    bed.links[1].nat = Some("192.0.2.2:4001".parse().unwrap());
    bed.associate();
    bed.run(Duration::from_secs(1));
    assert_eq!(bed.paths_up(), [2, 2]);
    bed.send(LEN);
    let soon = bed.now + Duration::from_secs(30);
    bed.run_until_done(soon, |bed| bed.received > LEN / 4);
    bed.links[0].nat = Some("192.0.2.1:4999".parse().unwrap());
    finish(&mut bed, 60);
    bed.run(Duration::from_secs(20));
    assert_eq!(bed.paths_up()[CLIENT], 2);
    let remotes: BTreeSet<_> = bed.endpoints[SERVER].secure_paths().map(|p| p.locators.remote).collect();
    assert!(remotes.contains(&"192.0.2.1:4999".parse().unwrap()), "{remotes:?}");
}

#[test]
fn a_stranger_is_told_that_he_is_one() {
    let mut server = quick();
    server.hip.accept = Accept::Only(BTreeSet::new());
    server.hip.tell_refused = true;
    let mut bed = Bed::new([quick(), server], [v4, v4]);
    bed.associate();
    bed.run(Duration::from_secs(2));
    assert_eq!(bed.events[CLIENT], [PeerEvent::Failed(PeerFailure::Refused)]);
    assert!(bed.events[SERVER].iter().all(|e| matches!(e, PeerEvent::Stranger { .. })));
    assert!(!bed.events[SERVER].is_empty());
    assert_eq!(bed.endpoints[SERVER].association(bed.hit(CLIENT)), None, "nothing is kept");
}

#[test]
fn the_end_of_the_association_ends_its_connections() {
    let mut bed = Bed::established();
    bed.send(1 << 30);
    bed.run(Duration::from_millis(500));
    let peer = bed.hit(SERVER);
    bed.endpoints[CLIENT].dissociate(bed.now, peer);
    bed.run(Duration::from_secs(2));
    assert_eq!(bed.paths_up(), [0, 0]);
    for side in [CLIENT, SERVER] {
        assert!(bed.events[side].contains(&PeerEvent::Down));
        assert!(bed.endpoints[side].connections().all(|(_, c)| c.is_closed()));
    }
}

#[test]
fn forgeries_replays_and_segments_in_the_clear_are_dropped_and_counted() {
    let mut bed = Bed::established();
    bed.send(LEN);
    bed.run(Duration::from_millis(300));
    let locators = Locators { local: v4(1, 0), remote: v4(0, 0) };
    let mut give = |bytes: &[u8]| {
        let input = Input::Datagram { locators, ecn: Ecn::None, bytes: BytesMut::from(bytes) };
        bed.endpoints[SERVER].handle(bed.now, input);
        bed.endpoints[SERVER].security_stats().unwrap()
    };
    let spi = bed.seen.iter().rev().find(|p| p.len() > 1000).unwrap().clone();
    let before = give(&[]);
    let after = give(&spi);
    assert_eq!(
        after.refused + after.unknown_spi,
        before.refused + before.unknown_spi + u64::from(after.opened == before.opened)
    );
    let again = give(&spi);
    assert_eq!(again.opened, after.opened, "seen before");
    let mut forged = spi.clone();
    forged[7] ^= 0x40;
    assert_eq!(give(&forged).opened, after.opened);
    let mut segment = [0; 40];
    let len = frame::encode_datagram(&Default::default(), &mut segment).unwrap();
    assert_eq!(give(&segment[..len]).opened, after.opened);
    finish(&mut bed, 60);
}

#[test]
fn what_links_are_said_to_be_reaches_the_other_end() {
    let mut bed = Bed::quick();
    for side in [CLIENT, SERVER] {
        for link in 0..2 {
            let bandwidth = Some(Rate::from_mbps(10 + link as u64 * 10 + side as u64));
            let delay = Some(Duration::from_millis(3));
            let gives = polypath_hip::Link { bandwidth, delay, spill: false };
            let info = LocalInfo { mtu: Some(1500), link: gives, ..LocalInfo::default() };
            let local = bed.links[link].ends[side];
            bed.endpoints[side].handle(Instant::ZERO, Input::LocalUp { local, info });
        }
    }
    bed.associate();
    bed.run(Duration::from_secs(1));
    bed.send(1000);
    bed.run(Duration::from_millis(1));
    let connection = bed.endpoints[CLIENT].connection(bed.client.unwrap()).unwrap();
    assert_eq!(connection.paths().count(), 2);
    bed.run(Duration::from_secs(1));
    let connection = bed.endpoints[CLIENT].connection(bed.client.unwrap()).unwrap();
    let rates: Vec<_> = (0..2).map(|p| connection.path_stats(polypath_wire::PathId(p)).rate).collect();
    assert_eq!(rates, [Some(Rate::from_mbps(10)), Some(Rate::from_mbps(20))]);
}

#[test]
fn what_was_measured_is_told_and_shown_but_not_taken_for_known() {
    let mut bed = Bed::established();
    bed.send(LEN * 4);
    bed.run(Duration::from_secs(14));
    let near = |value: u64, about: u64| value > about * 7 / 10 && value < about * 13 / 10;
    for (n, link) in bed.links.iter().enumerate() {
        let of = |side: usize| {
            let mut paths = bed.endpoints[side].secure_paths();
            paths.find(|p| p.locators.local == link.ends[side]).unwrap()
        };
        let (ours, theirs) = (of(CLIENT), of(SERVER));
        let delay = bed.wire.links[n].delay.0;
        assert!(near(ours.measured.delay.unwrap().0, delay), "{n}: {:?}", ours.measured);
        assert!(near(ours.measured.bandwidth.unwrap().0, 8_000_000), "{n}: {:?}", ours.measured);
        let told = theirs.peer_measured;
        assert!(near(told.delay.unwrap().0, delay), "{n}: {told:?}");
        assert!(near(ours.peer_measured.delay.unwrap().0, delay), "{n}: {:?}", ours.peer_measured);
        assert!(told.bandwidth.is_some(), "{n}: {told:?}");
    }
    let sent = |bed: &Bed| bed.seen.iter().filter(|p| p.starts_with(&[0; 4])).count();
    let before = sent(&bed);
    bed.run(Duration::from_secs(60));
    assert!(sent(&bed) - before < 40, "not told again and again: {}", sent(&bed) - before);
}

#[test]
fn what_a_large_transfer_measured_outlives_small_ones_after_it() {
    let mut bed = Bed::established();
    for len in [LEN * 4, 30_000, 30_000] {
        (bed.received, bed.finished) = (0, false);
        bed.send(len);
        while !bed.finished {
            bed.run(Duration::from_secs(1));
        }
        for path in bed.endpoints[CLIENT].secure_paths() {
            let rate = path.measured.bandwidth.unwrap().0;
            assert!(rate > 7_000_000, "of 8 Mbit/s after {len} bytes: {rate}");
        }
    }
}

/// HIP's signatures are drawn anew each time; all else of a run follows from its log.
#[test]
fn a_log_replays_to_the_same_packets() {
    let mut bed = Bed::quick();
    bed.links[0].mtu = Some((1400, true));
    bed.associate();
    bed.run(Duration::from_secs(1));
    bed.send(LEN);
    bed.run(Duration::from_secs(1));
    bed.local(SERVER, 1, false);
    bed.run(Duration::from_secs(1));
    bed.local(SERVER, 1, true);
    finish(&mut bed, 60);
    let mut again = Endpoint::secure(EndpointConfig::default(), quick(), identity(2), [2; 32], 1);
    again.listen(PORT, ListenConfig::default()).unwrap();
    let (mut sent, mut connection, mut finished) = (Vec::new(), None, false);
    for (now, input) in std::mem::take(&mut bed.log) {
        let Some(input) = input else {
            let mut out = Out::default();
            let _ = pump(&mut again, now, &mut out);
            sent.extend(out.0.into_iter().map(|(locators, bytes)| (now, locators, bytes)));
            // What the application did: it read all, and ended when the peer had.
            while let Some((handle, _)) = again.poll_event() {
                connection = Some(handle);
            }
            if let Some(connection) = connection.and_then(|h| again.connection_mut(h)) {
                while connection.read(u64::MAX).is_some() {}
                if connection.state() == polypath_transport::State::CloseWait && !finished {
                    finished = true;
                    connection.close();
                }
            }
            continue;
        };
        again.handle(now, input);
    }
    assert!(sent.len() > 1000);
    assert_eq!(sent.len(), bed.sent.len());
    for (now, then) in sent.iter().zip(&bed.sent) {
        assert_eq!((now.0, now.1, now.2.len()), (then.0, then.1, then.2.len()));
        let is_hip = now.2.starts_with(&[0; 4]);
        assert!(is_hip && now.2[..20] == then.2[..20] || now.2 == then.2, "at {:?}", now.0);
    }
}

#[test]
fn the_same_inputs_give_the_same_paths() {
    let run = || {
        let mut bed = Bed::established();
        bed.send(LEN);
        finish(&mut bed, 60);
        (bed.now, bed.links.iter().map(|l| l.bytes).collect::<Vec<_>>())
    };
    assert_eq!(run(), run());
}
