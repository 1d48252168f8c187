//! Packets of other transports between two secure endpoints.

use bytes::Bytes;
use polypath_endpoint::{LaneConfig, NotSent, PacketClass};
use polypath_wire::ipv4::Ipv4Header;
use polypath_wire::{Duration, udp};

use super::bed::*;
use super::silence::restart;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A datagram of `flow` with this number and this many bytes in all.
pub fn packet(flow: u16, number: u64, len: usize) -> Bytes {
    let [src, dst] = [[10, 9, 0, 1], [10, 9, 0, 2]].map(Into::into);
    let mut packet = vec![0; len];
    Ipv4Header::new(udp::PROTOCOL, src, dst, (len - 20) as u16).emit(&mut packet).unwrap();
    packet[20..22].copy_from_slice(&flow.to_be_bytes());
    packet[28..36].copy_from_slice(&number.to_be_bytes());
    packet.into()
}

/// Two endpoints that carry packets, with both paths up and known.
fn bed() -> Bed {
    let mut bed = Bed::quick();
    (0..2).for_each(|side| carry(&mut bed, side));
    bed.associate();
    bed.run(MS(1500));
    bed
}

pub fn carry(bed: &mut Bed, side: usize) {
    bed.endpoints[side].carry_packets(bed.now, LaneConfig::default()).unwrap();
}

pub fn send(bed: &mut Bed, packet: Bytes) -> Result<(), NotSent> {
    let peer = bed.hit(SERVER);
    bed.endpoints[CLIENT].send_to_peer(bed.now, peer, packet)
}

/// The numbers of the packets of `flow` that the server was given.
pub fn take(bed: &mut Bed, flow: u16) -> Vec<u64> {
    let client = bed.hit(CLIENT);
    let carried = std::iter::from_fn(|| bed.endpoints[SERVER].poll_carried());
    let of_flow = carried.filter(|(peer, packet)| *peer == client && packet[20..22] == flow.to_be_bytes());
    of_flow.map(|(_, packet)| u64::from_be_bytes(packet[28..36].try_into().unwrap())).collect()
}

#[test]
fn packets_arrive_in_order_over_both_paths_and_none_twice() {
    let mut bed = bed();
    let mut got = Vec::new();
    for number in 0..4000 {
        assert_eq!(send(&mut bed, packet(1, number, 1400)), Ok(()));
        bed.run(Duration::from_micros(800)); // 14 of 16 Mbit/s
        got.extend(take(&mut bed, 1));
    }
    bed.run(MS(500));
    got.extend(take(&mut bed, 1));
    assert!(got.len() > 3900 && got.is_sorted_by(|a, b| a < b), "{} of 4000", got.len());
    assert!(bed.links.iter().all(|link| link.bytes > 1_500_000), "{:?}", bed.links[1].bytes);
    let report = bed.endpoints[CLIENT].lane_reports().next().unwrap();
    assert_eq!((report.paths.len(), report.waiting), (2, 0));
}

#[test]
fn a_class_that_is_sent_twice_survives_the_silent_death_of_a_path() {
    let mut bed = bed();
    let class = PacketClass { ports: vec![1..=1, 5000..=6000], ..PacketClass::default() };
    bed.endpoints[CLIENT].send_twice(vec![class]);
    let mut got = [Vec::new(), Vec::new()];
    for number in 0..200 {
        if number == 50 {
            bed.links[0].up = false;
        }
        (1..3).for_each(|flow| assert_eq!(send(&mut bed, packet(flow, number, 200)), Ok(())));
        bed.run(MS(20));
        let carried: Vec<_> = std::iter::from_fn(|| bed.endpoints[SERVER].poll_carried()).collect();
        for (_, packet) in carried {
            let number = u64::from_be_bytes(packet[28..36].try_into().unwrap());
            got[usize::from(packet[21]) - 1].push(number);
        }
    }
    let [twice, once] = got;
    assert_eq!(twice, (0..twice.len() as u64).collect::<Vec<_>>());
    assert!(twice.len() > 195 && once.len() + 3 <= twice.len(), "{} and {} of 200", twice.len(), once.len());
    let stats = |side: usize| bed.endpoints[side].lane_reports().next().unwrap().stats;
    assert!(stats(CLIENT).copies > 50 && stats(SERVER).duplicates > 40, "{:?}", stats(CLIENT));
}

