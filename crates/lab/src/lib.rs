//! Floor 4: experiments as data. A spec file resolves to runs of the simulator; runs make an
//! ensemble; an ensemble is checked against what the spec expects.

#[cfg(feature = "experiments")]
mod build;
#[cfg(feature = "experiments")]
mod built_in;
#[cfg(feature = "experiments")]
pub mod check;
#[cfg(feature = "experiments")]
pub mod columns;
#[cfg(feature = "experiments")]
pub mod counters;
#[cfg(feature = "document")]
pub mod document;
pub mod excerpt;
#[cfg(feature = "experiments")]
mod flow_result;
#[cfg(feature = "experiments")]
pub mod frontier;
#[cfg(feature = "experiments")]
pub mod group;
#[cfg(feature = "experiments")]
mod keep;
#[cfg(feature = "experiments")]
pub mod metric;
#[cfg(feature = "experiments")]
mod place;
pub mod registry;
#[cfg(feature = "experiments")]
pub mod replay;
#[cfg(feature = "experiments")]
pub mod report;
#[cfg(feature = "experiments")]
pub mod results;
#[cfg(feature = "experiments")]
pub mod run;
#[cfg(feature = "experiments")]
pub mod scenarios;
pub mod seeds;
#[cfg(feature = "experiments")]
pub mod shelf;
#[cfg(feature = "experiments")]
pub mod spec;
pub mod stop;
#[cfg(feature = "experiments")]
pub mod store;
#[cfg(feature = "experiments")]
pub mod sweep;
#[cfg(feature = "experiments")]
pub mod task;
#[cfg(feature = "experiments")]
pub mod timeline;
#[cfg(feature = "experiments")]
pub mod traces;
pub mod units;
#[cfg(feature = "experiments")]
pub mod values;
