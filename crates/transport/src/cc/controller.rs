//! The seam between the connection and its congestion control.

use std::fmt::Debug;

use polypath_wire::{Instant, PathId, Rate};
use serde::Serialize;

use crate::bottleneck::Verdict;
use crate::facts::{AckSample, Episode, FirstFlight, LossEvent, LostSegment, Pace, PathView};

/// What a controller is doing, for records and statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Exponential growth.
    #[default]
    SlowStart,
    /// Linear growth, or whatever the algorithm does instead.
    CongestionAvoidance,
}

/// State of one path's window.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// Congestion window, bytes.
    pub window: u64,
    /// Slow start threshold, bytes.
    pub ssthresh: Option<u64>,
    /// Estimate of the path's rate, if the algorithm makes its own.
    pub rate: Option<Rate>,
    /// Phase.
    pub phase: Phase,
}

/// Congestion control of *one connection over all its paths*: coupled algorithms need the siblings,
/// two-level ones a total. It never sees nor touches what is in flight: the caller compares.
pub trait Controller: Debug + Send {
    /// A path joined; `mss` is its largest payload in bytes.
    fn on_path_added(&mut self, now: Instant, path: PathId, mss: u32);
    /// A path left for good.
    fn on_path_removed(&mut self, _now: Instant, _path: PathId) {}
    /// A path that was just added leaves by the link of ours with this number: paths over one link share it.
    fn on_link(&mut self, _now: Instant, _path: PathId, _link: u32) {}
    /// Another connection found `path` to lead through this bottleneck.
    fn on_bottleneck(&mut self, _now: Instant, _path: PathId, _bottleneck: u32) {}
    /// The largest payload of a path changed.
    fn on_mss(&mut self, path: PathId, mss: u32);
    /// Whether its windows are all it says, ever: then it is not asked to pace, has no period, and does not
    /// hear what was sent.
    fn window_only(&self) -> bool {
        false
    }
    /// Whether it takes packet trains for the rate of the bottleneck.
    fn goes_by_trains(&self) -> bool {
        false
    }
    /// Whether it compares the delays of paths, where there are several.
    fn compares_paths(&self) -> bool {
        false
    }
    /// `bytes` of data left.
    fn on_sent(&mut self, _now: Instant, _path: PathId, _bytes: u64) {}
    /// The window of `path` is at most `bytes` now, a segment or more, and grows from there: data begins with
    /// less than the initial window.
    fn limit_window(&mut self, path: PathId, bytes: u64);
    /// Whether the window of `path` may [begin](Self::on_first_flight) with what is known of the path: it has not left its first, paced
    /// slow start.
    fn starts(&self, _path: PathId) -> bool {
        false
    }
    /// The window of `path`, which [starts](Self::starts), is at least what `first` needs.
    fn on_first_flight(&mut self, _path: PathId, _first: &FirstFlight) {}
    /// Data was delivered; once per path and acknowledgment.
    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, paths: &[PathView]);
    /// An acknowledgment came by `path` itself; `sample` has round trips and queueing of the newest packet that it covers, nothing else.
    /// Called if the controller [compares paths](Self::compares_paths).
    fn on_own_ack(&mut self, _now: Instant, _path: PathId, _sample: &AckSample) {}
    /// A segment was judged lost.
    fn on_lost(&mut self, _now: Instant, _path: PathId, _segment: &LostSegment) {}
    /// A loss episode began.
    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, paths: &[PathView]);
    /// The peer reports a mark of congestion, of a packet that left since the last reduction (RFC 3168 §6.1.2): a loss without anything lost.
    fn on_mark(&mut self, now: Instant, path: PathId, mark: &LossEvent, paths: &[PathView]) {
        self.on_loss(now, path, mark, paths);
    }
    /// Whether it answers marks as it does losses. Otherwise nothing leaves that may be marked.
    fn heeds_marks(&self) -> bool {
        true
    }
    /// The episode was reordering: restore what was saved for it.
    fn on_undo(&mut self, _now: Instant, _path: PathId, _episode: Episode) {}
    /// When the next periodic update is due.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
    /// It is due.
    fn on_timeout(&mut self, _now: Instant, _paths: &[PathView]) {}
    /// Congestion window of `path`, bytes.
    fn window(&self, path: PathId) -> u64;
    /// Most bytes in flight on all paths together; none is as much as the windows of the paths allow.
    fn total_window(&self) -> Option<u64> {
        None
    }
    /// How `path` may send; none is as fast as the window allows.
    fn pace(&self, _path: PathId) -> Option<Pace> {
        None
    }
    /// The bottleneck of `path`, by the first path that leads through it, if the algorithm asks which paths share one.
    fn bottleneck(&self, _path: PathId) -> Option<PathId> {
        None
    }
    /// The pairs of paths that this connection has compared, whether they share a bottleneck, and when they were compared last.
    fn pairs(&self) -> Vec<([PathId; 2], bool, Instant)> {
        Vec::new()
    }
    /// Which paths share a bottleneck, if that changed since it was asked.
    fn poll_verdict(&mut self) -> Option<Verdict> {
        None
    }
    /// Lets go of what was measured so long ago that it has no effect any more.
    fn rest(&mut self, _now: Instant) {}
    /// State of `path`.
    fn snapshot(&self, path: PathId) -> Snapshot;
}
