//! The state of one path that marks of congestion change.

use polypath_wire::Instant;

/// The reductions for marks on one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The window does not grow before this.
    pub(super) until: Instant,
    /// The controller hears of no further mark before this.
    pub(super) deaf_until: Instant,
    /// When it last heard of one.
    pub(super) heard: Instant,
    /// The peer must hear that the window was reduced.
    pub(super) owed: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self { until: Instant::ZERO, deaf_until: Instant::ZERO, heard: Instant::ZERO, owed: false }
    }
}

impl Marks {
    /// Whether the window was reduced for one less than a round trip ago.
    #[inline]
    pub(super) fn hold_back(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Whether the window was reduced for a mark after that left.
    pub(super) fn answer_for(&self, sent_at: Instant) -> bool {
        sent_at < self.heard
    }
}
