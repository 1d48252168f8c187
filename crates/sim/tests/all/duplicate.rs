//! Duplication mode over paths of unequal delay: every segment takes both, so there is what the narrower carries.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{hop, secs};
use polypath_sim::{FlowConfig, HostConfig, Via, World, WorldConfig};
use polypath_transport::sched::{DuplicateConfig, SchedulerConfig};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::Seed;

/// Mbit/s of data over 80 Mbit/s, 20 ms and 40 Mbit/s, 40 ms, from 4 to 14 s.
fn goodput(multi_route: bool) -> f64 {
    let mut world = World::new(WorldConfig { seed: Seed(1), ..WorldConfig::default() });
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let hops = [hop(80, 20, 270), hop(40, 40, 270)];
    let links = hops.map(|h| world.link(a, b, h.clone(), h).unwrap());
    let paths = links.map(|l| (world.path(a, b, &[Via::Link(l)]).unwrap(), PathConfig::default())).into();
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
