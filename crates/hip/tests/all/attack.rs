//! Who attacks makes us compute little, costs nobody an exchange, and fills nothing: counted in public-key operations,
//! not in time.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::hosts::*;
use polypath_hip::*;
use polypath_wire::hip::{Hit, Kind, Packet, PacketType, PacketView, Param, Signature, udp};
use polypath_wire::{Checksum, Duration, Instant};

/// Packets of a flood, and the time they take: 10,000 a second.
const FLOOD: u32 = 10_000;
const GAP: Duration = Duration::from_micros(100);

fn payload(packet: &Packet) -> Vec<u8> {
    [&udp::HIP_MARKER[..], &packet.emit(Checksum::Unused).unwrap()].concat()
}

fn parse(payload: &[u8]) -> Packet {
    Packet::parse(&PacketView::new(&payload[4..]).unwrap()).unwrap()
}

/// A packet of an exchange of the same two identities at another time.
fn former(which: PacketType) -> Vec<u8> {
    let sent = Pair::quick().established().sent;
    sent.iter().find(|s| s.packet_type() == which).unwrap().payload.clone()
}

/// The address of stranger `n`.
fn far(n: u32) -> SocketAddr {
    SocketAddr::from((n.wrapping_mul(2_654_435_761).to_be_bytes(), 10_500))
}

fn to_server(remote: SocketAddr) -> Route {
    Route { local: address(1, 0), remote }
}

/// What `host` answers now.
fn answers(host: &mut Host) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| host.poll_transmit()).map(|t| t.payload).collect()
}

/// The answer of `host` to an I1 of `hit` from `remote`.
fn r1_for(host: &mut Host, now: Instant, hit: Hit, remote: SocketAddr) -> Option<Vec<u8>> {
    let mut i1 = parse(&former(PacketType::I1));
    i1.sender = hit;
    host.handle(now, to_server(remote), &payload(&i1));
    answers(host).pop()
}

/// I2s that solve the puzzle of `r1`, all of them different, and are signed by nobody.
fn solutions(r1: &[u8]) -> impl FnMut() -> Vec<u8> + use<> {
    let (mut i2, r1) = (parse(&former(PacketType::I2)), parse(r1));
    let mut random = Random::from_seed([9; 32]);
    i2.sender = r1.receiver;
    let Some(Param::Puzzle(puzzle)) = r1.param(Kind::PUZZLE).cloned() else { panic!() };
    move || {
        let hash = suite::Hash::Sha384;
        let mut search = puzzle::Search::new(hash, puzzle.clone(), r1.receiver, r1.sender, &mut random);
        let solution = search.run(1 << 22).unwrap();
        for param in &mut i2.params {
            match param {
                Param::Solution(s) => *s = solution.clone(),
                Param::R1Counter(c) => c.counter = 100,
                _ => {}
            }
        }
        payload(&i2)
    }
}

#[test]
fn a_flood_of_forged_notifies_costs_a_handful_of_signature_checks() {
    let mut pair = Pair::quick().established();
    let signature = Signature { algorithm: 7, signature: vec![7; 64] };
    let params = vec![Param::HipSignature(signature)];
    let forged = payload(&Packet::new(PacketType::Notify, pair.hit(0), pair.hit(1), params));
    let before = pair.hosts[1].effort();
    let start = pair.now;
    for n in 0..FLOOD {
        pair.hosts[1].handle(start + GAP.times(n.into()), to_server(far(n)), &forged);
    }
    assert_eq!(pair.hosts[1].effort(), before, "not from where the peer is");
    assert_eq!(pair.hosts[1].dropped(DropReason::Source), FLOOD.into());
    for n in 0..FLOOD {
        pair.hosts[1].handle(start + GAP.times(n.into()), to_server(address(0, 0)), &forged);
    }
    let checked = pair.hosts[1].effort().verified - before.verified;
    assert!((1..=20).contains(&checked), "{checked} signatures of {FLOOD} were checked");
    pair.now = start + Duration::from_secs(1);
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].add_path(now, peer, route(0, 1));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.sas(0).len(), 2, "what has a MAC is handled as ever");
}

/// Who has many associations need not look through them after each bad packet.
#[test]
fn what_is_dropped_in_silence_leaves_nothing_to_be_polled() {
    let mut pair = Pair::quick().established();
    let old = pair.sent.clone();
    let now = pair.now;
    let forged = payload(&Packet::new(PacketType::Notify, pair.hit(0), pair.hit(1), Vec::new()));
    assert!(!pair.hosts[1].handle(now, to_server(address(0, 0)), &forged));
    for packet in old.iter().filter(|s| s.from == 0 && s.packet_type() != PacketType::I1) {
        let mut bad = packet.payload.clone();
        let at = bad.len() - 20;
        bad[at] ^= 1;
        assert!(!pair.hosts[1].handle(now, to_server(far(1)), &bad), "{:?}", packet.packet_type());
    }
    let i1 = old.iter().find(|s| s.packet_type() == PacketType::I1).unwrap();
    assert!(pair.hosts[1].handle(now, to_server(far(1)), &i1.payload), "an R1 is due");
}

