//! Parameters of FAST.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::cc::window::no_window;
use crate::facts::ConfigError;

/// Parameters of FAST.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FastConfig {
    /// Packets kept in the queues of the path, at least 1 (paper §5.1: 100).
    pub alpha: u32,
    /// Set α from the throughput achieved, in three ranges: 8 below 1,500 packets/s, 20, 200 above 15,000.
    pub tune_alpha: bool,
    /// How far one update goes towards its aim, above 0 to 1 (equation 1; half-way, §2.1).
    pub gamma: f64,
    /// Queued packets that end slow start (our choice: 20).
    pub slow_start_exit: u32,
    /// Queueing delay below which the window doubles, ms (our choice: 0.75).
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub multiplicative_increase_below: Duration,
    /// Round trips per update, at least 1 (§2.1: alternate ones, 2).
    pub rounds_per_update: u32,
    /// What counts as queueing.
    pub signal: DelaySignal,
    /// Initial window, packets.
    pub initial_window: u32,
    /// Pace at this many windows per round trip, above 1 (twice that in slow start); 0, as in the paper,
    /// does not pace. The one-way signal needs it where the way back is full (1.25).
    pub pacing: f64,
}

/// Which delay FAST keeps short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DelaySignal {
    /// The round trip: a queue on the way back slows down as well (§4).
    #[default]
    RoundTrip,
    /// The way to the peer (§4's future work). Needs timestamps; until they tell, the round trip.
    OneWay,
}

impl Default for FastConfig {
    fn default() -> Self {
        Self {
            alpha: 100,
            tune_alpha: false,
            gamma: 0.5,
            slow_start_exit: 20,
            multiplicative_increase_below: Duration::from_micros(750),
            rounds_per_update: 2,
            signal: DelaySignal::RoundTrip,
            initial_window: 2,
            pacing: 0.0,
        }
    }
}

impl FastConfig {
    /// Whether its parameters mean something together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = ConfigError::new;
        let paces = self.pacing == 0.0 || (self.pacing > 1.0 && self.pacing.is_finite());
        ConfigError::first(&[
            (self.initial_window == 0, no_window()),
            (
                self.alpha == 0,
                error("cc.alpha", "0 packets in the queues are no aim", "at least 1; the paper's is 100"),
            ),
            (
                !(self.gamma > 0.0 && self.gamma <= 1.0),
                error("cc.gamma", "not above 0 and at most 1", "half-way is 0.5"),
            ),
            (
                self.rounds_per_update == 0,
                error("cc.rounds_per_update", "0 round trips", "at least 1; the paper's is 2"),
            ),
            (
                !paces,
                error("cc.pacing", "slower than the window", "above 1, for example 1.25, or 0 for none"),
            ),
        ])
    }
}
