//! The paths of a connection.

use polypath_wire::PathId;

use crate::engine::config::PathConfig;
use crate::path_map::{OfPath, PathMap};

/// Which paths there are: what is said here of a path holds, whatever else is kept of it elsewhere.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) members: PathMap<Member>,
    /// The number to be given next, unless its place is taken.
    next: PathId,
}

/// A path as its owner configured it.
#[derive(Debug)]
pub(super) struct Member {
    pub path: PathId,
    pub config: PathConfig,
}

impl OfPath for Member {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl Paths {
    /// One more path, in the place that was free for longest; none if no place is.
    pub(super) fn add(&mut self, config: PathConfig) -> Option<PathId> {
        if self.members.len() >= PathId::PLACES {
            return None;
        }
        while self.members.at_place(self.next.place()).is_some() {
            self.next = self.next.next();
        }
        let path = self.next;
        self.next = path.next();
        self.members.insert(Member { path, config });
        Some(path)
    }

    /// Whether `path` is there.
    #[inline]
    pub(super) fn contains(&self, path: PathId) -> bool {
        self.members.contains(path)
    }

    /// Whether `path` is there, or was.
    #[inline]
    pub(super) fn knows(&self, path: PathId) -> bool {
        path.is_before(self.next) || self.contains(path)
    }

    /// Number of paths.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The paths with their configurations, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PathId, &PathConfig)> {
        self.members.iter().map(|m| (m.path, &m.config))
    }

    /// The path that has this place.
    pub(super) fn at_place(&self, place: u8) -> Option<PathId> {
        self.members.at_place(place)
    }

    /// The path that came after `path`, after the last the first; `path` itself if there is no other.
    pub(super) fn after(&self, path: PathId) -> PathId {
        let mut later = self.members.ids().skip_while(|p| *p == path || p.is_before(path));
        later.next().or(self.members.ids().next()).unwrap_or(path)
    }
}
