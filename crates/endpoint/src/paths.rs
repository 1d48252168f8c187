//! Locator pairs and the paths they name.

use std::fmt;
use std::net::SocketAddr;

use polypath_transport::UnderWay;
use polypath_transport::path_map::{OfPath, PathMap};
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

/// The locators of one connection's paths.
#[derive(Debug, Default)]
pub(crate) struct PathTable(PathMap<Named>);

/// A path by the number that the connection gave it.
#[derive(Debug)]
struct Named {
    path: PathId,
    locators: Locators,
    /// What was under way there when it was last [counted](crate::beside).
    counted: UnderWay,
}

impl OfPath for Named {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl PathTable {
    /// The paths a connection begins with.
    pub fn new(locators: impl IntoIterator<Item = Locators>) -> Self {
        let mut table = Self::default();
        locators.into_iter().zip(0..).for_each(|(locators, n)| table.insert(PathId(n), locators));
        table
    }

    /// The locators of a path that is there.
    pub fn locators(&self, path: PathId) -> Option<&Locators> {
        self.0.get(path).map(|named| &named.locators)
    }

    /// Adds the path the connection numbered `path`.
    pub fn insert(&mut self, path: PathId, locators: Locators) {
        self.0.insert(Named { path, locators, counted: UnderWay::default() });
    }

    /// Removes a path, on which so much was counted.
    pub fn remove(&mut self, path: PathId) -> Option<(Locators, UnderWay)> {
        self.0.remove(path).map(|named| (named.locators, named.counted))
    }

    /// The paths with what was last counted there.
    pub fn counted(&mut self) -> impl Iterator<Item = (PathId, &Locators, &mut UnderWay)> {
        self.0.iter_mut().map(|named| (named.path, &named.locators, &mut named.counted))
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The paths in use.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, Locators)> {
        self.0.iter().map(|named| (named.path, named.locators))
    }
}
