//! Devices with several queues, each with a thread of its own.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::common::{Host, Pair, link, ready, with_ipv6};
use super::tcp::{connected, transfer};

const MB: usize = 1 << 20;
/// A test fails after this long without a datagram.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two hosts with four queues each, and one link: over several, datagrams of a flow may change their order.
fn pair() -> Option<Pair> {
    let several = |side, text| with_ipv6(side, text).replace("[tunnel]", "[tunnel]\nqueues = 4");
    ready().then(|| Pair::start(&[link(100, 5)], several))
}

/// What ip(8) says of the device, if there is one.
fn device(host: &Host) -> Option<String> {
    let words = ["-d", "link", "show", "polypath0"];
    let tool = || Command::new("ip").args(words).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output();
    let output = host.ns.run(tool).unwrap().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn many_connections_arrive_whole_in_both_directions_and_the_device_goes_with_the_daemon() {
    let Some(mut pair) = pair() else { return };
    for host in &pair.hosts {
        let said = device(host).unwrap();
        assert!(said.contains("multi_queue") && said.contains("numqueues 4"), "{said}");
    }
    let transfers: Vec<_> = (0..12)
        .flat_map(|n| {
            let (client, server) = connected(&pair, n % 2, 8000 + n as u16);
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            [(client, server), back].map(|(from, to)| thread::spawn(move || transfer(from, to, MB)))
        })
        .collect();
    transfers.into_iter().for_each(|transfer| transfer.join().unwrap());
    for host in &mut pair.hosts {
        host.stop();
        assert_eq!(device(host), None);
    }
}

/// Datagrams that a flow sends at once.
const BURST: u32 = 10;

/// Sends a burst of numbered datagrams, which arrive in order.
fn burst(from: &UdpSocket, to: &UdpSocket, first: u32) {
    for n in first..first + BURST {
        let datagram = [n.to_be_bytes().as_slice(), &[7; 1000]].concat();
        assert_eq!(from.send(&datagram).unwrap(), datagram.len());
    }
    for n in first..first + BURST {
        let mut got = [0; 2000];
        let len = to.recv(&mut got).unwrap();
        assert_eq!((len, got[..4].try_into().map(u32::from_be_bytes).unwrap()), (1004, n));
    }
}

#[test]
fn the_datagrams_of_a_flow_arrive_all_and_in_order_with_those_of_others_beside_them() {
    let Some(pair) = pair() else { return };
    let flow = |n: usize| {
        let [from, to] = [n % 2, 1 - n % 2].map(|side| {
            let at = match n % 4 {
                0 | 1 => Pair::at(side, 7000 + n as u16),
                _ => format!("[fd99::{}]:{}", side + 1, 7000 + n).parse().unwrap(),
            };
            let socket = pair.hosts[side].ns.run(|| UdpSocket::bind(at).unwrap()).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket
        });
        from.connect(to.local_addr().unwrap()).unwrap();
        to.connect(from.local_addr().unwrap()).unwrap();
        thread::spawn(move || {
            for round in 0..100 {
                burst(&from, &to, round * BURST);
                burst(&to, &from, round * BURST);
            }
        })
    };
    let flows: Vec<_> = (0..8).map(flow).collect();
    flows.into_iter().for_each(|flow| flow.join().unwrap());
}
