//! Connections to a peer opened ahead: a request on one of them waits for no handshake. There are none until the first request,
//! and none any more once there were no requests for a while: a peer that nobody uses costs none.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polypath_node::{Node, Stream, StreamError};
use polypath_transport::{ConnectionConfig, State};
use polypath_wire::hip::Hit;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::request::PORT;

/// How often it is looked at without being asked: connections may have been lost meanwhile.
const LOOK: Duration = Duration::from_secs(5);
/// How long after the last request connections are kept.
pub const KEPT: Duration = Duration::from_secs(300);

/// The connections ahead of one peer.
pub struct Pool {
    peer: Hit,
    config: ConnectionConfig,
    /// How many there should be, and how long after the last request.
    size: usize,
    kept: Duration,
    ready: Mutex<Ready>,
    wanted: Notify,
}

/// Connections that are open, and when the last one was asked for.
#[derive(Default)]
struct Ready {
    streams: VecDeque<Stream>,
    asked: Option<Instant>,
}

impl Pool {
    /// None yet; [`fill`](Self::fill) opens `size` of them once one was asked for, and closes them when none was for as long as
    /// they are `kept`.
    pub fn new(peer: Hit, config: ConnectionConfig, size: usize, kept: Duration) -> Self {
        Self { peer, config, size, kept, ready: Mutex::default(), wanted: Notify::new() }
    }

    /// One that is open, if there is one.
    pub fn take(&self) -> Option<Stream> {
        let mut ready = self.ready();
        ready.asked = Some(Instant::now());
        self.wanted.notify_one();
        std::iter::from_fn(|| ready.streams.pop_front()).find(|stream| stream.state() == State::Established)
    }

    /// Begins one: what is written to it leaves with its SYN if the peer takes that.
    pub fn begin(&self, node: &Node) -> Result<Stream, StreamError> {
        let config = ConnectionConfig { early_data: true, ..self.config.clone() };
        node.open_peer(config, self.peer, PORT)
    }

    /// Opens one.
    pub async fn open(&self, node: &Node) -> Result<Stream, StreamError> {
        node.connect_peer(self.config.clone(), self.peer, PORT).await
    }

    /// Keeps the number up while they are used and there is an association, for ever.
    pub async fn fill(&self, node: &Node) {
        loop {
            while self.lacks() && node.is_associated(self.peer) {
                match self.open(node).await {
                    Ok(stream) => self.ready().streams.push_back(stream),
                    Err(_) => break,
                }
            }
            match self.is_used() {
                true => _ = timeout(LOOK.min(self.kept), self.wanted.notified()).await,
                false => self.rest().await,
            }
        }
    }

    /// Whether there are fewer than there should be, once those that were lost are dropped.
    fn lacks(&self) -> bool {
        self.ready().streams.retain(|stream| stream.state() == State::Established);
        self.is_used() && self.ready().streams.len() < self.size
    }

    fn is_used(&self) -> bool {
        self.ready().asked.is_some_and(|asked| asked.elapsed() < self.kept)
    }

    /// Lets go of all, until one is asked for.
    async fn rest(&self) {
        let left = std::mem::take(&mut self.ready().streams);
        left.iter().for_each(Stream::finish);
        drop(left);
        self.wanted.notified().await;
    }

    fn ready(&self) -> MutexGuard<'_, Ready> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has [`fill`](Self::fill) look at once.
    pub fn wake(&self) {
        self.wanted.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use polypath_endpoint::{EndpointConfig, ListenConfig, Locators, Reach, SecurityConfig};
    use polypath_hip::{Identity, KeyKind, Random};
    use polypath_node::UdpSockets;
    use tokio::time::sleep;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn node(seed: u8) -> (Node, SocketAddr) {
        let identity = Identity::generate(KeyKind::P256, &mut Random::from_seed([seed; 32])).unwrap();
        let sockets = UdpSockets::bind(&[SocketAddr::from(([127, 0, 0, seed], 0)).into()]).unwrap();
        let at = sockets.locals().next().unwrap();
        let (limits, security) = (EndpointConfig::default(), SecurityConfig::default());
        (Node::secure(limits, security, identity, sockets).unwrap(), at)
    }

    /// Two hosts with an association, what is opened at the second, and a pool of the first.
    async fn bed(size: usize, kept: Duration) -> (Node, Node, polypath_node::Listener, Pool) {
        let ((ours, here), (theirs, there)) = (node(1), node(2));
        let (peer, locators) = (theirs.hit().unwrap(), Locators { local: here, remote: there });
        let listener = theirs.listen(PORT, ListenConfig::default()).unwrap();
        ours.associate(peer, Reach::Pairs(vec![locators])).await.unwrap();
        let pool = Pool::new(peer, ConnectionConfig::default(), size, kept);
        (ours, theirs, listener, pool)
    }

    #[tokio::test]
    async fn connections_are_opened_ahead_once_one_was_asked_for() {
        let (ours, _theirs, listener, pool) = bed(3, KEPT).await;
        let test = async {
            pool.wake();
            // Whoever opens one now opens it after those that the pool would.
            let _own = pool.open(&ours).await.unwrap();
            let _first = listener.accept().await.unwrap();
            assert_eq!(ours.stats().connected, 1, "nobody has asked");
            assert!(pool.take().is_none());
            for _ in 0..3 {
                drop(listener.accept().await.unwrap());
            }
        };
        tokio::select! {
            () = test => {}
            () = pool.fill(&ours) => {}
            () = sleep(PATIENCE) => panic!("it takes too long"),
        }
    }

    #[tokio::test]
    async fn connections_that_nobody_asks_for_are_closed_until_one_is() {
        let (ours, _theirs, listener, pool) = bed(1, Duration::from_secs(2)).await;
        let test = async {
            for _ in 0..2 {
                pool.take();
                let accepted = listener.accept().await.unwrap();
                assert_eq!(accepted.read(1).await, Ok(None), "finished, not reset");
            }
        };
        tokio::select! {
            () = test => {}
            () = pool.fill(&ours) => {}
            () = sleep(PATIENCE) => panic!("it takes too long"),
        }
    }
}
