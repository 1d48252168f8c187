//! Streams between two nodes over loopback sockets, without emulated links.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use polypath_endpoint::{EndpointConfig, ListenConfig, Locators, Reach, SecurityConfig};
use polypath_hip::{Identity, KeyKind, Random};
use polypath_node::{AssociateError, Listener, Node, Stream, StreamError, UdpSockets};
use polypath_transport::{CloseReason, ConnectionConfig, PathConfig, Pattern, Payload};

const PORT: u16 = 443;

/// A node with a socket on each of 127.0.0.1, 127.0.0.2, …
fn node(paths: u8) -> Node {
    let paths: Vec<_> = (1..=paths).map(|i| SocketAddr::from(([127, 0, 0, i], 0)).into()).collect();
    Node::udp(EndpointConfig::default(), &paths).unwrap()
}

fn listen(node: &Node, connection: ConnectionConfig) -> Listener {
    let config = ListenConfig { connection, accept_paths: true, ..ListenConfig::default() };
    node.listen(PORT, config).unwrap()
}

async fn connect(client: &Node, server: &Node, config: ConnectionConfig) -> Result<Stream, StreamError> {
    let pairs = client.locals().iter().zip(server.locals());
    let paths: Vec<_> = pairs
        .map(|(local, remote)| (Locators { local: *local, remote: *remote }, PathConfig::default()))
        .collect();
    client.connect(config, PORT, &paths).await
}

/// Two nodes and a stream between them: client, its stream, server, its stream.
async fn pair(paths: u8, config: ConnectionConfig) -> (Node, Stream, Node, Stream) {
    let (client, server) = (node(paths), node(paths));
    let listener = listen(&server, config.clone());
    let (ours, theirs) = tokio::join!(connect(&client, &server, config), listener.accept());
    (client, ours.unwrap(), server, theirs.unwrap())
}

fn bytes(key: u32, offset: u64, len: u64) -> Bytes {
    Payload::from(Pattern { key, offset, len }).to_bytes()
}

async fn send(stream: &Stream, key: u32, len: u64) {
    for offset in (0..len).step_by(100_000) {
        stream.write(bytes(key, offset, 100_000.min(len - offset))).await.unwrap();
    }
    stream.finish();
}

/// Reads to the end, checking every byte.
async fn receive(stream: &Stream, key: u32, mut offset: u64) -> u64 {
    while let Some(chunk) = stream.read(1 << 20).await.unwrap() {
        assert_eq!(chunk, bytes(key, offset, chunk.len() as u64), "at {offset}");
        offset += chunk.len() as u64;
    }
    offset
}

#[tokio::test]
async fn both_directions_at_once_over_two_paths() {
    let (_client, ours, _server, theirs) = pair(2, ConnectionConfig::default()).await;
    let (_, _, up, down) = tokio::join!(
        send(&ours, 1, 5_000_000),
        send(&theirs, 2, 5_000_000),
        receive(&theirs, 1, 0),
        receive(&ours, 2, 0),
    );
    assert_eq!((up, down), (5_000_000, 5_000_000));
    tokio::try_join!(ours.finished(), theirs.finished()).unwrap();
    for stream in [&ours, &theirs] {
        let stats = stream.stats();
        assert_eq!(stats.connection.bytes_acked, 5_000_000);
        assert_eq!(stats.paths.len(), 2);
        let used = stats.paths.iter().filter(|(_, _, path)| path.bytes_delivered > 0);
        assert_eq!(used.count(), 2, "{stats:?}");
    }
}

#[tokio::test]
async fn a_slow_reader_holds_the_writer_back() {
    let config =
        ConnectionConfig { send_buffer: 100_000, receive_buffer: 50_000, ..ConnectionConfig::default() };
    let (_client, ours, _server, theirs) = pair(1, config).await;
    let data = bytes(1, 0, 1_000_000);
    let mut written = 0;
    let stuck = async {
        loop {
            written += ours.write_some(data.slice(written..)).await.unwrap();
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(300), stuck).await.is_err());
    assert!((100_000..=150_000).contains(&written), "both buffers full: {written}");

    let rest = async {
        ours.write(data.slice(written..)).await.unwrap();
        ours.finish();
    };
    let (_, received) = tokio::join!(rest, receive(&theirs, 1, 0));
    assert_eq!(received, 1_000_000);
}

#[tokio::test]
async fn a_cancelled_read_has_read_nothing() {
    let (_client, ours, _server, theirs) = pair(1, ConnectionConfig::default()).await;
    for _ in 0..3 {
        let read = theirs.read(1000);
        assert!(tokio::time::timeout(Duration::from_millis(5), read).await.is_err());
    }
    let (_, received) = tokio::join!(send(&ours, 1, 10_000), receive(&theirs, 1, 0));
    assert_eq!(received, 10_000);
}

#[tokio::test]
async fn nobody_listening_means_refused() {
    let (client, server) = (node(1), node(1));
    let refused = connect(&client, &server, ConnectionConfig::default()).await;
    assert_eq!(refused.err(), Some(StreamError::Lost(CloseReason::Refused)));
    assert_eq!(server.stats().resets_sent, 1);
}

