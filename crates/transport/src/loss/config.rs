//! The loss policies by name.

use serde::{Deserialize, Serialize};

use super::dupack::Dupack;
use super::policy::LossPolicy;
use super::rack::Rack;
use super::virtual_queue::VirtualQueue;

/// Which loss policy, with its parameters. The retransmission timer stands behind all of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossConfig {
    /// Duplicate acknowledgments; one retransmission per partial acknowledgment: NewReno (RFC 6582).
    /// With `partial_acks = false` recovery ends at the first new acknowledgment: Reno (RFC 5681).
    Dupack {
        /// Duplicate acknowledgments that mean a loss, at least 1 (RFC 5681: 3).
        #[serde(default = "three")]
        threshold: u32,
        /// Stay in recovery on partial acknowledgments.
        #[serde(default = "yes")]
        partial_acks: bool,
        /// Only the first partial acknowledgment restarts the retransmission timer (RFC 6582 §4).
        #[serde(default = "yes")]
        impatient: bool,
    },
    /// Selective acknowledgments and time, per path (RFC 8985). Falls back as `sack` does.
    #[default]
    Rack,
    /// Selective acknowledgments, counted per path (RFC 6675 with one virtual queue per path).
    /// Falls back to `dupack` with its defaults if the peer does not offer SACK.
    Sack {
        /// Later packets of the same path that must have been delivered, at least 1 (RFC 6675: 3).
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

impl LossConfig {
    /// The policy for a connection that did or did not agree on SACK.
    pub fn build(&self, sack: bool) -> Box<dyn LossPolicy> {
        match *self {
            Self::Dupack { threshold, partial_acks, impatient } => {
                Box::new(Dupack::new(threshold, partial_acks, impatient))
            }
            Self::Rack if sack => Box::new(Rack::default()),
            Self::Rack => Box::new(Dupack::new(3, true, true)),
            Self::Sack { threshold } if sack => Box::new(VirtualQueue::new(threshold)),
            Self::Sack { threshold } => Box::new(Dupack::new(threshold, true, true)),
        }
    }
}
