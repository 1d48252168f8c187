//! What is between the ends.

use polypath_hop::{Change, Hop, Step};
use polypath_wire::Duration;

use crate::spec::{Path, Spec};

pub const IPV4_HEADER: u32 = 20;

/// The hops of each path, from end 0 and from end 1.
pub fn hops_of<T: std::fmt::Debug + Send + 'static>(spec: &Spec) -> Vec<[Hop<T>; 2]> {
    let of = |(i, path): (usize, &Path)| {
        [0, 1].map(|d| Hop::new(path.hops[d].clone(), spec.seed.child(&format!("chance/{i}/{d}"))))
    };
    spec.paths.iter().enumerate().map(of).collect()
}

/// The shortest time that the way from that end takes.
pub fn shortest(path: &Path, from: usize) -> Duration {
    let of = |step: &Step| match step.change {
        Change::Delay(delay) => Some(delay),
        _ => None,
    };
    let hop = &path.hops[from];
    hop.schedule.iter().filter_map(of).fold(hop.delay, Duration::min)
}
