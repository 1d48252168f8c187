//! A world: nodes, links, paths and traffic. `world/run.rs` lets time pass.

mod run;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;

use polypath_endpoint::{Input, LocalInfo, Locators, SecurityConfig};
use polypath_hip::Identity;
use polypath_transport::{PathStats, Payload};
use polypath_wire::hip::udp;
use polypath_wire::{Duration, Instant, PathId, Seed};
use serde::{Deserialize, Serialize};

use crate::delay::{self, Delays};
use crate::events::Event;
use crate::host::{Headers, Host, HostConfig, Side, Way, route_key};
use crate::net::Net;
use crate::pcapng::Capture;
use crate::reordering::Watch;
use crate::route::{Path, RouteId};
use crate::source::{Source, SourceId, SourceReport};
use crate::topology::{HopId, LinkId, NodeId, Topology, Via};
use crate::trace::{Trace, TraceFilter};
use crate::traffic::{Flow, FlowConfig, FlowId, FlowReport, SourceConfig};
use polypath_hop::{Hop, HopConfig, HopError, HopStats};

/// Parameters of a world as a whole.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorldConfig {
    /// The root of all chance.
    pub seed: Seed,
    /// What headers take on the wire.
    pub headers: Headers,
    /// Carry packets as bytes, emitted and parsed at every host, instead of as values. Slower, with
    /// the same result.
    pub bytes: bool,
    /// Watch in which order the data segments of TCP flows arrive (not those carried as bytes).
    pub reordering: bool,
    /// Watch how long data is under way, of TCP flows whose hosts record packets (`RecordFilter`) and of sources.
    pub delays: bool,
    /// Width of the spans in which reports count bytes, nanoseconds; zero counts none.
    pub bin: Duration,
}

/// Why a world cannot be built so.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum WorldError {
    #[error("two nodes are called {0:?}")]
    DuplicateName(String),
    #[error("no route from {from:?} to {to:?}")]
    NoRoute { from: String, to: String },
    #[error("a path from {0:?} to itself")]
    NoDistance(String),
    #[error("{0:?} has more than 255 addresses")]
    TooManyAddresses(String),
    #[error("{0:?} is a router: TCP flows need hosts")]
    NotAHost(String),
    #[error("flow {0:?}: needs one path or more, all between the same hosts")]
    Paths(String),
    #[error("flow {0:?}: more than 60,000 flows")]
    TooManyFlows(String),
    #[error("flow {flow:?}: {error}")]
    Listen { flow: String, error: polypath_endpoint::OpenError },
    #[error("source {0:?}: a datagram takes 28 bytes or more, and a rate 1 bit/s or more")]
    Source(String),
    #[error("link {link}: {error}")]
    Hop { link: String, error: HopError },
}

/// Hosts, routers, hops, flows and sources in virtual time.
///
/// Build it ([`host`](Self::host), [`router`](Self::router), [`link`](Self::link), [`path`](Self::path),
/// [`flow`](Self::flow), [`source`](Self::source)), [`run`](Self::run) it, ask for reports. Everything
/// follows from the configuration and the seed; every component has its own chance, named after it.
#[derive(Debug)]
pub struct World {
    config: WorldConfig,
    topology: Topology,
    nodes: Vec<Node>,
    /// Names of nodes.
    names: BTreeSet<String>,
    hosts: Vec<Option<Box<Host>>>,
    net: Net,
    flows: Vec<Flow>,
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Node {
    name: String,
    /// The first hop of each of its addresses.
    addresses: Vec<HopId>,
}

const FIRST_PORT: u16 = 5001;
const MOST_FLOWS: usize = 60_000;
const SMALLEST_DATAGRAM: u32 = 28;

/// Building.
impl World {
    /// An empty world.
    pub fn new(config: WorldConfig) -> Self {
        let (topology, mut net) = (Topology::default(), Net::default());
        net.taps.delays = config.delays.then(delay::Watch::default);
        let (nodes, names) = (vec![], BTreeSet::new());
        Self { config, topology, nodes, names, hosts: vec![], net, flows: vec![], sources: vec![] }
    }

    /// A host. Names are unique.
    pub fn host(&mut self, name: &str, config: HostConfig) -> Result<NodeId, WorldError> {
        let node = self.router(name)?;
        let WorldConfig { seed, headers, bytes, .. } = self.config;
        let host = Host::new(node, config, headers, bytes, seed.child(&format!("host/{name}")));
        self.hosts[node.index()] = Some(Box::new(host));
        Ok(node)
    }

