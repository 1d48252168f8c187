//! One window for a connection over all its paths, as a TCP has it that does not know of them.
//!
//! Samples and losses of all paths reach one instance of a one-path algorithm; what is in flight on
//! all paths together is held against its window.

use polypath_wire::{Instant, PathId};

use super::controller::{Controller, Snapshot};
use super::per_path::Algorithm;
use crate::facts::{AckSample, Episode, LossEvent, PathState, PathView};
use crate::path_map::PathMap;

/// One `A` for all paths.
#[derive(Debug)]
pub(crate) struct OneWindow<A> {
    algorithm: A,
    /// The largest payload of each path.
    mss: PathMap<(PathId, u32)>,
}

impl<A: Algorithm> OneWindow<A> {
    /// `algorithm` for every path that will be added.
    pub(crate) fn new(algorithm: A) -> Self {
        Self { algorithm, mss: PathMap::default() }
    }

    /// The algorithm counts in the smallest segments of all paths.
    fn count(&mut self) {
        if let Some(smallest) = self.mss.iter().map(|(_, mss)| *mss).min() {
            self.algorithm.on_mss(smallest);
        }
    }
}

impl<A: Algorithm> Controller for OneWindow<A> {
    fn on_path_added(&mut self, _: Instant, path: PathId, mss: u32) {
        self.mss.insert((path, mss));
        self.count();
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.mss.remove(path);
        self.count();
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        self.mss.get_mut(path).into_iter().for_each(|entry| entry.1 = mss);
        self.count();
    }

    fn limit_window(&mut self, _: PathId, bytes: u64) {
        self.algorithm.limit_window(bytes);
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, paths: &[PathView]) {
        let elsewhere: u64 = others(path, paths).map(|p| p.in_flight).sum();
        let prior_in_flight = sample.prior_in_flight + elsewhere;
        // A segment of some path did not fit any more, so the window was in the way.
        let largest = self.mss.iter().map(|(_, mss)| *mss).max().unwrap_or_default();
        let window_limited = prior_in_flight + u64::from(largest) > self.algorithm.window();
        self.algorithm.on_ack(now, &AckSample { prior_in_flight, window_limited, ..*sample });
    }

    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, paths: &[PathView]) {
        let elsewhere: u64 = others(path, paths).map(|p| p.in_flight).sum();
        self.algorithm.on_loss(now, &LossEvent { flight_size: loss.flight_size + elsewhere, ..*loss });
    }

    fn heeds_marks(&self) -> bool {
        self.algorithm.heeds_marks()
    }

    fn on_undo(&mut self, now: Instant, _: PathId, episode: Episode) {
        self.algorithm.on_undo(now, episode);
    }

    fn window(&self, _: PathId) -> u64 {
        self.algorithm.window()
    }

    fn total_window(&self) -> Option<u64> {
        Some(self.algorithm.window())
    }

    fn snapshot(&self, _: PathId) -> Snapshot {
        self.algorithm.snapshot()
    }
}

fn others(path: PathId, paths: &[PathView]) -> impl Iterator<Item = &PathView> {
    paths.iter().filter(move |p| p.id != path && p.state != PathState::Removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::newreno::{NewReno, NewRenoConfig};

    /// Paths of 1200 bytes are found to carry 1400: a window with room for 1300 holds a segment back, and grows.
    #[test]
    fn a_window_that_holds_back_the_largest_segment_is_the_limit() {
        let config = NewRenoConfig { initial_window: 10, ..NewRenoConfig::default() };
        let mut one = OneWindow::new(NewReno::new(config, 1200));
        let paths = [0, 1].map(|id| PathView::new(PathId(id), 1200));
        paths.iter().for_each(|p| one.on_path_added(Instant::ZERO, p.id, p.mss));
        paths.iter().for_each(|p| one.on_mss(p.id, 1400));
        let before = one.window(PathId(0));
        let sample = AckSample { newly_acked: 1400, newly_acked_segments: 1, ..AckSample::default() };
        let calm = AckSample { prior_in_flight: before - 1400, ..sample };
        one.on_ack(Instant::ZERO, PathId(0), &calm, &paths);
        assert_eq!(one.window(PathId(0)), before);
        let full = AckSample { prior_in_flight: before - 1300, ..sample };
        one.on_ack(Instant::ZERO, PathId(0), &full, &paths);
        assert!(one.window(PathId(0)) > before);
    }
}
