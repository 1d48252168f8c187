//! Name and parameters of the controller.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use super::Polypath;
use crate::about::About;
use crate::bottleneck::DetectionConfig;
use crate::cc::controller::Controller;
use crate::cc::law::{Env, Law};
use crate::cc::window::no_window;
use crate::facts::ConfigError;

/// Longest target for a queue.
const LONGEST_TARGET: Duration = Duration::from_secs(10);

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

impl Law for Polypath {
    type Config = PolypathConfig;
    const ABOUT: About = About {
        name: "polypath",
        help: "One window per bottleneck, shared by its paths, which takes about what one TCP takes there: the usual choice",
    };

    fn coupled_by(config: &PolypathConfig) -> Option<(&'static str, &'static str)> {
        (config.bottlenecks == DetectionConfig::Shared).then_some(("bottlenecks", "shared"))
    }

    fn check(config: &PolypathConfig) -> Result<(), ConfigError> {
        config.check()
    }

    fn build(config: PolypathConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(Self::new(config))
    }
}

impl PolypathConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let target = |reason, remedy| ConfigError::new("cc.queue_target", reason, remedy);
        let long = target("longer than 10 s", "times are in ms: 10 is the daemon's");
        let of_one = target(
            "it is for a bottleneck with one path, and bottlenecks = \"shared\" puts all paths through one",
            "leave out one of the two keys",
        );
        let (has_target, shared) =
            (!is_zero(&self.queue_target), self.bottlenecks == DetectionConfig::Shared);
        ConfigError::first(&[
            (self.initial_window == 0, no_window()),
            (self.queue_target > LONGEST_TARGET, long),
            (has_target && shared, of_one),
        ])
    }

    /// The link of ours that all paths are said to leave by, if all are to share.
    pub(super) fn link(&self) -> Option<u32> {
        (self.bottlenecks == DetectionConfig::Shared).then_some(0)
    }
}

fn is_zero(target: &Duration) -> bool {
    *target == Duration::ZERO
}
