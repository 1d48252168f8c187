//! Policies that count signs of a loss in what SACK tells.

use polypath_wire::Duration;

use super::dupack::Dupack;
use super::policy::LossPolicy;
use super::rule::{Rule, ThresholdConfig};
use crate::about::About;
use crate::facts::ConfigError;

/// A policy that needs SACK. Without it, [`Dupack`] with the same threshold takes its place.
pub(crate) trait Counting: LossPolicy + Sized + 'static {
    /// Name and help.
    const ABOUT: About;

    /// `threshold` signs mean a loss.
    fn new(threshold: u32) -> Self;
}

impl<P: Counting> Rule for P {
    type Config = ThresholdConfig;
    const ABOUT: About = <P as Counting>::ABOUT;

    fn check(config: &ThresholdConfig, _: Option<Duration>) -> Result<(), ConfigError> {
        config.check()
    }

    fn build(config: ThresholdConfig, sack: bool) -> Box<dyn LossPolicy> {
        if sack { Box::new(Self::new(config.threshold)) } else { Dupack::build(config.into(), sack) }
    }
}
