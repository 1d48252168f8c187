//! Small worlds, and what is known of each from elsewhere.

mod captures;
#[path = "../common/mod.rs"]
mod common;
mod cubic;
mod datagrams;
mod duplicate;
mod earliest_arrival;
mod fast;
mod flows;
mod limit;
mod marks;
mod ns2;
mod offload;
mod pages;
mod polypath;
mod queue_target;
mod tail;
