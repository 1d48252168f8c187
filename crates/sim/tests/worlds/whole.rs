//! The same random worlds in the simulator itself: its event queue, hosts, routes and clocks instead of a
//! loop of our own. One direction, and the paths that are there from the beginning.

use polypath_sim::{ClockConfig, FlowConfig, HostConfig, Via, World, WorldConfig};
use polypath_transport::{ConnectionConfig, RecordFilter};
use polypath_wire::{Duration, Instant};

use crate::spec::{End, Spec};

/// Longer than any such world takes unless it stalls: five megabytes at 100 kbit/s and 30 % loss.
const LIMIT: Duration = Duration::from_secs(40_000);

/// What a router may not ask to go below (RFC 1191 §3, RFC 791).
const LEAST_MTU: u32 = 576;

/// Plays `spec`; returns a hash of all that was observed.
pub fn play(spec: &Spec) -> Result<u128, String> {
    let mut world = World::new(WorldConfig { seed: spec.seed, ..WorldConfig::default() });
    let fail = |e: &dyn std::fmt::Display| e.to_string();
    let [a, b] = [("a", &spec.ends[0]), ("b", &spec.ends[1])].map(|(name, end)| world.host(name, host(end)));
    let (a, b) = (a.map_err(|e| fail(&e))?, b.map_err(|e| fail(&e))?);
    let mut paths = Vec::new();
    for path in spec.paths.iter().filter(|p| p.joins.is_none()) {
        let [mut there, mut back] = path.hops.clone();
        for hop in [&mut there, &mut back] {
            hop.mtu = hop.mtu.map(|mtu| mtu.max(LEAST_MTU));
        }
        let link = world.link(a, b, there, back).map_err(|e| fail(&e))?;
        paths.push((world.path(a, b, &[Via::Link(link)]).map_err(|e| fail(&e))?, path.config));
    }
    world.trace(false, true);
    let (name, bytes) = ("bulk".to_owned(), Some(spec.ends[0].send));
    // Its applications open no windows.
    let [sender, receiver] =
        [0, 1].map(|i| ConnectionConfig { grow_window: false, ..spec.ends[i].config.clone() });
    let flow = FlowConfig { name, paths, bytes, sender, receiver, ..FlowConfig::default() };
    let flow = world.flow(flow).map_err(|e| fail(&e))?;
    world.run(Instant::ZERO + LIMIT);
    let report = world.flow_report(flow);
    if report.bytes != spec.ends[0].send || report.corrupted || report.lost.is_some() {
        return Err(format!("in the simulator: {report:?}"));
    }
    for hop in world.hops() {
        let (stats, queued) = (world.hop_stats(hop), world.hop_queued(hop) as u64);
        if stats.entered + stats.duplicated != stats.left + stats.dropped_total() + queued {
            return Err(format!("{} does not account for its packets: {stats:?}", world.hop_name(hop)));
        }
    }
    world.take_trace().map(|trace| trace.hash()).ok_or_else(|| "no trace was kept".to_owned())
}

fn host(end: &End) -> HostConfig {
    let mut host = HostConfig::default();
    host.endpoint.record = RecordFilter { packets: true, state: true, events: true };
    host.clock = ClockConfig { offset: end.clock.offset, drift_ppm: end.clock.drift as f64 };
    host
}
