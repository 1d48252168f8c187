//! When data is acknowledged, by name.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::facts::ConfigError;

/// When data is acknowledged. `delayed_ack = 0` and the multi-route option acknowledge every segment at once
/// whatever is said here.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum AckConfig {
    /// Every second segment, and at once whatever comes out of order or fills a gap (RFC 5681 §4.2): with
    /// several paths nearly each.
    #[default]
    #[serde(deserialize_with = "polypath_wire::no_keys::deserialize")]
    Standard,
    /// A few times a round trip of each path. Without SACK the same as `standard`.
    Thinned(Thinning),
}

/// How acknowledgments are thinned, on each path. In the middle of a transfer one leaves whenever `every` segments came
/// and a part of the round trip has passed, and after `most` segments at the latest.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Thinning {
    /// Fewest segments for one acknowledgment, at least 1, unless `delayed_ack` passes (RFC 9293 §3.8.6.3: 2).
    pub every: u32,
    /// Most segments for one acknowledgment, at least `every`.
    pub most: u32,
    /// Acknowledgments a round trip, at least 2. The round trip contains what acknowledgments wait on the way
    /// back: where they have to queue, fewer leave.
    pub per_round_trip: u32,
    /// Longest time between two, ms.
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub longest: Duration,
    /// Segments at the beginning of a path of which every `every`th is acknowledged: slow start
    /// needs them soon.
    pub first: u32,
}

impl Default for Thinning {
    fn default() -> Self {
        Self { every: 2, most: 32, per_round_trip: 16, longest: Duration::from_millis(25), first: 100 }
    }
}

impl AckConfig {
    /// Thinned, with its defaults.
    pub fn thinned() -> Self {
        Self::Thinned(Thinning::default())
    }

    /// Whether its parameters mean something together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self::Thinned(t) = self else { return Ok(()) };
        let none = ConfigError::new("acks.every", "0 segments are nothing to acknowledge", "2 is RFC 9293's");
        let few = ConfigError::new("acks.most", "less than every", "32 is the default");
        let rare = ConfigError::new(
            "acks.per_round_trip",
            "a window that moves less than twice a round trip stops",
            "16 is the default",
        );
        let slow =
            ConfigError::new("acks.longest", "longer than 500 ms (RFC 9293)", "25 is the default, in ms");
        ConfigError::first(&[
            (t.every == 0, none),
            (t.most < t.every, few),
            (t.per_round_trip < 2, rare),
            (t.longest > Duration::from_millis(500), slow),
        ])
    }
}
