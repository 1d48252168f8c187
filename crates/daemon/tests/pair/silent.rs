//! A peer that ends without a word, and one that begins anew elsewhere.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt::Ipv4RecvErr};
use polypath_daemon::control::Answer;

use super::common::{Pair, ip, link, on, ready, sh};
use super::keep_alive::{lives, silence};
use super::tcp::{connected, transfer};

const NAME: &str = "server.polypath.test";

/// The link of the host `side` is cut, so that nothing of its daemon leaves any more, not even that it ends.
pub fn kill(pair: &mut Pair, side: usize) {
    ip(&pair.hosts[side], &["link", "set", "path0", "down"]);
    pair.hosts[side].stop();
}

/// The killed host `side` begins anew at the address that ends in `new`.
fn move_to(pair: &mut Pair, side: usize, new: u8) {
    let old = format!("10.77.0.{}/24", side + 1);
    ip(&pair.hosts[side], &["addr", "del", &old, "dev", "path0"]);
    ip(&pair.hosts[side], &["addr", "add", &format!("10.77.0.{new}/24"), "dev", "path0"]);
    ip(&pair.hosts[side], &["link", "set", "path0", "up"]);
    pair.hosts[side].restart();
}

/// How long a connection to the second host waits before it is refused as unreachable.
fn refused(pair: &Pair) -> Duration {
    let began = Instant::now();
    let at = Pair::at(1, 80);
    let refused = pair.hosts[0].ns.run(|| TcpStream::connect(at)).unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::HostUnreachable);
    began.elapsed()
}

/// A datagram to the second host is answered: it is unreachable.
fn told(pair: &Pair) {
    let socket = pair.hosts[0].ns.run(|| UdpSocket::bind(Pair::at(0, 5000)).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    setsockopt(&socket, Ipv4RecvErr, &true).unwrap(); // Linux keeps from others what may pass
    socket.connect(Pair::at(1, 7)).unwrap();
    let before = pair.hosts[0].status().packets.no_association;
    socket.send(b"anybody?").unwrap();
    assert_eq!(socket.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::HostUnreachable);
    assert!(pair.hosts[0].status().packets.no_association > before);
}

#[test]
fn a_peer_that_was_killed_is_unreachable_within_6_s_and_reached_again_under_another_address() {
    if !ready() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let names = dir.path().join("hosts");
    fs::write(&names, format!("10.77.0.2 {NAME}\n")).unwrap();
    let change = on(0, |text| text.replace("10.77.0.2", NAME));
    let mut pair = Pair::start_with_names(&[link(80, 5)], change, Some(&names));
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, 1 << 20);
    kill(&mut pair, 1);
    let at_once = refused(&pair);
    assert!(at_once < Duration::from_secs(6), "{at_once:?}");
    let peer = |pair: &Pair| pair.hosts[0].status().peers[0].clone();
    assert!(peer(&pair).associated && peer(&pair).silent, "{:?}", peer(&pair));
    told(&pair);
    let later = refused(&pair);
    assert!(later < Duration::from_secs(6), "{later:?}");
    assert_eq!(pair.hosts[0].status().lane.open, 0);

    fs::write(&names, format!("10.77.0.9 {NAME}\n")).unwrap();
    let began = Instant::now();
    move_to(&mut pair, 1, 9);
    pair.wait(|pair| !peer(pair).silent && peer(pair).paths.iter().any(|path| path.works()));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, 1 << 20);
}

#[test]
fn a_caller_that_was_killed_is_reached_at_its_new_address() {
    if !ready() {
        return;
    }
    let mut pair = Pair::start(&[link(80, 5)], |_, text| text);
    let (client, server) = connected(&pair, 1, 80);
    transfer(client, server, 1 << 20);
    kill(&mut pair, 0);
    move_to(&mut pair, 0, 8);
    pair.wait(|pair| {
        let peer = pair.hosts[1].status().peers.remove(0);
        !peer.silent
            && peer.paths.iter().all(|path| path.works() && path.remote.ip().to_string() == "10.77.0.8")
    });
    let (client, server) = connected(&pair, 1, 80);
    transfer(client, server, 1 << 20);
}

#[test]
fn a_peer_that_was_only_away_keeps_its_connections() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5)], |_, text| text);
    let (client, server) = connected(&pair, 0, 80);
    ip(&pair.hosts[1], &["link", "set", "path0", "down"]);
    pair.wait(|pair| pair.hosts[0].status().peers[0].silent);
    thread::sleep(Duration::from_secs(7));
    ip(&pair.hosts[1], &["link", "set", "path0", "up"]);
    pair.wait(|pair| pair.hosts.iter().all(|host| !host.status().peers[0].silent));
    transfer(client, server, 1 << 20);
}

#[test]
fn a_program_hears_that_the_host_of_its_idle_connection_died() {
    if !ready() {
        return;
    }
    let change = on(1, |text| text.replace("[[peer]]", "[lane]\nkeep_alive = 1\n[[peer]]"));
    let pair = Pair::start(&[link(80, 5)], change);
    let (mut client, server) = connected(&pair, 0, 80);
    thread::sleep(Duration::from_secs(3));
    lives(&client);
    silence(&pair, 1);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    drop(server);
}

#[test]
fn a_program_hears_that_the_daemon_behind_its_idle_connection_died() {
    if !ready() {
        return;
    }
    let change = |_, text: String| text.replace("[[peer]]", "[lane]\nkeep_alive = 1\n[[peer]]");
    let mut pair = Pair::start(&[link(80, 5)], change);
    let (mut client, server) = connected(&pair, 0, 80);
    thread::sleep(Duration::from_secs(16));
    lives(&client);
    kill(&mut pair, 1);
    let began = Instant::now();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    pair.wait(|pair| pair.hosts[0].status().lane.open == 0);
    drop(server);
}

#[test]
fn a_backup_steps_in_where_only_what_comes_from_the_peer_passes() {
    if !ready() {
        return;
    }
    let mut pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    let backup = |text: &str| text.replace("[[peer]]", "[paths]\nbackup = [\"path1\"]\n[[peer]]");
    assert_eq!(pair.hosts[0].reload(backup), Answer::Done);
    let working = |pair: &Pair| {
        let status = pair.hosts[0].status();
        let working = status.paths().filter(|(_, path)| path.works());
        working.map(|(_, path)| path.local.ip().to_string()).collect::<Vec<_>>()
    };
    pair.wait(|pair| working(pair) == ["10.77.0.1"]);
    let (client, server) = connected(&pair, 0, 80);
    let began = Instant::now();
    sh(&pair.hosts[1].ns, "nft add table inet f");
    sh(&pair.hosts[1].ns, "nft add chain inet f in { type filter hook input priority 0; }");
    sh(&pair.hosts[1].ns, "nft add rule inet f in iifname path0 drop");
    pair.wait(|pair| working(pair) == ["10.77.1.1"]);
    println!("a path over the backup after {:?}", began.elapsed());
    transfer(client, server, 1 << 20);
    sh(&pair.hosts[1].ns, "nft delete table inet f");
    pair.wait(|pair| working(pair) == ["10.77.0.1"]);
}

#[test]
fn a_daemon_that_ends_is_not_called_back() {
    if !ready() {
        return;
    }
    let mut pair = Pair::start(&[link(80, 5)], |_, text| text);
    pair.hosts[1].stop();
    for _ in 0..20 {
        assert!(!pair.hosts[0].status().peers[0].associated);
        thread::sleep(Duration::from_millis(100));
    }
}
