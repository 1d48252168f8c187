//! Two endpoints back to back: opening, joining of paths, closing, and what strangers get.

#![allow(clippy::unwrap_used)]

use polypath_endpoint::{EndpointConfig, Event, Input, ListenConfig, OpenError};
use polypath_transport::{
    CloseReason, Connection, ConnectionConfig, DropReason, Event as TcpEvent, PathConfig, Probes, Segment,
    State,
};
use polypath_wire::tcp::{TcpFlags, TcpHeader};
use polypath_wire::{Duration, PathId, Seq};

use crate::common::{CLIENT, PORT, Pair, SERVER, locators};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn a_connection_opens_carries_and_closes() {
    let mut pair = Pair::listening(false);
    let client = pair.connect(1);
    pair.run(secs(1));
    let server = pair.only(SERVER);
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Connected)));
    assert!(pair.has(SERVER, Event::Accepted { port: PORT }));

    pair.write(CLIENT, client, 1_000_000);
    pair.close(CLIENT, client);
    pair.run(secs(5));
    assert_eq!(pair.read(SERVER, server), 1_000_000);
    pair.close(SERVER, server);
    pair.run(secs(6));
    assert!(pair.has(SERVER, Event::Closed), "the last to close needs no TIME-WAIT");
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Finished)));
    assert_eq!(pair.endpoints[CLIENT].connection(client).unwrap().state(), State::TimeWait);
    pair.run(secs(70));
    assert!(pair.has(CLIENT, Event::Closed));

    for (side, handle) in [(CLIENT, client), (SERVER, server)] {
        pair.endpoints[side].release(handle);
        assert!(pair.endpoints[side].connection(handle).is_none());
        assert_eq!(pair.endpoints[side].poll_timeout(), None);
    }
}

#[test]
fn the_server_learns_paths_and_both_sides_use_them() {
    for sender in [CLIENT, SERVER] {
        let mut pair = Pair::listening(true);
        let client = pair.connect(3);
        pair.run(secs(1));
        let server = pair.only(SERVER);
        assert_eq!(pair.endpoints[SERVER].stats().paths_joined, 2);

        let handles = [client, server];
        pair.write(sender, handles[sender], 3_000_000);
        pair.run(secs(20));
        assert_eq!(pair.read(1 - sender, handles[1 - sender]), 3_000_000);
        for i in 0..3 {
            let connection = pair.endpoints[sender].connection(handles[sender]).unwrap();
            assert!(connection.path_stats(PathId(i)).bytes_delivered > 100_000, "side {sender}, path {i}");
        }
    }
}

#[test]
fn a_path_joins_only_where_the_listener_allows_it() {
    let mut pair = Pair::listening(false);
    pair.connect(2);
    pair.run(secs(1));
    assert_eq!(pair.endpoints[SERVER].stats().paths_joined, 0);
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Lost(CloseReason::Reset))));
}

#[test]
fn a_syn_that_tries_the_next_path_opens_one_connection() {
    // Only answers on the first path are lost: the server gets the SYN twice, over two paths.
    let mut pair = Pair::listening(true);
    pair.lose(|flying| flying.from == SERVER && flying.locators.remote.ip() == locators(0).local.ip());
    let client = pair.connect(2);
    pair.run(secs(10));
    let server = pair.only(SERVER);
    assert!(pair.has(SERVER, Event::Accepted { port: PORT }));
    pair.write(CLIENT, client, 100_000);
    pair.run(secs(30));
    assert_eq!(pair.read(SERVER, server), 100_000);
}

/// Nobody authenticates the peer: it would reset a connection whose data came before its SYN.
#[test]
fn no_data_is_early_without_an_association() {
    let mut pair = Pair::listening(false);
    let config = ConnectionConfig { early_data: true, ..Default::default() };
    let paths = [(locators(0), Default::default())];
    let mut syns = 0;
    pair.lose(move |flying| {
        let is_syn = flying.segment.header.flags.contains(TcpFlags::SYN);
        syns += u32::from(is_syn);
        is_syn && syns == 1
    });
    let client = pair.endpoints[CLIENT].connect(pair.now, config, PORT, &paths).unwrap();
    pair.write(CLIENT, client, 5000);
    pair.run(secs(5));
    let server = pair.only(SERVER);
    assert_eq!(pair.read(SERVER, server), 5000);
}

