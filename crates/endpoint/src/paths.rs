//! Locator pairs and the paths they name.

use std::fmt;
use std::net::SocketAddr;

use polypath_wire::PathId;
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

/// The locators of one connection's paths, by [`PathId`].
#[derive(Debug)]
pub(crate) struct PathTable(Vec<Option<Locators>>);

impl PathTable {
    pub fn new(locators: impl IntoIterator<Item = Locators>) -> Self {
        Self(locators.into_iter().map(Some).collect())
    }

    /// The locators of a path that was not removed.
    pub fn locators(&self, path: PathId) -> Option<&Locators> {
        self.0.get(path.index())?.as_ref()
    }

    /// Adds the path the connection numbered `path`.
    pub fn insert(&mut self, path: PathId, locators: Locators) {
        if path.index() >= self.0.len() {
            self.0.resize(path.index() + 1, None);
        }
        self.0[path.index()] = Some(locators);
    }

    /// Removes a path; its id is not used again.
    pub fn remove(&mut self, path: PathId) -> Option<Locators> {
        self.0.get_mut(path.index())?.take()
    }

    /// Number of paths ever added.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The paths in use.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, Locators)> {
        self.0.iter().zip(0u8..).filter_map(|(l, id)| Some((PathId(id), (*l)?)))
    }
}
