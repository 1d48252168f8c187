//! What counts as lost.

use serde::{Deserialize, Serialize};

/// Which loss policy, with its parameters. The retransmission timer stands behind all of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossConfig {
    /// Three duplicate acknowledgments; one retransmission per partial acknowledgment (RFC 6582).
    /// With `partial_acks = false` the recovery ends at the first new acknowledgment: Reno (RFC 5681).
    Dupack {
        /// Duplicate acknowledgments that mean a loss.
        #[serde(default = "three")]
        threshold: u32,
        /// Stay in recovery on partial acknowledgments.
        #[serde(default = "yes")]
        partial_acks: bool,
    },
    /// Selective acknowledgments, counted per path (RFC 6675 with one virtual queue per path).
    Sack {
        /// Later packets of the same path that must have been delivered.
        #[serde(default = "three")]
        threshold: u32,
    },
}

fn three() -> u32 {
    3
}

fn yes() -> bool {
    true
}

impl Default for LossConfig {
    fn default() -> Self {
        Self::Sack { threshold: 3 }
    }
}
