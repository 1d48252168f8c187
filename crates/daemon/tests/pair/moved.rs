//! An address of a link becomes another one in mid-transfer, as with DHCP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::common::{Host, Pair, ip, link, ready, sh};
use super::tcp::{connected, pattern};

/// The test fails after this long without a byte.
const STALLED: Duration = Duration::from_secs(5);
/// A path from an address that is new takes less. It would be sought at the old one of a neighbour for 15 s.
const SOON: Duration = Duration::from_secs(5);

/// Has flows end when a test does.
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writes one block after the other until `stop`; what comes at the other end is that, and without a long pause.
pub fn flow(mut from: TcpStream, mut to: TcpStream, stop: &AtomicBool) {
    from.set_write_timeout(Some(STALLED)).unwrap();
    to.set_read_timeout(Some(STALLED)).unwrap();
    let block = pattern(1 << 16);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                from.write_all(&block).unwrap();
            }
            from.shutdown(Shutdown::Write).unwrap();
        });
        let mut got = vec![0; block.len()];
        while to.peek(&mut [0]).unwrap() > 0 {
            to.read_exact(&mut got).unwrap();
            assert!(got == block, "other bytes");
        }
    });
}

/// The address `from` on the first link of a host becomes `to`, which comes `first` or last.
fn exchange(host: &Host, from: &str, to: &str, first: bool) {
    let mut steps = [["addr", "del", from, "dev", "path0"], ["addr", "add", to, "dev", "path0"]];
    if first {
        steps.reverse();
    }
    steps.iter().for_each(|words| ip(host, words));
}

/// Whether each host has two paths that work, one of them from that address.
fn paths_lead_from(pair: &Pair, addresses: [&str; 2]) -> bool {
    pair.hosts.iter().zip(addresses).all(|(host, address)| {
        let status = host.status();
        let works: Vec<_> = status.peers[0].paths.iter().filter(|path| path.works()).collect();
        let ip = address.split('/').next().unwrap();
        works.len() == 2 && works.iter().any(|path| path.local.ip().to_string() == ip)
    })
}

#[test]
fn a_connection_goes_on_while_addresses_change_at_either_end_in_either_order() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    for host in &pair.hosts {
        // Else all addresses of a network go with the first one.
        let promote = || std::fs::write("/proc/sys/net/ipv4/conf/all/promote_secondaries", "1").unwrap();
        host.ns.run(promote).unwrap();
    }
    let (client, server) = connected(&pair, 0, 80);
    let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let stop = AtomicBool::new(false);
    let mut now = ["10.77.0.1/24", "10.77.0.2/24"];
    thread::scope(|scope| {
        let _ends = Ends(&stop);
        scope.spawn(|| flow(client, server, &stop));
        scope.spawn(|| flow(back.0, back.1, &stop));
        for (side, to, first) in [
            (0, "10.77.0.11/24", false),
            (1, "10.77.0.12/24", true),
            (0, "10.77.0.21/24", true),
            (1, "10.77.0.22/24", false),
        ] {
            thread::sleep(Duration::from_millis(300));
            exchange(&pair.hosts[side], now[side], to, first);
            now[side] = to;
            let began = Instant::now();
            pair.wait(|pair| paths_lead_from(pair, now));
            assert!(began.elapsed() < SOON, "a path from {to} took {:?}", began.elapsed());
        }
    });
}

/// Both links at once: nobody is left at an address that the client knows.
#[test]
fn a_server_that_leaves_all_its_addresses_at_once_is_found_at_the_new_ones_and_connections_go_on() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    let (client, server) = connected(&pair, 0, 80);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = Ends(&stop);
        scope.spawn(|| flow(client, server, &stop));
        for (from, to) in [(2, 12), (12, 22)] {
            thread::sleep(Duration::from_millis(300));
            let began = Instant::now();
            let line = |path: u8| {
                format!("ip addr flush dev path{path}; ip addr add 10.77.{path}.{to}/24 dev path{path}; ")
            };
            sh(&pair.hosts[1].ns, &[0, 1].map(line).concat());
            let there = |path: u8| move |ip: String| ip == format!("10.77.{path}.{to}");
            pair.wait(|pair| {
                let status = pair.hosts[0].status();
                let mut works: Vec<_> = status.peers[0].paths.iter().filter(|path| path.works()).collect();
                works.sort_by_key(|path| path.remote);
                works.len() == 2 && works.iter().zip(0..).all(|(p, n)| there(n)(p.remote.ip().to_string()))
            });
            println!("from .{from} to .{to}: both paths after {:?}", began.elapsed());
            assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        }
    });
}
