//! Data, windows and acknowledgments (RFC 9293 §3.7, §3.8, RFC 5681, 7323).

use bytes::Bytes;
use polypath_transport::{CloseReason, ConnectionConfig, Event, Payload, State};
use polypath_wire::Duration;
use polypath_wire::PathId;

use crate::common::{Bed, CLIENT, Edit, Flying, ISN, Pair, SERVER, at, ms, prompt};

/// Payload of a full segment: 1000 bytes less the timestamps.
const MSS: u64 = 988;

/// A pair that delays acknowledgments, after its first segment, which the wider window answers.
fn delayed() -> Pair {
    let mut pair = Pair::open(ConnectionConfig { delayed_ack: ms(40), ..prompt() }, &[10]);
    pair.write(CLIENT, MSS);
    pair.write(SERVER, MSS);
    pair.run_for(ms(1000));
    pair.log.clear();
    pair
}

/// RFC 5681 §4.2, RFC 9293 §3.8.6.3: at least every second full segment, and within the delay.
#[test]
fn every_second_segment_is_acknowledged_at_once() {
    let mut pair = delayed();
    pair.write(CLIENT, 4 * MSS);
    pair.run_for(ms(30));
    assert_eq!(pair.times(SERVER, |_| true), [2010, 2010]);
    pair.log.clear();
    pair.write(CLIENT, 10);
    pair.run_for(ms(100));
    assert_eq!(pair.times(SERVER, |_| true), [2080], "a lone segment waits 40 ms");
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 7 * MSS);
    pair.run_for(ms(30));
    assert_eq!(pair.times(SERVER, |_| true).len(), 7);
}

/// RFC 5681 §4.2: out of order and when the gap fills, at once.
#[test]
fn a_gap_is_reported_at_once() {
    let mut pair = delayed();
    pair.script(|f| if f.is_data_of(CLIENT) && f.offset() == MSS { Edit::Delay(ms(15)) } else { Edit::Pass });
    pair.write(CLIENT, 2 * MSS);
    pair.run_for(ms(12));
    assert_eq!(pair.times(SERVER, |f| f.acks() == MSS), [2010]);
    pair.run_for(ms(15));
    assert_eq!(pair.times(SERVER, |f| f.acks() == 3 * MSS), [2025]);
}

/// An acknowledgment that waits travels with data the other way.
#[test]
fn acknowledgments_ride_on_data() {
    let mut pair = delayed();
    pair.write(CLIENT, 100);
    pair.run_for(ms(20));
    pair.write(SERVER, 100);
    pair.run_for(ms(60));
    let acks = pair.log.iter().filter(|f| f.from == SERVER && f.acks() == MSS + 100).collect::<Vec<_>>();
    assert_eq!(acks.iter().map(|f| f.len()).collect::<Vec<_>>(), [100], "none of its own");
}

/// RFC 7323 §2: with scaling more than 64 KiB are under way, without never.
#[test]
fn window_scaling_opens_the_window() {
    for (scaling, expected) in [(true, true), (false, false)] {
        let config = ConnectionConfig { window_scaling: scaling, ..prompt() };
        let mut pair = Pair::open(config, &[50]);
        pair.write(CLIENT, 3_000_000);
        let mut most = 0;
        pair.run_while(|p| {
            most = most.max(p.end(CLIENT).path_stats(PathId(0)).in_flight);
            p.received[SERVER] < 3_000_000
        });
        assert_eq!(most > 65_535, expected, "{most} bytes in flight");
    }
}

/// RFC 9293 §3.8.6.1: a closed window is probed, with growing pauses, and never overrun.
#[test]
fn a_closed_window_is_probed() {
    let config = ConnectionConfig { receive_buffer: 5000, ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, 20_000);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.end(SERVER).stats().bytes_received, 5000);
    let probes = pair.times(CLIENT, |f| f.len() == 0 && f.sent > at(1100));
    assert!(probes.len() >= 4, "{probes:?}");
    for three in probes.windows(3) {
        assert!(three[2] - three[1] >= three[1] - three[0], "{probes:?}");
    }
    pair.reads[SERVER] = true;
    pair.run_until_received(SERVER, 20_000);
}

/// The update that opens the window is lost: the next probe finds out.
#[test]
fn a_lost_window_update_is_found_by_a_probe() {
    let config = ConnectionConfig { receive_buffer: 5000, ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, 20_000);
    pair.run_for(ms(500));
    let mut lost = false;
    pair.script(move |f| {
        if f.from == SERVER && !std::mem::replace(&mut lost, true) { Edit::Lose } else { Edit::Pass }
    });
    pair.reads[SERVER] = true;
    pair.run_until_received(SERVER, 20_000);
    assert!(pair.now < at(10_000), "{:?}", pair.now);
}

