//! Connections to a peer opened ahead: a request on one of them waits for no handshake.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use polypath_node::{Node, Stream, StreamError};
use polypath_transport::{ConnectionConfig, State};
use polypath_wire::hip::Hit;
use tokio::sync::Notify;

use crate::request::PORT;

/// How often it is looked at without being asked: connections may have been lost meanwhile.
const LOOK: Duration = Duration::from_secs(5);

/// The connections ahead of one peer.
pub struct Pool {
    peer: Hit,
    config: ConnectionConfig,
    /// How many there should be.
    size: usize,
    ready: Mutex<VecDeque<Stream>>,
    wanted: Notify,
}

impl Pool {
    /// None yet; [`fill`](Self::fill) opens `size` of them.
    pub fn new(peer: Hit, config: ConnectionConfig, size: usize) -> Self {
        Self { peer, config, size, ready: Mutex::default(), wanted: Notify::new() }
    }

    /// One that is open, if there is one.
    pub fn take(&self) -> Option<Stream> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.notify_one();
        std::iter::from_fn(|| ready.pop_front()).find(|stream| stream.state() == State::Established)
    }

    /// Opens one.
    pub async fn open(&self, node: &Node) -> Result<Stream, StreamError> {
        node.connect_peer(self.config.clone(), self.peer, PORT).await
    }

    /// Keeps the number up while there is an association, for ever.
    pub async fn fill(&self, node: &Node) {
        loop {
            while self.lacks() && node.is_associated(self.peer) {
                match self.open(node).await {
                    Ok(stream) => self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(stream),
                    Err(_) => break,
                }
            }
            // Either way it is time to look again.
            let _ = tokio::time::timeout(LOOK, self.wanted.notified()).await;
        }
    }

    /// Whether there are fewer than there should be, once those that were lost are dropped.
    fn lacks(&self) -> bool {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.retain(|stream| stream.state() == State::Established);
        ready.len() < self.size
    }

    /// Has [`fill`](Self::fill) look at once.
    pub fn wake(&self) {
        self.wanted.notify_one();
    }
}
