//! One run: a spec and a seed become a world, the world becomes numbers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use polypath_sim::hop::{Change, HopConfig, QueueLimit, Step};
use polypath_sim::{
    ClockConfig, FlowConfig, FlowId, HostConfig, LinkId, NodeId, Pauses, SourceConfig, SourceId, Via, World,
    WorldConfig, WorldError,
};
use polypath_transport::{PathConfig, RecordFilter};
use polypath_wire::{Duration, Instant, Seed};
use sha2::{Digest, Sha256};

use crate::results::{FlowResult, PathResult, Run};
use crate::spec::{Flow, HEADERS, Link, Queue, Spec, Start, Traffic};

/// What timestamps take in every segment, bytes (RFC 7323 §3.2, padded).
const TIMESTAMPS: u32 = 12;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The world cannot be built.
    #[error(transparent)]
    World(#[from] WorldError),
    /// What it observed cannot be written.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
}

/// What to keep of a run beside its numbers, and where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Keep {
    /// Into this directory.
    pub dir: PathBuf,
    /// What reached the far end of every hop, `<id>.pcapng`.
    pub capture: bool,
    /// Every observation, `<id>.arrow`.
    pub trace: bool,
}

/// Name of a run: a hash of everything that decides it.
pub fn id(spec: &Spec, seed: u64) -> String {
    let resolved = serde_json::to_vec(spec).expect("a spec has only strings for keys");
    let hash = Sha256::new().chain_update(resolved).chain_update(seed.to_be_bytes()).finalize();
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Runs `spec` with `seed`; the cell's `label` goes into the result.
pub fn run(spec: &Spec, label: &str, seed: u64, keep: &Keep) -> Result<Run, RunError> {
    let id = id(spec, seed);
    let mut built = Built::new(spec, Seed(seed), keep)?;
    if keep.trace {
        built.world.trace(true, true);
    }
    if keep.capture {
        let file = create(keep, &id, "pcapng")?.1;
        let hops: Vec<_> = built.world.hops().collect();
        built.world.capture(&hops, Box::new(io::BufWriter::new(file)));
    }
    built.world.run(Instant::ZERO + spec.measure_from.0);
    let before: Vec<u64> = built.sources.iter().map(|s| built.bytes(*s)).collect();
    built.world.run(Instant::ZERO + spec.duration.0);
    let flows = spec.flow.iter().zip(&built.sources).zip(before);
    let flows = flows.map(|((flow, source), before)| built.result(spec, flow, *source, before)).collect();
    built.write(keep, &id)?;
    Ok(Run { id, cell: label.to_owned(), seed, flows })
}

fn create(keep: &Keep, id: &str, kind: &str) -> Result<(String, File), RunError> {
    let path = keep.dir.join(format!("{id}.{kind}"));
    let file = path.display().to_string();
    let made = std::fs::create_dir_all(&keep.dir).and_then(|()| File::create(Path::new(&path)));
    made.map(|handle| (file.clone(), handle)).map_err(|source| RunError::Write { file, source })
}

/// What carries a flow of the spec.
#[derive(Clone, Copy, Debug)]
enum Carried {
    Tcp(FlowId),
    Udp(SourceId),
}

struct Built {
    world: World,
    /// In the order of the spec's flows.
    sources: Vec<Carried>,
}

impl Built {
    fn new(spec: &Spec, seed: Seed, keep: &Keep) -> Result<Self, WorldError> {
        let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
        let nodes = nodes(&mut world, spec, keep)?;
        let mut links = Vec::new();
        for link in &spec.link {
            links.push(world.link(nodes[&link.from], nodes[&link.to], hop(link, true), hop(link, false))?);
        }
        let mut place = Place { world: &mut world, spec, nodes: &nodes, links: &links, seed };
        let mut sources = Vec::new();
        for flow in &spec.flow {
            sources.push(match flow.traffic {
                Traffic::Tcp => {
                    let config = place.tcp(flow)?;
                    Carried::Tcp(place.world.flow(config)?)
                }
                _ => {
                    let config = place.udp(flow)?;
                    Carried::Udp(place.world.source(config)?)
                }
            });
        }
        Ok(Self { world, sources })
    }

    fn bytes(&self, source: Carried) -> u64 {
        match source {
            Carried::Tcp(id) => self.world.flow_report(id).bytes,
            Carried::Udp(id) => self.world.source_report(id).bytes,
        }
    }

    fn result(&self, spec: &Spec, flow: &Flow, source: Carried, before: u64) -> FlowResult {
        let measured = (spec.duration.0.0 - spec.measure_from.0.0) as f64 / 1e9;
        let capacity = spec.capacity(flow).0 as f64;
        let result = FlowResult { name: flow.name.clone(), ..FlowResult::default() };
        match source {
            Carried::Udp(id) => {
                let report = self.world.source_report(id);
                let goodput_bps = (report.bytes - before) as f64 * 8.0 / measured;
                let loss_rate = (report.sent > 0).then(|| 1.0 - report.received as f64 / report.sent as f64);
                let (bytes, out_of_order) = (report.bytes, report.out_of_order);
                FlowResult {
                    bytes,
                    goodput_bps,
                    utilisation: goodput_bps / capacity,
                    loss_rate,
                    out_of_order,
                    ..result
                }
            }
            Carried::Tcp(id) => {
                let report = self.world.flow_report(id);
                let completion_s = report.finished.map(|at| at.since(report.started).as_secs_f64());
                let goodput_bps = match completion_s {
                    Some(seconds) => report.bytes as f64 * 8.0 / seconds,
                    None => (report.bytes - before) as f64 * 8.0 / measured,
                };
                let lost = report.lost.map(|reason| format!("{reason:?}"));
                FlowResult {
                    bytes: report.bytes,
                    goodput_bps,
                    utilisation: goodput_bps / capacity,
                    completion_s,
                    retransmissions: report.retransmissions(),
                    out_of_order: report.receiver.out_of_order,
                    timeouts: report.sender.timeouts,
                    intact: !report.corrupted,
                    failed: lost.or(report.refused.map(|e| e.to_string())),
                    paths: report.sender_paths.iter().map(PathResult::from).collect(),
                    ..result
                }
            }
        }
    }

    fn write(&mut self, keep: &Keep, id: &str) -> Result<(), RunError> {
        let failed = |file: String| move |source| RunError::Write { file, source };
        self.world.finish_capture().map_err(failed(format!("{id}.pcapng")))?;
        if let Some(trace) = self.world.take_trace() {
            let (name, file) = create(keep, id, "arrow")?;
            trace.write_arrow(io::BufWriter::new(file)).map_err(failed(name))?;
        }
        Ok(())
    }
}

/// Ends of flows are hosts, the rest are routers.
fn nodes(world: &mut World, spec: &Spec, keep: &Keep) -> Result<BTreeMap<String, NodeId>, WorldError> {
    let mut nodes = BTreeMap::new();
    for name in spec.link.iter().flat_map(|l| [&l.from, &l.to]) {
        if nodes.contains_key(name) {
            continue;
        }
        let is_end = spec.flow.iter().any(|f| f.from == *name || f.to == *name);
        let node = match is_end {
            true => world.host(name, host(spec, name, keep.trace))?,
            false => world.router(name)?,
        };
        nodes.insert(name.clone(), node);
    }
    Ok(nodes)
}

fn host(spec: &Spec, name: &str, observe: bool) -> HostConfig {
    let mut config = HostConfig::default();
    config.endpoint.record = RecordFilter { packets: observe, state: observe, events: observe };
    if let Some(host) = spec.host.iter().find(|h| h.name == name) {
        config.clock = ClockConfig { offset: host.clock_offset.0, drift_ppm: host.clock_drift_ppm };
        config.processing = host.jitter.0;
    }
    config
}

/// The hop of `link` from its `from` to its `to`, or back.
fn hop(link: &Link, there: bool) -> HopConfig {
    let (rate, delay) = (link.rate(there), link.delay(there));
    let queue = match link.back.queue.filter(|_| !there).unwrap_or(link.queue) {
        Queue::Packets(n) => QueueLimit::Packets(n),
        Queue::Size(bytes) => QueueLimit::Bytes(bytes.0),
        Queue::Bdp(x) => QueueLimit::Bytes((x * rate.bytes_in(delay.times(2)) as f64) as u64),
    };
    HopConfig {
        rate,
        delay,
        queue,
        loss: link.back.loss.filter(|_| !there).unwrap_or(link.loss),
        duplication: link.duplication,
        reordering: link.reordering.map_or(0.0, |r| r.probability),
        reorder_delay: link.reordering.map_or(Duration::ZERO, |r| r.delay.0),
        corruption: link.corruption,
        mtu: Some(link.mtu),
        up: link.up,
        schedule: link.change.iter().flat_map(steps).collect(),
    }
}

fn steps(change: &crate::spec::Change) -> Vec<Step> {
    let changes = [
        change.rate.map(|r| Change::Rate(r.0)),
        change.delay.map(|d| Change::Delay(d.0)),
        change.loss.map(Change::Loss),
        change.up.map(|up| if up { Change::Up } else { Change::Down }),
    ];
    let at = Instant::ZERO + change.at.0;
    changes.into_iter().flatten().map(|change| Step { at, change }).collect()
}

/// Where flows are put.
struct Place<'a> {
    world: &'a mut World,
    spec: &'a Spec,
    nodes: &'a BTreeMap<String, NodeId>,
    /// In the order of the spec's links.
    links: &'a [LinkId],
    seed: Seed,
}