/// RFC 1122 §4.2.2.17: while probes are answered the connection stays, for ever if need be.
#[test]
fn an_answered_probe_keeps_the_connection() {
    let config = ConnectionConfig { receive_buffer: 5000, max_timeouts: 3, max_rto: ms(500), ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, 20_000);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.states(), [State::Established; 2]);
}

/// And if nobody answers, it ends (RFC 9293 §3.8.3).
#[test]
fn unanswered_probes_end_the_connection() {
    let config = ConnectionConfig { receive_buffer: 5000, max_timeouts: 3, max_rto: ms(500), ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, 20_000);
    pair.run_for(ms(300));
    pair.script(|_| Edit::Lose);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.lost(CLIENT), Some(CloseReason::TimedOut));
}

/// RFC 9293 §3.8.6.1: a window that closes over what is in flight may stay closed for as long as the peer
/// answers what is sent again.
#[test]
fn a_window_that_shrinks_to_nothing_keeps_the_connection() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.script(|f| if f.from == SERVER { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 8000);
    pair.run_for(ms(50));
    let mut shut = pair.forge(CLIENT);
    (shut.header.ack, shut.header.window) = (ISN[CLIENT].plus(1 + 988), 0);
    pair.script(|_| Edit::Lose);
    pair.inject(CLIENT, 0, shut.clone());
    pair.log.clear();
    for _ in 0..20 * 60 {
        pair.run_for(Duration::from_secs(1));
        if !pair.log.is_empty() {
            pair.log.clear();
            pair.inject(CLIENT, 0, shut.clone());
        }
    }
    assert_eq!(pair.states()[CLIENT], State::Established);
    pair.script(|_| Edit::Pass);
    pair.run_while(|p| p.end(CLIENT).stats().bytes_acked < 8000);
    assert_eq!(pair.received[SERVER], 8000);
}

/// And if nobody answers, it ends all the same.
#[test]
fn a_silent_peer_with_a_closed_window_ends_the_connection() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.script(|_| Edit::Lose);
    pair.write(CLIENT, 8000);
    pair.run_for(ms(50));
    let mut shut = pair.forge(CLIENT);
    (shut.header.ack, shut.header.window) = (ISN[CLIENT].plus(1 + 988), 0);
    pair.inject(CLIENT, 0, shut);
    pair.run_for(Duration::from_secs(20 * 60));
    assert_eq!(pair.lost(CLIENT), Some(CloseReason::TimedOut));
}

/// RFC 9293 §3.8.6.2.2: reading a little does not advertise a little.
#[test]
fn small_reads_make_no_small_windows() {
    let config = ConnectionConfig { receive_buffer: 10_000, ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(150));
    pair.log.clear();
    let mut taken = 0;
    while taken < 5000 {
        taken += pair.end(SERVER).read(50).map_or(0, |chunk| chunk.len());
        pair.run_for(ms(25));
    }
    let small = pair.log.iter().filter(|f| f.is_data_of(CLIENT) && f.len() < 900).count();
    assert!(small <= 1, "{small} small segments for 5000 bytes read in pieces of 50");
}

/// RFC 9293 §3.7.4.
#[test]
fn nagle_waits_for_the_acknowledgment() {
    for (no_delay, segments) in [(false, 2), (true, 10)] {
        let mut pair = Pair::open(ConnectionConfig { no_delay, ..prompt() }, &[10]);
        for _ in 0..10 {
            pair.write(CLIENT, 50);
            pair.pump();
        }
        pair.run_for(ms(100));
        assert_eq!((pair.data(CLIENT).len(), pair.received[SERVER]), (segments, 500));
    }
}

/// RFC 9293 §3.8.4.
#[test]
fn an_idle_connection_is_kept_alive_or_given_up() {
    let config = ConnectionConfig { keep_alive: Duration::from_secs(10), max_timeouts: 3, ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.states(), [State::Established; 2]);
    assert!(pair.times(CLIENT, |_| true).len() >= 9);
    pair.script(|_| Edit::Lose);
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.states(), [State::Closed; 2]);
    assert_eq!(pair.lost(CLIENT), Some(CloseReason::TimedOut));
}

