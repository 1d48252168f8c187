//! Loss episodes of policies that recover each path on its own: numbered through the connection, at
//! most one at a time on a path.

use polypath_wire::PathId;

use crate::facts::Episode;
use crate::path::flight::Flight;
use crate::path_map::{OfPath, PathMap};

/// An episode, and what no longer belongs to it: what was sent from this transmission on (or, as its
/// policy has it, from this offset on).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begun {
    pub episode: Episode,
    pub until: u64,
}

impl Begun {
    /// Whether all transmissions of the path that belong to it are accounted for, and a later one was
    /// delivered.
    pub(super) fn is_over(&self, flight: &Flight) -> bool {
        let resolved = flight.iter().next().is_none_or(|(oldest, _)| oldest >= self.until);
        resolved && flight.highest_delivered().is_some_and(|highest| highest >= self.until)
    }
}

/// The present episode of each path.
#[derive(Debug, Default)]
pub(super) struct Episodes {
    last: Episode,
    paths: PathMap<Present>,
}

/// The episode of one path, if any.
#[derive(Debug)]
struct Present {
    path: PathId,
    begun: Option<Begun>,
}

impl OfPath for Present {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl Episodes {
    pub(super) fn present(&self, path: PathId) -> Option<Begun> {
        self.paths.get(path)?.begun
    }

    /// A new one on `path`, in the place of the one before.
    pub(super) fn begin(&mut self, path: PathId, until: u64) -> Begun {
        self.last.0 += 1;
        let begun = Begun { episode: self.last, until };
        self.paths.or_insert(path, |path| Present { path, begun: None }).begun = Some(begun);
        begun
    }

    /// Ends the episode of `path` if it is `over`.
    pub(super) fn end_if(&mut self, path: PathId, over: impl FnOnce(&mut Begun) -> bool) -> Option<Begun> {
        self.paths.get_mut(path)?.begun.take_if(over)
    }

    /// `path` is no more.
    pub(super) fn remove(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// Ends the episode of `path`, whether or not it is over.
    pub(super) fn forget(&mut self, path: PathId) {
        self.end_if(path, |_| true);
    }
}
