//! Parameters of the controller.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::bottleneck::DetectionConfig;
use crate::cc::window::no_window;
use crate::facts::ConfigError;

/// The law of a bottleneck's window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BaseLaw {
    /// CUBIC (RFC 9438), as most hosts have it.
    #[default]
    Cubic,
    /// NewReno (RFC 5681, 6582).
    Newreno,
}

/// Parameters of the controller of this project.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PolypathConfig {
    /// The law of each window.
    pub base: BaseLaw,
    /// How paths are found that share a bottleneck.
    pub bottlenecks: DetectionConfig,
    /// A loss that no queue explains, or that other paths of the bottleneck do not have, is repaired without a reduction.
    pub random_loss: bool,
    /// Longest that packets are to wait in the queue of a bottleneck with one path, ms, as long as nobody else fills it; 0 leaves its
    /// length to the base law.
    #[serde(with = "polypath_wire::millis", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub queue_target: Duration,
    /// Initial window of a bottleneck, segments (RFC 6928: 10).
    pub initial_window: u32,
}

impl Default for PolypathConfig {
    fn default() -> Self {
        let (base, bottlenecks) = (BaseLaw::default(), DetectionConfig::default());
        Self { base, bottlenecks, random_loss: true, queue_target: Duration::ZERO, initial_window: 10 }
    }
}

impl PolypathConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::first(&[(self.initial_window == 0, no_window())])
    }

    /// The link of ours that all paths are said to leave by, if all are to share.
    pub(super) fn link(&self) -> Option<u32> {
        (self.bottlenecks == DetectionConfig::Shared).then_some(0)
    }
}

fn is_zero(target: &Duration) -> bool {
    *target == Duration::ZERO
}
