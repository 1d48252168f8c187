//! Floor 4: experiments as data. A spec file resolves to runs of the simulator; runs make an
//! ensemble; an ensemble is checked against what the spec expects.

pub mod registry;
pub mod seeds;
pub mod spec;
pub mod units;
