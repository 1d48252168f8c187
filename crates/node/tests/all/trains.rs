//! Datagrams are written into the batch that is sent.

#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::task::Poll;
use std::time::Duration;

use polypath_endpoint::{Locators, Outlet};
use polypath_node::{Carrier, UdpSockets};
use polypath_wire::{Ecn, Instant};

#[tokio::test]
async fn a_datagram_that_cannot_be_made_is_none_and_the_others_arrive_as_they_were_made() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut sockets = UdpSockets::bind(&[SocketAddr::from(([127, 0, 0, 1], 0)).into()]).unwrap();
    let locators = Locators { local: sockets.locals().next().unwrap(), remote: peer.local_addr().unwrap() };
    let mut make = |len, byte: u8| {
        sockets.send_datagram_with(Instant::ZERO, &locators, Ecn::None, len, |room| {
            assert_eq!(room.len(), len);
            room.fill(byte);
            byte > 0
        });
    };
    for (len, byte) in [(900, 0), (1000, 1), (1000, 2), (1000, 0), (500, 3), (1000, 4), (700, 0)] {
        make(len, byte);
    }
    for _ in 0..10 {
        poll_fn(|cx| Poll::Ready(sockets.poll_flush(cx))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await; // the runtime learns that the socket takes something
    }
    let mut room = [0; 2000];
    for (len, byte) in [(1000, 1), (1000, 2), (500, 3), (1000, 4)] {
        let got = peer.recv(&mut room).unwrap();
        assert_eq!((got, &room[..got]), (len, &vec![byte; len][..]));
    }
    assert_eq!(sockets.failures(), 3);
    peer.set_nonblocking(true).unwrap();
    assert!(peer.recv(&mut room).is_err(), "nothing else came");
}
