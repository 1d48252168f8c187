//! Two hosts and a network between them, which a test may edit.

mod ahead;
mod algorithms;
mod attack;
mod closing;
mod dark;
#[path = "../common/pair.rs"]
mod hosts;
mod pair;
mod paths;
mod refused;
mod slow;
mod source;
mod tshark;
