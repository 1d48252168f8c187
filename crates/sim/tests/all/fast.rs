//! FAST TCP alone on a link, against the fluid model of it: equation (1) of Arshad and Mian once every second
//! round trip, on a link that delays by what it queues; and against ns-2's Vegas, which with α = β keeps
//! as many packets queued (`validate/ns2/vegas.tcl`).
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::collections::BTreeMap;

use crate::common::{hop, line, secs};
use polypath_sim::{FlowConfig, FlowReport};
use polypath_transport::cc::CcConfig;
use polypath_transport::cc::{DelaySignal, FastConfig};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::Duration;

/// Payload of a packet of 1,000 bytes without options.
const PAYLOAD: u32 = 960;

/// Mbit/s and one-way delay, ms: the links of the paper.
const LINKS: [(u64, u64); 3] = [(20, 60), (30, 40), (10, 80)];

fn alone(rate: u64, delay: u64, cc: FastConfig, timestamps: bool) -> FlowReport {
    let mut l = line(1, hop(rate, delay - 1, 2000)); // one more is on the way to it;
    let mss = if timestamps { PAYLOAD + 12 } else { PAYLOAD };
    let sender = ConnectionConfig {
        cc: CcConfig::Fast(cc),
        timestamps,
        delayed_ack: Duration::ZERO,
        ..ConnectionConfig::default()
    };
    let paths = vec![(l.path, PathConfig { mss, ..PathConfig::default() })];
    let receiver = sender.clone();
    let flow = l.world.flow(FlowConfig { paths, sender, receiver, ..FlowConfig::default() }).unwrap();
    l.world.run(secs(30.0));
    l.world.flow_report(flow)
}

/// Where equation (1) leads from two packets, in packets.
fn fluid(rate: u64, delay: u64, alpha: f64) -> f64 {
    let (packets_per_sec, base) = (rate as f64 * 125.0, delay as f64 * 2e-3);
    let mut w: f64 = 2.0;
    for _ in 0..200 {
        let rtt = (w / packets_per_sec).max(base);
        w = (2.0 * w).min(0.5 * w + 0.5 * (base / rtt * w + alpha));
    }
    w
}

#[test]
fn the_window_settles_where_the_fluid_model_says() {
    for (rate, delay) in LINKS {
        for alpha in [20, 100, 200] {
            let report = alone(rate, delay, FastConfig { alpha, ..FastConfig::default() }, false);
            let window = report.sender_paths[0].cwnd as f64 / f64::from(PAYLOAD);
            let expected = fluid(rate, delay, f64::from(alpha));
            println!("{rate} Mbit/s {delay} ms α {alpha}: {window:.1}, fluid {expected:.1}");
            assert!((window - expected).abs() <= 2.0, "{rate} {delay} {alpha}: {window} {expected}");
            assert_eq!((report.retransmissions(), report.sender.timeouts), (0, 0));
        }
    }
}

#[test]
fn the_window_settles_where_vegas_of_ns_2_does() {
    let entries: Vec<BTreeMap<String, f64>> =
        serde_json::from_str(include_str!("../../../../validate/reference/vegas.json")).unwrap();
    assert_eq!(entries.len(), 9);
    for entry in entries {
        let of = |key: &str| entry[key] as u64;
        let cc = FastConfig { alpha: of("alpha") as u32, ..FastConfig::default() };
        let report = alone(of("rate"), of("delay"), cc, false);
        let window = report.sender_paths[0].cwnd as f64 / f64::from(PAYLOAD);
        println!("{entry:?}: {window:.1}");
        assert!((window - entry["window"]).abs() <= 2.0, "{entry:?}: {window}");
    }
}

/// Delays from timestamps of 1 ms are half a millisecond long on average: 1.25 packets at 20 Mbit/s.
#[test]
fn the_one_way_signal_settles_there_too() {
    let cc = FastConfig { signal: DelaySignal::OneWay, ..FastConfig::default() };
    for (rate, delay) in LINKS {
        let report = alone(rate, delay, cc, true);
        let window = report.sender_paths[0].cwnd as f64 / f64::from(PAYLOAD);
        let expected = fluid(rate, delay, 100.0);
        println!("{rate} Mbit/s {delay} ms: {window:.1}, fluid {expected:.1}");
        assert!((window - expected).abs() <= 5.0, "{rate} {delay}: {window} {expected}");
    }
}

/// Fluid model with one update in two round trips: 18.87, 28.87 and 9.36 of 20, 30 and 10 Mbit/s over
/// 30 s from the start; ns-2's Vegas with α = β = γ = 100: 18.88, 28.88, 9.32.
#[test]
fn it_fills_the_link_about_as_soon_as_the_model() {
    for ((rate, delay), expected) in LINKS.into_iter().zip([18.87, 28.87, 9.36]) {
        let report = alone(rate, delay, FastConfig::default(), false);
        let on_the_wire = report.bytes as f64 * 8.0 / 30e6 * 1000.0 / f64::from(PAYLOAD);
        println!("{rate} Mbit/s {delay} ms: {on_the_wire:.2} over 30 s, fluid {expected}");
        assert!((expected - 0.2..rate as f64).contains(&on_the_wire), "{rate}: {on_the_wire}");
    }
}
