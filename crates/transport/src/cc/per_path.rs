//! Lifts a one-path algorithm to a connection: one instance per path, uncoupled.

use polypath_wire::{Instant, PathId};

use super::controller::{Controller, Snapshot};
use super::window::Window;
use crate::facts::{AckSample, Episode, FirstFlight, LossEvent, LostSegment, Pace, PathView};
use crate::path_map::PathMap;

/// Congestion control of a single path. The methods mean what they mean in [`Controller`].
#[allow(missing_docs)]
pub(crate) trait Algorithm: std::fmt::Debug + Send {
    fn on_mss(&mut self, mss: u32);
    fn limit_window(&mut self, bytes: u64);
    fn starts(&self) -> bool {
        false
    }
    fn on_first_flight(&mut self, _first: &FirstFlight) {}
    fn on_sent(&mut self, _now: Instant, _bytes: u64) {}
    fn on_ack(&mut self, now: Instant, sample: &AckSample);
    fn on_lost(&mut self, _now: Instant, _segment: &LostSegment) {}
    fn on_loss(&mut self, now: Instant, loss: &LossEvent);
    fn on_undo(&mut self, _now: Instant, _episode: Episode) {}
    fn heeds_marks(&self) -> bool {
        true
    }
    fn window(&self) -> u64;
    fn pace(&self) -> Option<Pace> {
        None
    }
    fn snapshot(&self) -> Snapshot;
}

/// A law of one [`Window`]: how that grows in congestion avoidance, and what a loss leaves.
#[allow(missing_docs)]
pub(crate) trait WindowLaw: std::fmt::Debug + Send {
    fn state(&self) -> &Window;
    fn state_mut(&mut self) -> &mut Window;
    fn acked(&mut self, now: Instant, sample: &AckSample);
    fn lost(&mut self, loss: &LossEvent);
    /// The window becomes smaller by `bytes` without a loss.
    fn give_up(&mut self, bytes: f64) {
        self.state_mut().give_up(bytes);
    }
    /// The window is what it was before `episode`.
    fn undone(&mut self, _episode: Episode) {}
    /// What was a segment is now `segments` of the new size.
    fn resized(&mut self, _segments: f64) {}
}

impl<W: WindowLaw> Algorithm for W {
    fn on_mss(&mut self, mss: u32) {
        let before = self.state().mss();
        self.state_mut().set_mss(mss);
        self.resized(before as f64 / f64::from(mss));
    }

    fn limit_window(&mut self, bytes: u64) {
        self.state_mut().limit(bytes);
    }

    fn starts(&self) -> bool {
        self.state().starts()
    }

    fn on_first_flight(&mut self, first: &FirstFlight) {
        self.state_mut().on_first_flight(first);
    }

    #[inline]
    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.acked(now, sample);
    }

    fn on_loss(&mut self, _: Instant, loss: &LossEvent) {
        self.lost(loss);
    }

    fn on_undo(&mut self, _: Instant, episode: Episode) {
        if self.state_mut().undo(episode) {
            self.undone(episode);
        }
    }

    fn window(&self) -> u64 {
        self.state().bytes()
    }

    fn pace(&self) -> Option<Pace> {
        self.state().pace()
    }

    fn snapshot(&self) -> Snapshot {
        self.state().snapshot()
    }
}

/// One `A` per path.
pub(crate) struct PerPath<A, F> {
    paths: PathMap<(PathId, A)>,
    new: F,
    /// Of laws that may go by trains: whether they do not.
    window_only: Option<bool>,
    ignores_marks: bool,
}

impl<A, F: Fn(Instant, PathId, u32) -> A> PerPath<A, F> {
    /// `new(now, path, mss)` makes the instance of a path.
    pub(crate) fn new(new: F) -> Self {
        Self { paths: PathMap::default(), new, window_only: None, ignores_marks: false }
    }

    /// The same with what [`Controller::window_only`] says; where it is not so, the law goes by trains.
    #[must_use]
    pub(crate) fn window_only(self, window_only: bool) -> Self {
        Self { window_only: Some(window_only), ..self }
    }

    /// The same of a law that goes by something else.
    #[must_use]
    pub(crate) fn ignoring_marks(self) -> Self {
        Self { ignores_marks: true, ..self }
    }

    #[inline]
    fn get(&self, path: PathId) -> Option<&A> {
        self.paths.get(path).map(|(_, a)| a)
    }

    #[inline]
    fn get_mut(&mut self, path: PathId) -> Option<&mut A> {
        self.paths.get_mut(path).map(|(_, a)| a)
    }
}

impl<A: std::fmt::Debug, F> std::fmt::Debug for PerPath<A, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.paths.iter().map(|(path, a)| (path, a))).finish()
    }
}

impl<A: Algorithm, F: Fn(Instant, PathId, u32) -> A + Send> Controller for PerPath<A, F> {
    fn on_path_added(&mut self, now: Instant, path: PathId, mss: u32) {
        self.paths.insert((path, (self.new)(now, path, mss)));
    }

    fn window_only(&self) -> bool {
        self.window_only == Some(true)
    }

    fn goes_by_trains(&self) -> bool {
        self.window_only == Some(false)
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.paths.remove(path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        if let Some(a) = self.get_mut(path) {
            a.on_mss(mss);
        }
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        if let Some(a) = self.get_mut(path) {
            a.limit_window(bytes);
        }
    }

    fn starts(&self, path: PathId) -> bool {
        self.get(path).is_some_and(Algorithm::starts)
    }

    fn on_first_flight(&mut self, path: PathId, first: &FirstFlight) {
        if let Some(a) = self.get_mut(path) {
            a.on_first_flight(first);
        }
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: u64) {
        if let Some(a) = self.get_mut(path) {
            a.on_sent(now, bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, _: &[PathView]) {
        if let Some(a) = self.get_mut(path) {
            a.on_ack(now, sample);
        }
    }

    fn on_lost(&mut self, now: Instant, path: PathId, segment: &LostSegment) {
        if let Some(a) = self.get_mut(path) {
            a.on_lost(now, segment);
        }
    }

    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, _: &[PathView]) {
        if let Some(a) = self.get_mut(path) {
            a.on_loss(now, loss);
        }
    }

    fn heeds_marks(&self) -> bool {
        !self.ignores_marks
    }

    fn on_undo(&mut self, now: Instant, path: PathId, episode: Episode) {
        if let Some(a) = self.get_mut(path) {
            a.on_undo(now, episode);
        }
    }

    fn window(&self, path: PathId) -> u64 {
        self.get(path).map_or(0, Algorithm::window)
    }

    fn pace(&self, path: PathId) -> Option<Pace> {
        self.get(path).and_then(Algorithm::pace)
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        self.get(path).map_or_else(Snapshot::default, Algorithm::snapshot)
    }
}
