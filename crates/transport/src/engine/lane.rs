//! What the engine knows of one path.

use polypath_wire::{Duration, Instant, PathId, Rate};

use super::marks::Marks;
use super::piece::Piece;
use super::stats::PathStats;
use crate::facts::{Beside, Episode, KnownPath, LossEvent, UnderWay};
use crate::path::estimator::PathEstimator;
use crate::path::flight::Flight;
use crate::path::limit::Limit;
use crate::path::others::Others;
use crate::path_map::OfPath;

/// A path: what left there, and what that tells. What controller and scheduler see of it is its
/// [view](crate::facts::PathView).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lane {
    pub(super) path: PathId,
    /// Timeouts since anything was delivered.
    pub(super) timeouts: u32,
    pub(super) recovering: Option<Episode>,
    /// Without timestamps: the next transmission that is timed.
    pub(super) timed_from: u64,
    /// Bytes under way that the owner accounts for itself.
    pub(super) aside: u64,
    /// What others of the association have under way there, too.
    pub(super) beside: Option<Beside>,
    /// The window was full when something left last: the time until it opens is no lateness of a timer.
    pub(super) was_full: bool,
    /// What an earlier connection measured, until the first round trip shows whether it still holds.
    pub(super) known: Option<KnownPath>,
    /// How far its first flight is, and what of the stream is its end, bytes delivered.
    pub(super) start: Start,
    pub(super) first_flight: u64,
    /// It had a turn, and lost nothing in its first flight yet.
    pub(super) had_turn: bool,
    /// What left, in its order.
    pub flight: Flight,
    /// Round trips, delays, rates.
    pub estimator: PathEstimator,
    pub(super) stats: PathStats,
    pub(super) silence: Silence,
    /// Set by a timeout, until an acknowledgment shows whether it was for nothing.
    pub(super) doubt: Option<Doubt>,
    /// Bytes sent since pacing last held the path back.
    pub(super) burst: u64,
    /// Bytes that leave together next, where more wait.
    pub(super) together: u64,
    /// What it is limited to.
    pub(super) limit: Option<Limit>,
    /// Marks of congestion.
    pub(super) marks: Marks,
    /// The queue of others.
    pub(super) others: Others,
    /// What leaves together, where a network card cuts segments.
    pub(super) piece: Piece,
}

/// How far the first flight of a path is, which is known from earlier connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// It had no turn yet.
    Ahead,
    /// It had one, and may have more.
    Begun,
    /// It was delivered, or lost something, or may not grow.
    Over,
}

/// A timeout that may have been for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Doubt {
    /// What was sent before this was in flight.
    pub since: Instant,
    /// What the controller calls it.
    pub episode: Episode,
}

/// How silent a path is.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// When something that left on it was delivered last, or it began to have something in flight.
    pub heard: Instant,
    /// For how long only others delivered.
    pub unheard: Duration,
    /// Set while the path is failed for its silence.
    pub failure: Option<Failure>,
}

/// A path that failed for its silence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub since: Instant,
    /// The controller has not heard of it.
    pub loss: LossEvent,
    /// The first heartbeat that probed it.
    pub asked: Option<u32>,
}

impl Silence {
    /// Something is in flight again, or was delivered.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.heard, self.unheard) = (now, Duration::ZERO);
    }
}

impl OfPath for Lane {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl Lane {
    /// Whether anything is under way.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        self.flight.is_outstanding() || self.aside > 0
    }

    /// Bytes under way.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.flight.in_flight() + self.aside
    }

    /// What is under way over a round trip.
    pub(crate) fn pace(&self) -> Rate {
        self.estimator.rtt.srtt().map_or(Rate(0), |srtt| Rate::from_bytes_per(self.in_flight(), srtt))
    }

    /// Bytes under way, and all that left and were delivered.
    #[inline]
    pub(crate) fn under_way(&self) -> UnderWay {
        let (sent, delivered) = (self.stats.bytes_sent, self.stats.bytes_delivered);
        UnderWay { sent, in_flight: self.in_flight(), delivered }
    }

    /// When the bottleneck, of this `rate`, will have sent what is under way: `in_flight` of ours, and what others have there.
    #[inline]
    pub(super) fn idle_at(&self, now: Instant, in_flight: u64, rate: Option<Rate>) -> Instant {
        let alone = self.estimator.idle_at(now, in_flight, rate);
        self.beside.map_or(alone, |beside| alone.max(beside.busy_until))
    }
}
