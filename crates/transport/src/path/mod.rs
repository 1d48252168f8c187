//! What the sender knows of each path.

pub(crate) mod bandwidth;
mod drift;
pub(crate) mod estimator;
pub(crate) mod flight;
pub(crate) mod knowledge;
pub(crate) mod limit;
pub(crate) mod oneway;
pub(crate) mod others;
pub(crate) mod peer_clock;
pub(crate) mod routes;
pub(crate) mod rtt;
pub(crate) mod trains;
pub(crate) mod transmission;
pub(crate) mod watch;
