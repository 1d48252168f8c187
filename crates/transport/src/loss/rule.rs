//! What the file of a loss policy says to the list of all (`config.rs`).

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use super::policy::LossPolicy;
use crate::about::About;
use crate::facts::ConfigError;

/// A loss policy by name.
pub(crate) trait Rule {
    /// Its parameters.
    type Config;
    /// Name and help.
    const ABOUT: About;

    /// Whether the parameters mean something where the smallest round trip time is `min_rtt`, if that is known.
    fn check(config: &Self::Config, min_rtt: Option<Duration>) -> Result<(), ConfigError>;

    /// The policy of a connection that did or did not agree on SACK.
    fn build(config: Self::Config, sack: bool) -> Box<dyn LossPolicy>;
}

/// How many signs of a loss make it one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ThresholdConfig {
    /// Signs that mean a loss, at least 1 (RFC 5681, RFC 6675, Polishchuk and Gurtov: 3).
    pub threshold: u32,
}

impl Default for ThresholdConfig {
    fn default() -> Self {
        Self { threshold: 3 }
    }
}

impl ThresholdConfig {
    /// Whether it is one.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        let none = ConfigError::new(
            "loss.threshold",
            "a loss needs at least 1 sign of it, not 0",
            "write for example threshold = 3 (RFC 5681)",
        );
        ConfigError::first(&[(self.threshold == 0, none)])
    }
}
