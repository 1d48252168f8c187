//! Hosts with sockets and TUN devices of the kernel.

mod backups;
mod capture;
#[path = "../common/mod.rs"]
mod common;
mod fragments;
mod injected;
mod kernel;
mod late_reader;
mod multipath_netns;
mod routes;
mod streams;
mod too_big;
mod trains;
