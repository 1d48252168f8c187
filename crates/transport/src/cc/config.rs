//! The controllers by name: the enum is the registry (DESIGN.md §5).

use serde::{Deserialize, Serialize};

use super::controller::Controller;
use super::fast::{Fast, FastConfig};
use super::mhip_simple::{MhipSimple, MhipSimpleConfig};
use super::mhip_two_level::MhipTwoLevel;
use super::newreno::{NewReno, NewRenoConfig, SlowStart};
use super::one_window::OneWindow;
use super::per_path::PerPath;
use super::rm_tcp::{RmTcp, RmTcpConfig};
use crate::facts::ConfigError;

/// Which algorithm, with its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
pub enum CcConfig {
    /// One NewReno window per path, uncoupled; on one path plain NewReno (RFC 5681, 6582).
    Newreno(NewRenoConfig),
    /// One FAST window per path (paper 004, §4); on one path plain FAST TCP.
    Fast(FastConfig),
    /// One FAST window over all paths (paper 004, §5.2: "simple FAST").
    FastOneWindow(FastConfig),
    /// One NewReno window over all paths: mHIP's first generation (paper 000 §III.B).
    MhipSimple(MhipSimpleConfig),
    /// AIMD per path under the sum of the windows: mHIP from its second generation on (paper 000 §IV.B).
    MhipTwoLevel(NewRenoConfig),
    /// R-M/TCP: windows from estimated bandwidths and queues (paper 003). Needs `multi_route`.
    RmTcp(RmTcpConfig),
}

impl Default for CcConfig {
    fn default() -> Self {
        Self::Newreno(NewRenoConfig::default())
    }
}

impl CcConfig {
    /// The same as today's hosts have it: paced, with a slow start that watches where the path is full.
    #[must_use]
    pub fn of_today(self) -> Self {
        match self {
            Self::Newreno(config) => Self::Newreno(NewRenoConfig { slow_start: SlowStart::Paced, ..config }),
            other => other,
        }
    }

    /// The controller.
    pub fn build(&self) -> Box<dyn Controller> {
        match self.clone() {
            Self::Newreno(config) => {
                let paths = PerPath::new(move |_, mss| NewReno::new(config, mss));
                Box::new(paths.window_only(config.slow_start != SlowStart::Paced))
            }
            Self::Fast(config) => Box::new(PerPath::new(move |_, mss| Fast::new(config, mss))),
            Self::MhipSimple(config) => Box::new(OneWindow::new(MhipSimple::new(config))),
            Self::MhipTwoLevel(config) => Box::new(MhipTwoLevel::new(config)),
            Self::FastOneWindow(config) => Box::new(OneWindow::new(Fast::new(config, 0))),
            Self::RmTcp(config) => Box::new(RmTcp::new(config)),
        }
    }

    /// Whether its parameters mean something together.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Newreno(c) | Self::MhipTwoLevel(c) => {
                check_reno(c.initial_window, c.initial_ssthresh, c.abc_limit)
            }
            Self::MhipSimple(c) => check_reno(c.initial_window, c.initial_ssthresh, c.abc_limit),
            Self::Fast(c) | Self::FastOneWindow(c) => check_fast(c),
            Self::RmTcp(c) => check_rm_tcp(c),
        }
    }
}

fn no_window() -> ConfigError {
    ConfigError::new("cc.initial_window", "a window of 0 sends nothing", "2 to 10 segments are usual")
}

fn check_reno(window: u32, ssthresh: Option<u32>, abc_limit: u32) -> Result<(), ConfigError> {
    let flat = ConfigError::new("cc.initial_ssthresh", "a threshold of 0 segments", "leave it out for none");
    let still = ConfigError::new("cc.abc_limit", "0 never lets a window grow", "2 is RFC 3465's, 1 ns-2's");
    ConfigError::first(&[(window == 0, no_window()), (ssthresh == Some(0), flat), (abc_limit == 0, still)])
}

fn check_fast(c: &FastConfig) -> Result<(), ConfigError> {
    let error = |key, reason, remedy| ConfigError::new(key, reason, remedy);
    let paces = c.pacing == 0.0 || (c.pacing > 1.0 && c.pacing.is_finite());
    ConfigError::first(&[
        (c.initial_window == 0, no_window()),
        (
            c.alpha == 0,
            error("cc.alpha", "0 packets in the queues are no aim", "at least 1; the paper's is 100"),
        ),
        (
            !(c.gamma > 0.0 && c.gamma <= 1.0),
            error("cc.gamma", "not above 0 and at most 1", "half-way is 0.5"),
        ),
        (
            c.rounds_per_update == 0,
            error("cc.rounds_per_update", "0 round trips", "at least 1; the paper's is 2"),
        ),
        (!paces, error("cc.pacing", "slower than the window", "above 1, for example 1.25, or 0 for none")),
    ])
}

fn check_rm_tcp(c: &RmTcpConfig) -> Result<(), ConfigError> {
    let positive = |x: &f64| *x > 0.0 && x.is_finite();
    let queue = ConfigError::new("cc.queue", "not above 0", "the paper's is 20 packets");
    let weights = ConfigError::new("cc.weights", "not all above 0", "write for example [1, 1.5]");
    ConfigError::first(&[
        (c.initial_window == 0, no_window()),
        (!positive(&c.queue), queue),
        (!c.weights.iter().all(positive), weights),
    ])
}
