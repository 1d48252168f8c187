//! In the steady state no packet costs an allocation: whatever grows has grown before.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use common::{hop, secs};
use polypath_sim::{FlowConfig, HopConfig, HostConfig, QueueLimit, Via, World, WorldConfig};
use polypath_transport::cc::{CcConfig, PolypathConfig};
use polypath_transport::{ConnectionConfig, DetectionConfig, PathConfig};

/// A table may still double, but not one a thousand packets.
const MOST: u64 = 20;
const LEAST_PACKETS: u64 = 20_000;

/// One endless flow over as many links as there are hops; what it allocates between two instants, and
/// how many packets went over the links meanwhile.
fn allocations(hops: &[HopConfig], from: f64, to: f64) -> (u64, u64) {
    allocations_of(hops, CcConfig::default(), from, to)
}

/// The same with a controller.
fn allocations_of(hops: &[HopConfig], cc: CcConfig, from: f64, to: f64) -> (u64, u64) {
    let mut world = World::new(WorldConfig::default());
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let mut paths = Vec::new();
    for hop in hops {
        let link = world.link(a, b, hop.clone(), hop.clone()).unwrap();
        paths.push((world.path(a, b, &[Via::Link(link)]).unwrap(), PathConfig::default()));
    }
    let sender = ConnectionConfig { cc, ..ConnectionConfig::default() };
    world.flow(FlowConfig { paths, sender, ..FlowConfig::default() }).unwrap();
    let packets = |world: &World| world.hops().map(|h| world.hop_stats(h).entered).sum::<u64>();
    world.run(secs(from));
    let before = packets(&world);
    let counted = allocation_counter::measure(|| world.run(secs(to)));
    (counted.count_total, packets(&world) - before)
}

fn assert_none_per_packet((allocations, packets): (u64, u64)) {
    assert!(packets >= LEAST_PACKETS, "{packets} packets only");
    assert!(allocations <= MOST, "{allocations} allocations for {packets} packets");
}

#[test]
fn one_flow() {
    assert_none_per_packet(allocations(&[hop(100, 5, 200)], 2.0, 6.0));
}

#[test]
fn two_paths_with_loss_and_reordering() {
    let lossy = |mbps, delay| HopConfig {
        loss: 0.01,
        reordering: 0.01,
        queue: QueueLimit::Packets(200),
        ..hop(mbps, delay, 200)
    };
    assert_none_per_packet(allocations(&[lossy(80, 5), lossy(40, 10)], 10.0, 40.0));
}

/// Which paths share is judged four times a second, which may allocate, a dozen times for a pair; packets do not.
#[test]
fn one_window_per_bottleneck_on_paths_apart_and_on_paths_that_share() {
    let hops = [hop(80, 5, 200), hop(40, 10, 200)];
    for bottlenecks in [DetectionConfig::default(), DetectionConfig::Shared] {
        let cc = CcConfig::Polypath(PolypathConfig { bottlenecks, ..PolypathConfig::default() });
        let (allocations, packets) = allocations_of(&hops, cc, 10.0, 30.0);
        assert!(packets >= LEAST_PACKETS && allocations <= MOST + 12 * 80, "{allocations} for {packets}");
    }
}
