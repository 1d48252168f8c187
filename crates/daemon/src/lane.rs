//! What both ends of the lane share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ipnet::IpNet;
use polypath_node::{Bypass, Node, PacketLane};
use polypath_transport::ConnectionConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::own::Own;
use crate::panics::Panics;
use crate::peers::{Counted, Peer, Peers};

/// Keep-alives without an answer after which a host is gone.
const KEEP_ALIVES: u32 = 12;

/// Both nodes, the peers, and what they are carrying.
pub(crate) struct Lane {
    /// Our TCP behind the TUN device.
    pub inner: Node,
    /// HIP and ESP with the peers.
    pub outer: Node,
    pub peers: Peers,
    /// What is not carried as a connection.
    pub packets: Packets,
    /// What connections of the inner node begin with.
    pub connection: ConnectionConfig,
    /// Largest packet on the device, bytes.
    pub mtu: u32,
    /// One for each connection that may be carried at the same time.
    pub places: Arc<Semaphore>,
    /// How many there are.
    pub connections: usize,
    pub counters: Counters,
    pub panics: Panics,
}

/// A place in the lane that a connection has, until it is dropped.
pub(crate) struct Place {
    _counted: Counted,
    _permit: OwnedSemaphorePermit,
}

impl Lane {
    /// How long nothing may move on the way to a host before it counts as gone: as long as its silence is borne.
    pub fn patience(&self) -> Duration {
        KEEP_ALIVES * Duration::from(self.connection.keep_alive)
    }

    /// Begins a task that ends by itself.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        tokio::spawn(self.panics.clone().noted(task))
    }

    /// A place for a connection with a peer, if there is one for it.
    pub fn place(&self, peer: &Peer) -> Option<Place> {
        let permit = self.places.clone().try_acquire_owned().ok()?;
        let most = share(self.connections, self.peers.now().len());
        Some(Place { _counted: peer.link.count(|link| &link.places, most)?, _permit: permit })
    }

    /// Waits for an association with a peer that answers.
    pub async fn reached(&self, peer: &Peer) {
        peer.link.until(|| !peer.link.is_silent() && self.outer.is_associated(peer.config.hit)).await;
    }

    /// Waits for an association with a peer.
    pub async fn associated(&self, peer: &Peer) {
        peer.link.until(|| self.outer.is_associated(peer.config.hit)).await;
    }
}

/// The largest number of `connections` that one peer may use. With several peers a quarter stays free for the others.
fn share(connections: usize, peers: usize) -> usize {
    if peers > 1 { connections - connections / 4 } else { connections }
}

/// Both ends of the packet lane at this host: the device, and the peers.
pub(crate) struct Packets {
    pub device: Arc<Bypass>,
    pub peers: PacketLane,
    /// Those in which this host has an address in the tunnel.
    pub networks: Vec<IpNet>,
    pub counters: NotCarried,
    pub own: Own,
}

/// Packets that were not carried, by why.
#[derive(Debug, Default)]
pub(crate) struct NotCarried {
    /// From the device: nobody is behind the address, or the peer cannot be reached, or too big, or no IP.
    pub no_peer: AtomicU64,
    pub no_association: AtomicU64,
    pub too_big: AtomicU64,
    pub malformed: AtomicU64,
    /// From peers: between addresses that are not for them to use.
    pub forbidden: AtomicU64,
}

/// What the lane did since it began.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Connections that this host opened to a peer's side, and that it opened for one.
    pub outgoing: AtomicU64,
    pub incoming: AtomicU64,
    /// Connections for which there was no place in the lane, here or at the peer.
    pub by_packets: AtomicU64,
    /// Connections that were not carried: nobody is behind the address, the peer cannot be reached, too many of the peer's,
    /// not allowed.
    pub no_peer: AtomicU64,
    pub no_association: AtomicU64,
    pub busy: AtomicU64,
    pub forbidden: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_leaves_places_to_the_others_if_there_are_any() {
        assert_eq!([(64, 1), (64, 2), (1, 2), (4096, 1000)].map(|(c, p)| share(c, p)), [64, 48, 1, 3072]);
    }
}
