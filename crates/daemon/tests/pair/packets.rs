//! What is not TCP between two kernels, two daemons and two emulated links between them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::common::{Host, INNER, Pair, ip, link, on, ready, with_ipv6};
use polypath_hop::HopConfig;
use polypath_testing::{installed, skip};

/// A test fails after this long without an answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn pair() -> Option<Pair> {
    ready().then(|| Pair::start(&[link(80, 5), link(40, 10)], |_, text| text))
}

/// A socket of the host. What another test starts holds a closed one until it is executed: so long it is waited for.
fn bind(host: &Host, at: SocketAddr) -> UdpSocket {
    let until = Instant::now() + PATIENCE;
    let socket = loop {
        match host.ns.run(|| UdpSocket::bind(at)).unwrap() {
            Err(e) if e.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(Duration::from_millis(10));
            }
            bound => break bound.unwrap(),
        }
    };
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends `len` bytes from the first host's port 5000 to the second's 7 and has them come back.
pub fn echo(pair: &Pair, len: usize) {
    let [client, server] =
        [(0, 5000), (1, 7)].map(|(side, port)| bind(&pair.hosts[side], Pair::at(side, port)));
    let sent: Vec<u8> = (0..len).map(|n| (n ^ n >> 8) as u8).collect();
    let mut got = vec![0; len + 1];
    client.send_to(&sent, Pair::at(1, 7)).unwrap();
    let (n, from) = server.recv_from(&mut got).unwrap();
    assert_eq!((n, from), (len, Pair::at(0, 5000)), "the addresses stay");
    server.send_to(&got[..n], from).unwrap();
    let (n, from) = client.recv_from(&mut got).unwrap();
    assert_eq!((n, from), (len, Pair::at(1, 7)));
    assert!(got[..n] == sent, "other bytes");
}

/// What `ping` prints that `host` runs.
fn ping(host: &Host, words: &[&str]) -> Option<String> {
    if !installed(&["ping"]) {
        skip("ping is not installed: tools/deps bench");
        return None;
    }
    let output = host.ns.run(|| Command::new("ping").args(words).output().unwrap()).unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn ping_answers_both_ways() {
    let Some(pair) = pair() else { return };
    for side in [0, 1] {
        let words = ["-c", "5", "-i", "0.2", "-W", "5", INNER[1 - side]];
        let Some(said) = ping(&pair.hosts[side], &words) else { return };
        assert!(said.contains(" 0% packet loss"), "{said}");
    }
    let packets = &pair.hosts[0].status().peers[0].packets;
    assert_eq!((packets.sent, packets.received, packets.lost), (10, 10, 0), "{packets:?}");
}

#[test]
fn what_is_duplicated_is_sent_twice_and_handed_on_once() {
    if !ready() {
        return;
    }
    let change = on(0, |text| text + "[lane]\nduplicate = [{ protocol = \"icmp\" }]\n");
    let mut pair = Pair::start(&[link(80, 5), link(40, 10)], change);
    let words = ["-c", "5", "-i", "0.2", "-W", "5", INNER[1]];
    let Some(said) = ping(&pair.hosts[0], &words) else { return };
    assert!(said.contains(" 0% packet loss") && !said.contains("DUP"), "{said}");
    let packets = |pair: &Pair, side: usize| pair.hosts[side].status().peers[0].packets.clone();
    pair.wait(|pair| packets(pair, 1).duplicates == 5);
    assert_eq!((packets(&pair, 0).copies, packets(&pair, 1).copies), (5, 0));
    pair.hosts[0].reload(|text| text.replace("duplicate = [", "duplicate = [] # "));
    let Some(said) = ping(&pair.hosts[0], &words) else { return };
    assert!(said.contains(" 0% packet loss"), "{said}");
    assert_eq!(packets(&pair, 0).copies, 5);
}

#[test]
fn datagrams_come_back_even_in_fragments() {
    let Some(pair) = pair() else { return };
    for len in [0, 1, 1200, 1372, 1373, 8000, 60_000] {
        echo(&pair, len);
    }
}

#[test]
fn what_a_path_is_said_to_carry_passes_and_no_byte_more() {
    if !ready() {
        return;
    }
    let narrow = link(80, 5).map(|hop| HopConfig { mtu: Some(1390), ..hop });
    let pair = Pair::start(&[narrow], |_, text| text);
    let path = |pair: &Pair| pair.hosts[0].status().peers[0].paths[0].clone();
    pair.wait(|pair| (1370..=1390).contains(&path(pair).mtu));
    let carries = path(&pair).carries;
    assert!(carries < path(&pair).mtu);
    let passes = |size: u32| {
        let (size, to) = ((size - 28).to_string(), INNER[1]); // IPv4 and ICMP have 28
        ping(&pair.hosts[0], &["-c", "1", "-W", "5", "-M", "do", "-s", &size, to])
    };
    let Some(said) = passes(carries) else { return };
    assert!(said.contains(" 0% packet loss"), "{carries}: {said}");
    assert!(passes(carries + 1).is_some_and(|said| said.contains(" 100% packet loss")), "{carries}");
}

#[test]
fn large_sends_that_the_kernel_leaves_to_be_cut_arrive_as_datagrams() {
    use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
    let Some(pair) = pair() else { return };
    let [client, server] =
        [(0, 5000), (1, 7)].map(|(side, port)| bind(&pair.hosts[side], Pair::at(side, port)));
    setsockopt(&client, UdpGsoSegment, &1000).unwrap();
    client.send_to(&[7; 9500], Pair::at(1, 7)).unwrap();
    let mut got = [0; 2000];
    let sizes: Vec<usize> = (0..10).map(|_| server.recv(&mut got).unwrap()).collect();
    assert_eq!((sizes[..9].to_vec(), sizes[9]), (vec![1000; 9], 500));
}

#[test]
fn ipv6_is_carried_too() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5)], with_ipv6);
    let Some(said) =
        ping(&pair.hosts[0], &["-6", "-c", "3", "-i", "0.2", "-s", "3000", "-W", "5", "fd99::2"])
    else {
        return;
    };
    assert!(said.contains(" 0% packet loss"), "{said}");
}

