//! One window for a connection over all its paths, as a TCP has it that does not know of them.
//!
//! Samples and losses of all paths reach one instance of a one-path algorithm; what is in flight on
//! all paths together is held against its window.

use polypath_wire::{Instant, PathId};

use super::controller::{Controller, Snapshot};
use super::per_path::Algorithm;
use crate::facts::{AckSample, Episode, LossEvent, PathState, PathView};

/// One `A` for all paths.
#[derive(Debug)]
pub struct OneWindow<A> {
    algorithm: A,
    mss: u32,
}

impl<A: Algorithm> OneWindow<A> {
    /// `algorithm` for every path that will be added.
    pub fn new(algorithm: A) -> Self {
        Self { algorithm, mss: u32::MAX }
    }
}

impl<A: Algorithm> Controller for OneWindow<A> {
    /// The smallest segments of all paths count.
    fn on_path_added(&mut self, _: Instant, path: PathId, mss: u32) {
        self.on_mss(path, mss);
    }

    fn on_mss(&mut self, _: PathId, mss: u32) {
        self.mss = self.mss.min(mss);
        self.algorithm.on_mss(self.mss);
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, paths: &[PathView]) {
        let elsewhere: u64 = others(path, paths).map(|p| p.in_flight).sum();
        let prior_in_flight = sample.prior_in_flight + elsewhere;
        let window_limited = prior_in_flight + u64::from(self.mss) > self.algorithm.window();
        self.algorithm.on_ack(now, &AckSample { prior_in_flight, window_limited, ..*sample });
    }

    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, paths: &[PathView]) {
        let elsewhere: u64 = others(path, paths).map(|p| p.in_flight).sum();
        self.algorithm.on_loss(now, &LossEvent { flight_size: loss.flight_size + elsewhere, ..*loss });
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
