//! What the sender knows of each path.

pub mod bandwidth;
pub mod estimator;
pub mod flight;
pub mod knowledge;
pub mod limit;
pub mod oneway;
pub mod routes;
pub mod rtt;
pub mod trains;
pub mod transmission;
pub mod watch;