#[test]
fn a_puzzle_makes_us_compute_a_few_times_only() {
    let mut pair = Pair::quick();
    let now = Instant::ZERO + Duration::from_secs(1);
    let stranger = identity(KeyKind::P256, 77).hit();
    let r1 = r1_for(&mut pair.hosts[1], now, stranger, far(1)).unwrap();
    let before = pair.hosts[1].effort();
    let mut next = solutions(&r1);
    for n in 0..FLOOD {
        let i2 = next();
        pair.hosts[1].handle(now + GAP.times(n.into()), to_server(far(n)), &i2);
    }
    let done = pair.hosts[1].effort().total() - before.total();
    assert!((1..=4).contains(&done), "{done} operations for {FLOOD} I2s");
    // All that counts as load: the next puzzle is hard, and the friend solves it.
    pair.now = now + Duration::from_secs(2);
    pair.connect(0);
    pair.run(Duration::from_millis(500));
    assert!(pair.is_up(), "{:?}", pair.states());
    let r1 = pair.sent.iter().find(|s| s.packet_type() == PacketType::R1).unwrap();
    let difficulty = PacketView::new(r1.packet()).unwrap().param(Kind::PUZZLE).unwrap().contents[0];
    assert!(difficulty >= 12, "{difficulty} bits after {FLOOD} I2s a second");
}

#[test]
fn many_puzzles_make_us_compute_so_much_a_second_and_a_friend_gets_in() {
    let mut pair = Pair::quick();
    let host = &mut pair.hosts[1];
    // Collected slowly, while puzzles are free.
    let mut puzzles: Vec<_> = (0..800u32)
        .map(|n| {
            let now = Instant::ZERO + Duration::from_millis(20).times(n.into());
            let mut hit = identity(KeyKind::P256, 77).hit();
            hit.0[12..].copy_from_slice(&n.to_be_bytes());
            solutions(&r1_for(host, now, hit, far(n)).unwrap())
        })
        .collect();
    let start = Instant::ZERO + Duration::from_secs(20);
    let before = host.effort();
    for n in 0..FLOOD {
        let i2 = puzzles[n as usize % 800]();
        host.handle(start + GAP.times(n.into()), to_server(far(n)), &i2);
    }
    let done = host.effort().agreed - before.agreed;
    assert!((150..=300).contains(&done), "{done} operations in a second");
    pair.now = start + Duration::from_secs(1);
    pair.connect(0);
    let mut n = 0;
    while !pair.is_up() && n < 2 * FLOOD {
        let i2 = puzzles[n as usize % 800]();
        let now = pair.now;
        pair.hosts[1].handle(now, to_server(far(n)), &i2);
        pair.run(GAP);
        n += 1;
    }
    assert!(pair.is_up(), "{:?} after {} ms of flood", pair.states(), n / 10);
}

#[test]
fn a_friend_may_come_again_and_again() {
    let mut pair = Pair::quick();
    for n in 0..30 {
        pair.connect(0);
        pair.run(Duration::from_millis(100));
        assert!(pair.is_up(), "time {n}");
        let (now, peer) = (pair.now, pair.hit(1));
        pair.hosts[0].close(now, peer);
        pair.run(Duration::from_millis(900));
    }
}

#[test]
fn nobody_uses_up_the_puzzle_of_a_friend() {
    // Puzzles stay as they are: harder ones would be others.
    let calm = HipConfig { calm_i1_rate: 1_000_000, ..quick() };
    let mut pair = Pair::new([quick(), calm], [KeyKind::P256; 2]);
    let now = Instant::ZERO + Duration::from_secs(1);
    let friend = pair.hit(0);
    for n in 0..100 {
        let r1 = r1_for(&mut pair.hosts[1], now, friend, far(n)).unwrap();
        let mut next = solutions(&r1);
        for _ in 0..10 {
            pair.hosts[1].handle(now, to_server(address(0, 0)), &next());
        }
    }
    pair.now = now + Duration::from_millis(1_500);
    pair.connect(0);
    pair.run(Duration::from_secs(1));
    assert!(pair.is_up(), "{:?}", pair.states());
}

