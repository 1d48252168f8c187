//! Keep-alives that a driver relays (RFC 9293 §3.8.4, RFC 1122 §4.2.3.6): the client is a program's host or another driver, the server relays.

use polypath_transport::{CloseReason, ConnectionConfig, Event, Pattern, Probes, Segment, State};
use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Duration, PathId};

use crate::common::{Bed, CLIENT, Edit, Flying, Pair, SERVER, ms, prompt};

/// An open connection of which the `ends` relay probes of this form.
fn relaying(ends: &[usize], probes: Probes, delays: &[u64]) -> Pair {
    let mut pair = Pair::open(prompt(), delays);
    ends.iter().for_each(|end| relay(&mut pair, *end, Some(probes)));
    pair
}

fn relay(pair: &mut Pair, end: usize, probes: Option<Probes>) {
    let now = pair.now;
    pair.end(end).relay(now, probes);
    pair.pump();
}

fn probe(pair: &mut Pair, end: usize) -> bool {
    let now = pair.now;
    let sent = pair.end(end).probe(now);
    pair.pump();
    sent
}

fn answer(pair: &mut Pair, end: usize) {
    let now = pair.now;
    pair.end(end).answer_probe(now);
    pair.pump();
}

/// How often `end` was told of a probe, and of an answer.
fn told(pair: &Pair, end: usize) -> (usize, usize) {
    let count = |event| pair.events[end].iter().filter(|e| **e == event).count();
    (count(Event::Probed), count(Event::ProbeAnswered))
}

fn sent_by(pair: &Pair, end: usize) -> usize {
    pair.log.iter().filter(|f| f.from == end).count()
}

/// A keep-alive as the client's host would send it now, with `len` bytes of garbage.
fn keep_alive(pair: &mut Pair, len: u64) -> Segment {
    let before = pair.log.len();
    relay(pair, CLIENT, Some(Probes::KeepAlives));
    pair.script(|_| Edit::Lose);
    assert!(probe(pair, CLIENT));
    pair.script(|_| Edit::Pass);
    relay(pair, CLIENT, None);
    let mut segment = pair.log.split_off(before)[0].segment.clone();
    segment.payload = Pattern { key: 9, offset: 0, len }.into();
    segment
}

fn is_bare_ack(f: &Flying) -> bool {
    f.segment.header.flags == TcpFlags::ACK && f.len() == 0
}

#[test]
fn a_hosts_keep_alive_is_answered_when_the_driver_says_so() {
    let host = ConnectionConfig { keep_alive: Duration::from_secs(10), max_timeouts: 3, ..prompt() };
    let mut pair = Pair::connecting(host, prompt(), &[10]);
    pair.run_for(ms(1000));
    relay(&mut pair, SERVER, Some(Probes::KeepAlives));
    for round in 1..=10 {
        pair.run_while(|p| told(p, SERVER).0 < round);
        pair.log.clear();
        pair.run_for(ms(300));
        assert_eq!(sent_by(&pair, SERVER), 0);
        answer(&mut pair, SERVER);
        assert!(pair.log.iter().all(is_bare_ack));
        assert_eq!(sent_by(&pair, SERVER), 1);
    }
    pair.run_for(Duration::from_secs(50));
    assert_eq!((told(&pair, SERVER).0, pair.lost(CLIENT)), (13, Some(CloseReason::TimedOut)));
}

