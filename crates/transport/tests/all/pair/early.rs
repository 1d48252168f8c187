//! Data that does not wait for the handshake (`conn/early.rs`).

use polypath_transport::{ConnectionConfig, Event, State};
use polypath_wire::tcp::TcpFlags;

use crate::common::{Bed, CLIENT, Edit, Pair, SERVER, at, prompt};

fn early() -> ConnectionConfig {
    ConnectionConfig { early_data: true, ..prompt() }
}

#[test]
fn data_arrives_with_the_syn_and_the_answer_with_the_syn_ack() {
    let mut pair = Pair::connecting(early(), early(), &[20]);
    pair.write(CLIENT, 3500);
    pair.run_until(at(20));
    assert_eq!((pair.received[SERVER], pair.states()[SERVER]), (3500, State::SynReceived));
    assert!(pair.has(SERVER, Event::Connected) && !pair.has(CLIENT, Event::Connected));
    pair.write(SERVER, 2500);
    pair.run_until(at(40));
    assert_eq!((pair.received[CLIENT], pair.states()[CLIENT]), (2500, State::Established));
    pair.run_until(at(60));
    assert_eq!(pair.states(), [State::Established; 2]);
    let told = pair.events.each_ref().map(|e| e.iter().filter(|e| **e == Event::Connected).count());
    assert_eq!(told, [1, 1]);
    assert_eq!(pair.times(CLIENT, |f| f.len() > 0), [0, 0, 0, 0], "each segment once");
}

#[test]
fn an_initial_window_leaves_before_the_answer_and_its_acknowledgments_open_the_window() {
    let mut pair = Pair::connecting(early(), early(), &[20]);
    pair.write(CLIENT, 1_000_000);
    pair.run_until(at(39));
    assert_eq!(pair.data(CLIENT).len(), 10);
    pair.run_until_received(SERVER, 1_000_000);
    let plain = {
        let mut pair = Pair::connecting(prompt(), prompt(), &[20]);
        pair.write(CLIENT, 1_000_000);
        pair.run_until_received(SERVER, 1_000_000);
        pair.now
    };
    assert_eq!(plain.since(pair.now).as_millis_f64().round(), 40.0, "a round trip");
    assert_eq!(pair.end(CLIENT).path_stats(polypath_wire::PathId::FIRST).retransmissions, 0);
}

#[test]
fn nothing_is_acknowledged_before_the_answer_even_if_a_path_seems_dead() {
    let config = ConnectionConfig { fail_silent: true, ..early() };
    let mut pair = Pair::connecting(config.clone(), config, &[20, 20]);
    pair.script(|f| if f.path.0 == 0 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 5000);
    pair.run_until_received(SERVER, 5000);
    let answered = pair.times(SERVER, |f| f.path.0 == 1)[0] + 20;
    let acks = pair.times(CLIENT, |f| f.has(TcpFlags::ACK));
    assert!(acks[0] >= answered, "{acks:?}, and the answer came at {answered} ms");
}

/// RFC 9293 §3.10.7.4: a host that does not know of early data drops segments without ACK.
#[test]
fn a_peer_that_does_not_know_of_it_gets_everything_once_after_the_handshake() {
    for sack in [true, false] {
        for len in [500, 100_000] {
            let mut pair = Pair::connecting(ConnectionConfig { sack, ..early() }, prompt(), &[20]);
            pair.write(CLIENT, len);
            pair.close(CLIENT);
            pair.run_until_received(SERVER, len);
            assert!(pair.now < at(3000), "{:?}", pair.now);
        }
        let mut pair = Pair::connecting(prompt(), early(), &[20]);
        pair.write(CLIENT, 5000);
        pair.run_until_received(SERVER, 5000);
    }
}

#[test]
fn what_left_behind_a_syn_goes_again_only_after_its_answer() {
    for lost in [false, true] {
        let mut pair = Pair::connecting(early(), early(), &[20]);
        let mut first = true;
        pair.script(move |f| {
            let answer = f.from == SERVER && !lost;
            let syn = f.has(TcpFlags::SYN) && std::mem::take(&mut first) && lost;
            if syn || answer && f.sent < at(1500) { Edit::Lose } else { Edit::Pass }
        });
        pair.write(CLIENT, 3900);
        pair.run_until_received(SERVER, 3900);
        pair.run_until(at(10_000));
        let connected = pair.log.iter().position(|f| f.from == CLIENT && f.has(TcpFlags::ACK)).unwrap();
        let early = pair.log[..connected].iter().filter(|f| f.is_data_of(CLIENT)).count();
        assert_eq!(early, 4, "each segment once");
        assert_eq!((pair.received[SERVER], pair.states()), (3900, [State::Established; 2]));
    }
}

#[test]
fn a_fin_waits_for_the_handshake() {
    let mut pair = Pair::connecting(early(), early(), &[20]);
    pair.write(CLIENT, 700);
    pair.close(CLIENT);
    pair.run_until(at(20));
    pair.write(SERVER, 300);
    pair.close(SERVER);
    pair.run_until(at(5000));
    assert_eq!(pair.received, [300, 700]);
    assert!((0..2).all(|end| pair.has(end, Event::Finished)), "{:?}", pair.events);
    let fin = |f: &&crate::common::Flying| f.has(TcpFlags::FIN);
    assert!(pair.log.iter().filter(fin).all(|f| f.has(TcpFlags::ACK) && f.sent >= at(40)));
}

#[test]
fn an_abort_behind_early_data_is_believed() {
    let mut pair = Pair::connecting(early(), early(), &[20]);
    pair.write(CLIENT, 3000);
    pair.run_until(at(20));
    let now = pair.now;
    pair.end(SERVER).abort(now);
    pair.run_until(at(50));
    assert!(pair.lost(CLIENT).is_some(), "{:?}", pair.events);
}
