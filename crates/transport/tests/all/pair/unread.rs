//! The window of a connection whose application has not read yet (`unread_window`), and the one that
//! grows from there (`grow_window`).

use bytes::Bytes;
use polypath_transport::ConnectionConfig;
use polypath_wire::{PathId, Rate};

use crate::common::{Bed, CLIENT, Edit, Pair, SERVER, at, ms, prompt};

const UNREAD: u64 = 150_000;
const MEGABYTES: u64 = 5_000_000;

fn limited() -> ConnectionConfig {
    ConnectionConfig {
        unread_window: Some(UNREAD),
        receive_buffer: 8 << 20,
        send_buffer: 8 << 20,
        ..prompt()
    }
}

#[test]
fn whoever_reads_at_once_receives_as_soon_as_without_it() {
    let done = |unread_window| {
        let mut pair = Pair::open(ConnectionConfig { unread_window, ..limited() }, &[20, 30]);
        pair.write(CLIENT, MEGABYTES);
        pair.run_until_received(SERVER, MEGABYTES);
        pair.now
    };
    assert_eq!(done(Some(UNREAD)), done(None));
}

#[test]
fn a_peer_fills_no_more_than_it_until_the_first_read_and_goes_on_at_once_then() {
    let mut pair = Pair::connecting(limited(), limited(), &[20]);
    pair.reads[SERVER] = false;
    pair.run_until(at(100));
    pair.write(CLIENT, MEGABYTES);
    pair.run_until(at(30_000));
    let stats = pair.end(SERVER).stats();
    assert!((UNREAD - 988..=UNREAD).contains(&stats.bytes_received), "{stats:?}");
    pair.reads[SERVER] = true;
    let opened = pair.now;
    pair.run_until_received(SERVER, UNREAD + 1);
    assert_eq!(pair.now, opened + ms(40), "a round trip later");
    pair.run_until_received(SERVER, MEGABYTES);
}

#[test]
fn a_first_read_that_finds_nothing_opens_it_too() {
    let mut pair = Pair::connecting(limited(), limited(), &[20]);
    pair.reads[SERVER] = false;
    pair.script(|f| if f.is_data_of(CLIENT) && f.offset() == 0 { Edit::Lose } else { Edit::Pass });
    pair.run_until(at(100));
    pair.write(CLIENT, MEGABYTES);
    pair.run_until(at(1000));
    assert_eq!(pair.end(SERVER).stats().bytes_received, 0);
    pair.log.clear();
    pair.reads[SERVER] = true;
    pair.pump();
    let told: Vec<_> = pair.log.iter().map(|f| (f.from, f.segment.header.window)).collect();
    assert_eq!(told, [(SERVER, (8 << 20 >> 8) as u16)], "scaled by eight bits");
}

#[test]
fn a_window_that_grows_holds_what_leaves_in_eight_round_trips_and_never_shrinks() {
    let mut pair = Pair::connecting(limited(), ConnectionConfig { grow_window: true, ..limited() }, &[20]);
    pair.reads[SERVER] = false;
    pair.run_until(at(100));
    for (mbps, window) in [(0, UNREAD), (10, 400_000), (5, 400_000), (1000, 8 << 20)] {
        pair.end(SERVER).grow_window(Rate::from_mbps(mbps));
        pair.write(CLIENT, 8 * MEGABYTES);
        pair.run_until(pair.now + ms(3000));
        let waits = pair.end(SERVER).readable();
        assert!((window - 988..=window).contains(&waits), "{mbps} Mbit/s: {waits}");
        while pair.end(SERVER).read(u64::MAX).is_some() {}
    }
}

/// A window that is smaller than a segment is advertised again once it is read.
#[test]
fn a_window_below_a_segment_does_not_stay_closed() {
    let config = ConnectionConfig { grow_window: true, unread_window: Some(500), ..limited() };
    let mut pair = Pair::connecting(config.clone(), config, &[20]);
    pair.write(CLIENT, 5000);
    pair.run_until(at(10_000));
    assert_eq!(pair.received[SERVER], 5000);
}

#[test]
fn the_window_of_a_near_peer_holds_what_leaves_in_40_ms() {
    let mut pair = Pair::connecting(limited(), ConnectionConfig { grow_window: true, ..limited() }, &[1]);
    pair.reads[SERVER] = false;
    pair.run_until(at(100));
    pair.end(SERVER).grow_window(Rate::from_mbps(100));
    pair.write(CLIENT, MEGABYTES);
    pair.run_until(at(3000));
    let waits = pair.end(SERVER).readable();
    assert!((500_000 - 988..=500_000).contains(&waits), "{waits}");
}

#[test]
fn the_pace_is_what_is_under_way_over_the_round_trip_or_what_is_written() {
    let mut pair = Pair::open(limited(), &[20, 30]);
    assert_eq!(pair.end(CLIENT).pace(), Rate(0));
    pair.end(CLIENT).write(Bytes::from(vec![7; 400_000]).into());
    assert_eq!(pair.end(CLIENT).pace(), Rate::from_mbps(80), "400,000 bytes in 40 ms");
    pair.pump();
    let in_flight: u64 = pair.end(CLIENT).path_stats(PathId(0)).in_flight;
    assert!(in_flight > 0 && pair.end(CLIENT).path_stats(PathId(1)).in_flight > 0);
    assert!(pair.end(CLIENT).pace() < Rate::from_mbps(80), "{in_flight}");
}