#[test]
fn no_keep_alive_unless_asked_for() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.run_for(Duration::from_secs(100_000));
    assert!(pair.log.is_empty());
}

/// The path carries less from now on: what is in flight and too long is cut and sent again.
#[test]
fn the_path_mtu_falls_in_the_middle() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 200_000);
    pair.run_for(ms(65));
    pair.script(|f| if f.len() > 500 { Edit::Lose } else { Edit::Pass });
    pair.run_for(ms(5));
    let now = pair.now;
    pair.end(CLIENT).path_mss(now, PathId(0), 512);
    let before = pair.log.len();
    pair.run_until_received(SERVER, 200_000);
    assert!(pair.log[before..].iter().all(|f| f.len() <= 500), "512 less the timestamps");
}

/// A path that carries less than the connection was told, and a router that says so of each segment (RFC 1191).
#[test]
fn what_was_too_big_goes_again_at_once_in_smaller_pieces() {
    const CARRIED: u64 = 888;
    let mut pair = Pair::open(ConnectionConfig::default(), &[10]);
    pair.script(|f| if f.len() > CARRIED { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 300_000);
    pair.close(CLIENT);
    pair.run_for(ms(10));
    let dropped = pair.log.len();
    assert_eq!(dropped, 10, "the initial window");
    for _ in 0..dropped {
        let now = pair.now;
        pair.end(CLIENT).path_mss(now, PathId(0), 900);
    }
    pair.run_until_received(SERVER, 300_000);
    assert!(pair.log[dropped..].iter().all(|f| f.len() <= CARRIED), "and nothing after it");
    let stats = pair.end(CLIENT).stats();
    assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 0), "it is no congestion");
    // In slow start from 10 segments, acknowledged in pairs, and half a round trip before it.
    assert!(pair.now < at(1300), "{:?}", pair.now);
}

/// A middlebox that cuts segments: the rest is sent again.
#[test]
fn cut_segments_lose_nothing() {
    let mut pair = Pair::open(prompt(), &[10]);
    let mut n = 0;
    pair.script(move |f: &Flying| {
        n += u64::from(f.len() > 1);
        if f.len() > 1 && n % 5 == 0 { f.cut(f.len() / 2) } else { Edit::Pass }
    });
    pair.write(CLIENT, 100_000);
    pair.write(SERVER, 100_000);
    pair.run_while(|p| p.received != [100_000; 2]);
}

#[test]
fn the_sequence_numbers_wrap() {
    let mut pair = Pair::open(prompt(), &[1]);
    pair.write(CLIENT, 10_000); // the first number is 2001 below the wrap
    pair.run_until_received(SERVER, 10_000);
    assert_eq!(pair.end(CLIENT).path_stats(PathId(0)).retransmissions, 0);
}

#[test]
fn a_writer_is_no_more_ahead_than_is_in_flight_from_64_kib_on() {
    let config = ConnectionConfig {
        send_ahead: Some(1 << 20),
        send_buffer: 8 << 20,
        receive_buffer: 8 << 20,
        ..prompt()
    };
    let mut pair = Pair::open(config, &[100]);
    let data = Payload::from(Bytes::from(vec![7; 4 << 20]));
    assert_eq!(pair.end(CLIENT).write(data.clone()), 64 << 10);
    pair.reads[SERVER] = false;
    let mut most = 0;
    // Slow start doubles the window.
    while most < 500_000 {
        pair.run_until(pair.now + ms(10));
        let client = pair.end(CLIENT);
        client.write(data.clone());
        let in_flight = client.path_stats(PathId(0)).in_flight;
        assert!(client.unsent() <= in_flight.max(64 << 10), "{} beside {in_flight}", client.unsent());
        most = most.max(client.unsent());
        assert!(pair.now < at(3000), "{most}");
    }
}

#[test]
fn a_writer_is_no_more_than_the_limit_ahead_of_what_is_sent() {
    let config = ConnectionConfig { send_ahead: Some(20 * MSS), ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    let data = Payload::from(Bytes::from(vec![7; 100 * MSS as usize]));
    assert_eq!(pair.end(CLIENT).write(data.clone()), 20 * MSS);
    assert_eq!((pair.end(CLIENT).writable(), pair.end(CLIENT).write(data.clone())), (0, 0));
    pair.pump();
    assert!(pair.has(CLIENT, Event::Writable), "the initial window, ten segments, has left");
    assert_eq!(pair.end(CLIENT).write(data.slice(20 * MSS, u64::MAX)), 10 * MSS);
}
