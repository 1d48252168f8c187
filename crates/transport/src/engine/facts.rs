//! What the engine tells its owner.

use polypath_wire::PathId;

use crate::facts::{Episode, LossCause};
use crate::loss::policy::Departure;
use crate::path::transmission::Transmission;

/// Something became of what left.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fact {
    /// The transmission is taken to be lost; its owner may send the cargo again.
    Lost {
        /// Which.
        what: Departure,
        /// What it was.
        transmission: Transmission,
        /// Why.
        cause: LossCause,
        /// In which episode.
        episode: Episode,
        /// The path that is charged with it: most often the one it left on.
        charged: PathId,
        /// It is the first loss of that episode.
        first: bool,
    },
    /// So is all that the owner [accounts for itself](crate::engine::aside) on the path.
    LostAside(PathId),
}

/// What a judgement changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Judged {
    /// New loss episodes.
    pub episodes: u32,
    /// Episodes undone.
    pub undone: u32,
}
