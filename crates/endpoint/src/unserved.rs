//! How many connections peers opened that the application has not taken up: what they make a host hold is bounded by
//! their number and by [`unread_window`](polypath_transport::ConnectionConfig::unread_window).

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::config::EndpointConfig;

/// Counts them, in all and of each peer.
#[derive(Debug, Default)]
pub(crate) struct Unserved {
    all: u32,
    of_peer: BTreeMap<IpAddr, u32>,
}

impl Unserved {
    /// Whether `peer` may open one more.
    pub fn admits(&self, peer: IpAddr, limits: &EndpointConfig) -> bool {
        let own = self.of_peer.get(&peer).copied().unwrap_or(0);
        self.all < limits.max_unserved && own < limits.max_unserved_of_peer
    }

    /// `peer` opened one.
    pub fn enter(&mut self, peer: IpAddr) {
        self.all += 1;
        *self.of_peer.entry(peer).or_default() += 1;
    }

    /// One of `peer` was taken up, or is no more.
    pub fn leave(&mut self, peer: IpAddr) {
        self.all -= 1;
        if let Some(own) = self.of_peer.get_mut(&peer) {
            *own -= 1;
            if *own == 0 {
                self.of_peer.remove(&peer);
            }
        }
    }
}
