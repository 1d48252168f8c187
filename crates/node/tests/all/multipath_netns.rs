//! Two nodes in two network namespaces, several emulated paths between them.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use polypath_endpoint::{EndpointConfig, ListenConfig};
use polypath_hop::HopConfig;
use polypath_node::{Clock, Node, UdpSockets};
use polypath_testbed::Testbed;
use polypath_transport::{ConnectionConfig, PathConfig, Pattern, Payload, SchedulerConfig};
use polypath_wire::{Duration, Rate, Seed};

use crate::common::{read_exactly, ready};

const CHUNK: u64 = 64 << 10;
const CHUNKS: u64 = 160;
const PORT: u16 = 443;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_uses_both_paths_between_namespaces() {
    if !ready(&[]) {
        return;
    }
    let link = |mbps, ms| {
        let (rate, delay) = (Rate::from_mbps(mbps), Duration::from_millis(ms));
        [const { None::<HopConfig> }; 2].map(|_| HopConfig { rate, delay, ..HopConfig::default() })
    };
    let bed = Testbed::namespaces(&[link(80, 5), link(40, 10)], Seed(1), Clock::start()).unwrap();
    let node = |side| {
        let sockets = UdpSockets::new(bed.sockets(side).unwrap()).unwrap();
        Node::on_sockets(EndpointConfig::default(), sockets).unwrap()
    };
    let (a, b) = (node(0), node(1));
    // 1500 bytes less the headers of IP, UDP and TCP.
    let path = PathConfig { mss: 1452, ..PathConfig::default() };
    let listen = ListenConfig { accept_paths: true, path, ..ListenConfig::default() };
    let listener = b.listen(PORT, listen).unwrap();
    let config = ConnectionConfig { scheduler: SchedulerConfig::RoundRobin, ..ConnectionConfig::default() };
    let paths: Vec<_> = bed.locators(0).map(|locators| (locators, path)).collect();
    let sender = async {
        let stream = a.connect(config, PORT, &paths).await.unwrap();
        for i in 0..CHUNKS {
            stream.write(chunk(i)).await.unwrap();
        }
        stream.finish();
        stream.finished().await.unwrap();
        stream.stats()
    };
    let receiver = async {
        let stream = listener.accept().await.unwrap();
        stream.finish();
        for i in 0..CHUNKS {
            assert_eq!(read_exactly(&stream, CHUNK).await, chunk(i), "chunk {i}");
        }
        assert_eq!(stream.read(1).await, Ok(None));
    };
    let both = async { tokio::join!(sender, receiver).0 };
    let stats = tokio::time::timeout(std::time::Duration::from_secs(60), both).await.expect("it stalled");
    println!("{stats:#?}");
    for (path, emulated) in bed.paths.iter().enumerate() {
        let carried = emulated.link.stats().hops[0].bytes_left;
        assert!(carried > CHUNK * CHUNKS / 10, "path {path} carried only {carried} bytes");
    }
}

fn chunk(i: u64) -> Bytes {
    Payload::Pattern(Pattern { key: 1, offset: i * CHUNK, len: CHUNK }).to_bytes()
}