    /// A host whose flows travel in ESP, with keys from base exchanges: all flows of a secure host are with
    /// other secure hosts. Real cryptography, but for the suites that `security` admits in simulations.
    pub fn secure_host(
        &mut self,
        name: &str,
        config: HostConfig,
        security: SecurityConfig,
        identity: Identity,
    ) -> Result<NodeId, WorldError> {
        let endpoint = config.endpoint.clone();
        let node = self.host(name, config)?;
        let seed = self.config.seed.child(&format!("host/{name}"));
        let host = self.hosts[node.index()].take();
        self.hosts[node.index()] = host.map(|host| Box::new(host.secure(security, endpoint, identity, seed)));
        Ok(node)
    }

    /// What a secure host knows of the link at one of its addresses, as `path` has it. Its peers learn it
    /// in their base exchanges with it.
    pub fn describe(&mut self, node: NodeId, path: &Path, info: LocalInfo) {
        let mut local = if node == path.to { path.locators.remote } else { path.locators.local };
        local.set_port(udp::PORT);
        if let Some(host) = self.hosts[node.index()].as_deref_mut() {
            let now = host.clock.local(self.net.now);
            host.endpoint.handle(now, Input::LocalUp { local, info });
        }
    }

    /// A router. Names are unique.
    pub fn router(&mut self, name: &str) -> Result<NodeId, WorldError> {
        if !self.names.insert(name.to_owned()) {
            return Err(WorldError::DuplicateName(name.to_owned()));
        }
        self.nodes.push(Node { name: name.to_owned(), addresses: Vec::new() });
        self.hosts.push(None);
        if let Some(trace) = &mut self.net.taps.trace {
            trace.name_node(name);
        }
        Ok(self.topology.node())
    }

    /// A duplex link between `a` and `b`. Its hops are called `a→b` and `b→a`, those of the second
    /// link between the same nodes `a→b#2`, and so on.
    pub fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        there: HopConfig,
        back: HopConfig,
    ) -> Result<LinkId, WorldError> {
        let number = self.topology.parallel(a, b) + 1;
        let suffix = if number > 1 { format!("#{number}") } else { String::new() };
        let link = self.topology.link(a, b, there.delay, back.delay);
        for (from, to, config) in [(a, b, there), (b, a, back)] {
            let name = format!("{}→{}{suffix}", self.name(from), self.name(to));
            config.validate().map_err(|error| WorldError::Hop { link: name.clone(), error })?;
            let hop = Hop::new(config, self.config.seed.child(&format!("hop/{name}")));
            if let Some(trace) = &mut self.net.taps.trace {
                trace.name_hop(&name);
            }
            self.net.add_hop(name, hop);
        }
        Ok(link)
    }

    /// A path over all of `via`, in their order, and otherwise the shortest by propagation delay.
    /// The way back leads over the same links. The same path twice has the same locators.
    pub fn path(&mut self, from: NodeId, to: NodeId, via: &[Via]) -> Result<Path, WorldError> {
        let names = || (self.name(from).to_owned(), self.name(to).to_owned());
        let hops = self.topology.route(from, to, via).ok_or_else(|| {
            let (from, to) = names();
            WorldError::NoRoute { from, to }
        })?;
        let (Some(&first), Some(&last)) = (hops.first(), hops.last()) else {
            return Err(WorldError::NoDistance(names().0));
        };
        let remote = self.address(to, last.twin(), 0)?;
        for nth in 0.. {
            let local = self.address(from, first, nth)?;
            let locators = Locators { local, remote };
            let path = |there| Path { from, to, locators, there };
            match self.net.route_of(&locators.reversed()) {
                Some(known) if *self.net.routes[known.0 as usize].hops == *hops => return Ok(path(known)),
                Some(_) => continue,
                None => {
                    self.route(to, from, hops.iter().rev().map(|h| h.twin()).collect(), locators);
                    return Ok(path(self.route(from, to, hops.into(), locators.reversed())));
                }
            }
        }
        unreachable!("address() fails before the numbers run out")
    }

