//! What is remembered of what left.

use polypath_wire::Instant;

use super::bandwidth::DeliveryMark;

/// What leaves on a path, as its owner names it: the lane keeps the name and hands it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cargo {
    /// Its name. A byte stream names its segments by their offset.
    pub key: u64,
    /// Bytes.
    pub len: u32,
    /// Whether it left before.
    pub history: History,
}

/// How often a cargo left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum History {
    /// Once.
    Once,
    /// More often.
    Again,
    /// More often, and the transmission before bore an older timestamp: an echo tells which is answered.
    AgainLater,
}

/// One transmission on a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Transmission {
    /// What it carries.
    pub cargo: Cargo,
    /// When it left.
    pub sent_at: Instant,
    /// The path's delivery state at that moment.
    pub mark: DeliveryMark,
    /// What became of it.
    pub fate: Fate,
    /// Copies of it left with it on other paths.
    pub copied: bool,
    /// A copy of it left on another path later.
    pub reinjected: bool,
}

/// What became of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Nothing is known yet.
    InFlight,
    /// It was delivered.
    Delivered,
    /// It was judged lost.
    Lost,
}

impl Transmission {
    /// `cargo` leaves now.
    pub(crate) fn new(cargo: Cargo, sent_at: Instant, mark: DeliveryMark) -> Self {
        Self { cargo, sent_at, mark, fate: Fate::InFlight, copied: false, reinjected: false }
    }

    /// Its cargo had left before.
    pub(crate) fn retransmitted(&self) -> bool {
        self.cargo.history != History::Once
    }

    /// Its cargo left on other occasions too: what acknowledges it may answer another transmission.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.retransmitted() || self.reinjected
    }

    /// Bytes.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.cargo.len.into()
    }
}
