//! Named scenarios as a table that is reviewed whenever it changes: coarse enough that only a change of
//! behaviour moves it, with envelopes that hold whatever the table says.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::fmt::Write;

use common::{assert_conserved, hop, secs};
use polypath_sim::{Change, FlowConfig, HopConfig, HostConfig, Step, Via, World, WorldConfig};
use polypath_transport::sched::SchedulerConfig;
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_transport::{LossConfig, ThresholdConfig};
use polypath_wire::Duration;

const BYTES: u64 = 10_000_000;

/// A transfer of ten megabytes over `hops`: one line of the table.
fn scenario(name: &str, hops: &[HopConfig], config: &ConnectionConfig, table: &mut String) {
    let mut world = World::new(WorldConfig::default());
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let links: Vec<_> = hops.iter().map(|h| world.link(a, b, h.clone(), h.clone()).unwrap()).collect();
    let paths = links.iter().map(|l| world.path(a, b, &[Via::Link(*l)]).unwrap());
    let paths = paths.map(|p| (p, PathConfig::default())).collect();
    let (sender, receiver) = (config.clone(), config.clone());
    let flow = FlowConfig { paths, bytes: Some(BYTES), sender, receiver, ..FlowConfig::default() };
    let flow = world.flow(flow).unwrap();
    world.run(secs(600.0));
    assert_conserved(&world);
    let report = world.flow_report(flow);
    assert_eq!((report.bytes, report.corrupted, report.lost), (BYTES, false, None), "{name}");
    let seconds = report.finished.unwrap().as_secs_f64();
    let shares = report.sender_paths.iter().map(|p| 100 * p.bytes_delivered / BYTES);
    let shares: Vec<_> = shares.map(|share| format!("{share} %")).collect();
    let again = report.retransmissions();
    let (timeouts, shares) = (report.sender.timeouts, shares.join(" + "));
    writeln!(table, "{name:<38} {seconds:>6.1} s  {again:>5} again  {timeouts:>2} timeouts  {shares}")
        .unwrap();
}

#[test]
fn ten_megabytes() {
    let two = [hop(80, 20, 200), hop(40, 40, 200)];
    let lossy = HopConfig { loss: 0.01, ..hop(80, 20, 200) };
    let reordering = Duration::from_millis(2);
    let passed = HopConfig { reordering: 0.01, reorder_delay: reordering, ..hop(80, 20, 200) };
    let mut flapping = hop(80, 20, 200);
    let step = |at: f64, change| Step { at: secs(at), change };
    flapping.schedule = vec![step(0.5, Change::Down), step(1.5, Change::Up)];
    let default = ConnectionConfig::default;
    let counting = ConnectionConfig { loss: LossConfig::Sack(ThresholdConfig { threshold: 3 }), ..default() };
    let newreno = LossConfig::Dupack(Default::default());
    let newreno = ConnectionConfig { sack: false, loss: newreno, ..default() };
    let with = |scheduler| ConnectionConfig { scheduler, ..default() };

    let mut table = String::new();
    for (name, hops, config) in [
        ("80 Mbit/s", &two[..1], default()),
        ("80 Mbit/s, NewReno without SACK", &two[..1], newreno.clone()),
        ("80 + 40 Mbit/s, round robin", &two, with(SchedulerConfig::RoundRobin)),
        ("80 + 40 Mbit/s, min rtt", &two, with(SchedulerConfig::MinRtt)),
        ("80 + 40 Mbit/s, earliest arrival", &two, with(SchedulerConfig::EarliestArrival)),
        ("1 % loss", std::slice::from_ref(&lossy), default()),
        ("1 % loss, counting", std::slice::from_ref(&lossy), counting.clone()),
        ("1 % loss, NewReno without SACK", std::slice::from_ref(&lossy), newreno),
        ("1 % passed by 2 ms", std::slice::from_ref(&passed), default()),
        ("1 % passed by 2 ms, counting", std::slice::from_ref(&passed), counting),
        ("a second down", std::slice::from_ref(&flapping), default()),
        ("a second down, beside 40 Mbit/s", &[flapping.clone(), two[1].clone()], default()),
    ] {
        scenario(name, hops, &config, &mut table);
    }
    insta::assert_snapshot!(table);
}
