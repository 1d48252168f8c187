//! Parameters of a window.

use serde::{Deserialize, Serialize};

use crate::facts::ConfigError;

/// Parameters of a window.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WindowConfig {
    /// Initial window, segments (RFC 6928: 10; ns-2: 2).
    pub initial_window: u32,
    /// Initial slow start threshold, segments; none is as large as possible (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
    /// Most segments that one acknowledgment may count for (RFC 3465's L: 2; ns-2 counts
    /// acknowledgments: 1). Paced, one counts for all that it acknowledges.
    pub abc_limit: u32,
    /// How the first slow start grows and ends.
    pub slow_start: SlowStart,
}

/// The first slow start of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SlowStart {
    /// The window doubles in a round trip until something is lost (RFC 5681).
    #[default]
    Standard,
    /// It also ends when the round trip grows (RFC 9406).
    Hystart,
    /// Packet trains show when the path is full; all segments are paced, also after slow start.
    Paced,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self { initial_window: 10, initial_ssthresh: None, abc_limit: 2, slow_start: SlowStart::Standard }
    }
}

impl WindowConfig {
    /// Whether its parameters mean something together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = ConfigError::new;
        ConfigError::first(&[
            (self.initial_window == 0, no_window()),
            (
                self.initial_ssthresh == Some(0),
                error("cc.initial_ssthresh", "a threshold of 0 segments", "leave it out for none"),
            ),
            (
                self.abc_limit == 0,
                error("cc.abc_limit", "0 never lets a window grow", "2 is RFC 3465's, 1 ns-2's"),
            ),
        ])
    }

    /// The same, paced.
    #[must_use]
    pub fn paced(self) -> Self {
        Self { slow_start: SlowStart::Paced, ..self }
    }

    /// Whether windows are all a controller with these has to say.
    pub fn is_window_only(&self) -> bool {
        self.slow_start != SlowStart::Paced
    }
}

/// What is said of an initial window of 0.
pub(crate) fn no_window() -> ConfigError {
    ConfigError::new("cc.initial_window", "a window of 0 sends nothing", "2 to 10 segments are usual")
}
