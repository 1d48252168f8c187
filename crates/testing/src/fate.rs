//! What a script does with a packet.

use polypath_wire::Duration;

/// What becomes of a packet that is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate<P> {
    /// It goes on.
    Pass,
    /// It is lost.
    Lose,
    /// It goes on, and so does a copy.
    Twice,
    /// It takes longer by this.
    Delay(Duration),
    /// These go on in its place, each longer by its time.
    Instead(Vec<(Duration, P)>),
}

impl<P: Clone> Fate<P> {
    /// Lost where `lost`.
    pub fn lose_if(lost: bool) -> Self {
        if lost { Self::Lose } else { Self::Pass }
    }

    /// This one in its place.
    pub fn replaced(packet: P) -> Self {
        Self::Instead(vec![(Duration::ZERO, packet)])
    }

    pub(crate) fn copies(self, packet: P) -> Vec<(Duration, P)> {
        match self {
            Self::Pass => vec![(Duration::ZERO, packet)],
            Self::Lose => Vec::new(),
            Self::Twice => vec![(Duration::ZERO, packet.clone()), (Duration::ZERO, packet)],
            Self::Delay(late) => vec![(late, packet)],
            Self::Instead(others) => others,
        }
    }
}
