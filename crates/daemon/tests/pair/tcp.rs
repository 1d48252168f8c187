//! The kernel's TCP at both ends, two daemons and two emulated links between them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use super::common::{Pair, ip, link, on, ready, sh, with_ipv6};
use bytes::Bytes;
use polypath_hop::{Change, Step};
use polypath_testing::installed;
use polypath_transport::{Pattern, Payload};
use socket2::{Domain, Socket, Type};

const MB: usize = 1 << 20;
/// A test fails after this long without a byte.
const STALLED: Duration = Duration::from_secs(20);

fn pair() -> Option<Pair> {
    ready().then(|| Pair::start(&[link(80, 5), link(40, 10)], |_, text| text))
}

/// A client on host `from` and the connection that its server on the other host accepted.
pub fn connected(pair: &Pair, from: usize, port: u16) -> (TcpStream, TcpStream) {
    let at = Pair::at(1 - from, port);
    let listener = pair.hosts[1 - from].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let client = pair.hosts[from].ns.run(|| TcpStream::connect(at).unwrap()).unwrap();
    let (server, peer) = listener.accept().unwrap();
    assert_eq!(
        (peer, server.local_addr().unwrap()),
        (client.local_addr().unwrap(), at),
        "the addresses stay"
    );
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(STALLED)).unwrap();
        stream.set_write_timeout(Some(STALLED)).unwrap();
    }
    (client, server)
}

/// The first `len` bytes of what is sent.
pub fn pattern(len: usize) -> Bytes {
    Payload::Pattern(Pattern { key: 1, offset: 0, len: len as u64 }).to_bytes()
}

/// Sends `len` bytes and the end; what came at the other end is what was sent.
pub fn transfer(mut from: TcpStream, mut to: TcpStream, len: usize) {
    let sender = thread::spawn(move || {
        from.write_all(&pattern(len)).unwrap();
        from.shutdown(Shutdown::Write).unwrap();
        from
    });
    let mut all = Vec::new();
    to.read_to_end(&mut all).unwrap();
    assert!(all == pattern(len), "{} bytes, or others", all.len());
    drop(sender.join().unwrap());
}

#[test]
fn a_transfer_arrives_whole_over_both_links_whoever_opened_the_connection() {
    let Some(pair) = pair() else { return };
    for from in [0, 1] {
        let (client, server) = connected(&pair, from, 80);
        let both = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let there = thread::spawn(move || transfer(client, server, 20 * MB));
        transfer(both.1, both.0, 20 * MB);
        there.join().unwrap();
    }
    for (path, emulated) in pair.bed.paths.iter().enumerate() {
        for hop in emulated.link.stats().hops {
            assert!(hop.bytes_left > 8 * MB as u64, "path {path} carried only {}", hop.bytes_left);
        }
    }
    let status = pair.hosts[0].status();
    assert_eq!((status.lane.outgoing, status.lane.incoming), (1, 1));
    assert_eq!((status.peers[0].sent, status.peers[0].received), (40 * MB as u64, 40 * MB as u64));
}

#[test]
fn a_port_without_a_listener_refuses_and_an_address_without_a_host_is_unreachable() {
    let Some(pair) = pair() else { return };
    let connect = |side: usize, port| pair.hosts[0].ns.run(move || TcpStream::connect(Pair::at(side, port)));
    let refused = connect(1, 81).unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let nobody = pair.hosts[0].ns.run(|| TcpStream::connect("10.99.0.77:80")).unwrap().unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::HostUnreachable);
    assert_eq!(pair.hosts[0].status().lane.no_peer, 1);
}

#[test]
fn what_a_host_or_a_router_beyond_the_far_daemon_says_arrives_as_it_is() {
    if !ready() || !installed(&["nft"]) {
        return;
    }
    // The first host believes that a network is behind the second, which forwards but has only unreachable routes there.
    let change = on(0, |text| text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", "));
    let pair = Pair::start(&[link(80, 5)], change);
    pair.hosts[1].ns.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).unwrap();
    ip(&pair.hosts[1], &["route", "add", "unreachable", "10.98.0.6"]);
    for line in [
        "nft add table inet filter",
        "nft add chain inet filter input { type filter hook input priority filter; }",
        "nft add rule inet filter input tcp dport 85 reject with icmpx type port-unreachable",
    ] {
        sh(&pair.hosts[1].ns, line);
    }
    for (at, kind) in [
        ("10.98.0.5:80", ErrorKind::NetworkUnreachable),
        ("10.98.0.6:80", ErrorKind::HostUnreachable),
        ("10.99.0.2:85", ErrorKind::ConnectionRefused),
    ] {
        let failed = pair.hosts[0].ns.run(|| TcpStream::connect(at)).unwrap().unwrap_err();
        assert_eq!(failed.kind(), kind, "{at}");
    }
}

