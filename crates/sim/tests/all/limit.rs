//! `max_rate` of a path: what its link carries, and what the other path does meanwhile.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use crate::common::{between, hop, secs};
use polypath_sim::{FlowConfig, FlowId, World};
use polypath_transport::cc::{CcConfig, NewRenoConfig, SlowStart};
use polypath_transport::sched::SchedulerConfig;
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::Rate;

/// Bytes of IPv4, TCP and timestamps.
const OVERHEAD: u32 = 52;
const LIMIT: Rate = Rate::from_mbps(10);

/// Two paths of 80 and 40 Mbit/s, the second one limited or not.
fn world(slow_start: SlowStart, limit: Option<Rate>) -> (World, FlowId) {
    let (mut world, paths) = between([hop(80, 10, 200), hop(40, 20, 200)]);
    let configs =
        [None, limit].map(|max_rate| PathConfig { max_rate, overhead: OVERHEAD, ..PathConfig::default() });
    let connection = ConnectionConfig {
        scheduler: SchedulerConfig::EarliestCompletion,
        cc: CcConfig::Newreno(NewRenoConfig { slow_start, ..NewRenoConfig::default() }),
        ..ConnectionConfig::default()
    };
    let flow = FlowConfig {
        paths: paths.into_iter().zip(configs).collect(),
        sender: connection.clone(),
        receiver: connection,
        ..FlowConfig::default()
    };
    let flow = world.flow(flow).unwrap();
    (world, flow)
}

/// Mbit/s that each path sends in each of ten seconds, headers included.
fn rates(slow_start: SlowStart, limit: Option<Rate>) -> Vec<[f64; 2]> {
    let (mut world, flow) = world(slow_start, limit);
    let mut before = [0; 2];
    let mut in_second = |second| {
        world.run(secs(f64::from(second)));
        let paths = world.flow_report(flow).sender_paths;
        let sent = [&paths[0], &paths[1]].map(|p| p.bytes_sent + p.segments_sent * u64::from(OVERHEAD));
        let more = [0, 1].map(|path: usize| sent[path] - before[path]);
        before = sent;
        more.map(|bytes| bytes as f64 * 8.0 / 1e6)
    };
    (1..=10).map(&mut in_second).collect()
}

#[test]
fn a_limited_path_never_exceeds_its_rate_in_a_second_and_the_other_one_carries_what_it_carried() {
    for slow_start in [SlowStart::Standard, SlowStart::Hystart, SlowStart::Paced] {
        let (free, limited) = (rates(slow_start, None), rates(slow_start, Some(LIMIT)));
        assert!(limited.iter().all(|[_, second]| *second <= 10.0), "{slow_start:?}: {limited:?}");
        let sum = |seconds: &[[f64; 2]], path: usize| seconds[2..].iter().map(|s| s[path]).sum::<f64>();
        assert!(sum(&limited, 1) >= 0.97 * 80.0, "{slow_start:?}: {limited:?}");
        assert!(sum(&limited, 0) >= 0.97 * sum(&free, 0), "{slow_start:?}: {limited:?} {free:?}");
        assert!(sum(&free, 1) > 200.0, "it has more without: {free:?}");
    }
}