    /// Adds a TCP flow.
    pub fn flow(&mut self, mut config: FlowConfig) -> Result<FlowId, WorldError> {
        if let Some(content) = &config.content {
            config.bytes = Some(content.len() as u64);
        }
        let name = || config.name.clone();
        let (first, _) = config.paths.first().ok_or_else(|| WorldError::Paths(name()))?;
        let (from, to) = (first.from, first.to);
        if config.paths.iter().any(|(p, _)| (p.from, p.to) != (from, to)) {
            return Err(WorldError::Paths(name()));
        }
        for node in [from, to] {
            if self.hosts[node.index()].is_none() {
                return Err(WorldError::NotAHost(self.name(node).to_owned()));
            }
        }
        let id = self.flows.len();
        if id >= MOST_FLOWS {
            return Err(WorldError::TooManyFlows(name()));
        }
        let report = FlowReport { name: name(), started: config.start, ..FlowReport::default() };
        let (port, key, bin) = (FIRST_PORT + id as u16, id as u32, self.config.bin);
        let (written, received) = (0, Vec::new());
        let (sender, receiver, watch) = (None, None, Watch::default());
        let flow = Flow { port, key, bin, sender, receiver, written, received, watch, report, config };
        let host = self.hosts[to.index()].as_deref_mut().expect("it was looked at above");
        flow.listen(host).map_err(|error| WorldError::Listen { flow: flow.report.name.clone(), error })?;
        host.listeners.insert(port, key);
        if flow.config.oracle
            && let Some(sender) = self.hosts[from.index()].as_deref_mut()
        {
            sender.oracles.push(key);
        }
        self.net.events.push(flow.config.start, Event::Start(key));
        if let Some(stop) = flow.config.stop {
            self.net.events.push(stop, Event::Stop(key));
        }
        self.flows.push(flow);
        Ok(FlowId(key))
    }

    /// Adds a source of datagrams.
    pub fn source(&mut self, config: SourceConfig) -> Result<SourceId, WorldError> {
        if config.size < SMALLEST_DATAGRAM || config.rate.0 == 0 {
            return Err(WorldError::Source(config.name));
        }
        let id = self.sources.len() as u32;
        let seed = self.config.seed.child(&format!("source/{}", config.name));
        self.net.events.push(config.start, Event::Datagram(id));
        self.sources.push(Source::new(config, self.config.bin, self.config.delays, seed));
        Ok(SourceId(id))
    }

    /// Observes from now on: what hosts' endpoints are configured to record, and with `hops` what happens
    /// at every hop. With `keep` the rows are kept, otherwise only their hash.
    pub fn trace(&mut self, keep: bool, hops: bool) {
        let mut trace = Trace::new(keep);
        self.nodes.iter().for_each(|n| trace.name_node(&n.name));
        self.net.hop_names.iter().for_each(|name| trace.name_hop(name));
        self.net.taps.trace = Some(trace);
        self.net.taps.trace_hops = hops;
    }

    /// The trace has no other rows from now on.
    pub fn filter_trace(&mut self, filter: TraceFilter) {
        self.net.taps.trace.iter_mut().for_each(|trace| trace.filter(filter.clone()));
    }

    /// Captures what reaches the far end of `hops`, as pcapng, at most `snap` bytes of each packet.
    pub fn capture(&mut self, hops: &[HopId], snap: Option<NonZero<u32>>, out: Box<dyn Write + Send>) {
        let names: Vec<_> = hops.iter().map(|h| (*h, self.net.hop_names[h.index()].as_str())).collect();
        self.net.taps.capture = Some(Capture::new(out, &names, snap));
    }

    fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    /// The `nth` address of `node` on its interface to `hop`: 10.(node, 16 bits).(1, 2, …).
    fn address(&mut self, node: NodeId, hop: HopId, nth: usize) -> Result<SocketAddr, WorldError> {
        let name = || self.name(node).to_owned();
        let addresses = &self.nodes[node.index()].addresses;
        let known = addresses.iter().enumerate().filter(|(_, h)| **h == hop).nth(nth);
        let index = known.map_or(addresses.len(), |(i, _)| i);
        let low = u8::try_from(index + 1).map_err(|_| WorldError::TooManyAddresses(name()))?;
        if known.is_none() {
            self.nodes[node.index()].addresses.push(hop);
        }
        let [.., high, middle] = node.0.to_be_bytes();
        Ok(SocketAddr::from((Ipv4Addr::new(10, high, middle, low), 0)))
    }

    /// A route, whose far end sees `locators`.
    fn route(&mut self, from: NodeId, to: NodeId, hops: Box<[HopId]>, locators: Locators) -> RouteId {
        let route = self.net.add_route(hops, to, locators);
        if let Some(host) = &mut self.hosts[from.index()] {
            let (key, first) = (route_key(&locators.reversed()), self.net.routes[route.0 as usize].first);
            host.exit.ways.push(Way { key, route, first });
        }
        route
    }
}

