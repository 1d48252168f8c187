//! A host that stands in for others: every SYN waits until its application says what became of it elsewhere.
#![allow(clippy::unwrap_used)]

use polypath_endpoint::{
    Answer, ConnectionHandle, Endpoint, EndpointConfig, Event, Incoming, Input, OpenError,
};
use polypath_transport::{CloseReason, ConnectionConfig, Event as TcpEvent, Ports, Segment, State};
use polypath_wire::{Duration, Seq};

use crate::common::{CLIENT, PORT, Pair, SERVER, locators};

const MTU: u32 = 1400;
/// Before the first SYN is sent again.
const SOON: Duration = Duration::from_millis(500);

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A pair whose server asks about every connection, and one that the client opens.
fn pair() -> (Pair, ConnectionHandle) {
    let mut pair = Pair::new([EndpointConfig::default(), EndpointConfig::default()]);
    pair.endpoints[SERVER].intercept(ConnectionConfig::default(), MTU).unwrap();
    let client = pair.connect(1);
    (pair, client)
}

fn asked(pair: &mut Pair) -> Incoming {
    let incoming = pair.endpoints[SERVER].poll_incoming().unwrap();
    assert_eq!(incoming.locators, locators(0).reversed());
    assert_eq!(incoming.ports.local, PORT);
    incoming
}

fn answer(pair: &mut Pair, incoming: &Incoming, answer: Answer) -> Option<ConnectionHandle> {
    let now = pair.now;
    pair.endpoints[SERVER].answer(now, incoming, answer)
}

#[test]
fn a_connection_opens_when_it_is_accepted_and_not_before() {
    let (mut pair, client) = pair();
    pair.run(secs(5));
    assert!(!pair.has(CLIENT, Event::Connection(TcpEvent::Connected)), "nobody has accepted it");
    let incoming = asked(&mut pair);
    assert_eq!(pair.endpoints[SERVER].poll_incoming(), None, "SYNs that were sent again are one connection");
    let server = answer(&mut pair, &incoming, Answer::Accept).unwrap();
    pair.run(secs(6));
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Connected)));
    assert!(pair.has(SERVER, Event::Accepted { port: PORT }));
    pair.write(CLIENT, client, 100_000);
    pair.run(secs(8));
    assert_eq!(pair.read(SERVER, server), 100_000);
    let largest = pair.sent.iter().map(|(.., bytes)| bytes.len()).max().unwrap();
    assert_eq!(largest as u32, MTU - 20, "segments fit into packets of the MTU");
}

/// What becomes of an accepted connection whose handshake the client does not complete: the server's end of it hears why, and
/// once it lets go nothing is left.
fn given_up(pair: &mut Pair, incoming: &Incoming, until: Duration) -> CloseReason {
    let server = answer(pair, incoming, Answer::Accept).unwrap();
    pair.run(until);
    let heard = pair.events[SERVER].iter().map(|(_, event)| *event).collect::<Vec<_>>();
    let [Event::Connection(TcpEvent::Lost(reason)), Event::Closed] = heard[..] else { panic!("{heard:?}") };
    pair.endpoints[SERVER].release(server);
    assert_eq!(pair.endpoints[SERVER].connections().count(), 0);
    reason
}

#[test]
fn a_client_that_resets_an_accepted_connection_ends_it() {
    let (mut pair, client) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    let now = pair.now;
    pair.endpoints[CLIENT].connection_mut(client).unwrap().abort(now);
    pair.endpoints[CLIENT].release(client);
    assert_eq!(given_up(&mut pair, &incoming, secs(2)), CloseReason::Refused);
}

#[test]
fn a_client_that_does_not_answer_an_accepted_connection_ends_it() {
    let (mut pair, _) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    pair.lose(|flying| flying.from == CLIENT);
    assert_eq!(given_up(&mut pair, &incoming, secs(900)), CloseReason::TimedOut);
}

#[test]
fn a_refused_connection_is_reset() {
    let (mut pair, _) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    assert_eq!(answer(&mut pair, &incoming, Answer::Refuse), None);
    pair.run(secs(2));
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Lost(CloseReason::Refused))));
    assert_eq!(answer(&mut pair, &incoming, Answer::Accept), None, "it was answered");
}