#[test]
fn one_byte_of_garbage_makes_no_difference_but_a_byte_that_comes_again_is_acknowledged() {
    let mut pair = relaying(&[SERVER], Probes::KeepAlives, &[10]);
    pair.write(CLIENT, 1);
    pair.run_for(ms(100));
    for len in [0, 1] {
        pair.run_for(ms(1000));
        let segment = keep_alive(&mut pair, len);
        let (before, told_before) = (pair.log.len(), told(&pair, SERVER).0);
        pair.inject(SERVER, 0, segment);
        assert_eq!((pair.log.len(), told(&pair, SERVER).0), (before, told_before + 1), "{len} bytes");
        answer(&mut pair, SERVER);
        assert_eq!(pair.log.len(), before + 1);
    }
    pair.run_for(ms(1000));
    let before = told(&pair, SERVER).0;
    pair.script(|f| if f.from == SERVER { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 1);
    pair.run_for(ms(30));
    pair.script(|_| Edit::Pass);
    pair.run_for(ms(470));
    assert_eq!((pair.end(CLIENT).stats().bytes_acked, told(&pair, SERVER).0), (2, before));
}

#[test]
fn a_flood_of_keep_alives_is_one_question_and_gets_one_answer() {
    let mut pair = relaying(&[SERVER], Probes::KeepAlives, &[10]);
    let segment = keep_alive(&mut pair, 0);
    for _ in 0..100 {
        pair.inject(SERVER, 0, segment.clone());
    }
    assert_eq!((told(&pair, SERVER).0, sent_by(&pair, SERVER)), (1, 0));
    answer(&mut pair, SERVER);
    answer(&mut pair, SERVER);
    assert_eq!(sent_by(&pair, SERVER), 1);
    pair.inject(SERVER, 0, segment.clone());
    assert_eq!(
        (told(&pair, SERVER).0, sent_by(&pair, SERVER)),
        (1, 2),
        "what is known just now is said at once"
    );
    pair.run_for(ms(500));
    pair.inject(SERVER, 0, segment);
    assert_eq!(told(&pair, SERVER).0, 2);
}

/// A probe of a closed window looks like a keep-alive from Linux, and says whether the window is open.
#[test]
fn a_closed_window_is_probed_as_ever() {
    let mut pair = relaying(&[SERVER], Probes::KeepAlives, &[10]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, 5 << 20);
    pair.run_for(Duration::from_secs(20));
    let segment = keep_alive(&mut pair, 0);
    let before = sent_by(&pair, SERVER);
    pair.inject(SERVER, 0, segment);
    assert_eq!((told(&pair, SERVER).0, sent_by(&pair, SERVER)), (0, before + 1));
}

#[test]
fn a_half_closed_connection_relays_and_one_that_is_over_does_not() {
    let mut pair = relaying(&[SERVER], Probes::KeepAlives, &[10]);
    pair.close(CLIENT);
    pair.run_for(ms(100));
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
    let segment = keep_alive(&mut pair, 0);
    pair.inject(SERVER, 0, segment);
    assert_eq!(told(&pair, SERVER).0, 1);
    assert!(probe(&mut pair, SERVER));
    pair.run_for(ms(100));
    assert_eq!(told(&pair, SERVER).1, 1, "the client's own answer waits for nobody");
    pair.close(SERVER);
    pair.run_for(ms(100));
    assert_eq!(pair.states(), [State::TimeWait, State::Closed]);
    assert!([CLIENT, SERVER].into_iter().all(|end| !probe(&mut pair, end)));
}

#[test]
fn a_host_that_is_asked_answers_at_once_and_nothing_else_is_an_answer() {
    let mut pair = relaying(&[SERVER], Probes::KeepAlives, &[10]);
    pair.write(CLIENT, 1000);
    pair.run_for(ms(100));
    assert_eq!(told(&pair, SERVER), (0, 0));
    for round in 1..3 {
        assert!(probe(&mut pair, SERVER));
        pair.run_for(ms(19));
        assert_eq!(told(&pair, SERVER).1, round - 1);
        pair.run_for(ms(100));
        assert_eq!(told(&pair, SERVER), (0, round));
    }
}

#[test]
fn a_driver_that_relays_no_more_answers_what_waits_and_all_that_follows() {
    let mut pair = relaying(&[SERVER], Probes::KeepAlives, &[10]);
    let segment = keep_alive(&mut pair, 0);
    pair.inject(SERVER, 0, segment.clone());
    relay(&mut pair, SERVER, None);
    pair.inject(SERVER, 0, segment);
    assert_eq!((told(&pair, SERVER).0, sent_by(&pair, SERVER)), (1, 2));
    assert!(!probe(&mut pair, SERVER));
}

#[test]
fn a_heartbeat_for_the_host_behind_the_peer_is_answered_when_that_host_has() {
    let mut pair = relaying(&[CLIENT, SERVER], Probes::Heartbeats, &[10, 40]);
    assert!(probe(&mut pair, CLIENT));
    pair.run_for(ms(2000));
    assert_eq!((told(&pair, SERVER), told(&pair, CLIENT)), ((1, 0), (0, 0)));
    answer(&mut pair, SERVER);
    pair.run_for(ms(10));
    assert_eq!((told(&pair, SERVER), told(&pair, CLIENT)), ((1, 0), (0, 1)));
    pair.run_for(ms(2000));
    assert_eq!(pair.log.len(), 2, "one question, one answer");
}

/// The way may be longer than the program waits before it asks again.
#[test]
fn an_answer_to_an_earlier_question_counts_but_not_for_one_that_was_asked_after_an_answer() {
    let mut pair = Pair::connecting(prompt(), prompt(), &[400]);
    pair.run_for(ms(3000));
    [CLIENT, SERVER].into_iter().for_each(|end| relay(&mut pair, end, Some(Probes::Heartbeats)));
    let mut answered = Vec::new();
    for _ in 0..3 {
        assert!(probe(&mut pair, CLIENT));
        pair.run_for(ms(600));
        answer(&mut pair, SERVER);
        answered.push(told(&pair, CLIENT).1);
    }
    pair.run_for(ms(399));
    assert_eq!((answered, told(&pair, CLIENT).1), (vec![0, 1, 1], 1));
    pair.run_for(ms(5000));
    assert_eq!((told(&pair, SERVER).0, told(&pair, CLIENT).1), (3, 2));
}

#[test]
fn a_peer_that_does_not_relay_answers_at_once() {
    let mut pair = relaying(&[CLIENT], Probes::Heartbeats, &[10]);
    assert!(probe(&mut pair, CLIENT));
    pair.run_for(ms(20));
    assert_eq!((told(&pair, SERVER), told(&pair, CLIENT)), ((0, 0), (0, 1)));
}

#[test]
fn after_an_unanswered_question_the_next_one_leaves_on_all_paths_and_so_does_its_answer() {
    let mut pair = relaying(&[CLIENT, SERVER], Probes::Heartbeats, &[10, 40]);
    // The first path carries nothing to the server, the second nothing to the client.
    pair.script(|f| if (f.path == PathId(0)) == (f.from == CLIENT) { Edit::Lose } else { Edit::Pass });
    assert!(probe(&mut pair, CLIENT));
    pair.run_for(ms(1000));
    assert_eq!(told(&pair, SERVER), (0, 0));
    pair.script(|f| if f.path == PathId(0) { Edit::Lose } else { Edit::Pass });
    assert!(probe(&mut pair, CLIENT));
    pair.run_for(ms(100));
    answer(&mut pair, SERVER);
    pair.run_for(ms(100));
    assert_eq!((told(&pair, SERVER), told(&pair, CLIENT)), ((1, 0), (0, 1)));
}

/// A driver's own keep-alive (`keep_alive`) asks its peer, and no host behind that.
#[test]
fn keep_alives_between_drivers_are_neither_relayed_nor_answers() {
    let config = ConnectionConfig { keep_alive: Duration::from_secs(1), max_timeouts: 3, ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    [CLIENT, SERVER].into_iter().for_each(|end| relay(&mut pair, end, Some(Probes::Heartbeats)));
    assert!(probe(&mut pair, CLIENT));
    pair.run_for(Duration::from_secs(20));
    assert_eq!((told(&pair, SERVER), told(&pair, CLIENT)), ((1, 0), (0, 0)));
    assert_eq!(pair.states(), [State::Established; 2]);
}
