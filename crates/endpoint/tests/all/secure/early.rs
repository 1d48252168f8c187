//! Data that leaves behind the SYN.

use polypath_endpoint::{PeerEvent, SecurityConfig};
use polypath_transport::{ConnectionConfig, Pattern, Segment};
use polypath_wire::tcp::TcpHeader;
use polypath_wire::{Duration, Instant};

use super::bed::*;
use super::{LEN, finish};

fn today() -> SecurityConfig {
    let mut config = quick();
    config.hip.early_data = true;
    config
}

/// How long after the association began the server read the first data, ms. One way is 10 ms on the first link.
fn first_read(configs: [SecurityConfig; 2], early_data: bool) -> u64 {
    let mut bed = Bed::new(configs, [v4, v4]);
    bed.associate();
    bed.run_until_done(Instant::ZERO + Duration::from_secs(1), |bed| {
        bed.events[CLIENT].contains(&PeerEvent::Up)
    });
    let began = bed.now;
    bed.send_with(LEN, ConnectionConfig { early_data, ..ConnectionConfig::default() });
    let end = began + Duration::from_secs(10);
    bed.run_until_done(end, |bed| bed.received > 0);
    let read = bed.now.since(began);
    finish(&mut bed, 60);
    let stats = bed.endpoints[SERVER].security_stats().unwrap();
    assert_eq!((stats.refused, stats.unknown_spi, stats.other, stats.unsent), (0, 0, 0, 0), "{stats:?}");
    read.as_millis_f64().round() as u64
}

#[test]
fn data_is_read_one_way_after_the_association_if_both_ends_know_of_it() {
    // 10 ms, and 3 ms for a probe and a segment at 8 Mbit/s
    assert!(first_read([today(), today()], true) <= 14);
    assert!(first_read([today(), today()], false) >= 30);
    assert!(first_read([today(), quick()], true) >= 30);
    assert!(first_read([quick(), today()], true) >= 30);
}

#[test]
fn data_whose_syn_did_not_come_is_not_reset() {
    let mut bed = Bed::established();
    let path = bed.endpoints[SERVER].secure_paths().next().unwrap();
    let header = TcpHeader { src_port: 40_000, dst_port: PORT, ..TcpHeader::default() };
    let mut early =
        Segment { header, payload: bytes::Bytes::from(vec![7; 100]).into(), ..Segment::default() };
    let now = bed.now;
    bed.endpoints[SERVER].handle_segment(now, &path.inner, &mut early);
    assert_eq!(bed.endpoints[SERVER].stats().resets_sent, 0);
}

/// How long after it was opened a connection has 1,000 bytes of an answer, ms, where the links have these delays one way, and
/// no connection measured them.
fn first_answer(config: fn() -> SecurityConfig, early_data: bool, delays: [u64; 2]) -> u64 {
    let mut bed = Bed::new([config(), config()], [v4, v4]);
    bed.wire.links.iter_mut().zip(delays).for_each(|(link, ms)| link.delay = Duration::from_millis(ms));
    bed.associate();
    bed.run(Duration::from_secs(5));
    assert_eq!(bed.paths_up(), [2, 2]);
    bed.offered = 1000;
    let began = bed.now;
    bed.send_with(1000, ConnectionConfig { early_data, ..ConnectionConfig::default() });
    bed.run_until_done(began + Duration::from_secs(10), |bed| bed.fetched == 1000);
    assert_eq!((bed.received, bed.fetched), (1000, 1000));
    bed.now.since(began).as_millis_f64().round() as u64
}

#[test]
fn a_short_connection_keeps_to_the_quicker_path_though_no_connection_measured_it() {
    for delays in [[10, 100], [100, 10]] {
        // one round trip, or two where the SYN goes alone, and 2 ms for either segment at 8 Mbit/s
        let early = first_answer(super::bed::today, true, delays);
        assert!(early <= 20 + 4, "{early} ms over {delays:?}");
        let late = first_answer(quick, false, delays);
        assert!(late <= 40 + 6, "{late} ms over {delays:?}");
    }
}

/// How long 1,000 bytes take that follow one byte on an open connection, ms.
fn after_a_byte(delays: [u64; 2]) -> u64 {
    let mut bed = Bed::new([quick(), quick()], [v4, v4]);
    bed.wire.links.iter_mut().zip(delays).for_each(|(link, ms)| link.delay = Duration::from_millis(ms));
    bed.associate();
    bed.run(Duration::from_secs(5));
    let peer = bed.hit(SERVER);
    let handle =
        bed.endpoints[CLIENT].connect_peer(bed.now, ConnectionConfig::default(), peer, PORT).unwrap();
    let write = |bed: &mut Bed, offset, len| {
        let connection = bed.endpoints[CLIENT].connection_mut(handle).unwrap();
        connection.write(Pattern { key: KEY, offset, len }.into());
    };
    write(&mut bed, 0, 1);
    bed.run(Duration::from_secs(1));
    assert_eq!(bed.received, 1);
    let began = bed.now;
    write(&mut bed, 1, 1000);
    bed.run_until_done(began + Duration::from_secs(10), |bed| bed.received == 1001);
    assert_eq!(bed.received, 1001);
    bed.now.since(began).as_millis_f64().round() as u64
}

#[test]
fn how_little_there_was_to_send_is_not_taken_for_the_rate_of_a_path() {
    for delays in [[10, 100], [100, 10]] {
        let took = after_a_byte(delays);
        assert!(took <= 10 + 2, "{took} ms over {delays:?}");
    }
}
