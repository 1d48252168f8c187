//! Opening (RFC 9293 §3.5, 7323, 2018, 6298).

use polypath_transport::{CloseReason, Connection, ConnectionConfig, Event, LossConfig, PathConfig, Ports};
use polypath_transport::{SchedulerConfig, Segment, State, ThresholdConfig};
use polypath_wire::tcp::{TcpFlags, TcpHeader};
use polypath_wire::{Duration, Instant, PathId};

use crate::common::{Bed, CLIENT, Edit, Flying, ISN, Pair, SERVER, at, every, ms, prompt};

/// RFC 2018 §2, RFC 7323 §2.2 and §3.2: an option is in use if both SYNs carried it.
#[test]
fn options_are_used_if_both_sides_offer_them() {
    for bits in 0..64u32 {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let client = ConnectionConfig { sack: on(0), timestamps: on(1), window_scaling: on(2), ..prompt() };
        let server = ConnectionConfig { sack: on(3), timestamps: on(4), window_scaling: on(5), ..prompt() };
        let mut pair = Pair::connecting(client, server, &[10]);
        pair.write(CLIENT, 20_000);
        let mut data = 0;
        pair.script(move |f| {
            data += u32::from(f.is_data_of(CLIENT));
            if f.is_data_of(CLIENT) && data == 4 { Edit::Lose } else { Edit::Pass }
        });
        pair.run_until_received(SERVER, 20_000);
        let syn = &pair.log[0].segment.header.options;
        let offered = (syn.sack_permitted, syn.timestamps.is_some(), syn.window_scale.is_some());
        assert_eq!(offered, (on(0), on(1), on(2)));
        let answer = pair.log.iter().find(|f| f.from == SERVER).unwrap();
        assert_eq!(answer.segment.header.flags, TcpFlags::SYN | TcpFlags::ACK);
        let answer = &answer.segment.header.options;
        let agreed = (answer.sack_permitted, answer.timestamps.is_some(), answer.window_scale.is_some());
        assert_eq!(agreed, (on(0) && on(3), on(1) && on(4), on(2) && on(5)), "bits {bits:06b}");
        for later in &pair.log[2..] {
            assert_eq!(later.segment.header.options.timestamps.is_some(), agreed.1);
        }
        assert_eq!(pair.log.iter().any(|f| !f.segment.header.options.sack.is_empty()), agreed.0);
    }
}

/// RFC 9293 §3.5, figure 7: the SYNs cross.
#[test]
fn simultaneous_open() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
    pair.connect_server();
    pair.write(CLIENT, 5000);
    pair.write(SERVER, 7000);
    pair.run_until(at(500));
    assert_eq!(pair.states(), [State::Established; 2]);
    assert_eq!(pair.received, [7000, 5000]);
    assert!((0..2).all(|i| pair.has(i, Event::Connected)));
}

/// RFC 6298 §2 and §5.5: again after 1 s, then 2 s, then 4 s.
#[test]
fn a_lost_syn_is_sent_again_with_backoff() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
    let mut left = 3;
    pair.script(move |f| {
        let lose = f.from == CLIENT && left > 0;
        left -= u32::from(lose);
        if lose { Edit::Lose } else { Edit::Pass }
    });
    pair.run_until(at(8000));
    assert_eq!(pair.times(CLIENT, |f| f.has(TcpFlags::SYN)), [0, 1000, 3000, 7000]);
    assert_eq!(pair.states(), [State::Established; 2]);
}

/// RFC 6298 §5.7: a SYN that was lost makes the first timeout of the data 3 s; RFC 6928 §2: more than one lost
/// make the initial window a segment.
#[test]
fn data_begins_carefully_after_lost_syns() {
    for (lost, flight, timeout) in [(0, 10, 200), (1, 10, 3000), (2, 1, 3000)] {
        let config =
            ConnectionConfig { loss: LossConfig::Sack(ThresholdConfig { threshold: 3 }), ..prompt() };
        let mut pair = Pair::connecting(config, prompt(), &[10]);
        let mut left = lost;
        pair.script(move |f| {
            let lose = f.has(TcpFlags::SYN) && f.from == CLIENT && left > 0;
            left -= i32::from(lose);
            if lose || f.len() > 0 { Edit::Lose } else { Edit::Pass }
        });
        pair.write(CLIENT, 50_000);
        pair.run_while(|p| p.data(CLIENT).is_empty());
        let began = pair.now;
        pair.run_for(ms(timeout - 1));
        assert_eq!(pair.data(CLIENT).len(), flight, "{lost} lost");
        pair.run_while(|p| p.data(CLIENT).len() == flight);
        assert_eq!(pair.now, began + ms(timeout), "{lost} lost");
    }
}

