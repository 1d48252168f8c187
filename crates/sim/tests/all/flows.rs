//! TCP flows in worlds: every byte once and in order, whatever befalls the packets.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{Line, assert_conserved, hop, line, line_of, secs};
use polypath_sim::{
    Change, ClockConfig, FlowConfig, FlowId, FlowReport, Headers, HopConfig, HostConfig, Step, Via, World,
    WorldConfig,
};
use polypath_transport::{CloseReason, PathConfig, RecordFilter};
use polypath_wire::{Duration, Instant, Rate, Seed};
use proptest::prelude::*;

const MB: u64 = 1_000_000;

fn bulk(l: &mut Line, bytes: u64) -> FlowId {
    let paths = vec![(l.path, PathConfig { mss: 1400, ..PathConfig::default() })];
    let (name, bytes) = ("bulk".to_owned(), Some(bytes));
    l.world.flow(FlowConfig { name, paths, bytes, ..FlowConfig::default() }).unwrap()
}

fn assert_whole(report: &FlowReport, bytes: u64) {
    assert_eq!((report.bytes, report.corrupted, report.lost), (bytes, false, None));
    assert!(report.finished.is_some());
}

#[test]
fn a_transfer_takes_its_handshake_and_its_bytes() {
    let mut l = line(1, hop(8, 9, 1000));
    let flow = bulk(&mut l, 2 * MB);
    l.world.run(secs(10.0));
    let report = l.world.flow_report(flow);
    assert_whole(&report, 2 * MB);
    // Round trip 20 ms; 1,452 bytes carry 1,388 beside the timestamps.
    assert!((20.0..25.0).contains(&(report.connected.unwrap().as_secs_f64() * 1e3)));
    let seconds = report.finished.unwrap().as_secs_f64();
    assert!((2.05..2.2).contains(&seconds), "{seconds}");
    assert_eq!((report.retransmissions(), l.world.packets()), (0, 0));
    assert_conserved(&l.world);
}

#[test]
fn an_endless_flow_fills_its_link() {
    let mut l = line(1, hop(20, 20, 100));
    let paths = vec![(l.path, PathConfig::default())];
    let flow = l.world.flow(FlowConfig { paths, ..FlowConfig::default() }).unwrap();
    l.world.run(secs(30.0));
    let report = l.world.flow_report(flow);
    let goodput = report.goodput(Duration::from_secs(30)).as_mbps();
    assert!((17.0..20.0).contains(&goodput), "{goodput}");
    assert!(!report.corrupted && report.retransmissions() > 0);
}

#[test]
fn a_stopped_flow_is_aborted() {
    let mut l = line(1, hop(20, 20, 100));
    let paths = vec![(l.path, PathConfig::default())];
    let stop = Some(secs(2.0));
    let flow = l.world.flow(FlowConfig { paths, stop, ..FlowConfig::default() }).unwrap();
    l.world.run(secs(5.0));
    let report = l.world.flow_report(flow);
    assert!(matches!(report.lost, Some(CloseReason::Aborted | CloseReason::Reset)), "{:?}", report.lost);
    assert!(report.bytes > MB && report.sender_paths[0].bytes_sent >= report.bytes);
    assert_eq!(l.world.packets(), 0);
}

#[test]
fn two_paths_carry_their_sum() {
    let mut world = World::new(WorldConfig::default());
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let links = [hop(80, 20, 400), hop(40, 40, 400)].map(|h| world.link(a, b, h.clone(), h).unwrap());
    let paths = links.map(|l| world.path(a, b, &[Via::Link(l)]).unwrap());
    assert_ne!(paths[0].locators, paths[1].locators);
    let paths = paths.map(|p| (p, PathConfig::default())).to_vec();
    let flow = FlowConfig { paths, bytes: Some(64 << 20), ..FlowConfig::default() };
    let flow = world.flow(flow).unwrap();
    world.run(secs(30.0));
    let report = world.flow_report(flow);
    assert_whole(&report, 64 << 20);
    let seconds = report.finished.unwrap().as_secs_f64();
    let utilisation = (64 << 20) as f64 * 8.0 / seconds / 120e6;
    assert!(utilisation > 0.85, "{utilisation} in {seconds} s");
    assert!(report.sender_paths.iter().all(|p| p.bytes_delivered > 10 * MB));
}

/// Everything that can go wrong, at once.
fn hostile() -> HopConfig {
    let mut hop = hop(10, 10, 20);
    (hop.loss, hop.duplication, hop.reordering, hop.corruption) = (0.02, 0.02, 0.02, 0.02);
    hop.reorder_delay = Duration::from_millis(5);
    hop.schedule = vec![
        Step { at: secs(0.5), change: Change::Rate(Rate::from_mbps(5)) },
        Step { at: secs(0.8), change: Change::Down },
        Step { at: secs(1.1), change: Change::Up },
        Step { at: secs(1.5), change: Change::Delay(Duration::from_millis(30)) },
    ];
    hop
}

fn recording() -> HostConfig {
    let mut host = HostConfig::default();
    host.endpoint.record = RecordFilter { packets: true, state: true, events: true };
    host
}

/// The hash over all that happened in a hostile world.
fn hash(seed: u64, bytes: bool, host: HostConfig) -> (u128, u64, FlowReport) {
    let config = WorldConfig { seed: Seed(seed), bytes, ..WorldConfig::default() };
    let mut l = line_of(config, host, hostile());
    l.world.trace(false, true);
    let flow = bulk(&mut l, MB);
    l.world.run(secs(60.0));
    assert_conserved(&l.world);
    let (report, trace) = (l.world.flow_report(flow), l.world.take_trace().unwrap());
    assert_whole(&report, MB);
    (trace.hash(), trace.len(), report)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (first, rows, _) = hash(4, false, recording());
    assert!(rows > 5_000);
    assert_eq!(hash(4, false, recording()).0, first);
    assert_ne!(hash(5, false, recording()).0, first);
}