#[test]
fn an_unreachable_one_ends_at_the_word_of_it() {
    let (mut pair, client) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    assert_eq!(answer(&mut pair, &incoming, Answer::Unreachable), None);
    let bytes = pair.endpoints[SERVER].poll_packet().unwrap();
    let now = pair.now;
    pair.endpoints[CLIENT].handle(now, Input::Packet { bytes: bytes.clone() });
    pair.run(secs(2));
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Lost(CloseReason::Unreachable))));
    assert_eq!(pair.endpoints[CLIENT].connection(client).unwrap().state(), State::Closed);
}

#[test]
fn an_open_connection_outlives_the_word_that_it_is_unreachable() {
    let (mut pair, client) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    let copy = incoming;
    answer(&mut pair, &incoming, Answer::Accept).unwrap();
    pair.run(secs(3));
    // The same SYN again, refused this time: a late message about the open connection.
    let mut other = Pair::new([EndpointConfig::default(), EndpointConfig::default()]);
    other.endpoints[SERVER].intercept(ConnectionConfig::default(), MTU).unwrap();
    other.connect(1);
    other.run(SOON);
    assert_eq!(asked(&mut other), copy, "the same seed opens the same connection");
    answer(&mut other, &copy, Answer::Unreachable);
    let bytes = other.endpoints[SERVER].poll_packet().unwrap();
    let now = pair.now;
    pair.endpoints[CLIENT].handle(now, Input::Packet { bytes });
    pair.run(secs(4));
    assert_eq!(pair.endpoints[CLIENT].connection(client).unwrap().state(), State::Established);
}

/// Five connections wait for the word of a server with these limits.
fn five(limits: EndpointConfig) -> Pair {
    let mut pair = Pair::new([EndpointConfig::default(), limits]);
    pair.endpoints[SERVER].intercept(ConnectionConfig::default(), MTU).unwrap();
    (0..5).for_each(|_| _ = pair.connect(1));
    pair.run(Duration::from_millis(100));
    pair
}

#[test]
fn icmp_answers_have_the_limit_of_resets() {
    let mut pair = five(EndpointConfig { resets_per_second: 3, ..EndpointConfig::default() });
    for code in [Answer::Unreachable, Answer::NetUnreachable].into_iter().cycle().take(5) {
        let incoming = asked(&mut pair);
        answer(&mut pair, &incoming, code);
    }
    let sent = std::iter::from_fn(|| pair.endpoints[SERVER].poll_packet()).count();
    assert_eq!((sent, pair.endpoints[SERVER].stats().resets_suppressed), (3, 2));
}

#[test]
fn no_more_wait_than_the_limit() {
    let mut pair = five(EndpointConfig { max_half_open: 3, ..EndpointConfig::default() });
    let waiting = std::iter::from_fn(|| pair.endpoints[SERVER].poll_incoming()).count();
    assert_eq!((waiting, pair.endpoints[SERVER].stats().refused), (3, 2));
}

#[test]
fn ports_can_be_chosen_and_are_free_again_once_a_connection_only_waits_for_late_segments() {
    let (mut pair, _) = pair();
    let between = |pair: &mut Pair| {
        let (now, ports) = (pair.now, Ports { local: 5, remote: 7 });
        pair.endpoints[CLIENT].connect_between(now, ConnectionConfig::default(), locators(0), ports, MTU)
    };
    let first = between(&mut pair).unwrap();
    assert_eq!(between(&mut pair).err(), Some(OpenError::InUse(locators(0))));
    pair.run(secs(1));
    let asked = std::iter::from_fn(|| pair.endpoints[SERVER].poll_incoming()).collect::<Vec<_>>();
    let incoming = asked.into_iter().find(|i| i.ports == Ports { local: 7, remote: 5 }).unwrap();
    let server = answer(&mut pair, &incoming, Answer::Accept).unwrap();
    pair.run(secs(2));
    pair.close(CLIENT, first);
    pair.run(secs(3));
    pair.close(SERVER, server);
    pair.run(secs(4));
    assert_eq!(pair.endpoints[CLIENT].connection(first).unwrap().state(), State::TimeWait);
    let second = between(&mut pair).unwrap();
    pair.run(secs(70));
    assert!(pair.endpoints[CLIENT].connection(second).is_some(), "the end of the first leaves it alone");
    let ports = pair.endpoints[SERVER].poll_incoming().unwrap().ports;
    assert_eq!(ports, Ports { local: 7, remote: 5 });
}