#[tokio::test]
async fn a_cancelled_connect_leaves_no_connection() {
    let client = node(1);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let locators = Locators { local: client.locals()[0], remote: silent.local_addr().unwrap() };
    let paths = [(locators, PathConfig::default())];
    let connect = client.connect(ConnectionConfig::default(), PORT, &paths);
    assert!(tokio::time::timeout(Duration::from_millis(50), connect).await.is_err());
    assert!(client.shutdown(Duration::ZERO).await, "nothing left to reset");
}

#[tokio::test]
async fn a_stream_dropped_unfinished_resets_the_peer() {
    let (_client, ours, _server, theirs) = pair(1, ConnectionConfig::default()).await;
    ours.write(bytes(1, 0, 10)).await.unwrap();
    drop(ours);
    let lost = loop {
        match theirs.read(1000).await {
            Ok(chunk) => assert_ne!(chunk, None, "a reset is not an end"),
            Err(error) => break error,
        }
    };
    assert_eq!(lost, StreamError::Lost(CloseReason::Reset));
    assert_eq!(theirs.write(bytes(1, 0, 10)).await, Err(lost));
}

#[tokio::test]
async fn a_finished_stream_may_be_dropped_before_all_is_delivered() {
    let (_client, ours, _server, theirs) = pair(1, ConnectionConfig::default()).await;
    send(&ours, 1, 2_000_000).await;
    drop(ours);
    assert_eq!(receive(&theirs, 1, 0).await, 2_000_000);
}

#[tokio::test]
async fn writing_after_finish_is_an_error() {
    let (_client, ours, _server, _theirs) = pair(1, ConnectionConfig::default()).await;
    ours.finish();
    assert_eq!(ours.write(bytes(1, 0, 10)).await, Err(StreamError::Finished));
}

#[tokio::test]
async fn shutdown_delivers_and_then_ends_everything() {
    let (client, ours, server, theirs) = pair(2, ConnectionConfig::default()).await;
    ours.write(bytes(1, 0, 3_000_000)).await.unwrap();
    let reader = async {
        let received = receive(&theirs, 1, 0).await;
        theirs.finish();
        received
    };
    let (clean, received) = tokio::join!(client.shutdown(Duration::from_secs(20)), reader);
    assert!(clean);
    assert_eq!(received, 3_000_000);
    assert_eq!(ours.read(1).await, Ok(None), "the peer had finished");
    assert!(matches!(ours.write(bytes(1, 0, 1)).await, Err(StreamError::Finished)));
    drop(server);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(matches!(theirs.finished().await, Ok(()) | Err(StreamError::Stopped(None))));
}

#[tokio::test]
async fn shutdown_resets_a_peer_that_does_not_finish() {
    let (client, _ours, _server, theirs) = pair(1, ConnectionConfig::default()).await;
    assert!(!client.shutdown(Duration::from_millis(50)).await);
    assert_eq!(theirs.read(1).await, Ok(None));
    let written = async {
        loop {
            theirs.write(bytes(1, 0, 100)).await?;
        }
    };
    let error: Result<(), StreamError> = written.await;
    assert_eq!(error, Err(StreamError::Lost(CloseReason::Reset)));
}

#[tokio::test]
async fn a_wildcard_address_is_refused_with_a_reason() {
    let wildcard: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let error = Node::udp(EndpointConfig::default(), &[wildcard.into()]).err().unwrap();
    assert!(error.to_string().contains("0.0.0.0:0"), "{error}");
}

#[tokio::test]
async fn a_gathered_read_takes_all_there_is_up_to_its_limit() {
    let (_client, ours, _server, theirs) = pair(1, ConnectionConfig::default()).await;
    send(&ours, 3, 300_000).await;
    while theirs.stats().connection.bytes_received < 300_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut offset = 0;
    for len in [200_000, 100_000] {
        let chunks = theirs.read_chunks(200_000).await.unwrap().unwrap();
        assert_eq!(chunks.concat(), bytes(3, offset, len));
        offset += len;
    }
    assert_eq!(theirs.read_chunks(200_000).await, Ok(None));
}

#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn who_waits_to_read_is_woken_by_data_and_not_by_room_to_write() {
    let config = ConnectionConfig { send_buffer: 100_000, ..ConnectionConfig::default() };
    let (_client, ours, _server, theirs) = pair(1, config).await;
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut reading = pin!(ours.read(1000));
    assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    tokio::join!(send(&ours, 4, 1_000_000), receive(&theirs, 4, 0));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    theirs.write(bytes(5, 0, 1000)).await.unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), bytes(5, 0, 1000));
}

#[tokio::test]
async fn an_association_that_is_ended_while_it_begins_is_waited_for_no_longer() {
    let identity = |n| Identity::generate(KeyKind::P256, &mut Random::from_seed([n; 32])).unwrap();
    let sockets = UdpSockets::bind(&[SocketAddr::from(([127, 0, 0, 1], 0)).into()]).unwrap();
    let local = sockets.locals().next().unwrap();
    let node =
        Node::secure(EndpointConfig::default(), SecurityConfig::default(), identity(1), sockets).unwrap();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (peer, remote) = (identity(2).hit(), silent.local_addr().unwrap());
    let reach = Reach::Pairs(vec![Locators { local, remote }]);
    let ends = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        node.dissociate(peer);
    };
    let both = async { tokio::join!(node.associate(peer, reach), ends).0 };
    let waited = tokio::time::timeout(Duration::from_secs(20), both).await;
    assert_eq!(waited.expect("it is waited for still"), Err(AssociateError::Ended));
}