#[test]
fn a_port_where_nobody_listens_and_an_address_without_a_peer_are_told() {
    let Some(pair) = pair() else { return };
    let client = bind(&pair.hosts[0], Pair::at(0, 5000));
    client.connect(Pair::at(1, 9)).unwrap();
    client.send(b"anybody?").unwrap();
    assert_eq!(client.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let Some(said) = ping(&pair.hosts[0], &["-c", "1", "-W", "5", "10.99.0.77"]) else { return };
    assert!(said.contains("Unreachable"), "{said}");
    assert_eq!(pair.hosts[0].status().packets.no_peer, 1);
}

#[test]
fn a_packet_whose_source_is_not_its_peers_is_dropped_and_counted() {
    if !ready() {
        return;
    }
    // The second host believes that another address is behind the first.
    let change = on(1, |text| text.replace("prefixes = [\"10.99.0.1/32\"]", "prefixes = [\"10.99.0.9/32\"]"));
    let pair = Pair::start(&[link(80, 5)], change);
    let client = bind(&pair.hosts[0], Pair::at(0, 5000));
    client.send_to(b"let me in", Pair::at(1, 7)).unwrap();
    pair.wait(|pair| pair.hosts[1].status().packets.forbidden == 1);
    assert_eq!(pair.hosts[1].status().peers[0].packets.received, 1);
}

#[test]
fn a_packet_that_no_path_carries_is_answered_with_the_size_that_is_carried() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5)], |_, text| text.replace("[tunnel]", "[tunnel]\nmtu = 2000"));
    // The size of the path is known when a packet of 1400 bytes arrives.
    let words = |size| ["-M", "do", "-c", "1", "-W", "1", "-s", size, INNER[1]];
    let carried =
        |pair: &Pair| ping(&pair.hosts[0], &words("1372")).is_none_or(|said| said.contains(" 0% packet"));
    pair.wait(carried);
    let Some(said) = ping(&pair.hosts[0], &words("1900")) else { return };
    assert!(said.contains("mtu = 1430") || said.contains("mtu=1430"), "{said}");
    assert!(pair.hosts[0].status().packets.too_big > 0);
}

