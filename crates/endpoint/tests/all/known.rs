//! What connections measured starts those that come after them.

#![allow(clippy::unwrap_used)]

use polypath_endpoint::{ConnectionHandle, Input, PathName};
use polypath_transport::cc::{NewRenoConfig, SlowStart};
use polypath_transport::{CcConfig, ConnectionConfig, KnownPath, PathConfig};
use polypath_wire::{Duration, PathId, Rate};

use crate::common::{CLIENT, PORT, Pair, SERVER, locators};

const INITIAL: u64 = 10 * 1448;
const OFFERED: u64 = 65_535;

/// Opens a connection that paces, over one path, and lets it connect.
fn connect(pair: &mut Pair) -> ConnectionHandle {
    let cc = CcConfig::Newreno(NewRenoConfig { slow_start: SlowStart::Paced, ..Default::default() });
    let (now, paths) = (pair.now, [(locators(0), PathConfig::default())]);
    let config = ConnectionConfig { cc, ..Default::default() };
    let handle = pair.endpoints[CLIENT].connect(now, config, PORT, &paths).unwrap();
    run(pair, 21);
    handle
}

fn run(pair: &mut Pair, ms: u64) {
    let now = Duration(pair.now.0);
    pair.run(now + Duration::from_millis(ms));
}

fn window(pair: &Pair, handle: ConnectionHandle) -> u64 {
    pair.endpoints[CLIENT].connection(handle).unwrap().path_stats(PathId::FIRST).cwnd
}

/// The window with which the connection sends 100 kB. The peer lets it have `OFFERED` at first.
fn start(pair: &mut Pair, handle: ConnectionHandle) -> u64 {
    assert_eq!(window(pair, handle), INITIAL);
    pair.write(CLIENT, handle, 100_000);
    run(pair, 1);
    window(pair, handle)
}

fn known(mbps: u64, rtt_ms: u64, age_s: u64) -> Input {
    let (local, remote) = (locators(0).local.ip(), locators(0).remote.ip());
    let name = PathName { peer: remote, local, remote };
    let path = KnownPath { rate: Rate::from_mbps(mbps), rtt: Duration::from_millis(rtt_ms) };
    Input::Known { name, path, age: Duration::from_secs(age_s) }
}

#[test]
fn a_connection_begins_with_half_of_what_the_one_before_it_found() {
    let mut pair = Pair::listening(false);
    let first = connect(&mut pair);
    assert_eq!(window(&pair, first), INITIAL);
    pair.write(CLIENT, first, 3_000_000);
    pair.close(CLIENT, first);
    run(&mut pair, 2000);
    let server = pair.only(SERVER);
    assert_eq!(pair.read(SERVER, server), 3_000_000);
    pair.close(SERVER, server);
    run(&mut pair, 1000);

    let now = pair.now;
    let [(_, path, _)] = pair.endpoints[CLIENT].known_paths(now)[..] else { panic!("one path") };
    assert_eq!(path.rtt, Duration::from_millis(20));
    let second = connect(&mut pair);
    let began = start(&mut pair, second);
    assert_eq!(began, OFFERED.min(path.rate.bytes_in(path.rtt) / 2));
    assert!(began > 2 * INITIAL);
    run(&mut pair, 600_000);
    let third = connect(&mut pair);
    assert_eq!(start(&mut pair, third), INITIAL, "ten minutes later nobody knows");
}

#[test]
fn what_an_earlier_process_measured_counts_if_the_round_trip_is_as_it_was() {
    let half = 40_000_000 / 8 / 50 / 2; // of what 40 Mbit/s and 20 ms hold
    for (input, begins) in [
        (known(40, 20, 0), half),
        (known(40, 11, 0), half * 11 / 20),
        (known(40, 39, 599), half),
        (known(40, 9, 0), INITIAL),
        (known(40, 41, 0), INITIAL),
        (known(40, 20, 600), INITIAL),
    ] {
        let mut pair = Pair::listening(false);
        let (now, said) = (pair.now, format!("{input:?}"));
        pair.endpoints[CLIENT].handle(now, input);
        let handle = connect(&mut pair);
        assert_eq!(start(&mut pair, handle), begins, "{said}");
    }
}

#[test]
fn those_that_start_together_have_turns_and_what_comes_in_pieces_has_several() {
    let mut pair = Pair::listening(false);
    let now = pair.now;
    pair.endpoints[CLIENT].handle(now, known(40, 20, 0)); // 100,000 bytes in a round trip
    let handles: Vec<_> = (0..4).map(|_| connect(&mut pair)).collect();
    for _ in 0..2 {
        handles.iter().for_each(|handle| pair.write(CLIENT, *handle, 20_000));
        run(&mut pair, 1);
    }
    // Half of what the path holds goes to two of the four, and what is left is too little for a third.
    let windows: Vec<u64> = handles.iter().map(|handle| window(&pair, *handle)).collect();
    assert_eq!(windows, [20_000, 20_000, INITIAL, INITIAL]);
    run(&mut pair, 200);
    for handle in handles {
        let stats = pair.endpoints[CLIENT].connection(handle).unwrap().path_stats(PathId::FIRST);
        assert_eq!(stats.bytes_delivered, 40_000);
    }
}

#[test]
fn who_lost_something_has_no_turn() {
    let mut pair = Pair::listening(false);
    let now = pair.now;
    pair.endpoints[CLIENT].handle(now, known(40, 20, 0));
    let handle = connect(&mut pair);
    pair.lose(|flying| flying.from == CLIENT);
    pair.write(CLIENT, handle, 500);
    run(&mut pair, 300);
    pair.lose(|_| false);
    pair.write(CLIENT, handle, 100_000);
    run(&mut pair, 1);
    assert!(window(&pair, handle) <= INITIAL, "{}", window(&pair, handle));
}
