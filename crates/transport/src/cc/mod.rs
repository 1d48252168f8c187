//! Congestion control.

use serde::{Deserialize, Serialize};

/// Which algorithm, with its parameters: the registry (DESIGN.md §5).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
pub enum CcConfig {
    /// One NewReno window per path, uncoupled; on one path plain NewReno (RFC 5681, 6582).
    Newreno(NewRenoConfig),
}

impl Default for CcConfig {
    fn default() -> Self {
        Self::Newreno(NewRenoConfig::default())
    }
}

/// Parameters of NewReno.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewRenoConfig {
    /// Initial window, segments (RFC 6928: 10; ns-2: 2).
    pub initial_window: u32,
    /// Initial slow start threshold, segments; none means as large as possible (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
}

impl Default for NewRenoConfig {
    fn default() -> Self {
        Self { initial_window: 10, initial_ssthresh: None }
    }
}