/// A connection on which `len` bytes go to the server and come back.
fn connection(pair: &Pair, port: u16, len: usize) {
    let at = Pair::at(1, port);
    let listener = pair.hosts[1].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let mut client = pair.hosts[0].ns.run(|| TcpStream::connect(at).unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let back = thread::spawn(move || std::io::copy(&mut server.try_clone().unwrap(), &mut server).unwrap());
    let mut sender = client.try_clone().unwrap();
    let all: Vec<u8> = (0..len).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
    let sent = all.clone();
    let sending = thread::spawn(move || {
        sender.write_all(&sent).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = vec![0; len];
    client.read_exact(&mut got).unwrap();
    assert!(got == all, "other bytes");
    sending.join().unwrap();
    drop(client);
    assert_eq!(back.join().unwrap(), len as u64);
}

#[test]
fn excluded_connections_travel_as_packets_and_no_exclusion_at_the_far_end_breaks_others() {
    if !ready() {
        return;
    }
    for configured in [0, 1] {
        let change = |side: usize, text: String| match side == configured {
            true => text + "[lane]\nexclude_ports = [80]\n",
            false => text,
        };
        let pair = Pair::start(&[link(80, 5), link(40, 10)], change);
        let carried = |pair: &Pair| pair.hosts[0].status().lane.outgoing;
        connection(&pair, 81, 1 << 20);
        assert_eq!(carried(&pair), 1);
        connection(&pair, 80, 4 << 20);
        // Where the connection enters it is decided how it travels.
        let packets = pair.hosts[0].status().peers[0].packets.sent;
        assert_eq!((carried(&pair), packets > 3000), if configured == 0 { (1, true) } else { (2, false) });
    }
}

#[test]
fn a_connection_as_packets_hears_that_the_far_hosts_routes_do_not_reach_its_server() {
    if !ready() {
        return;
    }
    let change = on(0, |text| {
        text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", ")
            + "[lane]\nexclude = [\"10.98.0.0/24\"]\n"
    });
    let pair = Pair::start(&[link(80, 5)], change);
    pair.hosts[1].ns.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap()).unwrap();
    let nowhere = pair.hosts[0].ns.run(|| TcpStream::connect("10.98.0.5:80")).unwrap().unwrap_err();
    assert!(
        matches!(nowhere.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable),
        "{nowhere}"
    );
}

#[test]
fn a_link_local_source_is_dropped_and_counted_though_it_is_behind_the_peer() {
    if !ready() {
        return;
    }
    let change = on(1, |text| text.replace("[\"10.99.0.1/32\"]", "[\"10.99.0.1/32\", \"169.254.0.0/16\"]"));
    let pair = Pair::start(&[link(80, 5)], change);
    ip(&pair.hosts[0], &["address", "add", "169.254.1.1/32", "dev", "lo"]);
    let client = bind(&pair.hosts[0], "169.254.1.1:5000".parse().unwrap());
    client.send_to(b"let me in", Pair::at(1, 7)).unwrap();
    pair.wait(|pair| pair.hosts[1].status().packets.forbidden == 1);
}

#[test]
fn a_source_that_is_the_far_hosts_own_is_refused_though_it_is_behind_the_peer() {
    if !ready() {
        return;
    }
    let change = on(1, |text| text.replace("[\"10.99.0.1/32\"]", "[\"10.99.0.1/32\", \"10.0.0.0/8\"]"));
    let pair = Pair::start(&[link(80, 5)], change);
    pair.hosts.iter().for_each(|host| ip(host, &["address", "add", "10.98.0.1/32", "dev", "lo"]));
    let device = pair.hosts[0].status().device;
    ip(&pair.hosts[0], &["route", "add", "10.99.0.2/32", "dev", &device, "src", "10.98.0.1"]);
    thread::sleep(Duration::from_millis(1100)); // what is ours is looked at once a second
    let client = bind(&pair.hosts[0], "10.98.0.1:5000".parse().unwrap());
    client.send_to(b"it is me", Pair::at(1, 7)).unwrap();
    pair.wait(|pair| pair.hosts[1].status().packets.forbidden == 1);
    let listener = pair.hosts[1].ns.run(|| TcpListener::bind(Pair::at(1, 80)).unwrap()).unwrap();
    let refused = pair.hosts[0].ns.run(|| TcpStream::connect(Pair::at(1, 80))).unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::HostUnreachable);
    assert_eq!(pair.hosts[1].status().lane.forbidden, 1);
    drop(listener);
}

#[test]
fn a_strangers_datagrams_are_counted_and_not_answered() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5)], |_, text| text);
    let stranger = bind(&pair.hosts[0], "10.77.0.1:5000".parse().unwrap());
    stranger.connect("10.77.0.2:10501").unwrap();
    stranger.send(b"hi").unwrap();
    stranger.send(&[7; 60]).unwrap(); // to them ESP with an SPI that nobody gave
    stranger.send(&[0; 60]).unwrap(); // HIP, as the marker of RFC 5770 says, but no packet of it
    pair.wait(|pair| {
        let outside = pair.hosts[1].status().outside;
        (outside.unknown, outside.malformed, outside.unknown_spi) == (1, 1, 1)
    });
    stranger.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    assert!(stranger.recv(&mut [0; 99]).is_err());
}

#[test]
fn the_answers_of_a_peer_over_several_links_are_no_strangers() {
    let pair = ready().then(|| Pair::start(&[link(80, 5), link(40, 200)], |_, text| text));
    let Some(pair) = pair else { return };
    pair.wait(|pair| pair.hosts[0].status().peers[0].paths.iter().filter(|path| path.up).count() == 2);
    thread::sleep(Duration::from_secs(1)); // the slower answers come when the quicker link has carried the exchange
    let outside = |side: usize| pair.hosts[side].status().outside;
    assert!((0..2).all(|side| outside(side).uninvited == 0), "{:?}", [0, 1].map(outside));
    assert!((0..2).any(|side| outside(side).late > 0), "{:?}", [0, 1].map(outside));
}
