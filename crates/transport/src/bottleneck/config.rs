//! The methods by name.

use serde::{Deserialize, Serialize};

use super::concordance::Concordance;
use super::detector::Detector;
use super::judge::{Judge, Thresholds};
use super::statistics::Statistics;

/// How paths are found that share a bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DetectionConfig {
    /// Concordance of queueing delays, confirmed by shifting a little load between the paths.
    #[default]
    Concordance,
    /// The statistics of RFC 8382: skewness, variability, oscillation and loss. It needs more than 20 s.
    Statistics,
    /// None: every path has a bottleneck of its own.
    Separate,
    /// None: all paths share one.
    Shared,
}

/// A detector and the judge of what it says; none where the configuration decides.
#[derive(Debug)]
pub(crate) struct Detection {
    /// Who compares.
    pub detector: Option<Box<dyn Detector>>,
    /// Who holds the verdict.
    pub judge: Judge,
}

impl DetectionConfig {
    /// Ready to be fed.
    pub(crate) fn build(self) -> Detection {
        let (detector, thresholds): (Option<Box<dyn Detector>>, _) = match self {
            Self::Concordance => {
                (Some(Box::<Concordance>::default()), Thresholds { trials: true, join: 0.3, leave: 0.2 })
            }
            Self::Statistics => (Some(Box::<Statistics>::default()), Thresholds::without_trial(0.9, 0.5)),
            Self::Separate | Self::Shared => (None, Thresholds::without_trial(1.0, 0.0)),
        };
        Detection { detector, judge: Judge::new(thresholds) }
    }
}
