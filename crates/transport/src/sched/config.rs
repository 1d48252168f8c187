//! The schedulers by name. Each describes itself in its own file; this lists them.

use serde::{Deserialize, Serialize};

use super::blest::Blest;
use super::duplicate::{Duplicate, DuplicateConfig};
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

/// One variant per scheduler: those without parameters, then those with.
macro_rules! schedulers {
    ($($(#[$attribute:meta])? $plain:ident),+; $($variant:ident($config:ty) => $scheduler:ty),+;) => {
        /// Which scheduler, with its parameters. What each is says [`Registry::ALL`].
        #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
        pub enum SchedulerConfig {
            $(
                #[doc = concat!("`", stringify!($plain), "`.")]
                $(#[$attribute])?
                #[serde(deserialize_with = "polypath_wire::no_keys::deserialize")]
                $plain,
            )+
            $(
                #[doc = concat!("The parameters of `", stringify!($scheduler), "`.")]
                $variant($config),
            )+
            /// Supplied by the program that runs the connection, so none of [`Registry::ALL`].
            #[cfg_attr(feature = "schema", schemars(skip))]
            External(External<SchedulerMaker>),
        }

        impl Registry for SchedulerConfig {
            const TAG: &'static str = "policy";
            const ALL: &'static [About] = &[$(<$plain>::ABOUT,)+ $(<$scheduler>::ABOUT,)+];
        }

        impl SchedulerConfig {
            /// Whether it is there.
            pub fn check(&self) -> Result<(), ConfigError> {
                match self {
                    Self::External(external) => external.check("scheduler.name"),
                    _ => Ok(()),
                }
            }

            /// The scheduler. An external one that nobody supplied fails [`check`](Self::check); in its place stands the
            /// default.
            pub fn build(&self) -> Box<dyn Scheduler> {
                match self {
                    $(Self::$plain => Box::<$plain>::default(),)+
                    $(Self::$variant(config) => Box::new(<$scheduler>::new(*config)),)+
                    Self::External(External { maker: Some(maker), .. }) => maker(),
                    Self::External(_) => Self::default().build(),
                }
            }
        }
    };
}

schedulers! {
    RoundRobin, MinRtt, #[default] EarliestArrival, EarliestCompletion, Blest, Ecf;
    Duplicate(DuplicateConfig) => Duplicate;
}
