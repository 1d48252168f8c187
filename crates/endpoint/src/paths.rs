//! Locator pairs and the paths they name.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The two ends of a path. Under IP framing the ports are 0 (the TCP header has its own); under
/// UDP framing they are the UDP ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Locators {
    /// Our end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

impl Locators {
    /// The same path as the peer sees it.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }
}

impl fmt::Display for Locators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.local, self.remote)
    }
}
