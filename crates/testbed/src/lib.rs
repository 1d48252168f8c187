//! Floor 4: hosts and emulated links between them in real time, on loopback or in network namespaces, and a file sent over them. For
//! demonstrations, benches and tests.

mod bed;
pub mod emulated_link;
pub mod netns;
pub mod transfer;

pub use bed::{EmulatedPath, PORT, PathEnd, Testbed, TestbedError, address, namespace_link, tun_end};
