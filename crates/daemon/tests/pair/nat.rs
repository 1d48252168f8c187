//! A NAT on the only link of a host forgets its mappings and gives other ports, as when a router restarts; and it lets nobody in who
//! is at another address than before.

use std::fs;
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{recvmsg, send, socket};
use polypath_daemon::control::Answer;
use polypath_testing::{excuse, installed};

use super::common::{Pair, link, on, ready, sh};
use super::moved::{Ends, flow};
use super::tcp::connected;

/// A request to delete all of conntrack: nlmsghdr with `IPCTNL_MSG_CT_DELETE` of ctnetlink, acknowledged, and nfgenmsg.
const FORGET: [u8; 20] = [20, 0, 0, 0, 2, 1, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A server is found at its new address in less. A peer is silent after 4 s.
const FOUND: Duration = Duration::from_secs(10);

/// The NAT of this thread's namespace forgets all mappings. Returns whether the kernel can do that.
fn forget() -> bool {
    let kind = (AddressFamily::Netlink, SockType::Raw, SockFlag::empty(), SockProtocol::NetlinkNetFilter);
    let Ok(netlink) = socket(kind.0, kind.1, kind.2, kind.3) else { return false };
    send(netlink.as_raw_fd(), &FORGET, MsgFlags::empty()).unwrap();
    let mut answer = [0; 64];
    let mut room = [IoSliceMut::new(&mut answer)];
    recvmsg::<()>(netlink.as_raw_fd(), &mut room, None, MsgFlags::empty()).unwrap();
    answer[16..20] == [0; 4]
}

/// A client behind a NAT that can be made to forget, and a server.
fn behind_a_nat() -> Option<Pair> {
    if !ready() || !installed(&["nft", "sysctl"]) {
        return None;
    }
    let pair = Pair::start_behind_a_nat(link(80, 5), |_, text| text, None);
    if !pair.bed.hosts[0].run(forget).unwrap() {
        excuse("the kernel has no ctnetlink: its NAT cannot be made to forget");
        return None;
    }
    Some(pair)
}

/// The port at which the server knows the client's path.
fn port(pair: &Pair) -> Option<u16> {
    pair.hosts[1].status().peers[0].paths.iter().find(|path| path.works()).map(|path| path.remote.port())
}

/// Reads what `from` writes, until that ends; keeps the longest time between two reads.
fn watch(mut from: TcpStream, longest: &Mutex<Duration>) {
    let (mut room, mut last) = (vec![0; 1 << 16], Instant::now());
    while from.read(&mut room).unwrap() > 0 {
        let mut longest = longest.lock().unwrap();
        *longest = longest.max(last.elapsed());
        last = Instant::now();
    }
}

/// Writes one block after the other until `stop`.
fn write(mut to: TcpStream, stop: &AtomicBool) {
    let block = vec![7; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        to.write_all(&block).unwrap();
    }
    to.shutdown(Shutdown::Write).unwrap();
}

/// Whether a datagram to the server comes back.
fn echoes(client: &UdpSocket, server: &UdpSocket, number: u8) -> bool {
    let mut got = [0; 8];
    client.send_to(&[number], Pair::at(1, 7)).unwrap();
    let came = server.recv_from(&mut got);
    let back = came.and_then(|(_, from)| server.send_to(&[number], from)).and_then(|_| client.recv(&mut got));
    match back {
        Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
        Ok(_) => return got[0] == number,
    }
    false
}

#[test]
fn a_connection_and_packets_go_on_when_a_nat_gives_other_ports() {
    let Some(pair) = behind_a_nat() else { return };
    let ([client, server], router) = (&pair.hosts, &pair.bed.hosts[0]);
    let (near, far) = connected(&pair, 0, 80);
    let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
    let [asks, answers] = [(client, 0, 5000), (server, 1, 7)].map(|(host, side, port)| {
        let socket = host.ns.run(|| UdpSocket::bind(Pair::at(side, port)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = Ends(&stop);
        scope.spawn(|| flow(near, far, &stop));
        scope.spawn(|| flow(back.0, back.1, &stop));
        for number in 1..=3 {
            let before = port(&pair);
            assert!(router.run(forget).unwrap());
            let began = Instant::now();
            pair.wait(|pair| port(pair).is_some_and(|port| Some(port) != before));
            pair.wait(|_| echoes(&asks, &answers, number));
            println!("packets pass again after {:.1?}", began.elapsed());
        }
    });
    assert_eq!(server.status().lane.incoming, 1, "one connection, from the beginning to the end");
}

/// How long the bytes of a connection stop when the NAT forgets: from the client, from the server, or both ways.
#[test]
fn bytes_stop_for_less_than_a_heartbeat_when_a_nat_gives_other_ports() {
    let Some(pair) = behind_a_nat() else { return };
    let router = &pair.bed.hosts[0];
    for (what, senders) in [("from the client", &[0][..]), ("from the server", &[1]), ("both ways", &[0, 1])]
    {
        let (stop, longest) = (AtomicBool::new(false), Mutex::new(Duration::ZERO));
        let mut pauses: Vec<Duration> = Vec::new();
        thread::scope(|scope| {
            let _ends = Ends(&stop);
            for (sender, port) in senders.iter().zip(80..) {
                let (near, far) = connected(&pair, *sender, port);
                scope.spawn(|| write(near, &stop));
                scope.spawn(|| watch(far, &longest));
            }
            for number in 0..5 {
                thread::sleep(Duration::from_millis(700));
                *longest.lock().unwrap() = Duration::ZERO;
                assert!(router.run(forget).unwrap());
                // Heartbeats are in another phase each time.
                thread::sleep(Duration::from_millis(1500 + 93 * number));
                pauses.push(*longest.lock().unwrap());
            }
        });
        pauses.sort();
        println!(
            "{what}: bytes stop for {:?} ms",
            pauses.iter().map(Duration::as_millis).collect::<Vec<_>>()
        );
        assert!(pauses[2] < Duration::from_secs(1), "{what}: {pauses:?}");
    }
}

/// The server of a client that calls it at `addresses` from behind a NAT leaves its only address, 10.77.0.2, for 10.77.0.12 while bytes
/// flow. Its word does not pass the NAT. `tell` has the client know where to look.
fn moves(addresses: &str, names: Option<&Path>, tell: impl FnOnce(&mut Pair)) {
    if !ready() || !installed(&["nft", "sysctl"]) {
        return;
    }
    let change = on(0, |text| text.replace("\"10.77.0.2:10501\"", addresses));
    let mut pair = Pair::start_behind_a_nat(link(80, 5), change, names);
    let (near, far) = connected(&pair, 0, 80);
    let (stop, longest) = (AtomicBool::new(false), Mutex::new(Duration::ZERO));
    thread::scope(|scope| {
        let _ends = Ends(&stop);
        scope.spawn(|| write(near, &stop));
        scope.spawn(|| watch(far, &longest));
        thread::sleep(Duration::from_secs(1));
        sh(&pair.hosts[1].ns, "ip addr del 10.77.0.2/24 dev path0; ip addr add 10.77.0.12/24 dev path0");
        tell(&mut pair);
        let told = Instant::now();
        pair.wait(|pair| {
            let paths = &pair.hosts[0].status().peers[0].paths;
            paths.iter().any(|path| path.works() && path.remote.ip().to_string() == "10.77.0.12")
        });
        println!("{addresses}: found after {:.1?}", told.elapsed());
        assert!(told.elapsed() < FOUND, "{:?}", told.elapsed());
    });
    println!("{addresses}: bytes stop for {:.1?}", longest.lock().unwrap());
}

#[test]
fn a_server_that_moves_is_found_by_its_name_from_behind_a_nat() {
    let dir = tempfile::tempdir().unwrap();
    let names = dir.path().join("hosts");
    fs::write(&names, "10.77.0.2 server.polypath.test\n").unwrap();
    let rename = |_: &mut Pair| fs::write(&names, "10.77.0.12 server.polypath.test\n").unwrap();
    moves("\"server.polypath.test:10501\"", Some(&names), rename);
}

#[test]
fn a_server_that_moves_is_found_from_behind_a_nat_at_an_address_written_ahead() {
    moves("\"10.77.0.2:10501\", \"10.77.0.12:10501\"", None, |_| ());
}

#[test]
fn a_server_that_moves_is_found_from_behind_a_nat_at_an_address_written_later() {
    moves("\"10.77.0.2:10501\"", None, |pair| {
        pair.wait(|pair| pair.hosts[0].status().peers[0].silent);
        let answer = pair.hosts[0].reload(|text| text.replace("10.77.0.2:", "10.77.0.12:"));
        assert_eq!(answer, Answer::Done);
    });
}
