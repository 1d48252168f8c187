//! Loss episodes of policies that recover each path on its own: numbered through the connection, at
//! most one at a time on a path.

use polypath_wire::PathId;

use super::scoreboard::Scoreboard;
use crate::facts::Episode;

/// An episode, and what no longer belongs to it: what was sent from this transmission on (or, as its
/// policy has it, from this offset on).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begun {
    pub episode: Episode,
    pub until: u64,
}

impl Begun {
    /// Whether all transmissions on `path` that belong to it are accounted for, and a later one was
    /// delivered.
    pub fn is_over(&self, path: PathId, board: &Scoreboard) -> bool {
        let resolved = board.oldest_in_flight(path).is_none_or(|s| s.tx >= self.until);
        resolved && board.highest_delivered(path).is_some_and(|tx| tx >= self.until)
    }
}

/// The present episode of each path.
#[derive(Debug, Default)]
pub(super) struct Episodes {
    last: Episode,
    present: Vec<Option<Begun>>,
}

impl Episodes {
    pub fn present(&self, path: PathId) -> Option<Begun> {
        self.present.get(path.index()).copied().flatten()
    }

    /// A new one on `path`, in the place of the one before.
    pub fn begin(&mut self, path: PathId, until: u64) -> Begun {
        self.last.0 += 1;
        if self.present.len() <= path.index() {
            self.present.resize(path.index() + 1, None);
        }
        let begun = Begun { episode: self.last, until };
        self.present[path.index()] = Some(begun);
        begun
    }

    /// Ends that of `path` if it is `over`.
    pub fn end_if(&mut self, path: PathId, over: impl FnOnce(&mut Begun) -> bool) -> Option<Begun> {
        self.present.get_mut(path.index())?.take_if(over)
    }

    /// Ends that of `path`, whatever there is of it.
    pub fn forget(&mut self, path: PathId) {
        self.end_if(path, |_| true);
    }
}