/// Its kernel asks twice, and gives up after two or three seconds.
#[test]
fn a_server_that_is_silent_is_silent_to_its_client() {
    let Some(pair) = pair() else { return };
    if !installed(&["nft"]) {
        return;
    }
    for line in [
        "nft add table inet filter",
        "nft add chain inet filter input { type filter hook input priority filter; }",
        "nft add rule inet filter input tcp dport 86 drop",
    ] {
        sh(&pair.hosts[1].ns, line);
    }
    let connect = || {
        std::fs::write("/proc/sys/net/ipv4/tcp_syn_retries", "1").unwrap();
        let began = Instant::now();
        (TcpStream::connect(Pair::at(1, 86)).unwrap_err().kind(), began.elapsed())
    };
    let (kind, after) = pair.hosts[0].ns.run(connect).unwrap();
    assert_eq!(kind, ErrorKind::TimedOut, "after {after:?}");
    assert!(after >= Duration::from_secs(1) && after < STALLED, "{after:?}");
}

#[test]
fn a_transfer_arrives_whole_though_a_link_dies_under_it() {
    if !ready() {
        return;
    }
    let mut dying = link(80, 5);
    for hop in &mut dying {
        let at = polypath_wire::Instant(3_000_000_000);
        hop.schedule = vec![Step { at, change: Change::Down }];
    }
    let pair = Pair::start(&[dying, link(40, 10)], |_, text| text);
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, 40 * MB);
}

#[test]
fn connections_of_ipv6_are_carried_too() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5)], with_ipv6);
    let at = "[fd99::2]:80";
    let listener = pair.hosts[1].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let client = pair.hosts[0].ns.run(|| TcpStream::connect(at).unwrap()).unwrap();
    let (server, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), "fd99::1");
    transfer(client, server, MB);
}

#[test]
fn the_end_of_one_direction_leaves_the_other_open() {
    let Some(pair) = pair() else { return };
    let (mut client, mut server) = connected(&pair, 0, 80);
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    server.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"question");
    server.write_all(b"answer").unwrap();
    drop(server);
    all.clear();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"answer");
}

#[test]
fn a_reset_of_either_end_resets_the_other() {
    let Some(pair) = pair() else { return };
    for ends in [0, 1] {
        let (client, server) = connected(&pair, 0, 80);
        let (resetting, mut other) = if ends == 0 { (client, server) } else { (server, client) };
        // Closed with bytes that nobody read, it resets (RFC 1122 §4.2.2.13).
        other.write_all(b"unread").unwrap();
        let mut one = [0];
        resetting.peek(&mut one).unwrap();
        drop(resetting);
        assert_eq!(other.read(&mut one).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().lane.open == 0));
}

#[test]
fn an_answer_right_before_a_reset_arrives_whole() {
    let Some(pair) = pair() else { return };
    // No more than leaves before the reset, which takes what has not left.
    for len in [500, 5000, 500, 5000] {
        let (mut client, mut server) = connected(&pair, 0, 80);
        client.write_all(b"request").unwrap();
        server.peek(&mut [0]).unwrap();
        server.write_all(&pattern(len)).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        drop(server); // without having read the request: it resets
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        assert!(all == pattern(len), "{} bytes of {len}", all.len());
    }
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().lane.open == 0));
}

#[test]
fn what_a_lost_connection_sent_does_not_wait_for_ever_for_a_reader() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text + "[lane]\nkeep_alive = 1\n");
    let (mut client, mut server) = connected(&pair, 0, 80);
    client.write_all(&pattern(8 * MB)).unwrap();
    drop(client);
    pair.wait(|pair| pair.hosts[0].status().peers[0].sent == 8 * MB as u64);
    server.write_all(b"late").unwrap();
    // Given up after 12 s without a byte.
    thread::sleep(Duration::from_secs(6));
    assert!(pair.hosts.iter().any(|host| host.status().lane.open == 1), "it is given up at once");
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().lane.open == 0));
}

/// A host that closed resets what still comes. Its answer is on the way through the daemons then.
#[test]
fn a_reset_after_the_end_takes_nothing_of_what_came_before_it() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(8, 5)], |_, text| text);
    let (mut client, mut server) = connected(&pair, 0, 80);
    server.write_all(&pattern(4 * MB)).unwrap();
    drop(server);
    pair.wait(|pair| pair.hosts[1].status().peers[0].sent == 4 * MB as u64);
    assert!(pair.hosts[0].status().peers[0].received < 4 * MB as u64, "nothing is on the way");
    client.write_all(b"late").unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert!(all == pattern(4 * MB), "{} bytes, or others", all.len());
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().lane.open == 0));
}

