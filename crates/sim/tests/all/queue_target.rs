//! `queue_target` on a link whose rate changes, as of mobile networks.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{hop, line, secs};
use polypath_sim::{Change, FlowConfig, HopConfig, QueueLimit, Step};
use polypath_transport::cc::{CcConfig, PolypathConfig};
use polypath_transport::{AckConfig, ConnectionConfig, PathConfig};
use polypath_wire::{Duration, Rate};

/// Mbit/s, one after the other, and for how many seconds each.
const RATES: [u64; 6] = [5, 60, 20, 45, 10, 40];
const EVERY: u64 = 3;
const SECONDS: u64 = 30;

/// What a link of changing rate carries from 6 s on, Mbit/s, and how many packets wait on average.
fn carried(target: u64) -> (f64, f64) {
    let step = |s: u64| {
        let rate = Rate::from_mbps(RATES[(s / EVERY) as usize % RATES.len()]);
        Step { at: secs(s as f64), change: Change::Rate(rate) }
    };
    let schedule = (0..SECONDS).map(step).collect();
    carried_by(target, HopConfig { queue: QueueLimit::Bytes(7_500_000), schedule, ..hop(30, 25, 0) })
}

fn carried_by(target: u64, link: HopConfig) -> (f64, f64) {
    let mut line = line(1, link);
    let config = ConnectionConfig {
        cc: CcConfig::Polypath(PolypathConfig {
            queue_target: Duration::from_millis(target),
            ..Default::default()
        }),
        acks: AckConfig::thinned(),
        send_buffer: 16 << 20,
        receive_buffer: 16 << 20,
        ..ConnectionConfig::default()
    };
    let paths = vec![(line.path, PathConfig::default())];
    let (sender, receiver) = (config.clone(), config);
    let flow = line.world.flow(FlowConfig { paths, sender, receiver, ..FlowConfig::default() }).unwrap();
    let bottleneck = line.world.hops().nth(2).unwrap();
    line.world.run(secs(6.0));
    let (before, mut waiting) = (line.world.flow_report(flow).bytes, 0);
    let samples: Vec<_> = (60..10 * SECONDS).map(|n| (n + 1) as f64 / 10.0).collect();
    for at in &samples {
        line.world.run(secs(*at));
        waiting += line.world.hop_waiting(bottleneck);
    }
    let bytes = line.world.flow_report(flow).bytes - before;
    (bytes as f64 * 8.0 / (SECONDS - 6) as f64 / 1e6, waiting as f64 / samples.len() as f64)
}

/// Before, a window that was reduced at 5 Mbit/s took seconds to fill 60, and carried 0.55 of what it carries without a target.
#[test]
fn a_window_that_was_reduced_for_a_queue_follows_a_link_that_becomes_faster() {
    let [(ours, short), (law, long)] = [10, 0].map(carried);
    assert!(ours > 0.93 * law && short < 0.2 * long, "{ours} of {law} Mbit/s; {short}, {long} packets wait");
}

/// Segments take 40 and 2.4 ms. Before, 15.6 packets waited on the slower link: a window in whole segments fell by less than was given up, and grew meanwhile.
#[test]
fn a_queue_of_few_segments_is_a_queue() {
    for (kbps, delay, most) in [(300, 60, 3.0), (5000, 12, 6.3)] {
        let queue = QueueLimit::Bytes(kbps * 125);
        let link = HopConfig { queue, rate: Rate(1000 * kbps), ..hop(1, delay, 0) };
        let [(ours, short), (law, _)] = [10, 0].map(|target| carried_by(target, link.clone()));
        assert!(ours > 0.98 * law && short < most, "{ours} of {law} Mbit/s; {short} packets wait");
    }
}
