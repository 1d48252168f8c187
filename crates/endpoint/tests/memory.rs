//! The memory that all connections of an endpoint share ([`EndpointConfig::memory`]).

#![allow(clippy::unwrap_used)]

mod common;

use bytes::Bytes;
use common::{CLIENT, PORT, Pair, SERVER};
use polypath_endpoint::{ConnectionHandle, EndpointConfig, ListenConfig};
use polypath_transport::{Pattern, Payload, State};
use polypath_wire::{Duration, Instant};

const CONNECTIONS: u64 = 40;
const EACH: u64 = 1 << 20;
const MEMORY: u64 = 2 << 20;
/// What a connection may always hold in each direction.
const LEAST: u64 = 16 << 10;

/// A side that may hold [`MEMORY`] and one that may hold anything, with [`CONNECTIONS`] between them.
fn limited(side: usize) -> (Pair, Vec<ConnectionHandle>) {
    let mut limits = [EndpointConfig::default(), EndpointConfig::default()];
    limits[side].memory = Some(MEMORY);
    let mut pair = Pair::new(limits);
    pair.endpoints[SERVER].listen(PORT, ListenConfig::default()).unwrap();
    let handles = (0..CONNECTIONS).map(|_| pair.connect(1)).collect();
    pair.run(Duration::from_secs(1));
    (pair, handles)
}

fn held(pair: &Pair, side: usize) -> u64 {
    pair.endpoints[side].connections().map(|(_, connection)| connection.held()).sum()
}

#[test]
fn connections_that_nobody_reads_hold_the_memory_that_there_is_and_lose_nothing() {
    let (mut pair, clients) = limited(SERVER);
    clients.iter().for_each(|handle| pair.write(CLIENT, *handle, EACH));
    pair.run(Duration::from_secs(600));
    let most = held(&pair, SERVER);
    assert!((MEMORY / 2..=MEMORY + CONNECTIONS * LEAST).contains(&most), "{most} bytes held");
    assert_eq!(pair.endpoints[SERVER].memory(), most);

    let servers: Vec<_> = pair.endpoints[SERVER].connections().map(|(handle, _)| handle).collect();
    let mut read = vec![0; servers.len()];
    for second in 601..630 {
        for (read, handle) in read.iter_mut().zip(&servers) {
            let connection = pair.endpoints[SERVER].connection_mut(*handle).unwrap();
            while let Some(data) = connection.read(u64::MAX) {
                assert!(data.same_bytes(&Pattern { key: 7, offset: *read, len: data.len() }.into()));
                *read += data.len();
            }
        }
        pair.run(Duration::from_secs(second));
    }
    assert_eq!(read, [EACH; CONNECTIONS as usize]);
    assert_eq!(held(&pair, SERVER), 0);
}

#[test]
fn what_waits_for_acknowledgments_is_limited_too() {
    let (mut pair, handles) = limited(CLIENT);
    pair.lose(|flying| flying.from == SERVER);
    let data = Payload::from(Bytes::from(vec![0; EACH as usize]));
    let write = |pair: &mut Pair, taken: &mut [u64]| {
        for (taken, handle) in taken.iter_mut().zip(&handles) {
            let connection = pair.endpoints[CLIENT].connection_mut(*handle).unwrap();
            *taken += connection.write(data.slice(*taken, EACH));
            pair.run(pair.now.since(Instant::ZERO));
        }
    };
    let mut taken = [0; CONNECTIONS as usize];
    for n in 1..20 {
        write(&mut pair, &mut taken);
        pair.run(Duration::from_secs(1) + Duration::from_millis(n));
    }
    let all: u64 = taken.iter().sum();
    assert!((MEMORY / 2..=MEMORY + CONNECTIONS * LEAST).contains(&all), "{all} bytes written");

    pair.lose(|_| false);
    let end = Instant::ZERO + Duration::from_secs(60);
    while taken != [EACH; CONNECTIONS as usize] && pair.now < end {
        let soon = pair.now + Duration::from_millis(100);
        pair.run(soon.since(Instant::ZERO));
        write(&mut pair, &mut taken);
    }
    assert_eq!(taken, [EACH; CONNECTIONS as usize]);
    assert!(pair.endpoints[CLIENT].connections().all(|(_, c)| c.state() == State::Established));
}

#[test]
fn a_connection_alone_has_its_whole_buffer() {
    let mut limits = [EndpointConfig::default(), EndpointConfig::default()];
    limits[SERVER].memory = Some(16 << 20);
    let mut pair = Pair::new(limits);
    pair.endpoints[SERVER].listen(PORT, ListenConfig::default()).unwrap();
    let client = pair.connect(1);
    pair.write(CLIENT, client, 8 << 20);
    pair.run(Duration::from_secs(20));
    assert_eq!(held(&pair, SERVER), 4 << 20, "the receive buffer");
}
