//! Duplication mode over paths of unequal delay: every segment takes both, so there is what the narrower carries.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{between, hop, secs};
use polypath_sim::FlowConfig;
use polypath_transport::sched::{DuplicateConfig, SchedulerConfig};
use polypath_transport::{ConnectionConfig, PathConfig};

/// Mbit/s of data over 80 Mbit/s, 20 ms and 40 Mbit/s, 40 ms, from 4 to 14 s.
fn goodput(multi_route: bool) -> f64 {
    let (mut world, paths) = between([hop(80, 20, 270), hop(40, 40, 270)]);
    let paths = paths.map(|path| (path, PathConfig::default())).into();
    let scheduler = SchedulerConfig::Duplicate(DuplicateConfig { lost_only: false });
    let sender = ConnectionConfig { scheduler, multi_route, ..ConnectionConfig::default() };
    let receiver = sender.clone();
    let flow = world.flow(FlowConfig { paths, sender, receiver, ..FlowConfig::default() }).unwrap();
    world.run(secs(4.0));
    let before = world.flow_report(flow).bytes;
    world.run(secs(14.0));
    let report = world.flow_report(flow);
    (report.bytes - before) as f64 * 8.0 / 10.0 / 1e6
}

#[test]
fn the_narrower_path_is_full() {
    for multi_route in [false, true] {
        let goodput = goodput(multi_route);
        assert!((30.0..=38.7).contains(&goodput), "{goodput} Mbit/s, multi-route option {multi_route}");
    }
}
