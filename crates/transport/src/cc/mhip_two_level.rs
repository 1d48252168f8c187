//! mHIP's two-level congestion control (Polishchuk and Gurtov, §IV.B, Fig. 3): AIMD on each path below, the sums
//! above.
//!
//! | symbol | here |
//! |---|---|
//! | cwnd_i, ssthresh_i | the NewReno of path i |
//! | cwnd = Σ cwnd_i | [`MhipTwoLevel::total_window`], held against everything in flight |
//! | ssthresh = Σ ssthresh_i | nothing asks for it |
//!
//! The increase of cwnd is the sum of the increases of the paths; a loss halves the window of its path
//! only. On one path the sums are the path's own and this is NewReno, packet for packet.
//!
//! Readings: "halves ssthresh" is RFC 5681's equation (4); after a timeout the path that timed out
//! starts over and the others go on; acknowledged bytes count for the path they were sent on; and as
//! the bundle is one TCP, none of its windows grows while any path recovers.

use polypath_wire::{Instant, PathId};

use super::controller::{Controller, Snapshot};
use super::law::{Env, Law};
use super::newreno::{NewReno, NewRenoConfig};
use super::per_path::Algorithm;
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, LossEvent, PathView};
use crate::path_map::PathMap;

/// Per-path AIMD under a global window.
#[derive(Debug)]
pub(crate) struct MhipTwoLevel {
    config: NewRenoConfig,
    paths: PathMap<(PathId, NewReno)>,
}

impl Law for MhipTwoLevel {
    type Config = NewRenoConfig;
    const ABOUT: About = About {
        name: "mhip_two_level",
        help: "Reproduction of mHIP's second generation: NewReno per path under the sum of the windows",
    };

    fn check(config: &NewRenoConfig) -> Result<(), ConfigError> {
        config.check()
    }

    fn build(config: NewRenoConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(Self::new(config))
    }
}

impl MhipTwoLevel {
    /// Every path begins with the windows of `config`.
    pub(crate) fn new(config: NewRenoConfig) -> Self {
        Self { config, paths: PathMap::default() }
    }

    fn get(&self, path: PathId) -> Option<&NewReno> {
        self.paths.get(path).map(|(_, p)| p)
    }

    fn get_mut(&mut self, path: PathId) -> Option<&mut NewReno> {
        self.paths.get_mut(path).map(|(_, p)| p)
    }
}

impl Controller for MhipTwoLevel {
    fn on_path_added(&mut self, _: Instant, path: PathId, mss: u32) {
        self.paths.insert((path, NewReno::new(self.config, mss)));
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.paths.remove(path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        if let Some(p) = self.get_mut(path) {
            p.on_mss(mss);
        }
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        if let Some(p) = self.get_mut(path) {
            p.limit_window(bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, _: &[PathView]) {
        if let Some(p) = self.get_mut(path) {
            p.on_ack(now, sample);
        }
    }

    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, _: &[PathView]) {
        if let Some(p) = self.get_mut(path) {
            p.on_loss(now, loss);
        }
    }

    fn on_undo(&mut self, now: Instant, path: PathId, episode: Episode) {
        if let Some(p) = self.get_mut(path) {
            p.on_undo(now, episode);
        }
    }

    fn window(&self, path: PathId) -> u64 {
        self.get(path).map_or(0, Algorithm::window)
    }

    fn total_window(&self) -> Option<u64> {
        Some(self.paths.iter().map(|(_, p)| p.window()).sum())
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        self.get(path).map_or_else(Snapshot::default, Algorithm::snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::LossCause;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);
    const NOW: Instant = Instant::ZERO;

    fn acked(segments: u64) -> AckSample {
        AckSample { newly_acked: 1000 * segments, window_limited: true, ..Default::default() }
    }

    fn lost(cause: LossCause, episode: u32, flight_size: u64) -> LossEvent {
        LossEvent { cause, episode: Episode(episode), bytes: 1000, flight_size, oldest_sent: NOW }
    }

    /// Windows of A and of B and their sum, in segments of 1,000 bytes.
    fn windows(c: &MhipTwoLevel) -> (u64, u64, u64) {
        let total = c.total_window().expect("there always is one");
        (c.window(A) / 1000, c.window(B) / 1000, total / 1000)
    }

    /// ssthresh of the bundle, bytes: none while a path has none.
    fn ssthresh(c: &MhipTwoLevel) -> Option<u64> {
        c.paths.iter().map(|(_, p)| p.snapshot().ssthresh).sum()
    }

    /// 20 segments on A, 10 on B, both past slow start.
    fn two_paths() -> MhipTwoLevel {
        let config = |initial_window| NewRenoConfig {
            initial_window,
            initial_ssthresh: Some(initial_window),
            ..Default::default()
        };
        let mut c = MhipTwoLevel::new(config(20));
        c.on_path_added(NOW, A, 1000);
        c.config = config(10);
        c.on_path_added(NOW, B, 1000);
        c
    }

    /// Events in turn and the windows expected after each, worked out by hand from §IV.B.
    #[test]
    fn the_equations_as_a_table() {
        let mut c = two_paths();
        assert_eq!((windows(&c), ssthresh(&c)), ((20, 10, 30), Some(30_000)));

        // increase: each path by one segment per window of its own, the total by both
        (0..22).for_each(|_| c.on_ack(NOW, A, &acked(1), &[]));
        assert_eq!(windows(&c), (21, 10, 31));
        (0..11).for_each(|_| c.on_ack(NOW, B, &acked(1), &[]));
        assert_eq!(windows(&c), (21, 11, 32));

        // dupack action on A: cwnd_A and ssthresh_A are 20/2, B keeps what it has
        c.on_loss(NOW, A, &lost(LossCause::DupAck, 1, 20_000), &[]);
        assert_eq!((windows(&c), ssthresh(&c)), ((10, 11, 21), Some(20_000)));

        // ADDR: it was reordering, everything as it was
        c.on_undo(NOW, A, Episode(1));
        assert_eq!((windows(&c), ssthresh(&c)), ((21, 11, 32), Some(30_000)));

        // timeout on B: cwnd_B = 1, ssthresh_B = 8/2
        c.on_loss(NOW, B, &lost(LossCause::Timeout, 2, 8_000), &[]);
        assert_eq!((windows(&c), ssthresh(&c)), ((21, 1, 22), Some(24_000)));

        // and slow start of B alone: one segment for each acknowledged
        (0..3).for_each(|_| c.on_ack(NOW, B, &acked(1), &[]));
        assert_eq!(windows(&c), (21, 4, 25));
    }

    #[test]
    fn without_a_threshold_of_each_there_is_none_of_all() {
        let mut c = MhipTwoLevel::new(NewRenoConfig::default());
        c.on_path_added(NOW, A, 1000);
        c.on_path_added(NOW, B, 1000);
        c.on_loss(NOW, A, &lost(LossCause::DupAck, 1, 10_000), &[]);
        assert_eq!(ssthresh(&c), None);
        c.on_path_removed(NOW, B);
        assert_eq!((ssthresh(&c), c.total_window()), (Some(5_000), Some(5_000)));
    }
}