#[test]
fn strangers_at_the_address_of_a_friend_do_not_use_up_its_r1s() {
    let friend = identity(KeyKind::P256, 1).hit();
    let accept = Accept::Only(BTreeSet::from([friend]));
    let mut pair =
        Pair::new([quick(), HipConfig { accept, tell_refused: true, ..quick() }], [KeyKind::P256; 2]);
    assert_eq!(pair.hit(0), friend);
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut i1 = parse(&former(PacketType::I1));
    i1.sender = identity(KeyKind::P256, 77).hit();
    let flood = payload(&i1);
    for _ in 0..FLOOD {
        pair.hosts[1].handle(now, to_server(address(0, 0)), &flood);
    }
    assert_eq!(answers(&mut pair.hosts[1]).len(), 20);
    pair.now = now;
    pair.connect(0);
    pair.run(Duration::from_millis(500));
    assert!(pair.is_up(), "{:?}", pair.states());
}

#[test]
fn refusals_are_as_rare_as_r1s() {
    let strict = HipConfig { accept: Accept::Only(BTreeSet::new()), tell_refused: true, ..quick() };
    let mut pair = Pair::new([quick(), strict], [KeyKind::P256; 2]);
    let server = pair.hit(1);
    let now = Instant::ZERO + Duration::from_secs(1);
    let back = Route { local: address(0, 0), remote: address(1, 0) };
    let mut told = 0;
    for n in 0..60 {
        let mut stranger = Host::new(identity(KeyKind::P256, 100 + n), quick(), [n; 32], 1, Instant::ZERO);
        stranger.connect(now, server, vec![back]).unwrap();
        for _ in 0..2 {
            for packet in answers(&mut stranger) {
                pair.hosts[1].handle(now, to_server(back.local), &packet);
            }
            for packet in answers(&mut pair.hosts[1]) {
                told += 1;
                stranger.handle(now, back, &packet);
            }
        }
    }
    assert_eq!(told, 20, "R1s and refusals together");
}

#[test]
fn an_injected_r1_does_not_end_an_exchange() {
    let hostile = |n: u32, pair: &mut Pair| -> Vec<u8> {
        let now = pair.now;
        let victim = pair.hit(0);
        let mut r1 = r1_for(&mut pair.hosts[1], now, identity(KeyKind::P256, 77).hit(), far(n)).unwrap();
        match n {
            // Genuine, but for another Initiator: neither the receiver nor I is signed.
            0 => r1[4 + 24..4 + 40].copy_from_slice(&victim.0),
            // With a signature that is none.
            1 => {
                r1[4 + 24..4 + 40].copy_from_slice(&victim.0);
                let last = r1.len() - 20;
                r1[last] ^= 1;
            }
            // Genuine and old: of a time when its sender spoke nothing that we do.
            _ => {
                let config = HipConfig { esp_suites: vec![suite::EspSuite::NullHmacSha256], ..quick() };
                let mut before = Host::new(identity(KeyKind::P256, 2), config, [3; 32], 90, Instant::ZERO);
                r1 = r1_for(&mut before, now, victim, address(0, 0)).unwrap();
            }
        }
        r1
    };
    for n in 0..3 {
        let mut pair = Pair::quick();
        pair.now = Instant::ZERO + Duration::from_secs(1);
        let injected = hostile(n, &mut pair);
        pair.connect(0);
        let now = pair.now;
        pair.hosts[0].handle(now, route(0, 0), &injected);
        pair.run(Duration::from_secs(8));
        assert_eq!(pair.state(0), State::Established, "injection {n}: {:?}", pair.events[0]);
        assert!(pair.is_up());
        pair.assert_sas_match();
        assert!(!pair.events[0].iter().any(|e| matches!(e, Event::Failed(_))));
    }
}

#[test]
fn a_flood_of_forged_r1s_costs_a_handful_of_signature_checks() {
    let mut pair = Pair::quick();
    let mut r1 = former(PacketType::R1);
    let last = r1.len() - 20;
    r1[last] ^= 1;
    pair.set_network(|_| vec![]);
    pair.connect(0);
    let now = pair.now;
    for _ in 0..FLOOD {
        pair.hosts[0].handle(now, route(0, 0), &r1);
    }
    let checked = pair.hosts[0].effort().verified;
    assert!((1..=16).contains(&checked), "{checked}");
    // When it is over, the exchange goes on.
    pair.set_network(Sent::intact);
    pair.run(Duration::from_secs(8));
    assert!(pair.is_up(), "{:?}", pair.states());
}