/// RFC 7323 §4: on a way longer than the SYN's timer the timestamp tells that the first SYN is answered, and no data
/// goes twice. RFC 6298 §5.7: without timestamps the first timeout of data is 3 s then.
#[test]
fn a_way_longer_than_the_first_timeout() {
    for (timestamps, one_way) in [(true, 4000), (true, 600), (false, 1400)] {
        let config = ConnectionConfig { timestamps, ..prompt() };
        let mut pair = Pair::connecting(config.clone(), config, &[one_way]);
        pair.write(CLIENT, 5000);
        pair.run_until_received(SERVER, 5000);
        pair.run_for(ms(4 * one_way));
        assert!(pair.times(CLIENT, |f| f.has(TcpFlags::SYN)).len() > 1);
        assert_eq!(pair.end(CLIENT).stats().timeouts, 0, "{one_way} ms, timestamps {timestamps}");
        let sizes: u64 = pair.log.iter().filter(|f| f.is_data_of(CLIENT)).map(Flying::len).sum();
        let probe = if timestamps { 0 } else { 1000 }; // of the tail, after 1 s (RFC 8985 §7.2)
        assert_eq!(sizes, 5000 + probe, "{one_way} ms, timestamps {timestamps}");
    }
}

/// RFC 6298 §3 (Karn): the round trip is that of the first SYN and SYN-ACK, from when they left, not from when they were
/// wanted; if they went again, timestamps tell whether they are meant, unless both left in one tick of that clock.
#[test]
fn the_round_trip_begins_when_the_syn_leaves() {
    let (ports, paths) = (Ports::default(), [PathConfig::default()]);
    let path = PathId::FIRST;
    let half = |ms: u64| Instant(ms * 1_000_000 + 500_000);
    let (later, in_one_tick) = (Some(half(31)), Some(half(25) + Duration::from_micros(300)));
    let cases = [(true, None), (false, None), (true, later), (false, later), (true, in_one_tick)];
    for (timestamps, again) in cases {
        let config = ConnectionConfig { timestamps, ..prompt() };
        let mut client = Connection::connect(half(0), config.clone(), ports, ISN[CLIENT], &paths);
        let syn = client.poll_transmit(half(3)).unwrap().segment;
        let mut server = Connection::accept(half(20), config, ports, ISN[SERVER], &paths, path, &syn);
        let answer = server.poll_transmit(half(25)).unwrap().segment;
        if let Some(again) = again {
            server.handle(half(25), path, syn);
            assert!(server.poll_transmit(again).is_some());
        }
        client.handle(half(40), path, answer);
        let last = client.poll_transmit(half(40)).unwrap().segment;
        server.handle(half(60), path, last);
        let srtt = [&client, &server].map(|c| c.path_stats(path).srtt);
        let known = again.is_none() || timestamps && again == later;
        assert_eq!(srtt, [Some(ms(37)), known.then_some(ms(35))], "timestamps {timestamps}, again {again:?}");
    }
}

#[test]
fn the_round_trip_is_that_of_the_path_that_was_asked() {
    let (ports, paths) = (Ports::default(), [PathConfig::default(), PathConfig::default()]);
    let [asked, other] = [PathId(0), PathId(1)];
    let mut client = Connection::connect(at(0), prompt(), ports, ISN[CLIENT], &paths);
    let syn = client.poll_transmit(at(0)).unwrap().segment;
    let mut server = Connection::accept(at(10), prompt(), ports, ISN[SERVER], &paths, asked, &syn);
    let answer = server.poll_transmit(at(10)).unwrap().segment;
    client.handle(at(20), asked, answer);
    let last = client.poll_transmit(at(20)).unwrap().segment;
    server.handle(at(90), other, last);
    assert_eq!([asked, other].map(|path| server.path_stats(path).srtt), [Some(ms(80)), None]);
}

/// Data on another path may complete the handshake before its own acknowledgment does: no SYN was lost.
#[test]
fn a_handshake_completed_on_another_path_lost_nothing() {
    let scheduler = SchedulerConfig::RoundRobin;
    let config =
        ConnectionConfig { loss: LossConfig::Sack(ThresholdConfig { threshold: 3 }), scheduler, ..prompt() };
    let mut pair = Pair::connecting(config.clone(), config, &[10, 10]);
    pair.script(|f| {
        let first = f.from == CLIENT && f.path.0 == 0 && !f.has(TcpFlags::SYN);
        if first || f.is_data_of(SERVER) { Edit::Lose } else { Edit::Pass }
    });
    pair.write(CLIENT, 5000);
    pair.run_until(at(40));
    assert_eq!(pair.states(), [State::Established; 2]);
    pair.write(SERVER, 2 * 988);
    pair.run_until(at(1100));
    let sent: Vec<_> = pair.data(SERVER).iter().map(|(ms, path, _)| (*ms, *path)).collect();
    assert_eq!(sent[..2].iter().map(|(_, path)| path).sum::<u16>(), 1, "one on each path: {sent:?}");
    assert!(sent.len() >= 4, "both went again after a second: {sent:?}");
}

