//! What can arrive at an endpoint.

use polypath_transport::Segment;

use crate::paths::Locators;

/// One arrival.
#[derive(Clone, Debug)]
pub enum Input {
    /// A segment that needs no parsing: from a simulated hop.
    Segment {
        /// Between which locators, as we see it.
        locators: Locators,
        /// The segment.
        segment: Segment,
    },
}