impl Place<'_> {
    /// The path over the links between `via`, not over any shorter way there may be.
    fn path(&mut self, flow: &Flow, via: &[String]) -> Result<polypath_sim::Path, WorldError> {
        let number = |link: &Link| self.spec.link.iter().position(|l| std::ptr::eq(l, link));
        let links = self.spec.links_of(flow, via);
        let via: Vec<Via> =
            links.iter().filter_map(|(link, _)| number(link)).map(|n| Via::Link(self.links[n])).collect();
        self.world.path(self.nodes[&flow.from], self.nodes[&flow.to], &via)
    }

    fn tcp(&mut self, flow: &Flow) -> Result<FlowConfig, WorldError> {
        let spec = self.spec;
        let connection = spec.connection_of(flow);
        let options = if connection.timestamps { TIMESTAMPS } else { 0 };
        let mut paths = Vec::new();
        for via in &flow.paths {
            let config = PathConfig {
                mss: flow.mss.unwrap_or(spec.path_mtu(flow, via) - HEADERS),
                rate: flow.told.then(|| spec.path_rate(flow, via)),
                one_way: flow.told.then(|| spec.path_delay(flow, via)),
                overhead: HEADERS + options,
            };
            paths.push((self.path(flow, via)?, config));
        }
        Ok(FlowConfig {
            name: flow.name.clone(),
            paths,
            bytes: flow.size.map(|s| s.0.0),
            start: start(flow, self.seed),
            stop: flow.stop.map(|d| Instant::ZERO + d.0),
            sender: connection.clone(),
            receiver: connection,
            ..FlowConfig::default()
        })
    }

    fn udp(&mut self, flow: &Flow) -> Result<SourceConfig, WorldError> {
        let (rate, packet, pauses) = match flow.traffic {
            Traffic::Cbr { rate, packet } => (rate.0, packet.0, None),
            Traffic::OnOff { rate, packet, on, off } => {
                (rate.0, packet.0, Some(Pauses { on: on.0, off: off.0, exponential: true }))
            }
            Traffic::Tcp => unreachable!("Built::new gives only UDP flows"),
        };
        let path = self.path(flow, &flow.paths[0])?;
        let constant =
            SourceConfig::constant(&flow.name, path, packet.0 as u32, rate, start(flow, self.seed));
        let stop = flow.stop.map_or(self.spec.duration.0, |d| d.0);
        Ok(SourceConfig { stop: Some(Instant::ZERO + stop), pauses, ..constant })
    }
}

/// When the flow starts in the run of `seed`.
fn start(flow: &Flow, seed: Seed) -> Instant {
    let after = match flow.start {
        Start::At(at) => at.0,
        Start::Between(from, to) => {
            let draw = u128::from(seed.child(&format!("start/{}", flow.name)).0);
            let span = u128::from(to.0.0 - from.0.0);
            from.0 + Duration(((draw * span) >> 64) as u64)
        }
    };
    Instant::ZERO + after
}
