//! The controllers by name: the enum is the registry (DESIGN.md §5).

use serde::{Deserialize, Serialize};

use super::controller::Controller;
use super::fast::{Fast, FastConfig};
use super::mhip_simple::{MhipSimple, MhipSimpleConfig};
use super::mhip_two_level::MhipTwoLevel;
use super::newreno::{NewReno, NewRenoConfig};
use super::one_window::OneWindow;
use super::per_path::PerPath;
use super::rm_tcp::{RmTcp, RmTcpConfig};

/// Which algorithm, with its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    /// The same with what today's hosts add to it: HyStart++ in slow start.
    #[must_use]
    pub fn of_today(self) -> Self {
        match self {
            Self::Newreno(config) => Self::Newreno(NewRenoConfig { hystart: true, ..config }),
            other => other,
        }
    }

    /// The controller.
    pub fn build(&self) -> Box<dyn Controller> {
        match self.clone() {
            Self::Newreno(config) => Box::new(PerPath::new(move |_, mss| NewReno::new(config, mss))),
            Self::Fast(config) => Box::new(PerPath::new(move |_, mss| Fast::new(config, mss))),
            Self::MhipSimple(config) => Box::new(OneWindow::new(MhipSimple::new(config))),
            Self::MhipTwoLevel(config) => Box::new(MhipTwoLevel::new(config)),
            Self::FastOneWindow(config) => Box::new(OneWindow::new(Fast::new(config, 0))),
            Self::RmTcp(config) => Box::new(RmTcp::new(config)),
        }
    }
}
