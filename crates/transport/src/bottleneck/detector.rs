//! The seam between who measures paths and who compares them.

use std::fmt::Debug;

use polypath_wire::{Duration, Instant, PathId};

/// Compares paths by what is measured on them.
pub(crate) trait Detector: Debug + Send {
    /// A packet that left on `path` at `sent` waited in queues for `queueing`, up to a constant; `rtt` is the smallest round
    /// trip of the path. Told as its acknowledgment comes.
    fn on_delay(&mut self, path: PathId, sent: Instant, queueing: Duration, rtt: Duration);
    /// `packets` of `path` were delivered.
    fn on_delivered(&mut self, _path: PathId, _packets: u32) {}
    /// A packet that had left on `path` at `sent` was lost.
    fn on_loss(&mut self, _path: PathId, _sent: Instant) {}
    /// `path` is gone.
    fn forget(&mut self, path: PathId);
    /// Lets go of measurements that are too old to be compared.
    fn rest(&mut self, _now: Instant) {}
    /// Time passes; asked before [`likeness`](Self::likeness) is.
    fn advance(&mut self, _now: Instant) {}
    /// How alike two paths were since `since`, from −1 (opposites) to 1 (the same); none if that is not known yet.
    fn likeness(&mut self, now: Instant, since: Instant, paths: (PathId, PathId)) -> Option<f64>;
}
