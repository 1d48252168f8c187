//! The last data of a transfer: what a slow path still brings leaves again on a quicker one.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{between, finish, hop, secs};
use polypath_sim::{Change, FlowConfig, FlowId, HopConfig, Step, World};
use polypath_transport::cc::{CcConfig, PolypathConfig};
use polypath_transport::sched::SchedulerConfig;
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::{Duration, Rate};

const MB: u64 = 1_000_000;
/// Bytes that may leave again whatever was sent, and the part of the stream for each byte more.
const AT_FIRST: u64 = 65_536;
const PART: u64 = 16;

fn world(hops: [HopConfig; 2], bytes: u64, scheduler: SchedulerConfig) -> (World, FlowId) {
    let (mut world, paths) = between(hops);
    let connection = ConnectionConfig {
        scheduler,
        cc: CcConfig::Polypath(PolypathConfig::default()),
        send_buffer: 32 << 20,
        receive_buffer: 32 << 20,
        ..ConnectionConfig::default()
    };
    let flow = FlowConfig {
        bytes: Some(bytes),
        open: true,
        paths: paths.map(|path| (path, PathConfig::default())).into(),
        sender: connection.clone(),
        receiver: connection,
        ..FlowConfig::default()
    };
    let flow = world.flow(flow).unwrap();
    (world, flow)
}

const STEP: Duration = Duration::from_millis(1);

/// 15 MB over twice 50 Mbit/s, of which the second delivers a hundredth from 1 s on; and 5 MB after a rest.
#[test]
fn a_path_that_became_slow_does_not_hold_up_the_end() {
    let falls = Step { at: secs(1.0), change: Change::Rate(Rate(500_000)) };
    let hops = || [hop(50, 20, 250), HopConfig { schedule: vec![falls], ..hop(50, 20, 250) }];
    let time = |scheduler| {
        let (mut world, flow) = world(hops(), 15 * MB, scheduler);
        let time = finish(&mut world, flow, STEP);
        assert!(!world.flow_report(flow).corrupted);
        let rested = world.now() + Duration::from_secs(2);
        world.run(rested);
        assert_eq!(world.write(flow, 5 * MB), 5 * MB);
        let again = finish(&mut world, flow, STEP);
        println!("{} s, then {} s", time.as_secs_f64(), again.as_secs_f64());
        [time, again].map(Duration::as_secs_f64)
    };
    // 1 s at 92 Mbit/s of data and the rest at 46, with what slow start took.
    let least = 1.0 + (15.0 * 8.0 - 92.0) / 46.0;
    let [with, without] = [SchedulerConfig::EarliestCompletion, SchedulerConfig::EarliestArrival].map(time);
    assert!(with[0] < least + 0.5 && with[1] < 1.0, "{with:?} s");
    assert!(without[0] > least + 2.0 && without[1] > 3.0, "{without:?} s");
}

/// Nothing is known yet of a path with thirty times the round trip.
#[test]
fn the_first_transfer_takes_no_longer_than_over_the_quick_path() {
    for bytes in [30_000, 300_000] {
        let (mut world, flow) =
            world([hop(100, 5, 200), hop(20, 150, 200)], bytes, SchedulerConfig::EarliestCompletion);
        let time = finish(&mut world, flow, STEP);
        assert!(time < Duration::from_millis(80), "{bytes} take {} ms", time.as_millis_f64());
    }
}

/// A program that pauses writes 20 kB every 10 ms: 16 Mbit/s over 10 and 40.
#[test]
fn copies_are_a_small_part_of_what_is_sent() {
    let (mut world, flow) =
        world([hop(10, 10, 50), hop(40, 60, 200)], 20_000, SchedulerConfig::EarliestCompletion);
    for n in 1..=1000 {
        world.run(secs(0.2 + 0.01 * f64::from(n)));
        assert_eq!(world.write(flow, 20_000), 20_000);
    }
    finish(&mut world, flow, STEP);
    let report = world.flow_report(flow);
    let twice = report.sender_paths.iter().map(|p| p.bytes_sent).sum::<u64>() - report.bytes;
    println!("{twice} of {} bytes twice", report.bytes);
    assert!(twice <= AT_FIRST + report.bytes / PART, "{twice} of {}", report.bytes);
    assert!(twice > 0, "nothing left again");
    assert_eq!(report.sender.timeouts, 0);
}
