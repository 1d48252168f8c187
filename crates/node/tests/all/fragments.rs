//! HIP packets larger than the MTU: large keys over a link with the least MTU of IPv6.
//!
//! The test makes its own network namespaces; without root it is skipped, and says so.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::Duration;

use polypath_endpoint::{EndpointConfig, Reach, SecurityConfig};
use polypath_hip::dh::DhGroup;
use polypath_hip::{HipConfig, Identity};
use polypath_node::{Node, UdpSockets};
use polypath_testbed::netns::Netns;

use crate::common::{ready, sh};

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
    for ends in [["127.0.0.1:0", "127.0.0.2:0"], ["[fd00::1]:0", "[fd00::2]:0"]] {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let node = |end: &str| {
            let _runtime = runtime.enter();
            let hip = HipConfig { dh_groups: vec![DhGroup::Modp3072], ..HipConfig::default() };
            let security = SecurityConfig { hip, ..SecurityConfig::default() };
            let sockets = UdpSockets::bind(&[end.parse::<SocketAddr>().unwrap().into()]).unwrap();
            let at = sockets.locals().next().unwrap();
            let identity = Identity::generate_rsa(4096).unwrap();
            (Node::secure(EndpointConfig::default(), security, identity, sockets).unwrap(), at)
        };
        let ((ours, here), (theirs, there)) = ns.run(|| (node(ends[0]), node(ends[1]))).unwrap();
        let locators = polypath_endpoint::Locators { local: here, remote: there };
        let met = ours.associate(theirs.hit().unwrap(), Reach::Pairs(vec![locators]));
        let met = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), met).await });
        met.expect("it takes too long").unwrap_or_else(|error| panic!("{ends:?}: {error}"));
        let _runtime = runtime.enter();
        drop((ours, theirs));
    }
}