/// The end `first` opens a connection, and when the other one has heard of it that opens one between the same ports.
fn opened_at_once(first: usize) -> (Pair, Incoming, Result<ConnectionHandle, OpenError>) {
    let second = CLIENT + SERVER - first;
    let mut pair = Pair::new([EndpointConfig::default(), EndpointConfig::default()]);
    pair.endpoints[second].intercept(ConnectionConfig::default(), MTU).unwrap();
    let there = if first == CLIENT { locators(0) } else { locators(0).reversed() };
    let open = |pair: &mut Pair, end: usize, locators, ports| {
        let now = pair.now;
        pair.endpoints[end].connect_between(now, ConnectionConfig::default(), locators, ports, MTU)
    };
    open(&mut pair, first, there, Ports { local: 5, remote: 7 }).unwrap();
    pair.run(SOON);
    let incoming = pair.endpoints[second].poll_incoming().unwrap();
    let opened = open(&mut pair, second, incoming.locators, incoming.ports);
    (pair, incoming, opened)
}

#[test]
fn of_two_connections_that_both_ends_open_at_once_the_one_of_the_smaller_end_goes_on() {
    let here = locators(0);
    let (smaller, larger) = if here.local < here.remote { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    for first in [smaller, larger] {
        let (mut pair, incoming, opened) = opened_at_once(first);
        let (now, second) = (pair.now, CLIENT + SERVER - first);
        let accepted = pair.endpoints[second].answer(now, &incoming, Answer::Accept);
        match first == smaller {
            true => assert_eq!(opened.err(), Some(OpenError::InUse(incoming.locators))),
            false => assert_eq!(accepted, None, "it is open already"),
        }
        pair.run(secs(3));
        for end in [first, second] {
            let states: Vec<State> =
                pair.endpoints[end].connections().map(|(_, connection)| connection.state()).collect();
            assert_eq!(states, [State::Established], "opened first by {first}, at {end}");
        }
    }
}

/// Gives a SYN to somebody else, who takes it or not.
fn withdraw(server: &mut Endpoint, incoming: &Incoming, taken: bool) -> Segment {
    let mut given = None;
    server.withdraw(incoming, |syn| {
        given = Some(syn.clone());
        taken
    });
    given.unwrap()
}

#[test]
fn a_syn_that_nobody_else_takes_is_asked_about_again_when_it_is_sent_again() {
    let (mut pair, _) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    withdraw(&mut pair.endpoints[SERVER], &incoming, false);
    pair.run(secs(2));
    assert_eq!(asked(&mut pair), incoming);
}

#[test]
fn a_copy_of_a_syn_that_somebody_else_carries_is_dropped_and_another_connection_is_not() {
    let (mut pair, _) = pair();
    pair.run(SOON);
    let incoming = asked(&mut pair);
    let syn = withdraw(&mut pair.endpoints[SERVER], &incoming, true);
    let (seq, now) = (syn.header.seq, pair.now);
    let server = &mut pair.endpoints[SERVER];
    let arrives = |server: &mut Endpoint, seq| {
        let mut segment = syn.clone();
        segment.header.seq = seq;
        server.handle(now, Input::Segment { locators: incoming.locators, segment });
        server.poll_incoming()
    };
    assert_eq!(arrives(server, seq), None, "it was read before its carrier knew");
    assert_eq!(arrives(server, seq), Some(incoming), "its carrier has forgotten it");
    withdraw(server, &incoming, true);
    assert_eq!(arrives(server, Seq(seq.0 + 1)), Some(incoming), "its ports are used again");
}