#[test]
fn a_small_flow_does_not_wait_behind_a_large_one() {
    let mut bed = bed();
    let mut slowest = Duration::ZERO;
    for number in 0..200 {
        // 40 Mbit/s where there are 16.
        (0..71).for_each(|n| _ = send(&mut bed, packet(1, 100 * number + n, 1400)));
        assert_eq!(send(&mut bed, packet(2, number, 200)), Ok(()));
        let sent = bed.now;
        let arrived = |bed: &mut Bed| take(bed, 2).contains(&number);
        while !arrived(&mut bed) && bed.now.since(sent) < MS(300) {
            bed.run(MS(1));
        }
        slowest = slowest.max(bed.now.since(sent));
        bed.run(MS(20) - bed.now.since(sent));
    }
    let stats = bed.endpoints[CLIENT].lane_reports().next().unwrap().stats;
    assert!(stats.dropped > 100, "the large one is more than the paths carry: {stats:?}");
    // 20 ms, a queue of 60 ms in the link, and that of the reverse path's difference.
    assert!(slowest < MS(150), "{slowest:?}: {stats:?}");
}

#[test]
fn what_is_too_big_is_refused_with_the_size_that_is_carried() {
    let mut bed = bed();
    assert_eq!(send(&mut bed, packet(1, 0, 1422)), Ok(()));
    assert_eq!(send(&mut bed, packet(1, 0, 1423)), Err(NotSent::TooBig { most: 1422 }));
    assert!(matches!(send(&mut bed, Bytes::from_static(b"junk")), Err(NotSent::Malformed(_))));
    let stranger = bed.hit(CLIENT);
    let to_nobody = bed.endpoints[CLIENT].send_to_peer(bed.now, stranger, packet(1, 0, 100));
    assert_eq!(to_nobody, Err(NotSent::NoAssociation));
}

#[test]
fn nobody_is_told_a_size_before_it_is_known() {
    let mut bed = Bed::quick();
    (0..2).for_each(|side| carry(&mut bed, side));
    bed.associate();
    let soon = bed.now + MS(2000);
    bed.run_until_done(soon, |bed| bed.paths_up()[CLIENT] > 0);
    assert_eq!(send(&mut bed, packet(1, 0, 1422)), Err(NotSent::SizeUnknown));
}

#[test]
fn a_peer_that_carries_no_packets_counts_and_drops_them() {
    let mut bed = Bed::quick();
    carry(&mut bed, CLIENT);
    bed.associate();
    bed.run(MS(1500));
    (0..3).for_each(|number| assert_eq!(send(&mut bed, packet(1, number, 100)), Ok(())));
    bed.run(MS(200));
    assert!(bed.endpoints[SERVER].security_stats().unwrap().other >= 3);
}

#[test]
fn after_a_restart_of_the_peer_packets_flow_again() {
    let mut bed = bed();
    for number in 0..100 {
        send(&mut bed, packet(1, number, 1000)).unwrap();
        bed.run(MS(5));
    }
    assert!(take(&mut bed, 1).len() > 95);
    restart(&mut bed);
    carry(&mut bed, SERVER);
    bed.run(MS(6000));
    take(&mut bed, 1);
    for number in 0..100 {
        send(&mut bed, packet(1, number, 1000)).unwrap();
        bed.run(MS(5));
    }
    let got = take(&mut bed, 1);
    assert!(got.len() > 95, "{} of 100", got.len());
}
