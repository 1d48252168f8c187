//! CUBIC (RFC 9438) on a link: against the CUBIC of an old Linux in ns-2 (`validate/ns2/cubic.tcl`), against a kernel's
//! (`tools/bench-net window`), and against itself.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::collections::BTreeMap;

use crate::common::{hop, line, secs};
use polypath_sim::{FlowConfig, HopConfig, QueueLimit, World};
use polypath_transport::cc::{CcConfig, CubicConfig, SlowStart};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::Duration;

/// Payload of a packet of 1,000 bytes without options.
const PAYLOAD: u32 = 960;
/// The option of timestamps, padded (RFC 7323).
const TIMESTAMPS: u32 = 12;

fn cubic(initial_ssthresh: Option<u32>, slow_start: SlowStart) -> ConnectionConfig {
    let cc = CubicConfig { initial_window: 2, initial_ssthresh, slow_start, ..CubicConfig::default() };
    ConnectionConfig {
        cc: CcConfig::Cubic(cc),
        delayed_ack: Duration::ZERO,
        timestamps: false,
        ..ConnectionConfig::default()
    }
}

/// Packets of `mss` bytes and less for options delivered and sent again, mean and largest window, from 20 s to 120 s.
fn alone(bottleneck: HopConfig, sender: ConnectionConfig, mss: u32) -> [f64; 4] {
    let mut l = line(1, bottleneck);
    let paths = vec![(l.path, PathConfig { mss, ..PathConfig::default() })];
    let payload = f64::from(if sender.timestamps { mss - TIMESTAMPS } else { mss });
    let receiver = ConnectionConfig { receive_buffer: 64 << 20, ..sender.clone() };
    let flow = l.world.flow(FlowConfig { paths, sender, receiver, ..FlowConfig::default() }).unwrap();
    l.world.run(secs(20.0));
    let look = |world: &World| world.flow_report(flow);
    let before = look(&l.world);
    let windows: Vec<f64> = (0..400)
        .map(|quarter| {
            l.world.run(secs(20.0 + 0.25 * f64::from(quarter)));
            look(&l.world).sender_paths[0].cwnd as f64 / payload
        })
        .collect();
    l.world.run(secs(120.0));
    let after = look(&l.world);
    let packets = (after.bytes - before.bytes) as f64 / payload;
    let again = (after.retransmissions() - before.retransmissions()) as f64;
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    [packets, again, mean, windows.iter().copied().fold(0.0, f64::max)]
}

/// Goodput within 3 %, the mean window within 5 %, the largest within 5 %. ns-2 counts the packet in service in its queue.
#[test]
fn alone_on_a_link_it_does_what_the_cubic_of_linux_does_in_ns_2() {
    let entries: Vec<BTreeMap<String, f64>> =
        serde_json::from_str(include_str!("../../../../validate/reference/cubic.json")).unwrap();
    assert_eq!(entries.len(), 8);
    for entry in entries {
        let of = |key: &str| entry[key] as u64;
        let bottleneck = hop(of("rate"), of("delay") - 1, of("queue") as u32 - 1);
        let ours = alone(bottleneck, cubic(Some(of("ssthresh") as u32), SlowStart::Standard), PAYLOAD);
        println!("{entry:?}: {ours:.1?}");
        for (n, (key, within)) in [("acked", 0.03), ("mean", 0.05), ("largest", 0.05)].into_iter().enumerate()
        {
            let ratio = ours[[0, 2, 3][n]] / entry[key];
            assert!((ratio - 1.0).abs() <= within, "{entry:?}: {key} {ours:.1?}");
        }
    }
}

/// Goodput within 3 %, the mean and the largest window within 5 %.
#[test]
fn alone_on_a_link_it_does_what_the_cubic_of_a_kernel_does() {
    #[derive(serde::Deserialize, Debug)]
    struct Measured {
        law: String,
        link: u64,
        delay: u64,
        bytes: u64,
        rate: f64,
        mean: f64,
        largest: f64,
    }
    let entries: Vec<Measured> =
        serde_json::from_str(include_str!("../../../../validate/reference/kernel.json")).unwrap();
    let cubics: Vec<Measured> = entries.into_iter().filter(|entry| entry.law == "cubic").collect();
    assert_eq!(cubics.len(), 7);
    for kernel in cubics {
        let queue = QueueLimit::Bytes(kernel.bytes);
        let bottleneck = HopConfig { queue, ..hop(kernel.link, kernel.delay - 1, 0) };
        let cc = CubicConfig { slow_start: SlowStart::Hystart, ..CubicConfig::default() };
        let sender = ConnectionConfig {
            cc: CcConfig::Cubic(cc),
            send_buffer: 64 << 20,
            ..ConnectionConfig::default()
        };
        let [packets, _, mean, largest] = alone(bottleneck, sender, 1460);
        let rate = packets * 1448.0 * 8.0 / 100.0 / 1e6;
        println!("{kernel:?}: {rate:.3} {mean:.1} {largest:.0}");
        for (ratio, within) in
            [(rate / kernel.rate, 0.03), (mean / kernel.mean, 0.05), (largest / kernel.largest, 0.05)]
        {
            assert!((ratio - 1.0).abs() <= within, "{kernel:?}: {rate:.3} {mean:.1} {largest:.0}");
        }
    }
}

/// 100 Mbit/s, 100 ms, a queue of half a round trip: 960 of 1,000 bytes are data.
#[test]
fn it_fills_a_link_with_each_slow_start() {
    for slow_start in [SlowStart::Standard, SlowStart::Hystart, SlowStart::Paced] {
        let [packets, ..] = alone(hop(100, 49, 625), cubic(None, slow_start), PAYLOAD);
        let share = packets * 1000.0 * 8.0 / 100.0 / 100e6;
        println!("{slow_start:?}: {share:.3}");
        assert!(share > 0.98, "{slow_start:?}: {share}");
    }
}

/// The second begins 20 s later: fast convergence lets it in.
#[test]
fn two_flows_come_to_share_a_link() {
    for slow_start in [SlowStart::Hystart, SlowStart::Paced] {
        let mut l = line(1, hop(20, 29, 75));
        let flows = [0.0, 20.3].map(|start| {
            let sender =
                ConnectionConfig { delayed_ack: Duration::from_millis(40), ..cubic(None, slow_start) };
            let paths = vec![(l.path, PathConfig { mss: PAYLOAD, ..PathConfig::default() })];
            let start = secs(start);
            let receiver = sender.clone();
            l.world.flow(FlowConfig { paths, sender, receiver, start, ..FlowConfig::default() }).unwrap()
        });
        let bytes = |world: &World| flows.map(|flow| world.flow_report(flow).bytes as f64);
        l.world.run(secs(60.0));
        let before = bytes(&l.world);
        l.world.run(secs(240.0));
        let after = bytes(&l.world);
        let [first, second] = [0, 1].map(|n| (after[n] - before[n]) * 8.0 / 180.0 / 0.96 / 20e6);
        println!("{slow_start:?}: {first:.3} {second:.3}");
        assert!(first + second > 0.95 && (0.67..1.5).contains(&(first / second)), "{first} {second}");
    }
}
