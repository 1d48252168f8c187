//! Simulated queues that mark (RFC 3168), and what their senders make of it.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{hop, secs};
use polypath_endpoint::SecurityConfig;
use polypath_hop::{CodelConfig, Discipline, HopConfig};
use polypath_sim::{FlowConfig, HostConfig, World, WorldConfig, identity};
use polypath_transport::{CcConfig, ConnectionConfig, PathConfig};
use polypath_wire::Seed;

/// Packets marked, dropped, sent again, reductions for marks, and bytes that arrived within 10 s.
fn run(ecn: bool, bytes: bool, secure: bool) -> [u64; 5] {
    let mut world = World::new(WorldConfig { seed: Seed(1), bytes, ..WorldConfig::default() });
    let hosts = [("a", 1), ("b", 2)].map(|(name, seed)| match secure {
        true => {
            let security = SecurityConfig { ecn, ..SecurityConfig::default() };
            world.secure_host(name, HostConfig::default(), security, identity(Seed(seed))).unwrap()
        }
        false => world.host(name, HostConfig::default()).unwrap(),
    });
    let link = HopConfig { discipline: Discipline::Codel(CodelConfig::default()), ..hop(20, 20, 1000) };
    world.link(hosts[0], hosts[1], link.clone(), link).unwrap();
    let path = world.path(hosts[0], hosts[1], &[]).unwrap();
    let connection =
        ConnectionConfig { cc: CcConfig::usual().of_today(), ecn, ..ConnectionConfig::default() };
    let flow = FlowConfig {
        paths: vec![(path, PathConfig::default())],
        start: secs(2.0),
        sender: connection.clone(),
        receiver: connection,
        ..FlowConfig::default()
    };
    let flow = world.flow(flow).unwrap();
    world.run(secs(12.0));
    let hops: Vec<_> = world.hops().map(|hop| world.hop_stats(hop)).collect();
    let (marked, dropped) =
        hops.iter().fold((0, 0), |sum, hop| (sum.0 + hop.marked, sum.1 + hop.dropped_total()));
    let report = world.flow_report(flow);
    let path = &report.sender_paths[0];
    [marked, dropped, path.retransmissions, path.marks, path.bytes_delivered]
}

#[test]
fn a_connection_is_marked_and_loses_nothing_in_values_and_in_bytes_alike() {
    let values = run(true, false, false);
    let [marked, dropped, again, reductions, delivered] = values;
    assert!(marked > 3 && dropped + again == 0, "{values:?}");
    assert!((2..=marked).contains(&reductions), "{values:?}");
    assert!(delivered > 20_000_000, "{values:?}");
    assert_eq!(run(true, true, false), values);
}

#[test]
fn over_esp_the_path_is_proved_first() {
    let run = run(true, true, true);
    let [marked, dropped, again, reductions, delivered] = run;
    assert!(marked > 3 && dropped + again == 0 && reductions > 1 && delivered > 20_000_000, "{run:?}");
}

#[test]
fn without_it_the_queue_drops() {
    for secure in [false, true] {
        let [marked, dropped, _, reductions, _] = run(false, false, secure);
        assert!((marked, reductions) == (0, 0) && dropped > 3);
    }
}