#[test]
fn a_path_added_later_is_used_and_a_removed_one_is_not() {
    let mut pair = Pair::listening(true);
    let client = pair.connect(1);
    pair.run(secs(1));
    let server = pair.only(SERVER);
    let now = pair.now;
    let added = pair.endpoints[CLIENT].add_path(now, client, locators(1), PathConfig::default()).unwrap();
    let again = pair.endpoints[CLIENT].add_path(now, client, locators(1), PathConfig::default());
    assert_eq!(again, Err(OpenError::InUse(locators(1))));
    pair.run(secs(2));
    let now = pair.now;
    pair.endpoints[CLIENT].remove_path(now, client, PathId::FIRST);
    pair.write(CLIENT, client, 100_000);
    pair.run(secs(3));
    assert_eq!(pair.read(SERVER, server), 100_000);
    let connection = pair.endpoints[CLIENT].connection(client).unwrap();
    assert_eq!(connection.path_stats(added).bytes_delivered, 100_000);
    assert_eq!(pair.endpoints[CLIENT].locators(client, PathId::FIRST), None);
}

/// The peer sends on a path until it hears that it is gone; nobody may take that for segments of no connection.
#[test]
fn late_segments_of_a_removed_path_reset_nothing() {
    for sender in [CLIENT, SERVER] {
        let mut pair = Pair::listening(true);
        let client = pair.connect(2);
        pair.run(secs(1));
        let handles = [client, pair.only(SERVER)];
        pair.write(sender, handles[sender], 20_000_000);
        pair.run(Duration::from_millis(1200));
        let (now, receiver) = (pair.now, 1 - sender);
        pair.endpoints[receiver].remove_path(now, handles[receiver], PathId(1));
        pair.run(secs(60));
        assert_eq!(pair.endpoints[receiver].stats().resets_sent, 0);
        assert_eq!(pair.read(receiver, handles[receiver]), 4 << 20, "the receive buffer");
        assert!(pair.endpoints.iter().all(|e| e.connections().all(|(_, c)| c.state() == State::Established)));
    }
}

/// Each time it is a new path: what counts is how many there are, not how many there were.
#[test]
fn a_link_that_flaps_keeps_getting_paths() {
    let mut pair = Pair::listening(true);
    let client = pair.connect(1);
    pair.run(secs(1));
    let server = pair.only(SERVER);
    for n in 2..200 {
        let now = pair.now;
        let added = pair.endpoints[CLIENT].add_path(now, client, locators(1), PathConfig::default());
        pair.write(CLIENT, client, 50_000);
        pair.run(secs(n));
        assert_eq!(pair.read(SERVER, server), 50_000);
        let path = added.expect("a link that came back has a path");
        let stats = pair.endpoints[CLIENT].connection(client).unwrap().path_stats(path);
        assert!(stats.bytes_delivered > 0, "{path:?} carries nothing");
        let now = pair.now;
        pair.endpoints[CLIENT].remove_path(now, client, path);
    }
}

#[test]
fn nobody_listening_means_refused() {
    let mut pair = Pair::new([EndpointConfig::default(), EndpointConfig::default()]);
    pair.connect(1);
    pair.run(secs(1));
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Lost(CloseReason::Refused))));
    assert!(pair.has(CLIENT, Event::Closed));
    let stats = pair.endpoints[SERVER].stats();
    assert_eq!((stats.resets_sent, stats.dropped(DropReason::NoConnection)), (1, 1));
}

