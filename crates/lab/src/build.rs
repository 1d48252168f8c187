//! A spec and a seed become a world.

use std::collections::BTreeMap;

use polypath_endpoint::{LocalInfo, SecurityConfig};
use polypath_hop::{Change, HopConfig, Step};
use polypath_sim::{
    ClockConfig, FlowConfig, FlowId, HopId, HostConfig, LinkId, NodeId, Pauses, SourceConfig, SourceId, Via,
    World, WorldConfig, WorldError, identity,
};
use polypath_transport::{PathConfig, RecordFilter};
use polypath_wire::{Duration, Instant, Seed};

use crate::spec::{Flow, Link, Spec, Start, Traffic};

/// What timestamps take in every segment, bytes (RFC 7323 §3.2, padded).
const TIMESTAMPS: u32 = 12;

/// What carries a flow of the spec.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    /// One connection with all paths, or one for each path.
    Tcp(Vec<FlowId>),
    Udp(SourceId),
}

pub(crate) struct Built {
    pub world: World,
    /// In the order of the spec's flows.
    pub sources: Vec<Carried>,
    /// When each of them begins.
    pub starts: Vec<Instant>,
    /// Each link there and back, in the order of the spec.
    pub hops: Vec<HopId>,
}

/// What a world is to look at.
#[derive(Clone, Copy, Default)]
pub struct Looks {
    /// Everything that its connections observe.
    pub observations: bool,
    /// The order in which packets of its flows arrive.
    pub reordering: bool,
    /// How long data is under way.
    pub delays: bool,
}

impl Built {
    /// The world of `spec`.
    pub fn new(spec: &Spec, seed: Seed, looks: Looks) -> Result<Self, WorldError> {
        let Looks { reordering, delays, .. } = looks;
        let mut world = World::new(WorldConfig { seed, reordering, delays, ..WorldConfig::default() });
        let nodes = nodes(&mut world, spec, seed, looks)?;
        let mut links = Vec::new();
        for link in &spec.link {
            links.push(world.link(nodes[&link.from], nodes[&link.to], hop(link, true), hop(link, false))?);
        }
        let mut place = Place { world: &mut world, spec, nodes: &nodes, links: &links, seed };
        let mut sources = Vec::new();
        for flow in &spec.flow {
            sources.push(match flow.traffic {
                Traffic::Tcp => {
                    let each = if flow.apart { 1 } else { flow.paths.len() };
                    let open = |paths| {
                        let config = place.tcp(flow, paths)?;
                        place.world.flow(config)
                    };
                    Carried::Tcp(flow.paths.chunks(each).map(open).collect::<Result<_, _>>()?)
                }
                _ => {
                    let config = place.udp(flow)?;
                    Carried::Udp(place.world.source(config)?)
                }
            });
        }
        let starts = spec.flow.iter().map(|flow| start(flow, seed)).collect();
        let hops = links.iter().flat_map(|l| [l.there(), l.back()]).collect();
        Ok(Self { world, sources, starts, hops })
    }
}

/// Ends of flows are hosts, the rest are routers.
fn nodes(
    world: &mut World,
    spec: &Spec,
    seed: Seed,
    looks: Looks,
) -> Result<BTreeMap<String, NodeId>, WorldError> {
    let mut nodes = BTreeMap::new();
    for name in spec.link.iter().flat_map(|l| [&l.from, &l.to]) {
        if nodes.contains_key(name) {
            continue;
        }
        let ends: Vec<&Flow> = spec.flow.iter().filter(|f| f.from == *name || f.to == *name).collect();
        let node = if ends.is_empty() {
            world.router(name)?
        } else if ends.iter().any(|f| f.secure) {
            let (config, identity) =
                (host(spec, name, looks), identity(seed.child(&format!("identity/{name}"))));
            world.secure_host(name, config, security(&ends), identity)?
        } else {
            world.host(name, host(spec, name, looks))?
        };
        nodes.insert(name.clone(), node);
    }
    Ok(nodes)
}

/// Room for all paths of each of its flows.
fn security(flows: &[&Flow]) -> SecurityConfig {
    let mut security = SecurityConfig::default();
    let most = flows.iter().filter_map(|f| u8::try_from(f.paths.len()).ok()).max().unwrap_or(0);
    security.hip.max_paths = security.hip.max_paths.max(most);
    security
}

