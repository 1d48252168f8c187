//! Keep-alives of programs (RFC 1122 §4.2.3.6) are answered by the host at the far end, or not at all.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use super::common::{INNER, Pair, ip, link, ready};
use super::silent::kill;
use super::tcp::{connected, transfer};

/// The program's kernel asks after a second without anything, then every second, and gives up after three questions.
fn keep_alive(stream: &TcpStream) {
    setsockopt(stream, sockopt::KeepAlive, &true).unwrap();
    setsockopt(stream, sockopt::TcpKeepIdle, &1).unwrap();
    setsockopt(stream, sockopt::TcpKeepInterval, &1).unwrap();
    setsockopt(stream, sockopt::TcpKeepCount, &3).unwrap();
}

/// A connection of the kernels, `from` one of the hosts to the other; both ends ask.
fn kept(pair: &Pair, from: usize) -> (TcpStream, TcpStream) {
    let (client, server) = connected(pair, from, 80);
    [&client, &server].into_iter().for_each(keep_alive);
    (client, server)
}

/// The connection is there: nothing to read, and no error.
pub fn lives(mut stream: &TcpStream) {
    stream.set_nonblocking(true).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
}

/// The kernel ends the connection, and then neither daemon has it.
fn dies(pair: &Pair, mut stream: TcpStream) {
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    pair.wait(|pair| pair.hosts[0].status().lane.open == 0);
}

/// The kernel of a host drops silently what comes for its address on the device.
pub fn silence(pair: &Pair, side: usize) {
    ip(&pair.hosts[side], &["addr", "del", &format!("{}/24", INNER[side]), "dev", "polypath0"]);
}

#[test]
fn a_program_whose_far_host_answers_keeps_its_idle_connection_also_when_a_path_fails() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    let (client, server) = kept(&pair, 0);
    thread::sleep(Duration::from_secs(6));
    [&client, &server].into_iter().for_each(lives);
    ip(&pair.hosts[1], &["link", "set", "path0", "down"]);
    thread::sleep(Duration::from_secs(6));
    [&client, &server].into_iter().for_each(lives);
    transfer(client, server, 1 << 20);
}

#[test]
fn a_program_whose_far_host_dies_silently_hears_of_it_by_its_own_keep_alive() {
    if !ready() {
        return;
    }
    for (from, half_closed) in [(0, false), (1, false), (0, true)] {
        let pair = Pair::start(&[link(80, 5)], |_, text| text);
        let (client, server) = kept(&pair, from);
        if half_closed {
            client.shutdown(Shutdown::Write).unwrap();
        }
        thread::sleep(Duration::from_secs(3));
        lives(&client);
        silence(&pair, 1 - from);
        dies(&pair, client);
        drop(server);
    }
}

#[test]
fn a_program_whose_far_daemon_dies_silently_hears_of_it_by_its_own_keep_alive() {
    if !ready() {
        return;
    }
    let mut pair = Pair::start(&[link(80, 5)], |_, text| text);
    let (client, server) = kept(&pair, 0);
    thread::sleep(Duration::from_secs(3));
    kill(&mut pair, 1);
    dies(&pair, client);
    drop(server);
}
