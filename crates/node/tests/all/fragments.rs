//! HIP packets larger than the MTU: with large keys over IPv6, with today's keys over IPv4, on links of the least MTU.
//!
//! The tests make their own network namespaces; without root they are skipped, and say so.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::Duration;

use polypath_endpoint::{EndpointConfig, ListenConfig, Reach, SecurityConfig};
use polypath_hip::dh::DhGroup;
use polypath_hip::{HipConfig, Identity, KeyKind, Random};
use polypath_node::{Node, UdpSockets};
use polypath_testbed::netns::Netns;
use polypath_transport::ConnectionConfig;

use crate::common::{ready, sh};

const PORT: u16 = 443;
const LEN: usize = 100_000;

/// Two hosts with these addresses in `ns` meet, and one sends the other some full packets.
fn meet(ns: &Netns, ends: [&str; 2], hip: &HipConfig, mut identity: impl FnMut() -> Identity + Send) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut node = |end: &str| {
        let _runtime = runtime.enter();
        let security = SecurityConfig { hip: hip.clone(), ..SecurityConfig::default() };
        let sockets = UdpSockets::bind(&[end.parse::<SocketAddr>().unwrap().into()]).unwrap();
        let at = sockets.locals().next().unwrap();
        (Node::secure(EndpointConfig::default(), security, identity(), sockets).unwrap(), at)
    };
    let ((ours, here), (theirs, there)) = ns.run(|| (node(ends[0]), node(ends[1]))).unwrap();
    let locators = polypath_endpoint::Locators { local: here, remote: there };
    let listener = {
        let _runtime = runtime.enter();
        theirs.listen(PORT, ListenConfig::default()).unwrap()
    };
    let peer = theirs.hit().unwrap();
    let carried = async {
        let met = ours.associate(peer, Reach::Pairs(vec![locators])).await;
        met.unwrap_or_else(|error| panic!("{ends:?}: {error}"));
        let (sent, got) =
            tokio::join!(ours.connect_peer(ConnectionConfig::default(), peer, PORT), listener.accept());
        let (sent, got) = (sent.unwrap(), got.unwrap());
        sent.write(vec![7; LEN].into()).await.unwrap();
        let mut received = 0;
        while received < LEN {
            received += got.read(1 << 20).await.unwrap().unwrap().len();
        }
    };
    let carried = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), carried).await });
    carried.expect("it takes too long");
    let _runtime = runtime.enter();
    drop((listener, ours, theirs));
}

#[test]
fn an_exchange_of_large_keys_crosses_a_narrow_link() {
    if !ready(&["ip"]) {
        return;
    }
    let ns = Netns::create("fragments").unwrap();
    sh(
        &ns,
        "ip link set lo up mtu 1280; ip addr add fd00::1/64 dev lo; ip addr add fd00::2/64 dev lo; sleep 2",
    );
    let hip = HipConfig { dh_groups: vec![DhGroup::Modp3072], ..HipConfig::default() };
    for ends in [["127.0.0.1:0", "127.0.0.2:0"], ["[fd00::1]:0", "[fd00::2]:0"]] {
        meet(&ns, ends, &hip, || Identity::generate_rsa(4096).unwrap());
    }
}

#[test]
fn hosts_meet_over_a_link_of_ipv4_with_the_least_mtu_and_over_one_with_less() {
    if !ready(&["ip"]) {
        return;
    }
    // Linux takes no router's word for less than 552 bytes; so little may be forged.
    for mtu in [576, 552] {
        let ns = Netns::create("least").unwrap();
        sh(&ns, &format!("ip link set lo up mtu {mtu}"));
        let mut seeds = 1..;
        let identity = || {
            let mut random = Random::from_seed([seeds.next().unwrap(); 32]);
            Identity::generate(KeyKind::P384, &mut random).unwrap()
        };
        meet(&ns, ["127.0.0.1:0", "127.0.0.2:0"], &HipConfig::of_today(), identity);
    }
}
