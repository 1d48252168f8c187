//! `earliest_arrival` on two idle, unequal paths whose rates and delays it is told exactly: the sum of
//! both, and nothing out of order.
//!
//! Utilisation here is stream bytes delivered in order, per second, over the sum of what headers leave of
//! both rates: 1,448 of 1,500 bytes (20 of IPv4, 20 of TCP, 12 of timestamps). "From 1 MB transfers at steady
//! state" has two readings, and both are tested: each megabyte of a stream that goes on, and transfers of 1 MB
//! one after the other. The latter each end with a wait for the paths' delays, in which nothing can be sent:
//! there what counts is the share of what such paths can carry until then.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{assert_conserved, between, finish, hop, secs};
use polypath_sim::{FlowConfig, FlowId, FlowReport, HopConfig, World};
use polypath_transport::cc::{CcConfig, NewRenoConfig};
use polypath_transport::sched::SchedulerConfig;
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::{Duration, Rate};
use proptest::prelude::*;

const MB: u64 = 1_000_000;
const HEADERS_LEAVE: f64 = 1448.0 / 1500.0;
/// What the issue asks for.
const ENOUGH: f64 = 0.97;

/// Mbit/s and one-way delay, ns.
type Way = (u64, u64);
const MS: u64 = 1_000_000;
const DEMO: [Way; 2] = [(80, 20 * MS), (40, 40 * MS)];

/// Receive buffer that does not limit, bytes: more than the sum of the rates brings in the longest round trip. With the
/// default of 4 MiB, 100 + 100 Mbit/s with delays of 1 and 99 ms stayed at .89 of the sum in one order of the paths.
fn buffer(ways: [Way; 2]) -> u64 {
    let bits_per_s = ways.iter().map(|(mbps, _)| mbps * 1_000_000).sum::<u64>() as f64;
    let round_trip = 2.0 * ways.iter().map(|way| way.1).max().unwrap() as f64 / 1e9;
    (4 << 20).max((1.25 * bits_per_s * round_trip / 8.0) as u64)
}

/// A transfer over `ways`, with initial windows of this many segments.
fn world(ways: [Way; 2], window: u32, bytes: Option<u64>) -> (World, FlowId) {
    let (mut world, paths) =
        between(ways.map(|(mbps, ns)| HopConfig { delay: Duration(ns), ..hop(mbps, 0, 6000) }));
    let told = |(mbps, ns)| PathConfig {
        rate: Some(Rate::from_mbps(mbps)),
        one_way: Some(Duration(ns)),
        overhead: 52,
        ..PathConfig::default()
    };
    let connection = ConnectionConfig {
        scheduler: SchedulerConfig::EarliestArrival,
        cc: CcConfig::Newreno(NewRenoConfig { initial_window: window, ..NewRenoConfig::default() }),
        receive_buffer: buffer(ways),
        ..ConnectionConfig::default()
    };
    let paths = paths.into_iter().zip(ways.map(told)).collect();
    let flow = FlowConfig {
        paths,
        bytes,
        open: true,
        sender: connection.clone(),
        receiver: connection,
        ..FlowConfig::default()
    };
    let flow = world.flow(flow).unwrap();
    (world, flow)
}

fn capacity(ways: [Way; 2]) -> f64 {
    ways.iter().map(|w| w.0 as f64 * 1e6).sum::<f64>() * HEADERS_LEAVE
}

/// Utilisation from `from` to `to` seconds, and the report at the end.
fn utilisation(ways: [Way; 2], window: u32, from: f64, to: f64) -> (f64, FlowReport) {
    let (mut world, flow) = world(ways, window, None);
    world.run(secs(from));
    let before = world.flow_report(flow).bytes;
    world.run(secs(to));
    let report = world.flow_report(flow);
    assert_conserved(&world);
    ((report.bytes - before) as f64 * 8.0 / (to - from) / capacity(ways), report)
}

/// With windows that leave the choice to the scheduler, from the first byte on.
#[test]
fn the_sum_of_both_and_nothing_out_of_order() {
    let (used, report) = utilisation(DEMO, 5000, 0.5, 5.5);
    println!("utilisation {used:.4}");
    assert!(used >= ENOUGH, "{used}");
    assert_eq!((report.receiver.out_of_order, report.receiver.reorder_peak), (0, 0));
    assert_eq!(report.retransmissions(), 0);
}