#[test]
fn strangers_cannot_join_a_connection() {
    let mut pair = Pair::listening(true);
    let client = pair.connect(1);
    pair.run(secs(1));
    let ports = pair.endpoints[CLIENT].ports(client).unwrap();
    for (seq, flags) in [(0, TcpFlags::ACK), (0, TcpFlags::RST), (77, TcpFlags::ACK | TcpFlags::RST)] {
        let (src_port, dst_port) = (ports.local, ports.remote);
        let header =
            TcpHeader { src_port, dst_port, seq: Seq(seq), ack: Seq(0), flags, ..Default::default() };
        let input = Input::Segment {
            locators: locators(9).reversed(),
            segment: Segment { header, ..Default::default() },
        };
        let now = pair.now;
        pair.endpoints[SERVER].handle(now, input);
    }
    let sent = pair.sent.len();
    pair.run(secs(2));
    assert_eq!(pair.endpoints[SERVER].stats().paths_joined, 0);
    assert_eq!(pair.endpoints[SERVER].stats().dropped(DropReason::UnknownPath), 3);
    assert_eq!(pair.sent.len(), sent, "and they get no answer that would harm the peer");
}

#[test]
fn half_open_connections_are_limited() {
    let limits = EndpointConfig { max_half_open: 5, ..EndpointConfig::default() };
    let mut pair = Pair::new([EndpointConfig::default(), limits]);
    pair.endpoints[SERVER].listen(PORT, ListenConfig::default()).unwrap();
    pair.lose(|flying| flying.from == SERVER);
    for _ in 0..8 {
        pair.connect(1);
    }
    pair.run(Duration::from_millis(500));
    assert_eq!(pair.endpoints[SERVER].stats().accepted, 5);
    assert_eq!(pair.endpoints[SERVER].stats().refused, 3);

    // When they are given up, there is room again; the application never hears of them.
    pair.run(secs(2000));
    assert_eq!(pair.endpoints[SERVER].connections().count(), 0);
    assert!(pair.events[SERVER].is_empty());
}

#[test]
fn limits_on_opening_are_errors() {
    let limits = EndpointConfig { max_connections: 1, max_paths: 2, ..EndpointConfig::default() };
    let mut pair = Pair::new([limits, EndpointConfig::default()]);
    let endpoint = &mut pair.endpoints[CLIENT];
    let mut connect = |paths: u8| {
        let paths: Vec<_> = (0..paths).map(|i| (locators(i), PathConfig::default())).collect();
        endpoint.connect(pair.now, ConnectionConfig::default(), PORT, &paths)
    };
    assert_eq!(connect(0), Err(OpenError::NoPath));
    assert_eq!(connect(3), Err(OpenError::TooManyPaths { max: 2 }));
    assert!(connect(2).is_ok());
    assert_eq!(connect(1), Err(OpenError::TooManyConnections { max: 1 }));
    assert!(pair.endpoints[SERVER].listen(PORT, ListenConfig::default()).is_ok());
    assert_eq!(pair.endpoints[SERVER].listen(PORT, ListenConfig::default()), Err(OpenError::PortTaken(PORT)));
}

#[test]
fn a_released_connection_resets_when_data_comes() {
    let mut pair = Pair::listening(false);
    let client = pair.connect(1);
    pair.run(secs(1));
    let server = pair.only(SERVER);
    pair.close(SERVER, server);
    pair.endpoints[SERVER].release(server);
    pair.write(CLIENT, client, 5000);
    pair.run(secs(2));
    assert!(pair.has(CLIENT, Event::Connection(TcpEvent::Lost(CloseReason::Reset))));
    assert_eq!(pair.endpoints[SERVER].connections().count(), 0);
}

/// Keep-alives that an application answers are answered again by the connection once it does not hear of them any more.
#[test]
fn a_released_connection_answers_keep_alives_itself() {
    let mut pair = Pair::listening(false);
    let config = ConnectionConfig { keep_alive: secs(1), max_timeouts: 3, ..ConnectionConfig::default() };
    let path = (locators(0), PathConfig::default());
    let client = pair.endpoints[CLIENT].connect(pair.now, config, PORT, &[path]).unwrap();
    pair.run(Duration::from_millis(500));
    let (server, now) = (pair.only(SERVER), pair.now);
    pair.endpoints[SERVER].connection_mut(server).unwrap().relay(now, Some(Probes::KeepAlives));
    pair.run(secs(2));
    assert!(pair.has(SERVER, Event::Connection(TcpEvent::Probed)));
    pair.close(SERVER, server);
    pair.endpoints[SERVER].release(server);
    pair.run(secs(30));
    assert_eq!(pair.endpoints[CLIENT].connection(client).map(Connection::state), Some(State::CloseWait));
}

