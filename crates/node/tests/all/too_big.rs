//! An interface that takes smaller packets than the connection was told: the socket says so at once.
//!
//! The test makes its own network namespace; without root it is skipped, and says so.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::Duration;

use polypath_endpoint::{EndpointConfig, ListenConfig, Locators};
use polypath_node::Node;
use polypath_testbed::netns::Netns;
use polypath_transport::{ConnectionConfig, PathConfig, Pattern, Payload};

use crate::common::{ready, sh};

const PORT: u16 = 443;
const LEN: u64 = 1_000_000;

#[test]
fn a_socket_tells_the_path_what_is_too_big() {
    if !ready(&["ip"]) {
        return;
    }
    let ns = Netns::create("toobig").unwrap();
    sh(&ns, "ip link set lo up mtu 1400");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let node = |address: [u8; 4]| {
        let _runtime = runtime.enter();
        Node::udp(EndpointConfig::default(), &[SocketAddr::from((address, 0)).into()]).unwrap()
    };
    let (a, b) = ns.run(|| (node([127, 0, 0, 1]), node([127, 0, 0, 2]))).unwrap();
    let listener = {
        let _runtime = runtime.enter();
        b.listen(PORT, ListenConfig::default()).unwrap()
    };
    let locators = Locators { local: a.locals()[0], remote: b.locals()[0] };
    let transfer = async {
        let told = PathConfig::default(); // 1,460 bytes and headers of 20, 8 and 20: more than 1,400
        let paths = [(locators, told)];
        let (ours, theirs) =
            tokio::join!(a.connect(ConnectionConfig::default(), PORT, &paths), listener.accept());
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        let whole = Payload::from(Pattern { key: 3, offset: 0, len: LEN }).to_bytes();
        let send = async {
            ours.write(whole.clone()).await.unwrap();
            ours.finish();
        };
        let receive = async {
            let mut got = Vec::new();
            while let Some(chunk) = theirs.read(1 << 20).await.unwrap() {
                got.extend_from_slice(&chunk);
            }
            assert!(got == whole, "{} bytes, or other ones", got.len());
        };
        tokio::join!(send, receive);
        ours.stats()
    };
    let stats = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), transfer).await });
    let stats = stats.expect("it stalled");
    assert_eq!(stats.connection.timeouts, 0, "what was too big went again at once: {stats:?}");
    let _runtime = runtime.enter();
    drop((listener, a, b));
}