/// The same for each megabyte of the steady state by itself.
#[test]
fn every_megabyte() {
    let (mut world, flow) = world(DEMO, 5000, None);
    let span = MB as f64 * 8.0 / capacity(DEMO);
    world.run(secs(0.5));
    let mut before = world.flow_report(flow).bytes;
    for n in 1..=50 {
        world.run(secs(0.5 + f64::from(n) * span));
        let now = world.flow_report(flow).bytes;
        assert!((now - before) as f64 >= ENOUGH * MB as f64, "megabyte {n}: {}", now - before);
        before = now;
    }
}

/// Windows that begin with ten segments: once they are open, the same holds.
#[test]
fn after_slow_start_the_same() {
    let (mut world, flow) = world(DEMO, 10, None);
    world.run(secs(2.0));
    let before = world.flow_report(flow);
    world.run(secs(7.0));
    let report = world.flow_report(flow);
    let used = (report.bytes - before.bytes) as f64 * 8.0 / 5.0 / capacity(DEMO);
    println!("utilisation {used:.4}");
    assert!(used >= ENOUGH, "{used}");
    assert_eq!(report.receiver.out_of_order, before.receiver.out_of_order);
}

/// The longest of 50 transfers of this many bytes, s, and how many segments come out of order: one after the
/// other on one open connection, each begun when the one before has been read, after a warm-up of 20.
fn one_after_the_other(bytes: u64) -> (f64, u64) {
    let (mut world, flow) = world(DEMO, 10, Some(20 * bytes));
    let finish = |world: &mut World| finish(world, flow, Duration::from_micros(10)).as_secs_f64();
    finish(&mut world);
    let warm = world.flow_report(flow);
    let one = |_| {
        assert_eq!(world.write(flow, bytes), bytes);
        finish(&mut world)
    };
    let worst = (0..50).map(one).fold(0.0, f64::max);
    let report = world.flow_report(flow);
    assert_eq!((report.bytes, report.corrupted), (70 * bytes, false));
    assert_eq!(report.retransmissions(), warm.retransmissions());
    (worst, report.receiver.out_of_order - warm.receiver.out_of_order)
}

/// None takes longer than the bytes and the delays make it. The last segment of 1 MB is shorter than the others:
/// it may arrive before the one that it follows. With whole segments nothing is out of order.
#[test]
fn one_megabyte_after_the_other() {
    for (bytes, short) in [(MB, 1), (691 * 1448, 0)] {
        let (worst, out_of_order) = one_after_the_other(bytes);
        let least = least(DEMO, bytes);
        println!("{bytes} bytes: {worst:.4} s, at least {least:.4} s; {out_of_order} out of order");
        assert!(least >= ENOUGH * worst, "{bytes} bytes: {worst} s, {least} s would do");
        assert!(out_of_order <= 50 * short, "{bytes} bytes: {out_of_order} out of order");
    }
}

/// The least time in which `bytes` can arrive, s: each way carries at its rate from the end of its delay on.
fn least(ways: [Way; 2], bytes: u64) -> f64 {
    let rates = ways.map(|(mbps, _)| mbps as f64 * 1e6 * HEADERS_LEAVE);
    let in_flight: f64 = rates.iter().zip(ways).map(|(rate, (_, ns))| rate * ns as f64 / 1e9).sum();
    (bytes as f64 * 8.0 + in_flight) / capacity(ways)
}

/// Rates at which 1,500 bytes take whole nanoseconds. At others the choice between two paths may be wrong by
/// the one nanosecond that estimates are rounded to, and that is an order too.
fn exact() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![2, 3, 4, 5, 8, 12, 15, 20, 25, 32, 40, 60, 75, 80, 100])
}

/// Keeps two packets from arriving at the very same instant, which has no order.
const NO_TIE: u64 = 37;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_the_paths(rates in [exact(), exact()], delays in [1u64..100, 1u64..100]) {
        let ways = [(rates[0], delays[0] * MS), (rates[1], delays[1] * MS + NO_TIE)];
        let (used, report) = utilisation(ways, 5000, 3.0, 6.0);
        prop_assert!(used >= ENOUGH, "{used}");
        prop_assert_eq!((report.receiver.out_of_order, report.retransmissions()), (0, 0));
    }
}