#[test]
fn a_thousand_connections_each_get_their_bytes() {
    let mut pair = Pair::listening(true);
    let clients: Vec<_> = (0..1000).map(|_| pair.connect(2)).collect();
    pair.run(secs(1));
    for (i, client) in clients.iter().enumerate() {
        pair.write(CLIENT, *client, 1000 + i as u64);
    }
    pair.run(secs(10));
    let servers: Vec<_> = pair.endpoints[SERVER].connections().map(|(handle, _)| handle).collect();
    let mut sizes: Vec<_> = servers.into_iter().map(|server| pair.read(SERVER, server)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, (1000..2000).collect::<Vec<_>>());
}

/// RFC 9293 would wait in FIN-WAIT-2 for ever, and so does an application that holds on to its connection.
#[test]
fn a_peer_that_does_not_finish_is_waited_for_while_anybody_cares() {
    for released in [None, Some(1), Some(10)] {
        let mut pair = Pair::listening(false);
        let client = pair.connect(1);
        pair.run(secs(1));
        pair.write(CLIENT, client, 5000);
        pair.close(CLIENT, client);
        for at in [1, 10] {
            pair.run(secs(at));
            if released == Some(at) {
                pair.endpoints[CLIENT].release(client);
            }
        }
        pair.run(secs(60));
        let state = |pair: &Pair| pair.endpoints[CLIENT].connection(client).map(Connection::state);
        assert_eq!(state(&pair), Some(State::FinWait2), "released at {released:?}");
        pair.run(secs(71));
        assert_eq!(state(&pair).is_none(), released.is_some(), "released at {released:?}");
    }
}

/// Bytes that connections of the server hold, read by nobody.
fn held(pair: &Pair) -> u64 {
    let all = pair.endpoints[SERVER].connections();
    all.map(|(_, c)| c.stats().bytes_received + c.stats().bytes_early).sum()
}

#[test]
fn a_peer_that_writes_without_end_to_a_host_that_serves_nobody_fills_little_of_its_memory() {
    const WINDOW: u64 = 100_000;
    let limits = EndpointConfig { max_unserved_of_peer: 4, ..EndpointConfig::default() };
    let mut pair = Pair::new([EndpointConfig::default(), limits]);
    let connection = ConnectionConfig { unread_window: Some(WINDOW), ..ConnectionConfig::default() };
    pair.endpoints[SERVER].listen(PORT, ListenConfig { connection, ..Default::default() }).unwrap();
    let clients: Vec<_> = (0..6).map(|_| pair.connect(1)).collect();
    clients.iter().for_each(|client| pair.write(CLIENT, *client, 10_000_000));
    pair.run(Duration::from_millis(900));
    assert_eq!((pair.endpoints[SERVER].stats().accepted, pair.endpoints[SERVER].stats().refused), (4, 2));
    assert!((3 * WINDOW..=4 * WINDOW).contains(&held(&pair)), "{}", held(&pair));

    // One that is taken up makes room for another; its first read opens the window.
    let first = pair.events[SERVER].iter().find(|(_, event)| *event == Event::Accepted { port: PORT });
    let first = first.unwrap().0;
    pair.read(SERVER, first);
    pair.run(secs(10));
    assert_eq!(pair.endpoints[SERVER].stats().accepted, 5);
    let received = |handle| pair.endpoints[SERVER].connection(handle).unwrap().stats().bytes_received;
    assert!(received(first) > 4_000_000, "{}", received(first));
    assert!(held(&pair) - received(first) <= 4 * WINDOW);
}
