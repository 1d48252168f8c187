//! The controller `polypath` in worlds: it is its law on one path, and one TCP where paths share a bottleneck.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{hop, line_of, secs};
use polypath_sim::{FlowConfig, FlowId, HostConfig, Via, World, WorldConfig};
use polypath_transport::cc::{BaseLaw, CcConfig, CubicConfig, NewRenoConfig, PolypathConfig};
use polypath_transport::{ConnectionConfig, PathConfig, PathStats};
use polypath_wire::{PathId, Seed};

fn flow(world: &mut World, paths: &[polypath_sim::Path], cc: CcConfig) -> FlowId {
    let connection = ConnectionConfig { cc, receive_buffer: 16 << 20, ..ConnectionConfig::default() };
    let paths = paths.iter().map(|path| (*path, PathConfig::default())).collect();
    let (sender, receiver) = (connection.clone(), connection);
    world.flow(FlowConfig { paths, sender, receiver, ..FlowConfig::default() }).unwrap()
}

fn polypath(base: BaseLaw) -> CcConfig {
    CcConfig::Polypath(PolypathConfig { base, ..PolypathConfig::default() })
}

/// All that happens in 20 s of one path with a full queue.
fn trace(cc: CcConfig) -> (u128, u64, u64) {
    let mut l = line_of(WorldConfig::default(), HostConfig::default(), hop(20, 20, 60));
    l.world.trace(false, true);
    let path = l.path;
    let flow = flow(&mut l.world, &[path], cc);
    l.world.run(secs(20.0));
    let retransmissions = l.world.flow_report(flow).retransmissions();
    let trace = l.world.take_trace().unwrap();
    (trace.hash(), trace.len(), retransmissions)
}

#[test]
fn on_one_path_it_is_its_law_packet_for_packet() {
    let newreno = trace(CcConfig::Newreno(NewRenoConfig::default()).of_today());
    assert!(newreno.2 > 0, "nothing was lost");
    assert_eq!(trace(polypath(BaseLaw::Newreno)), newreno);
    let cubic = trace(CcConfig::Cubic(CubicConfig::default()).of_today());
    assert_eq!(trace(polypath(BaseLaw::Cubic)), cubic);
    assert_ne!(cubic, newreno);
}

/// All that happens in the first second over two links that share nothing.
fn start(cc: CcConfig) -> (u128, u64) {
    let mut world = World::new(WorldConfig { seed: Seed(1), ..WorldConfig::default() });
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let links = [(80, 20), (40, 40)].map(|(rate, delay)| {
        let gate = world.router(&format!("g{rate}")).unwrap();
        world.link(a, gate, hop(1000, 0, 1000), hop(1000, 0, 1000)).unwrap();
        world.link(gate, b, hop(rate, delay, 280), hop(rate, delay, 280)).unwrap();
        world.path(a, b, &[Via::Node(gate)]).unwrap()
    });
    world.trace(false, true);
    flow(&mut world, &links, cc);
    world.run(secs(1.0));
    let trace = world.take_trace().unwrap();
    (trace.hash(), trace.len())
}

#[test]
fn two_paths_that_share_nothing_begin_as_its_law_has_it() {
    let newreno = start(CcConfig::Newreno(NewRenoConfig::default()).of_today());
    assert_eq!(start(polypath(BaseLaw::Newreno)), newreno);
    assert_ne!(start(CcConfig::Newreno(NewRenoConfig::default())), newreno);
}

/// Bottlenecks of a connection's two paths after 15 s: through one link or through one each, which are alike.
fn bottlenecks(shared: bool) -> Vec<Option<PathId>> {
    let mut world = World::new(WorldConfig { seed: Seed(1), ..WorldConfig::default() });
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let gates = ["g0", "g1"].map(|name| world.router(name).unwrap());
    let far = ["f0", "f1"].map(|name| world.router(name).unwrap());
    let mut paths = Vec::new();
    for n in 0..2 {
        world.link(a, gates[n], hop(100, 10, 1000), hop(100, 10, 1000)).unwrap();
        world.link(gates[n], far[if shared { 0 } else { n }], hop(100, 1, 1000), hop(100, 1, 1000)).unwrap();
    }
    (0..2).for_each(|n| _ = world.link(far[n], b, hop(10, 10, 60), hop(10, 10, 60)).unwrap());
    for n in 0..2 {
        let via = [Via::Node(gates[n]), Via::Node(far[if shared { 0 } else { n }])];
        paths.push(world.path(a, b, &via).unwrap());
    }
    let flow = flow(&mut world, &paths, polypath(BaseLaw::Newreno));
    world.run(secs(15.0));
    world.flow_report(flow).sender_paths.iter().map(|path: &PathStats| path.bottleneck).collect()
}

#[test]
fn paths_through_one_queue_are_found_to_share_it() {
    assert_eq!(bottlenecks(true), [Some(PathId(0)), Some(PathId(0))]);
}

/// Two equal links without anybody else: their queues rise and fall alike until load is shifted between them.
#[test]
fn equal_links_are_not_taken_for_one() {
    assert_eq!(bottlenecks(false), [Some(PathId(0)), Some(PathId(1))]);
}