#[test]
fn what_the_peer_once_sent_costs_no_signature_check_when_somebody_repeats_it() {
    let mut pair = Pair::quick().established();
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].add_path(now, peer, route(0, 1));
    pair.run(Duration::from_secs(40));
    let old = pair.sent.clone();
    let of = |which: PacketType| old.iter().filter(move |s| s.packet_type() == which);
    let before = pair.hosts.each_ref().map(Host::effort);
    let mut sent = 0;
    for _ in 0..200 {
        for packet in of(PacketType::Update).chain(of(PacketType::R2)).chain(of(PacketType::I2)) {
            pair.deliver(packet);
            sent += answers(&mut pair.hosts[1 - packet.from]).len();
        }
    }
    assert_eq!(pair.hosts.each_ref().map(Host::effort), before);
    assert!((1..=64).contains(&sent), "{sent} answers again to 1,000 packets");
}

#[test]
fn a_close_that_somebody_repeats_is_checked_and_answered_a_few_times_only() {
    let mut pair = Pair::quick().established();
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].close(now, peer);
    pair.run(Duration::from_secs(40));
    let close = pair.sent.iter().find(|s| s.packet_type() == PacketType::Close).unwrap().clone();
    let before = pair.hosts[1].effort();
    for _ in 0..FLOOD {
        pair.deliver(&close);
    }
    let after = pair.hosts[1].effort();
    let (checked, signed) = (after.verified - before.verified, after.signed - before.signed);
    assert!((1..=16).contains(&checked) && checked == signed, "{checked}, {signed}");
}

/// The associations that strangers have with host 1: each from its own address, or all from one.
fn strangers(pair: &mut Pair, count: u8, apart: bool) -> Vec<Hit> {
    let server = pair.hit(1);
    let mut hits = Vec::new();
    for n in 0..count {
        let mut stranger = Host::new(identity(KeyKind::P256, 100 + n), quick(), [n; 32], 1, Instant::ZERO);
        hits.push(stranger.hit());
        pair.now += Duration::from_secs(1);
        let now = pair.now;
        let from = if apart { far(n.into()) } else { far(1) };
        stranger.connect(now, server, vec![Route { local: from, remote: address(1, 0) }]).unwrap();
        for _ in 0..2 {
            for packet in answers(&mut stranger) {
                pair.hosts[1].handle(now, to_server(from), &packet);
            }
            for packet in answers(&mut pair.hosts[1]) {
                let back = Route { local: from, remote: address(1, 0) };
                stranger.handle(now, back, &packet);
            }
        }
    }
    hits
}

/// User data comes from `peer` at host 1.
fn carry(pair: &mut Pair, peer: Hit) {
    let (now, spi) = (pair.now, pair.hosts[1].association(peer).unwrap().paths()[0].inbound);
    pair.hosts[1].on_data(now, peer, spi, 1000);
}

#[test]
fn strangers_do_not_fill_the_table() {
    let few = HipConfig { max_associations: 8, ..quick() };
    let mut pair = Pair::new([quick(), few], [KeyKind::P256; 2]).established();
    let friend = pair.hit(0);
    carry(&mut pair, friend);
    let unused = strangers(&mut pair, 30, true);
    let there = |pair: &Pair, hit: &Hit| pair.hosts[1].association(*hit).is_some();
    assert_eq!(pair.hosts[1].associations().count(), 8);
    assert!(there(&pair, &friend), "who uses his association keeps it");
    assert!(unused[23..].iter().all(|hit| there(&pair, hit)), "the others give way to newer ones");
    let gone = pair.hosts[1].association(unused[0]).is_none();
    assert!(gone, "and the oldest of them went first");
}

#[test]
fn one_address_does_not_fill_the_table() {
    let few = HipConfig { max_associations: 8, ..quick() };
    let mut pair = Pair::new([quick(), few], [KeyKind::P256; 2]);
    for hit in strangers(&mut pair, 8, false) {
        carry(&mut pair, hit);
    }
    pair.connect(0);
    pair.run(Duration::from_secs(1));
    assert!(pair.is_up(), "although all others are in use");
    assert_eq!(pair.hosts[1].associations().count(), 8);
}

#[test]
fn new_keys_without_data_are_given_a_few_times_only() {
    let mut pair = Pair::quick().established();
    for _ in 0..20 {
        let (now, peer) = (pair.now, pair.hit(1));
        let inbound = pair.association(0).unwrap().paths()[0].inbound;
        pair.hosts[0].rekey(now, peer, inbound, false);
        pair.run(Duration::from_millis(100));
    }
    assert_eq!(pair.sas(1).len(), 3, "the newest and two before it");
    let (now, peer, newest) = (pair.now, pair.hit(0), pair.sas(1)[2].inbound);
    pair.hosts[1].on_data(now, peer, newest, 100);
    pair.run(Duration::from_millis(900));
    assert_eq!(pair.sas(1).len(), 3, "what was sealed before may still come");
    pair.run(Duration::from_millis(200));
    assert_eq!(pair.sas(1).len(), 1, "data on the newest ends those before");
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.sas(1).len(), 2, "and the request that came again is granted");
}