fn host(spec: &Spec, name: &str, looks: Looks) -> HostConfig {
    let mut config = HostConfig::default();
    let Looks { observations, delays, .. } = looks;
    config.endpoint.record =
        RecordFilter { packets: observations || delays, state: observations, events: observations };
    if let Some(host) = spec.host.iter().find(|h| h.name == name) {
        config.clock = ClockConfig { offset: host.clock_offset.0, drift_ppm: host.clock_drift_ppm };
        config.processing = host.jitter.0;
    }
    config
}

/// The hop of `link` from its `from` to its `to`, or back.
fn hop(link: &Link, there: bool) -> HopConfig {
    let (queue, bdp) = (link.queue_of(there), link.bdp(there));
    HopConfig {
        rate: link.rate(there),
        trace: link.rate_of(there).trace().cloned(),
        delay: link.delay(there),
        queue: queue.limit(bdp),
        discipline: queue.discipline(bdp),
        loss: link.loss(there),
        duplication: link.duplication,
        reordering: link.reordering.map_or(0.0, |r| r.probability),
        reorder_delay: link.reordering.map_or(Duration::ZERO, |r| r.delay.0),
        corruption: link.corruption,
        mtu: Some(link.mtu),
        up: link.up,
        schedule: link.change.iter().flat_map(|change| steps(link, change, there)).collect(),
    }
}

/// What `change` does to `link` from its `from` to its `to`, or back.
fn steps(link: &Link, change: &crate::spec::Change, there: bool) -> Vec<Step> {
    let changes = [
        link.changed_rate(change, there).map(Change::Rate),
        link.changed_delay(change, there).map(Change::Delay),
        link.changed_loss(change, there).map(Change::Loss),
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

    /// A connection of `flow` over some of its paths.
    fn tcp(&mut self, flow: &Flow, over: &[Vec<String>]) -> Result<FlowConfig, WorldError> {
        let spec = self.spec;
        let connection = spec.connection_of(flow);
        let options = if connection.timestamps { TIMESTAMPS } else { 0 };
        let mut paths = Vec::new();
        for via in over {
            let config = PathConfig {
                mss: mss(spec, flow, via),
                rate: flow.configured.then(|| spec.path_rate(flow, via)),
                one_way: flow.configured.then(|| spec.path_delay(flow, via)),
                overhead: flow.headers() + options,
                ..PathConfig::default()
            };
            let path = self.path(flow, via)?;
            if flow.secure {
                self.describe(flow, via, &path);
            }
            paths.push((path, config));
        }
        Ok(FlowConfig {
            name: flow.name.clone(),
            paths,
            bytes: flow.size.map(|s| s.0.0),
            oracle: flow.oracle,
            start: start(flow, self.seed),
            stop: flow.stop.map(|d| Instant::ZERO + d.0),
            sender: connection.clone(),
            receiver: connection,
            ..FlowConfig::default()
        })
    }

    /// Both ends of a secure flow get to know their ends of a path: the base exchange tells the peer.
    fn describe(&mut self, flow: &Flow, via: &[String], path: &polypath_sim::Path) {
        let links = self.spec.links_of(flow, via);
        let mtu = Some(mss(self.spec, flow, via) + flow.headers());
        let last = links.last().filter(|_| links.len() > 1);
        for (node, link) in [(path.from, links.first()), (path.to, last)] {
            let mut info = LocalInfo { mtu, ..LocalInfo::default() };
            if let Some((link, there)) = link.filter(|_| flow.configured) {
                info.link.bandwidth = Some(link.rate(*there));
                info.link.delay = Some(link.delay(*there));
            }
            self.world.describe(node, path, info);
        }
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

/// Payload of a full segment on the path `via` of `flow`, bytes; of UDP a packet.
pub(crate) fn packet_size(spec: &Spec, flow: &Flow, via: &[String]) -> f64 {
    match flow.traffic {
        Traffic::Cbr { packet, .. } | Traffic::OnOff { packet, .. } => packet.0.0 as f64,
        Traffic::Tcp => {
            let options = if spec.connection_of(flow).timestamps { TIMESTAMPS } else { 0 };
            f64::from(mss(spec, flow, via).saturating_sub(options).max(1))
        }
    }
}

/// Largest payload of a segment on the path `via` of `flow`, options included, bytes.
fn mss(spec: &Spec, flow: &Flow, via: &[String]) -> u32 {
    flow.mss.unwrap_or(spec.path_mtu(flow, via) - flow.headers())
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
