//! Sources of datagrams over routes: rates, pauses, losses, and independence of their chance.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{assert_conserved, hop, line, line_of, secs};
use polypath_sim::{HopConfig, Pauses, SourceConfig, Via, World, WorldConfig, WorldError};
use polypath_wire::{Duration, Instant, Rate, Seed};

#[test]
fn a_constant_rate_is_exact() {
    let mut l = line(1, hop(100, 10, 10));
    // 1250 bytes at 3 Mbit/s: every 3 1/3 ms, whose remainder is carried.
    let cbr = SourceConfig::constant("cbr", l.path, 1250, Rate::from_mbps(3), secs(1.0));
    let cbr = l.world.source(SourceConfig { stop: Some(secs(11.0)), ..cbr }).unwrap();
    l.world.run(secs(20.0));
    let report = l.world.source_report(cbr);
    assert_eq!((report.sent, report.received, report.bytes), (3000, 3000, 3_750_000));
    assert_eq!((report.out_of_order, report.corrupted, l.world.packets()), (0, 0, 0));
    assert_conserved(&l.world);
}

#[test]
fn what_a_hop_cannot_carry_is_dropped_at_it() {
    let mut l = line(1, hop(2, 10, 10));
    let cbr = SourceConfig::constant("cbr", l.path, 1250, Rate::from_mbps(4), Instant::ZERO);
    let cbr = l.world.source(cbr).unwrap();
    l.world.run(secs(10.0));
    let dropped = l.world.hop_stats(l.second.there()).dropped_total();
    let report = l.world.source_report(cbr);
    // The first arrives 17 ms after the start, then one each 5 ms.
    assert_eq!(report.received, 1997);
    assert_eq!(report.sent, report.received + dropped + l.world.packets() as u64);
    assert_conserved(&l.world);
}

#[test]
fn bins_hold_what_arrived_in_them() {
    let config = WorldConfig { bin: Duration::from_secs(1), ..WorldConfig::default() };
    let mut l = line_of(config, Default::default(), hop(100, 10, 10));
    let cbr = SourceConfig::constant("cbr", l.path, 1000, Rate::from_mbps(8), secs(0.5));
    let cbr = l.world.source(SourceConfig { stop: Some(secs(2.0)), ..cbr }).unwrap();
    l.world.run(secs(5.0));
    let bins = &l.world.source_report(cbr).bins;
    assert_eq!(bins.len(), 3);
    assert_eq!(bins.iter().sum::<u64>(), 1_500_000);
    assert!(bins[1].abs_diff(1_000_000) <= 1000);
}

#[test]
fn who_passes_a_packet_held_back_arrives_on_time() {
    let config = WorldConfig { bin: Duration::from_millis(1), ..WorldConfig::default() };
    let held = Duration::from_millis(1050);
    let second = HopConfig { reordering: 0.5, reorder_delay: held, ..hop(100, 10, 10) };
    let mut l = line_of(config, Default::default(), second);
    // One packet each 100 ms: on time in one bin of each hundred, held back 50 bins further.
    let cbr = SourceConfig::constant("cbr", l.path, 1250, Rate(100_000), Instant::ZERO);
    let cbr = l.world.source(SourceConfig { stop: Some(secs(20.0)), ..cbr }).unwrap();
    l.world.run(secs(30.0));
    let report = l.world.source_report(cbr);
    let filled: Vec<usize> = (0..report.bins.len()).filter(|i| report.bins[*i] > 0).collect();
    let reordered = l.world.hop_stats(l.second.there()).reordered as usize;
    let late = filled.iter().filter(|i| !(**i - filled[0]).is_multiple_of(100)).count();
    assert_eq!((filled.len(), late), (200, reordered), "{filled:?}");
    assert!((60..140).contains(&reordered), "{reordered}");
}

#[test]
fn pauses_halve_the_rate() {
    for exponential in [false, true] {
        let mut l = line(5, hop(100, 10, 100));
        let pauses =
            Some(Pauses { on: Duration::from_millis(100), off: Duration::from_millis(100), exponential });
        let cbr = SourceConfig::constant("on/off", l.path, 1000, Rate::from_mbps(8), Instant::ZERO);
        let cbr = l.world.source(SourceConfig { pauses, ..cbr }).unwrap();
        l.world.run(secs(200.0));
        let share = l.world.source_report(cbr).sent as f64 / 200_000.0;
        assert!((share - 0.5).abs() < 0.05, "{share}");
    }
}

#[test]
fn a_random_source_keeps_its_mean() {
    let mut l = line(5, hop(100, 10, 100));
    let cbr = SourceConfig::constant("random", l.path, 1000, Rate::from_mbps(8), Instant::ZERO);
    let cbr = l.world.source(SourceConfig { randomness: 1.0, ..cbr }).unwrap();
    l.world.run(secs(100.0));
    assert!(l.world.source_report(cbr).sent.abs_diff(100_000) < 500);
}

/// Losses of a hop that one source crosses, with or without others elsewhere.
fn losses(others: bool) -> (u64, u64) {
    let mut world = World::new(WorldConfig { seed: Seed(3), ..WorldConfig::default() });
    let nodes = ["a", "b", "c"].map(|n| world.router(n).unwrap());
    let lossy = HopConfig { loss: 0.3, ..hop(10, 5, 50) };
    if others {
        world.link(nodes[1], nodes[2], lossy.clone(), lossy.clone()).unwrap();
    }
    let link = world.link(nodes[0], nodes[1], lossy.clone(), lossy).unwrap();
    if others {
        let other = world.path(nodes[1], nodes[2], &[]).unwrap();
        let noise = SourceConfig::constant("noise", other, 500, Rate::from_mbps(5), Instant::ZERO);
        world.source(SourceConfig { randomness: 1.0, ..noise }).unwrap();
    }
    let path = world.path(nodes[0], nodes[1], &[]).unwrap();
    let source = SourceConfig::constant("measured", path, 500, Rate::from_mbps(5), Instant::ZERO);
    let source = world.source(SourceConfig { randomness: 0.5, ..source }).unwrap();
    world.run(secs(10.0));
    (world.source_report(source).sent, world.hop_stats(link.there()).dropped_total())
}

#[test]
fn another_hop_and_another_source_move_nobodys_chance() {
    let (sent, lost) = losses(false);
    assert!(lost > 0);
    assert_eq!(losses(true), (sent, lost));
}

#[test]
fn what_cannot_be_built_is_refused() {
    let mut world = World::new(WorldConfig::default());
    let [a, b, island] = ["a", "b", "island"].map(|n| world.router(n).unwrap());
    let link = world.link(a, b, hop(1, 1, 1), hop(1, 1, 1)).unwrap();
    assert!(matches!(world.router("a"), Err(WorldError::DuplicateName(_))));
    assert!(matches!(world.path(a, island, &[]), Err(WorldError::NoRoute { .. })));
    assert!(matches!(world.path(a, a, &[]), Err(WorldError::NoDistance(_))));
    let bad = HopConfig { loss: 2.0, ..hop(1, 1, 1) };
    assert!(matches!(world.link(a, b, hop(1, 1, 1), bad), Err(WorldError::Hop { .. })));
    let path = world.path(a, b, &[Via::Link(link)]).unwrap();
    let tiny = SourceConfig::constant("tiny", path, 10, Rate::from_mbps(1), Instant::ZERO);
    assert!(matches!(world.source(tiny), Err(WorldError::Source(_))));
    let flow = polypath_sim::FlowConfig { paths: vec![(path, Default::default())], ..Default::default() };
    assert!(matches!(world.flow(flow), Err(WorldError::NotAHost(_))));
}