/// Asking.
impl World {
    /// The simulation's time.
    pub fn now(&self) -> Instant {
        self.net.now
    }

    /// What has become of a flow so far.
    pub fn flow_report(&self, FlowId(id): FlowId) -> FlowReport {
        let flow = &self.flows[id as usize];
        let mut report = flow.report.clone();
        let (first, _) = flow.config.paths[0];
        for (side, node, handle) in
            [(Side::Sender, first.from, flow.sender), (Side::Receiver, first.to, flow.receiver)]
        {
            let host = self.hosts[node.index()].as_deref();
            let Some((host, handle)) = host.zip(handle) else { continue };
            report.take_stats(self.net.now, side, &flow.config, host, handle);
        }
        report.reordering = flow.watch.sums;
        report
    }

    /// How long data of a flow was under way, if the world watches it: from its first transmission to its delivery in order.
    pub fn flow_delays(&self, FlowId(id): FlowId) -> Option<&Delays> {
        self.net.taps.delays.as_ref()?.of(id)
    }

    /// The same of a source's datagrams, from where they leave to where they arrive.
    pub fn source_delays(&self, SourceId(id): SourceId) -> Option<&Delays> {
        self.sources[id as usize].delays()
    }

    /// Whether the sender of a flow has a connection, and the receiver has not read all its bytes.
    pub fn is_under_way(&self, FlowId(id): FlowId) -> bool {
        let flow = &self.flows[id as usize];
        flow.sender.is_some() && flow.report.finished.is_none()
    }

    /// Counters and state of a path of a flow at its sender, while it has one.
    pub fn flow_path(&self, FlowId(id): FlowId, path: PathId) -> Option<PathStats> {
        let flow = &self.flows[id as usize];
        let host = self.hosts[flow.config.paths[0].0.from.index()].as_deref();
        let (host, handle) = host.zip(flow.sender)?;
        let ids = flow.config.path_ids(Side::Sender, host, handle);
        let id = ids.get(path.index()).copied().flatten()?;
        Some(host.endpoint.connection(handle)?.path_stats(id))
    }

    /// What the receiver of a flow with content has read since the last call, in order.
    pub fn take_received(&mut self, FlowId(id): FlowId) -> Vec<Payload> {
        std::mem::take(&mut self.flows[id as usize].received)
    }

    /// What has become of a source's datagrams so far.
    pub fn source_report(&self, SourceId(id): SourceId) -> &SourceReport {
        &self.sources[id as usize].report
    }

    /// The share of a source's datagrams of which no copy arrived, of all but those on their way; `None` if there are none.
    pub fn loss_rate(&self, SourceId(id): SourceId) -> Option<f64> {
        let source = &self.sources[id as usize];
        let under_way = self.net.packets.datagrams(id).filter(|number| !source.has_received(*number));
        let under_way = under_way.collect::<BTreeSet<u64>>().len() as u64;
        let decided = source.report.sent - under_way;
        (decided > 0).then(|| source.missing(under_way) as f64 / decided as f64)
    }

    /// Counters of a hop.
    pub fn hop_stats(&self, hop: HopId) -> HopStats {
        self.net.hops[hop.index()].hop.stats()
    }

    /// Packets in a hop: they wait, are served or are on its wire.
    pub fn hop_queued(&self, hop: HopId) -> usize {
        self.net.hops[hop.index()].hop.queued()
    }

    /// Packets that wait in a hop's queue, the one in service not among them.
    pub fn hop_waiting(&self, hop: HopId) -> usize {
        self.net.hops[hop.index()].hop.queue_length(self.net.now)
    }

    /// Name of a hop.
    pub fn hop_name(&self, hop: HopId) -> &str {
        &self.net.hop_names[hop.index()]
    }

    /// All hops.
    pub fn hops(&self) -> impl Iterator<Item = HopId> {
        (0..self.net.hops.len() as u32).map(HopId)
    }

    /// Packets on their way, in hops of any kind.
    pub fn packets(&self) -> usize {
        self.net.packets.len()
    }

    /// Packets that a host dropped because their bytes were damaged, before its endpoint saw them.
    pub fn damaged(&self, node: NodeId) -> u64 {
        self.hosts[node.index()].as_deref().map_or(0, |host| host.drops.iter().sum())
    }

    /// Ends the trace and returns it.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.net.taps.trace_hops = false;
        self.net.taps.trace.take()
    }

    /// Ends the capture; its first error if there was one.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        self.net.taps.capture.take().map_or(Ok(()), Capture::finish)
    }
}
