//! The loss policies by name. Each describes itself in its own file; this lists them.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use super::addr::Addr;
use super::dupack::Dupack;
use super::head_dupacks::HeadDupacks;
use super::policy::LossPolicy;
use super::rack::Rack;
use super::virtual_queue::VirtualQueue;
use crate::about::{About, Registry};
use crate::facts::ConfigError;

/// Which loss policy, with its parameters. The retransmission timer stands behind all of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        /// Each duplicate below the threshold lets a packet go (RFC 3042, RFC 4653).
        #[serde(default = "yes")]
        limited_transmit: bool,
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
    /// Selective acknowledgments; duplicates count about the first missing packet, whichever path they came by (a
    /// reading of Polishchuk and Gurtov, §IV.E).
    /// Falls back to `dupack` if the peer does not offer SACK.
    HeadDupacks {
        /// Duplicates about a packet that mean it is lost, at least 1 (Polishchuk and Gurtov: 3).
        #[serde(default = "three")]
        threshold: u32,
    },
    /// Another policy, and what it judges lost may still arrive for a while: ADDR (Polishchuk and Gurtov, §IV.D).
    Addr {
        /// Allowable delay due to reordering, ms; above zero and below the smallest round trip time.
        #[serde(with = "polypath_wire::millis")]
        #[cfg_attr(feature = "schema", schemars(with = "f64"))]
        allowance: Duration,
        /// What judges.
        inner: Box<LossConfig>,
    },
}

fn three() -> u32 {
    3
}

fn yes() -> bool {
    true
}

impl Registry for LossConfig {
    const TAG: &'static str = "policy";
    const ALL: &'static [About] =
        &[Dupack::ABOUT, Rack::ABOUT, VirtualQueue::ABOUT, HeadDupacks::ABOUT, Addr::ABOUT];
}

impl LossConfig {
    /// The policy for a connection that did or did not agree on SACK.
    pub(crate) fn build(&self, sack: bool) -> Box<dyn LossPolicy> {
        match self.clone() {
            Self::Dupack { threshold, partial_acks, impatient, limited_transmit } => {
                let limited = if limited_transmit { threshold.saturating_sub(1) } else { 0 };
                Box::new(Dupack::new(threshold, partial_acks, impatient).limited_transmit_of(limited))
            }
            Self::Rack if sack => Box::new(Rack::default()),
            Self::Rack => Box::new(Dupack::new(3, true, true)),
            Self::Sack { threshold } if sack => Box::new(VirtualQueue::new(threshold)),
            Self::HeadDupacks { threshold } if sack => Box::new(HeadDupacks::new(threshold)),
            Self::Sack { threshold } | Self::HeadDupacks { threshold } => {
                Box::new(Dupack::new(threshold, true, true))
            }
            Self::Addr { allowance, inner } => Box::new(Addr::new(inner.build(sack), allowance)),
        }
    }

    /// Whether its parameters mean something where the smallest round trip time is `min_rtt`, if that is
    /// known.
    pub fn check(&self, min_rtt: Option<Duration>) -> Result<(), ConfigError> {
        match self {
            Self::Dupack { threshold: 0, .. }
            | Self::Sack { threshold: 0 }
            | Self::HeadDupacks { threshold: 0 } => Err(ConfigError::new(
                "loss.threshold",
                "a loss needs at least 1 sign of it, not 0",
                "write for example threshold = 3 (RFC 5681)",
            )),
            Self::Addr { inner, .. } if matches!(**inner, Self::Addr { .. }) => Err(ConfigError::new(
                "loss.inner",
                "ADDR within ADDR",
                "one allowance is enough: leave out the inner",
            )),
            Self::Addr { allowance, inner } => {
                Addr::check(*allowance, min_rtt).and_then(|()| inner.check(min_rtt))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_let_packets_go_unless_they_may_not() {
        let of = |limited_transmit| {
            let dupack =
                LossConfig::Dupack { threshold: 10, partial_acks: true, impatient: true, limited_transmit };
            dupack.build(false).limited_transmit()
        };
        assert_eq!((of(true), of(false)), (9, 0));
    }
}