/// A socket of `side` that waits to be connected.
fn bound(pair: &Pair, side: usize, at: SocketAddr) -> Socket {
    let socket = pair.hosts[side].ns.run(|| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()).unwrap();
    socket.bind(&at.into()).unwrap();
    socket
}

#[test]
fn two_ends_that_open_a_connection_at_the_same_time_have_one() {
    let Some(pair) = pair() else { return };
    for port in 5000..5010 {
        let ends = [0, 1].map(|side| Pair::at(side, port));
        let sockets = [0, 1].map(|side| bound(&pair, side, ends[side]));
        let start = Barrier::new(2);
        thread::scope(|scope| {
            let connected = [0, 1].map(|side| {
                let (socket, at, start) = (&sockets[side], ends[1 - side].into(), &start);
                scope.spawn(move || {
                    start.wait();
                    socket.connect_timeout(&at, STALLED).unwrap();
                })
            });
            connected.into_iter().for_each(|end| end.join().unwrap());
        });
        let [first, second] = sockets.map(TcpStream::from);
        for stream in [&first, &second] {
            stream.set_read_timeout(Some(STALLED)).unwrap();
        }
        let answers = (first.try_clone().unwrap(), second.try_clone().unwrap());
        transfer(first, second, 10_000);
        transfer(answers.1, answers.0, 10_000);
    }
}

#[test]
fn a_client_whose_address_is_not_its_peers_is_not_let_through() {
    if !ready() {
        return;
    }
    // The second host believes that another address is behind the first.
    let change = on(1, |text| text.replace("prefixes = [\"10.99.0.1/32\"]", "prefixes = [\"10.99.0.9/32\"]"));
    let pair = Pair::start(&[link(80, 5)], change);
    let at = Pair::at(1, 80);
    let _listener = pair.hosts[1].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let refused = pair.hosts[0].ns.run(|| TcpStream::connect(at)).unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::HostUnreachable);
    assert_eq!(pair.hosts[1].status().lane.forbidden, 1);
}

#[test]
fn connections_are_reset_and_not_stuck_when_the_other_daemon_ends() {
    let Some(mut pair) = pair() else { return };
    let (mut client, _server) = connected(&pair, 0, 80);
    let began = Instant::now();
    pair.hosts[1].stop();
    assert_eq!(
        client.read(&mut [0]).unwrap_err().kind(),
        ErrorKind::ConnectionReset,
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn clients_that_give_up_during_the_handshake_take_no_place_and_leave_the_server_no_connection() {
    const MANY: u64 = 100;
    let Some(pair) = pair() else { return };
    let at = Pair::at(1, 80);
    let listener = pair.hosts[1].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let give_up = || {
        for _ in 0..MANY {
            TcpStream::connect_timeout(&at, Duration::from_micros(1)).unwrap_err();
            thread::sleep(Duration::from_millis(5));
        }
    };
    pair.hosts[0].ns.run(give_up).unwrap();
    pair.wait(|pair| pair.hosts[0].status().lane.outgoing == MANY);
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().lane.open == 0));
    for _ in 0..MANY {
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(STALLED)).unwrap();
        let read = server.read(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(read, Ok(0) | Err(ErrorKind::ConnectionReset)), "{read:?}");
    }
}

/// Both hosts, with a lane of one connection at host `full`.
fn narrow(full: usize) -> Pair {
    let change = |side: usize, text: String| match side == full {
        true => text + "[lane]\nconnections = 1\n",
        false => text,
    };
    Pair::start(&[link(80, 5), link(40, 10)], change)
}

#[test]
fn a_connection_that_finds_the_lane_full_travels_as_packets_to_its_end() {
    if !ready() {
        return;
    }
    for full in [0, 1] {
        let pair = narrow(full);
        let lane = |side: usize| pair.hosts[side].status().lane;
        let first = connected(&pair, 0, 80);
        let (client, server) = connected(&pair, 0, 81);
        let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
        assert_eq!((lane(0).outgoing, lane(0).by_packets), (1, 1), "{:?}", lane(0));
        assert_eq!((lane(1).incoming, lane(1).busy), (1, full as u64));
        transfer(first.0, first.1, MB);
        pair.wait(|pair| pair.hosts.iter().all(|host| host.status().lane.open == 0));
        // There is room in the lane again: the second one stays where it is, a third one gets it.
        transfer(client, server, 2 * MB);
        transfer(back.0, back.1, 2 * MB);
        let third = connected(&pair, 0, 82);
        transfer(third.0, third.1, MB);
        assert_eq!((lane(0).outgoing, lane(0).by_packets), (2, 1));
        assert!(pair.hosts[0].status().peers[0].packets.sent > 1400, "of 1348 bytes each");
    }
}
