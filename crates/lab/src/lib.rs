//! Floor 4: experiments as data. A spec file resolves to runs of the simulator; runs make an
//! ensemble; an ensemble is checked against what the spec expects.

mod build;
pub mod check;
pub mod columns;
pub mod group;
pub mod judge;
pub mod registry;
pub mod report;
pub mod results;
pub mod run;
pub mod seeds;
pub mod spec;
pub mod sweep;
pub mod timeline;
pub mod units;
