//! Reading from a connection that is over.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use polypath_endpoint::{EndpointConfig, ListenConfig, Locators};
use polypath_node::Node;
use polypath_transport::{ConnectionConfig, PathConfig, State};
use polypath_wire::Duration;

#[tokio::test]
async fn what_arrived_before_the_end_is_read_after_it() {
    let any = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()];
    let node = || Node::udp(EndpointConfig::default(), &any).unwrap();
    let (a, b) = (node(), node());
    let listener = b.listen(1, ListenConfig::default()).unwrap();
    let paths = [(Locators { local: a.locals()[0], remote: b.locals()[0] }, PathConfig::default())];
    let config = ConnectionConfig { time_wait: Duration::from_millis(1), ..ConnectionConfig::default() };
    let (opened, accepted) = tokio::join!(a.connect(config, 1, &paths), listener.accept());
    let (reader, writer) = (opened.unwrap(), accepted.unwrap());
    reader.finish();
    let data = Bytes::from(vec![7; 100_000]);
    writer.write(data.clone()).await.unwrap();
    writer.finish();
    while reader.state() != State::Closed {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let mut read = Vec::new();
    while let Some(bytes) = reader.read(30_000).await.unwrap() {
        read.extend_from_slice(&bytes);
    }
    assert_eq!(read, data);
}
