//! mHIP's first congestion control (Polishchuk and Gurtov, §III.B.4): one NewReno window over all paths, which
//! knows nothing of them. The rest of that generation lies beside it: dupacks in `loss/dupack.rs`,
//! marked packets and the closing of congested paths in `path/knowledge.rs`.
//!
//! | symbol | here |
//! |---|---|
//! | w, "the cwnd of the global TCP flow" | `reno`, lifted by [`OneWindow`](super::one_window::OneWindow) |
//! | w1, w2 | what the scheduler has put on each path; no window |
//!
//! The text calls the dupack action "standard" and also says that a congested path is closed and its
//! packets are redirected. Both together starve the connection; `halve = false` is the reading in which
//! closing the path *is* the answer to congestion and the window stays.

use polypath_wire::Instant;
use serde::{Deserialize, Serialize};

use super::controller::{Controller, Snapshot};
use super::law::{Env, Law};
use super::newreno::{NewReno, NewRenoConfig};
use super::one_window::OneWindow;
use super::per_path::Algorithm;
use super::window::SlowStart;
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, LossCause, LossEvent};

/// Parameters of simple mHIP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MhipSimpleConfig {
    /// Initial window, segments (RFC 6928: 10; ns-2: 2).
    pub initial_window: u32,
    /// Initial slow start threshold, segments; none is as large as possible (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
    /// Most segments that one acknowledgment may count for (RFC 3465's L: 2; ns-2: 1).
    pub abc_limit: u32,
    /// Whether a loss halves the global window (the literal reading), or only closes its path.
    pub halve: bool,
}

impl Default for MhipSimpleConfig {
    fn default() -> Self {
        let NewRenoConfig { initial_window, initial_ssthresh, abc_limit, .. } = NewRenoConfig::default();
        Self { initial_window, initial_ssthresh, abc_limit, halve: true }
    }
}

/// The global window of simple mHIP.
#[derive(Debug)]
pub(crate) struct MhipSimple {
    config: NewRenoConfig,
    halve: bool,
    /// From the first path on, whose segments are the unit of the window.
    reno: Option<NewReno>,
}

impl Law for MhipSimple {
    type Config = MhipSimpleConfig;
    const ABOUT: About = About {
        name: "mhip_simple",
        help: "Reproduction of mHIP's first generation: one NewReno window over all paths",
    };

    fn check(config: &MhipSimpleConfig) -> Result<(), ConfigError> {
        config.window().check()
    }

    fn build(config: MhipSimpleConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(OneWindow::new(Self::new(config)))
    }
}

impl MhipSimpleConfig {
    fn window(self) -> NewRenoConfig {
        let Self { initial_window, initial_ssthresh, abc_limit, .. } = self;
        NewRenoConfig { initial_window, initial_ssthresh, abc_limit, slow_start: SlowStart::Standard }
    }
}

impl MhipSimple {
    /// The window begins with the first path.
    pub(crate) fn new(config: MhipSimpleConfig) -> Self {
        Self { config: config.window(), halve: config.halve, reno: None }
    }
}

impl Algorithm for MhipSimple {
    fn on_mss(&mut self, mss: u32) {
        let config = self.config;
        self.reno.get_or_insert_with(|| NewReno::new(config, mss)).on_mss(mss);
    }

    fn limit_window(&mut self, bytes: u64) {
        self.reno.iter_mut().for_each(|r| r.limit_window(bytes));
    }

    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.reno.iter_mut().for_each(|r| r.on_ack(now, sample));
    }

    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        if self.halve || loss.cause == LossCause::Timeout {
            self.reno.iter_mut().for_each(|r| r.on_loss(now, loss));
        }
    }

    fn heeds_marks(&self) -> bool {
        self.halve
    }

    fn on_undo(&mut self, now: Instant, episode: Episode) {
        self.reno.iter_mut().for_each(|r| r.on_undo(now, episode));
    }

    fn window(&self) -> u64 {
        self.reno.as_ref().map_or(0, Algorithm::window)
    }

    fn snapshot(&self) -> Snapshot {
        self.reno.as_ref().map_or_else(Snapshot::default, Algorithm::snapshot)
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::PathId;

    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn two_paths(halve: bool) -> OneWindow<MhipSimple> {
        let config = MhipSimpleConfig { initial_window: 20, halve, ..Default::default() };
        let mut c = OneWindow::new(MhipSimple::new(config));
        c.on_path_added(NOW, PathId(0), 1000);
        c.on_path_added(NOW, PathId(1), 1000);
        c
    }

    fn lose(c: &mut OneWindow<MhipSimple>, cause: LossCause) -> Option<u64> {
        let loss =
            LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size: 20_000, oldest_sent: NOW };
        c.on_loss(NOW, PathId(1), &loss, &[]);
        c.total_window()
    }

    /// One window of 20: an acknowledgment on either path opens it, a loss on either halves it.
    #[test]
    fn both_paths_move_the_one_window() {
        let mut c = two_paths(true);
        let sample = AckSample { newly_acked: 1000, prior_in_flight: 20_000, ..Default::default() };
        for (path, expected) in [(0, 21_000), (1, 22_000)] {
            let sample = AckSample { prior_in_flight: expected - 1000, ..sample };
            c.on_ack(NOW, PathId(path), &sample, &[]);
            assert_eq!((c.window(PathId(0)), c.total_window()), (expected, Some(expected)));
        }
        assert_eq!(lose(&mut c, LossCause::DupAck), Some(10_000));
    }

    #[test]
    fn without_halving_only_a_timeout_shrinks_it() {
        let mut c = two_paths(false);
        assert_eq!(lose(&mut c, LossCause::DupAck), Some(20_000));
        assert_eq!(lose(&mut c, LossCause::Timeout), Some(1000));
    }
}
