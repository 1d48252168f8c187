//! How many segments of one CUBIC leave together with `segmentation = "offload"`: against a kernel's (`tools/bench-net bursts`).
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::collections::BTreeMap;

use crate::common::{hop, line_of, secs};
use polypath_sim::{FlowConfig, HopConfig, HostConfig, QueueLimit, TraceFilter, WorldConfig};
use polypath_transport::cc::{CcConfig, CubicConfig, SlowStart};
use polypath_transport::{ConnectionConfig, PathConfig, RecordFilter, Segmentation};
use polypath_wire::Duration;

/// Mbit/s, one-way delay in ms and queue in bytes of a link; the tenth, the median and the ninth decile of how many a segment left with.
#[derive(serde::Deserialize, Debug)]
struct Measured {
    link: u64,
    delay: u64,
    bytes: u64,
    deciles: [u32; 3],
}

/// The deciles from 5 s to 15 s.
fn deciles(kernel: &Measured, segmentation: Segmentation) -> [u32; 3] {
    let mut host = HostConfig::default();
    host.endpoint.record = RecordFilter { packets: true, ..RecordFilter::default() };
    let queue = QueueLimit::Bytes(kernel.bytes);
    let bottleneck = HopConfig { queue, ..hop(kernel.link, kernel.delay - 1, 0) };
    let mut l = line_of(WorldConfig::default(), host, bottleneck);
    let cc = CcConfig::Cubic(CubicConfig { slow_start: SlowStart::Hystart, ..CubicConfig::default() });
    let sender = ConnectionConfig { cc, segmentation, send_buffer: 64 << 20, ..ConnectionConfig::default() };
    let receiver = ConnectionConfig { receive_buffer: 64 << 20, ..ConnectionConfig::default() };
    let paths = vec![(l.path, PathConfig::default())];
    l.world.flow(FlowConfig { paths, sender, receiver, ..FlowConfig::default() }).unwrap();
    l.world.trace(true, false);
    let sent = TraceFilter::default().events(&["sent".to_owned()]);
    l.world.filter_trace(sent.times(Some(Duration::from_secs(5)), None));
    l.world.run(secs(15.0));
    let mut csv = Vec::new();
    l.world.take_trace().unwrap().write_csv(&mut csv).unwrap();
    let mut together: BTreeMap<&str, u32> = BTreeMap::new();
    for row in std::str::from_utf8(&csv).unwrap().lines().skip(1) {
        *together.entry(row.split(',').next().unwrap()).or_default() += 1;
    }
    let mut each: Vec<u32> = together.into_values().flat_map(|n| vec![n; n as usize]).collect();
    each.sort_unstable();
    [1, 5, 9].map(|tenths| each[each.len() * tenths / 10])
}

/// The tenth and the median within a segment. The ninth decile is not compared: where acknowledgments come together, as on a busy machine,
/// two pieces of the kernel's leave.
#[test]
fn as_many_segments_leave_together_as_of_a_kernel() {
    let entries: Vec<Measured> =
        serde_json::from_str(include_str!("../../../../validate/reference/bursts.json")).unwrap();
    assert_eq!(entries.len(), 3);
    for kernel in entries {
        let [tenth, median, _] = deciles(&kernel, Segmentation::Offload);
        println!("{kernel:?}: {tenth} {median}");
        let within = |ours: u32, n: usize| ours.abs_diff(kernel.deciles[n]) <= 1;
        assert!(within(tenth, 0) && within(median, 1), "{kernel:?}: {tenth} {median}");
        assert_eq!(deciles(&kernel, Segmentation::Standard)[1], 2, "{kernel:?}");
    }
}
