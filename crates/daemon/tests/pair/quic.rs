//! A QUIC server and client between two daemons.

#[path = "../../examples/quic/transfer.rs"]
mod transfer;

use std::net::UdpSocket;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;

use super::common::{Pair, link, ready};

#[test]
fn a_quic_transfer_uses_both_links_and_every_byte_arrives() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(8, 5), link(4, 15)], |_, text| text);
    let len = 3_000_000;
    let bind = |side: usize, port| pair.hosts[side].ns.run(|| UdpSocket::bind(Pair::at(side, port)).unwrap());
    let (client, server) = (bind(0, 0).unwrap(), bind(1, 443).unwrap());
    let (certificate, key) = transfer::certificate().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut got = 0;
    let all = runtime.block_on(async {
        tokio::spawn(transfer::serve(server, (certificate.clone(), key), len));
        let take = |bytes: &[u8]| {
            assert!(bytes.iter().zip(got..).all(|(byte, at)| *byte == transfer::byte(at)), "other bytes");
            got += bytes.len() as u64;
            true
        };
        timeout(Duration::from_secs(60), transfer::receive(client, Pair::at(1, 443), certificate, take)).await
    });
    assert!(all.unwrap().unwrap() && got == len);
    let carried = pair.hosts[1].status();
    let sent: Vec<_> = carried.peers[0].paths.iter().map(|path| path.sent_bytes).collect();
    assert!(sent.len() == 2 && sent.iter().all(|bytes| *bytes > len / 10), "{sent:?}");
}
