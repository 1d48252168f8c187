//! The peers, and which of them is behind an address.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ipnet::IpNet;
use polypath_transport::ConnectionConfig;
use polypath_wire::hip::Hit;
use tokio::sync::Notify;

use crate::config::Peer as PeerConfig;
use crate::pool::Pool;

/// A peer at run time.
pub struct Peer {
    /// What the configuration says of it.
    pub config: PeerConfig,
    /// Connections opened ahead.
    pub pool: Pool,
    /// An association with it came or went.
    pub changed: Notify,
    /// Bytes of connections to and from it.
    pub sent: AtomicU64,
    /// The same in the other direction.
    pub received: AtomicU64,
}

/// All peers.
pub struct Peers(Vec<Arc<Peer>>);

impl Peers {
    /// The configured peers. `spare` connections to each are opened ahead.
    pub fn new(peers: &[PeerConfig], connection: &ConnectionConfig, spare: usize) -> Self {
        let peer = |config: &PeerConfig| {
            Arc::new(Peer {
                pool: Pool::new(config.hit, connection.clone(), spare),
                config: config.clone(),
                changed: Notify::new(),
                sent: AtomicU64::new(0),
                received: AtomicU64::new(0),
            })
        };
        Self(peers.iter().map(peer).collect())
    }

    /// The peer behind an address: of several prefixes that contain it the longest decides.
    pub fn behind(&self, address: IpAddr) -> Option<&Arc<Peer>> {
        let longest = |peer: &Arc<Peer>| {
            let lengths = peer.config.prefixes.iter().filter(|p| p.contains(&address)).map(IpNet::prefix_len);
            lengths.max()
        };
        let of_those = self.0.iter().filter_map(|peer| Some((longest(peer)?, peer)));
        of_those.max_by_key(|(length, _)| *length).map(|(_, peer)| peer)
    }

    /// The peer with that tag.
    pub fn with_hit(&self, hit: Hit) -> Option<&Arc<Peer>> {
        self.0.iter().find(|peer| peer.config.hit == hit)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let peer = |n: u8, prefixes: &[&str]| PeerConfig {
            name: n.to_string(),
            hit: Hit([n; 16]),
            addresses: Vec::new(),
            prefixes: prefixes.iter().map(|p| p.parse().unwrap()).collect(),
        };
        let all = [peer(1, &["0.0.0.0/0", "fd00::/8"]), peer(2, &["10.0.0.0/8", "10.1.0.0/16"])];
        let peers = Peers::new(&all, &ConnectionConfig::default(), 0);
        let behind = |ip: &str| peers.behind(ip.parse().unwrap()).map(|peer| peer.config.name.clone());
        assert_eq!(behind("192.0.2.1").as_deref(), Some("1"));
        assert_eq!(behind("10.1.2.3").as_deref(), Some("2"));
        assert_eq!(behind("fd00::1").as_deref(), Some("1"));
        assert_eq!(behind("2001:db8::1"), None);
    }
}