#[test]
fn bytes_and_values_give_the_same_run() {
    for seed in 0..5 {
        assert_eq!(hash(seed, true, recording()), hash(seed, false, recording()), "seed {seed}");
    }
}

#[test]
fn corruption_is_found_by_checksums() {
    let mut l = line(2, HopConfig { corruption: 0.05, ..hop(10, 10, 100) });
    let flow = bulk(&mut l, 3 * MB);
    l.world.run(secs(60.0));
    assert_whole(&l.world.flow_report(flow), 3 * MB);
    assert_eq!(l.world.damaged(l.b), l.world.hop_stats(l.second.there()).corrupted);
    assert!(l.world.damaged(l.b) > 50);
}

#[test]
fn clocks_that_differ_do_no_harm() {
    let transfer = |clock: ClockConfig| {
        let mut l =
            line_of(WorldConfig::default(), HostConfig { clock, ..HostConfig::default() }, hop(8, 10, 50));
        let flow = bulk(&mut l, 2 * MB);
        l.world.run(secs(20.0));
        let report = l.world.flow_report(flow);
        assert_whole(&report, 2 * MB);
        report.finished.unwrap().as_secs_f64()
    };
    let exact = transfer(ClockConfig::default());
    for drift_ppm in [-200.0, 200.0] {
        let seconds = transfer(ClockConfig { offset: Duration::from_secs(1_000), drift_ppm });
        assert!((seconds - exact).abs() < 0.1 * exact, "{seconds} against {exact}");
    }
}

#[test]
fn fixed_headers_count_instead_of_real_ones() {
    let headers = Headers::Fixed { data: 40, control: 40 };
    let mut l =
        line_of(WorldConfig { headers, ..WorldConfig::default() }, HostConfig::default(), hop(8, 10, 1000));
    let flow = bulk(&mut l, MB);
    l.world.run(secs(20.0));
    let sent = l.world.flow_report(flow).sender_paths[0].segments_sent;
    let stats = l.world.hop_stats(l.first.there());
    // Beside the data: SYN, ACK of the SYN, FIN (perhaps with data), ACK of the peer's FIN.
    let headers = stats.bytes_entered - MB;
    assert_eq!(headers % 40, 0);
    assert!((sent..=sent + 4).contains(&(headers / 40)), "{headers} {sent}");
}

#[test]
fn processing_time_moves_new_data_only() {
    let host = HostConfig { processing: Duration::from_micros(1250), ..HostConfig::default() };
    let run = |host: HostConfig| {
        let mut l = line_of(WorldConfig::default(), host, hop(8, 10, 30));
        let flow = bulk(&mut l, 2 * MB);
        l.world.run(secs(20.0));
        assert_whole(&l.world.flow_report(flow), 2 * MB);
        l.world.flow_report(flow).finished.unwrap()
    };
    let (plain, jittered) = (run(HostConfig::default()), run(host.clone()));
    assert_ne!(plain, jittered);
    assert_eq!(run(host), jittered);
}

#[test]
fn many_flows_share_one_pair_of_hosts() {
    let mut l = line(1, hop(50, 10, 200));
    let flows: Vec<_> = (0..20).map(|_| bulk(&mut l, 200_000)).collect();
    l.world.run(secs(30.0));
    for flow in flows {
        assert_whole(&l.world.flow_report(flow), 200_000);
    }
    assert_conserved(&l.world);
}

#[test]
fn a_second_flow_moves_no_losses_of_a_hop_it_does_not_cross() {
    let drops = |second: bool| {
        let mut l = line(8, HopConfig { loss: 0.01, ..hop(10, 10, 1000) });
        let c = l.world.host("c", HostConfig::default()).unwrap();
        l.world.link(l.b, c, hop(10, 10, 10), hop(10, 10, 10)).unwrap();
        let flow = bulk(&mut l, 2 * MB);
        if second {
            let path = l.world.path(l.b, c, &[]).unwrap();
            let paths = vec![(path, PathConfig::default())];
            l.world.flow(FlowConfig { paths, start: Instant::ZERO, ..FlowConfig::default() }).unwrap();
        }
        l.world.run(secs(20.0));
        (l.world.flow_report(flow).finished, l.world.hop_stats(l.second.there()))
    };
    let alone = drops(false);
    assert!(alone.1.dropped_total() > 0);
    assert_eq!(drops(true), alone);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_arrives_once_and_in_order(
        seed in 0u64..1_000_000,
        [loss, duplication, reordering, corruption] in prop::array::uniform4(0.0..0.15),
        mbps in 1u64..50,
        delay_ms in 0u64..60,
        packets in 3u32..100,
        jitter_us in 0u64..3000,
        drift_ppm in -100.0..100.0,
    ) {
        let bottleneck = HopConfig { loss, duplication, reordering, corruption, ..hop(mbps, delay_ms, packets) };
        let clock = ClockConfig { offset: Duration::from_millis(seed % 1000), drift_ppm };
        let host = HostConfig { clock, processing: Duration::from_micros(jitter_us), ..HostConfig::default() };
        let config = WorldConfig { seed: Seed(seed), ..WorldConfig::default() };
        let mut l = line_of(config, host, bottleneck);
        let flow = bulk(&mut l, 150_000);
        l.world.run(secs(3_000.0));
        let report = l.world.flow_report(flow);
        prop_assert_eq!((report.bytes, report.corrupted, report.lost), (150_000, false, None));
        assert_conserved(&l.world);
    }
}
