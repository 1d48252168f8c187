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
use crate::external::External;
use crate::facts::ConfigError;

/// Makes schedulers that the program supplies.
pub type SchedulerMaker = dyn Fn() -> Box<dyn Scheduler> + Send + Sync;

/// Which scheduler, with its parameters. What each is says [`Registry::ALL`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
    /// Supplied by the program that runs the connection, so none of [`Registry::ALL`].
    #[cfg_attr(feature = "schema", schemars(skip))]
    External(External<SchedulerMaker>),
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
    /// Whether it is there.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::External(external) => external.check("scheduler.name"),
            _ => Ok(()),
        }
    }

    /// The scheduler. An external one that nobody supplied fails [`check`](Self::check); in its place stands the default.
    pub fn build(&self) -> Box<dyn Scheduler> {
        match self {
            Self::RoundRobin => Box::<RoundRobin>::default(),
            Self::MinRtt => Box::<MinRtt>::default(),
            Self::EarliestArrival => Box::<EarliestArrival>::default(),
            Self::EarliestCompletion => Box::<EarliestCompletion>::default(),
            Self::Blest => Box::<Blest>::default(),
            Self::Ecf => Box::<Ecf>::default(),
            Self::Duplicate { lost_only } => Box::new(Duplicate::new(*lost_only)),
            Self::External(External { maker: Some(maker), .. }) => maker(),
            Self::External(_) => Self::default().build(),
        }
    }
}
