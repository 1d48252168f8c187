//! Packets of others that a gateway gives the kernel.
//!
//! The test makes its own network namespace; without root it is skipped, and says so.
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::time::Duration;

use polypath_endpoint::EndpointConfig;
use polypath_node::{Gateway, GatewayConfig, Node};
use polypath_testbed::netns::Netns;
use polypath_wire::ipv4::Ipv4Header;
use polypath_wire::udp::{self, UdpHeader};

use crate::common::ready;

/// More packets than wait for the device at once, and no more for each socket than wait there.
const PACKETS: u16 = 2000;
const SOCKETS: u16 = 20;

fn datagram(number: u16) -> bytes::Bytes {
    let header = Ipv4Header::new(udp::PROTOCOL, [10, 9, 0, 2].into(), [10, 9, 0, 1].into(), 10);
    let mut packet = vec![0; 30];
    header.emit(&mut packet).unwrap();
    packet[28..].copy_from_slice(&number.to_be_bytes());
    let udp = UdpHeader { src_port: 1000 + number, dst_port: 5000 + number % SOCKETS, payload_len: 2 };
    udp.emit(&mut packet[20..], header.pseudo_header()).unwrap();
    packet.into()
}

#[test]
fn all_packets_that_come_at_once_arrive() {
    if !ready(&[]) {
        return;
    }
    for queues in [1, 3] {
        let ns = Netns::create("injected").unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let (node, bypass, sockets) = ns
            .run(|| {
                let _runtime = runtime.enter();
                let addresses = vec![([10, 9, 0, 1].into(), 24)];
                let config = GatewayConfig { name: "injected0".into(), addresses, mtu: 1400, queues };
                let mut gateway = Gateway::create(&config).unwrap();
                let bypass = gateway.bypass(Box::new(|_| false));
                let socket = |n| UdpSocket::bind(("10.9.0.1", 5000 + n)).unwrap();
                let sockets: Vec<UdpSocket> = (0..SOCKETS).map(socket).collect();
                (Node::start(EndpointConfig::default(), gateway).unwrap(), bypass, sockets)
            })
            .unwrap();
        bypass.inject((0..PACKETS).map(datagram));
        for socket in sockets {
            socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            let came = (0..PACKETS / SOCKETS).take_while(|_| socket.recv(&mut [0; 8]).is_ok()).count();
            assert_eq!(came, usize::from(PACKETS / SOCKETS), "{queues} queues");
        }
        let _runtime = runtime.enter();
        drop(node);
    }
}
