//! Many short connections at once over the same two paths, as of a page: they divide between both.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{between, hop, secs};
use polypath_endpoint::SecurityConfig;
use polypath_sim::{FlowConfig, FlowId, HopConfig, HostConfig, Path, Via, World, WorldConfig, identity};
use polypath_transport::cc::{CcConfig, PolypathConfig};
use polypath_transport::sched::SchedulerConfig;
use polypath_transport::{AckConfig, ConnectionConfig, PathConfig};
use polypath_wire::{Duration, Seed};

const STEP: Duration = Duration::from_millis(1);

/// A connection as the daemon's, which begins now.
fn flow(world: &mut World, paths: &[Path], bytes: u64) -> FlowId {
    let connection = ConnectionConfig {
        scheduler: SchedulerConfig::EarliestCompletion,
        cc: CcConfig::Polypath(PolypathConfig::default()).of_today(),
        acks: AckConfig::thinned(),
        send_buffer: 32 << 20,
        receive_buffer: 32 << 20,
        ..ConnectionConfig::default()
    };
    let config = FlowConfig {
        bytes: Some(bytes),
        start: world.now(),
        paths: paths.iter().map(|path| (*path, PathConfig::default())).collect(),
        sender: connection.clone(),
        receiver: connection,
        ..FlowConfig::default()
    };
    world.flow(config).unwrap()
}

/// The mean time, s, that each of `count` connections takes for `bytes`, `at_once` at a time, after one of 10 MB has measured the paths.
fn mean(hops: &[HopConfig; 2], over: usize, count: [usize; 2], bytes: u64) -> f64 {
    let (world, paths) = between(hops.clone());
    mean_after(10_000_000, (world, &paths[..over]), count, bytes)
}

/// The same after one of `first` bytes, which has measured nothing if they are few.
fn mean_after(
    first: u64,
    (mut world, paths): (World, &[Path]),
    [count, at_once]: [usize; 2],
    bytes: u64,
) -> f64 {
    flow(&mut world, paths, first);
    world.run(secs(20.0));
    let (mut left, mut open, mut sum) = (count, Vec::new(), 0.0);
    while left > 0 || !open.is_empty() {
        open.retain(|id| {
            let report = world.flow_report(*id);
            sum += report.finished.map_or(0.0, |at| at.since(report.started).as_secs_f64());
            report.finished.is_none()
        });
        while left > 0 && open.len() < at_once {
            open.push(flow(&mut world, paths, bytes));
            left -= 1;
        }
        let next = world.now() + STEP;
        world.run(next);
    }
    sum / count as f64
}

/// The mean times over the first path, and over both.
fn means(hops: &[HopConfig; 2], [count, at_once]: [usize; 2], kilobytes: u64) -> [f64; 2] {
    let [one, both] = [1, 2].map(|over| mean(hops, over, [count, at_once], 1000 * kilobytes));
    println!("{at_once} at once, {kilobytes} kB: {one:.4} s over the first, {both:.4} over both");
    [one, both]
}

/// What a connection takes over both paths, divided by what it takes over the first one.
fn ratio(hops: [HopConfig; 2], count: [usize; 2], kilobytes: u64) -> f64 {
    let [one, both] = means(&hops, count, kilobytes);
    both / one
}

fn unequal() -> [HopConfig; 2] {
    [hop(100, 10, 250), hop(40, 40, 400)]
}

fn equal(mbps: u64, delay: u64) -> [HopConfig; 2] {
    let packets = (mbps * delay / 4) as u32;
    [hop(mbps, delay, packets), hop(mbps, delay, packets)]
}

/// Each has a turn, instead of all of them a share of the link at once.
#[test]
fn those_that_begin_together_over_one_path_have_their_first_flights_one_after_another() {
    let [alone, together] = [[10, 1], [200, 20]].map(|count| mean(&unequal(), 1, count, 30_000));
    println!("30 kB: {alone:.4} s alone, {together:.4} with 19 others");
    // 20 times 30 kB take the link 51 ms: the mean of turns is half of that, of those who share it all.
    assert!(together < alone + 0.03, "{together} {alone}");
}

/// Each alone would have gone by the first path: its first window holds 10 kB. That took 0.121 s.
#[test]
fn those_that_begin_together_take_both_of_two_equal_paths() {
    let [_, both] = means(&equal(20, 20), [200, 20], 10);
    assert!(both < 0.75 * 0.121, "{both}");
}

#[test]
fn they_take_a_slower_path_once_the_quicker_one_has_a_queue() {
    let ratio = ratio(unequal(), [100, 20], 200);
    assert!(ratio < 0.85, "{ratio}");
}

#[test]
fn one_at_a_time_a_second_path_is_no_loss() {
    for (hops, kilobytes) in [(unequal(), 10), (unequal(), 30), (unequal(), 200), (equal(50, 10), 30)] {
        let ratio = ratio(hops, [10, 1], kilobytes);
        assert!(ratio < 1.001, "{ratio}");
    }
}

/// Two hosts with an association over both links, as the daemons'.
fn associated(hops: [HopConfig; 2]) -> (World, [Path; 2]) {
    let mut world = World::new(WorldConfig { seed: Seed(1), ..WorldConfig::default() });
    let [a, b] = ["a", "b"].map(|name| {
        let identity = identity(Seed(1).child(name));
        world.secure_host(name, HostConfig::default(), SecurityConfig::default(), identity).unwrap()
    });
    let links = hops.map(|hop| world.link(a, b, hop.clone(), hop).unwrap());
    let paths = links.map(|link| world.path(a, b, &[Via::Link(link)]).unwrap());
    (world, paths)
}

/// Where each measured for itself, this took 1.22 times as long over the unequal paths, and 1.65 times over the equal ones: there, objects
/// that the second path lost waited for a first timeout of a second.
#[test]
fn those_too_short_to_measure_the_paths_measure_them_together() {
    for (hops, kilobytes) in [(unequal(), 30), (equal(50, 10), 10)] {
        let [unknown, known] = [1000, 10_000_000].map(|first| {
            let (world, paths) = associated(hops.clone());
            mean_after(first, (world, &paths), [200, 20], 1000 * kilobytes)
        });
        println!("20 at once, {kilobytes} kB: {unknown:.4} s before anything is known, {known:.4} s after");
        assert!(unknown < 1.15 * known, "{unknown} {known}");
    }
}