#[test]
fn a_lost_syn_ack_is_sent_again() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
    let mut lost = false;
    pair.script(move |f| {
        let lose = f.from == SERVER && !lost;
        lost |= lose;
        if lose { Edit::Lose } else { Edit::Pass }
    });
    pair.run_until(at(2000));
    assert_eq!(pair.states(), [State::Established; 2]);
    assert!((0..2).all(|i| pair.has(i, Event::Connected)));
}

/// The handshake's last acknowledgment is lost; the data that follows serves as well.
#[test]
fn data_completes_the_handshake() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
    pair.write(CLIENT, 100);
    pair.script(|f| {
        if f.from == CLIENT && f.len() == 0 && !f.has(TcpFlags::SYN) { Edit::Lose } else { Edit::Pass }
    });
    pair.run_until(at(100));
    assert_eq!((pair.states(), pair.received[SERVER]), ([State::Established; 2], 100));
}

#[test]
fn a_dead_first_path_does_not_keep_us_from_connecting() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10, 20]);
    pair.script(|f| if f.path.0 == 0 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 50_000);
    pair.run_until_received(SERVER, 50_000);
    assert_eq!(pair.times(CLIENT, |f| f.has(TcpFlags::SYN)), [0, 1000]);
    assert!(pair.now < at(10_000), "{:?}", pair.now);
}

/// RFC 9293 §3.8.3: R2 ends the attempt.
#[test]
fn nobody_answers() {
    let config = ConnectionConfig { max_timeouts: 3, ..prompt() };
    let mut pair = Pair::connecting(config, prompt(), &[10]);
    pair.script(|_| Edit::Lose);
    pair.run_until(at(60_000));
    assert_eq!(pair.times(CLIENT, |_| true), [0, 1000, 3000, 7000]);
    assert_eq!((pair.lost(CLIENT), pair.states()[CLIENT]), (Some(CloseReason::TimedOut), State::Closed));
}

/// RFC 9293 §3.10.7.3, second step.
#[test]
fn a_reset_refuses_only_if_it_answers_our_syn() {
    for (ack, refused) in [(ISN[CLIENT].plus(1), true), (ISN[CLIENT], false), (ISN[CLIENT].plus(2), false)] {
        let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
        pair.script(|_| Edit::Lose);
        pair.pump();
        let header = TcpHeader { ack, flags: TcpFlags::RST | TcpFlags::ACK, ..TcpHeader::default() };
        pair.inject(CLIENT, 0, Segment { header, ..Segment::default() });
        assert_eq!(pair.lost(CLIENT) == Some(CloseReason::Refused), refused, "ack {ack:?}");
    }
}

/// RFC 9293 §3.5, figure 9: an old SYN-ACK is answered by a reset and changes nothing.
#[test]
fn an_old_syn_ack_is_reset() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
    pair.pump();
    let old =
        TcpHeader { ack: ISN[CLIENT].plus(99), flags: TcpFlags::SYN | TcpFlags::ACK, ..TcpHeader::default() };
    pair.inject(CLIENT, 0, Segment { header: old, ..Segment::default() });
    let reset = pair.log.last().unwrap();
    assert!(reset.has(TcpFlags::RST));
    assert_eq!(reset.segment.header.seq, ISN[CLIENT].plus(99));
    pair.run_until(at(100));
    assert_eq!(pair.states(), [State::Established; 2]);
}

#[test]
fn copies_of_every_handshake_segment_are_harmless() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[10]);
    pair.script(|_| Edit::Twice);
    pair.write(CLIENT, 3000);
    pair.run_until(at(15));
    pair.write(SERVER, 3000);
    pair.run_until(at(300));
    assert_eq!((pair.states(), pair.received), ([State::Established; 2], [3000; 2]));
}

/// A path that is taken away while the SYN is on it: the next one carries it at once, and is the first that controller and
/// scheduler hear of.
#[test]
fn the_path_of_the_syn_is_removed() {
    let of_cc = every().map(|cc| ConnectionConfig { cc, ..prompt() });
    let of_scheduler = every().map(|scheduler| ConnectionConfig { scheduler, ..prompt() });
    for config in of_cc.chain(of_scheduler) {
        let algorithms = format!("{:?}, {:?}", config.cc, config.scheduler);
        let mut pair = Pair::connecting(config.clone(), config, &[10, 20]);
        pair.script(|f| if f.path.0 == 0 { Edit::Lose } else { Edit::Pass });
        pair.run_until(at(100));
        let now = pair.now;
        pair.end(CLIENT).remove_path(now, PathId(0));
        pair.write(CLIENT, 20_000);
        pair.run_until_received(SERVER, 20_000);
        assert_eq!(pair.times(CLIENT, |f| f.has(TcpFlags::SYN)), [0, 100], "{algorithms}");
        let elsewhere = |f: &Flying| f.from == SERVER || f.path.0 == 1;
        assert!(pair.log.iter().skip(1).all(elsewhere), "{algorithms}: and nothing else goes there");
        assert!(pair.now.since(at(100)) < Duration::from_secs(1), "{algorithms}: {:?}", pair.now);
    }
}
