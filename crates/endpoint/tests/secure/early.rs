//! Data that leaves behind the SYN.

use polypath_endpoint::{PeerEvent, SecurityConfig};
use polypath_transport::{ConnectionConfig, Segment};
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
    bed.run_until(Instant::ZERO + Duration::from_secs(1), |bed| bed.events[CLIENT].contains(&PeerEvent::Up));
    let began = bed.now;
    bed.send_with(LEN, ConnectionConfig { early_data, ..ConnectionConfig::default() });
    let end = began + Duration::from_secs(10);
    bed.run_until(end, |bed| bed.received > 0);
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
    let mut early = Segment { header, payload: bytes::Bytes::from(vec![7; 100]).into() };
    let now = bed.now;
    bed.endpoints[SERVER].handle_segment(now, &path.inner, &mut early);
    assert_eq!(bed.endpoints[SERVER].stats().resets_sent, 0);
}
