//! The schedulers by name. Each describes itself in its own file; this lists them.

use serde::{Deserialize, Serialize};

use super::blest::Blest;
use super::duplicate::Duplicate;
use super::earliest_arrival::EarliestArrival;
use super::earliest_completion::EarliestCompletion;
use super::ecf::Ecf;
use super::min_rtt::MinRtt;
use super::round_robin::RoundRobin;
use super::scheduler::Scheduler;
use crate::about::{About, Registry};

/// Which scheduler, with its parameters. What each is says [`Registry::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
pub enum SchedulerConfig {
    /// [`RoundRobin`].
    RoundRobin,
    /// [`MinRtt`].
    MinRtt,
    /// [`EarliestArrival`].
    #[default]
    EarliestArrival,
    /// [`EarliestCompletion`].
    EarliestCompletion,
    /// [`Blest`].
    Blest,
    /// [`Ecf`].
    Ecf,
    /// [`Duplicate`].
    Duplicate {
        /// Only what is sent again; new data takes each path in turn.
        #[serde(default)]
        lost_only: bool,
    },
}

impl Registry for SchedulerConfig {
    const TAG: &'static str = "policy";
    const ALL: &'static [About] = &[
        RoundRobin::ABOUT,
        MinRtt::ABOUT,
        EarliestArrival::ABOUT,
        EarliestCompletion::ABOUT,
        Blest::ABOUT,
        Ecf::ABOUT,
        Duplicate::ABOUT,
    ];
}

impl SchedulerConfig {
    /// The scheduler.
    pub fn build(&self) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin => Box::<RoundRobin>::default(),
            Self::MinRtt => Box::<MinRtt>::default(),
            Self::EarliestArrival => Box::<EarliestArrival>::default(),
            Self::EarliestCompletion => Box::<EarliestCompletion>::default(),
            Self::Blest => Box::<Blest>::default(),
            Self::Ecf => Box::<Ecf>::default(),
            Self::Duplicate { lost_only } => Box::new(Duplicate::new(*lost_only)),
        }
    }
}
