//! The networks on which we are compared with ns-2 (docs/validation.md), and the files in which the
//! figures of both sides lie: each setting with its parameters and what came out.

use polypath_hop::{Discipline, RedConfig};
use polypath_sim::{FlowConfig, FlowId, Headers, HopConfig, HopId, HostConfig, NodeId, Path, QueueLimit};
use polypath_sim::{World, WorldConfig, WorldError};
use polypath_transport::cc::{CcConfig, NewRenoConfig, SlowStart};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_transport::{DupackConfig, LossConfig};
use polypath_wire::{Duration, Instant, PathId, Rate, Seed};
use serde::{Deserialize, Serialize};

/// Bytes of a packet on the wire, and of the data in it.
const PACKET: u64 = 1250;
const HEADERS: u32 = 40;
const MSS: u32 = PACKET as u32 - HEADERS;

/// Which sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Variant {
    Newreno,
    Reno,
}

/// One flow over a link of 8 Mbit/s and 60 ms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OneFlow {
    /// Sender.
    pub variant: Variant,
    /// Receive window, packets; also the first slow start threshold, as in ns-2.
    pub window: u32,
    /// Limit of ns-2's DropTail, packets: one less may wait.
    pub queue: u32,
    /// Counters at some times; ns-2 ran with several phases of its clock.
    pub runs: Vec<Vec<Mark>>,
    /// Time between the samples of `cwnd`, s.
    pub step: f64,
    /// Congestion window every `step`, packets.
    pub cwnd: Vec<f64>,
}

/// Counters at the time `t`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds.
    pub t: f64,
    /// Bytes of the packets received in order, headers included.
    pub bytes: u64,
    /// Data packets sent.
    pub sent: u64,
    /// Of these, sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets dropped.
    pub drops: u64,
}

/// Runs of two flows that share a link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TwoFlows {
    /// Length of a run, s.
    pub duration: f64,
    /// When the two flows of each run start, s.
    pub starts: Vec<[f64; 2]>,
    /// What was run with each of these.
    pub cases: Vec<Case>,
}

/// One kind of two flows; the results are those of the runs, in order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Sender.
    pub variant: Variant,
    /// Where the flows run.
    pub topology: Topology,
    /// Limit of ns-2's DropTail, packets.
    pub queue: u32,
    /// First slow start threshold, packets; 0 is the window.
    pub ssthresh: u32,
    /// Most time a sender takes before it sends new data, s (ns-2's `overhead_`).
    pub jitter: f64,
    /// Bytes of each flow.
    pub bytes: Vec<[u64; 2]>,
    /// Retransmissions of each flow.
    pub retransmissions: Vec<[u64; 2]>,
    /// Timeouts of each flow.
    pub timeouts: Vec<[u64; 2]>,
}

/// Flows over a link of 8 Mbit/s and 60 ms, of which flow `i` starts at `i` tenths of a second, before a queue under
/// gentle RED.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Red {
    /// How many flows.
    pub flows: u32,
    /// Thresholds of the average queue, packets.
    pub min: u32,
    /// The upper one.
    pub max: u32,
    /// Probability of a drop at the upper one.
    pub probability: f64,
    /// Weight of the present queue in the average.
    pub weight: f64,
    /// What came out, for each seed.
    pub runs: Vec<RedRun>,
}

/// What came out of 100 s.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RedRun {
    /// Bytes of the packets received in order, headers included, of all flows.
    pub bytes: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Mean number of packets that wait.
    pub waiting: f64,
}

/// Both flows n0 → n2 → n1, or one of them n2 → n1 → n4 as in the papers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Topology {
    Same,
    Cross,
}

impl OneFlow {
    /// Runs our simulator with these parameters, to the times of the marks.
    pub fn simulate(&self) -> Result<Self, WorldError> {
        let mut world = world(1);
        let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()));
        let (a, b) = (a?, b?);
        let link = world.link(a, b, hop(60, self.queue), hop(60, self.queue))?;
        let path = world.path(a, b, &[])?;
        let flow = bulk(&mut world, path, Instant::ZERO, connection(self.variant, self.window, self.window))?;
        let (mut marks, mut cwnd) = (Vec::new(), Vec::new());
        let times: Vec<_> = self.runs[0].iter().map(|mark| mark.t).collect();
        let end = times.iter().copied().fold(0.0, f64::max);
        for i in 1..=(end / self.step).round() as u32 {
            let t = f64::from(i) * self.step;
            world.run(Instant::from_secs_f64(t));
            if times.contains(&t) {
                marks.push(mark(&world, flow, link.there(), t));
            }
            if t < end {
                let window = world.flow_report(flow).sender_paths[PathId(0).index()].cwnd;
                cwnd.push((window as f64 * 10.0 / f64::from(MSS)).round() / 10.0);
            }
        }
        Ok(Self { runs: vec![marks], cwnd, ..self.clone() })
    }
}

impl Red {
    /// Runs our simulator with these parameters, as often as ns-2 ran.
    pub fn simulate(&self) -> Result<Self, WorldError> {
        let runs = (1..=self.runs.len() as u64).map(|seed| self.run(seed)).collect::<Result<_, _>>()?;
        Ok(Self { runs, ..self.clone() })
    }

    fn run(&self, seed: u64) -> Result<RedRun, WorldError> {
        const WINDOW: u32 = 10_000;
        const SECONDS: u64 = 100;
        const SAMPLE: Duration = Duration::from_millis(10);
        let mut world = world(seed);
        let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()));
        let (a, b) = (a?, b?);
        let link =
            world.link(a, b, HopConfig { discipline: self.discipline(), ..hop(60, 145) }, hop(60, 1000))?;
        let path = world.path(a, b, &[])?;
        let mut flows = Vec::new();
        for i in 0..self.flows {
            let start = Instant::ZERO + Duration::from_millis(100).times(u64::from(i));
            flows.push(bulk(&mut world, path, start, connection(Variant::Newreno, WINDOW, WINDOW))?);
        }
        let (mut waiting, mut samples) = (0, 0);
        while world.now() < Instant::ZERO + Duration::from_secs(SECONDS) {
            world.run(world.now() + SAMPLE);
            (waiting, samples) = (waiting + world.hop_waiting(link.there()), samples + 1);
        }
        let end = flows.into_iter().map(|flow| mark(&world, flow, link.there(), SECONDS as f64));
        let none = RedRun { bytes: 0, retransmissions: 0, timeouts: 0, drops: 0, waiting: 0.0 };
        Ok(end.fold(none, |sum, m| RedRun {
            bytes: sum.bytes + m.bytes,
            retransmissions: sum.retransmissions + m.retransmissions,
            timeouts: sum.timeouts + m.timeouts,
            drops: m.drops,
            waiting: waiting as f64 / f64::from(samples),
        }))
    }

    fn discipline(&self) -> Discipline {
        Discipline::Red(RedConfig {
            min: QueueLimit::Packets(self.min),
            max: QueueLimit::Packets(self.max),
            probability: self.probability,
            weight: self.weight,
            ..RedConfig::default()
        })
    }
}

impl Case {
    /// Runs our simulator with these parameters once for each pair of starts.
    pub fn simulate(&self, duration: f64, starts: &[[f64; 2]]) -> Result<Self, WorldError> {
        let mut done = Self { bytes: vec![], retransmissions: vec![], timeouts: vec![], ..self.clone() };
        for (i, starts) in starts.iter().enumerate() {
            let (world, flows) = self.run(duration, *starts, i as u64 + 1)?;
            let reports = flows.map(|flow| world.flow_report(flow));
            done.bytes.push([0, 1].map(|f| wire_bytes(reports[f].bytes)));
            done.retransmissions.push([0, 1].map(|f| reports[f].retransmissions()));
            done.timeouts.push([0, 1].map(|f| reports[f].sender.timeouts));
        }
        Ok(done)
    }

    fn run(&self, duration: f64, starts: [f64; 2], seed: u64) -> Result<(World, [FlowId; 2]), WorldError> {
        const WINDOW: u32 = 10_000;
        let mut world = world(seed);
        let processing = Duration::from_secs_f64(self.jitter);
        let mut host = |name| world.host(name, HostConfig { processing, ..HostConfig::default() });
        let (n0, n1, n2, n4) = (host("n0")?, host("n1")?, host("n2")?, host("n4")?);
        for (a, b) in [(n0, n2), (n2, n1), (n1, n4)] {
            world.link(a, b, hop(30, self.queue), hop(30, self.queue))?;
        }
        let ends = match self.topology {
            Topology::Same => [(n0, n1), (n0, n1)],
            Topology::Cross => [(n0, n1), (n2, n4)],
        };
        let ssthresh = if self.ssthresh > 0 { self.ssthresh } else { WINDOW };
        let mut flow = |(from, to): (NodeId, NodeId), start| {
            let path = world.path(from, to, &[])?;
            let config = connection(self.variant, WINDOW, ssthresh);
            bulk(&mut world, path, Instant::from_secs_f64(start), config)
        };
        let flows = [flow(ends[0], starts[0])?, flow(ends[1], starts[1])?];
        world.run(Instant::from_secs_f64(duration));
        Ok((world, flows))
    }
}

fn world(seed: u64) -> World {
    let headers = Headers::Fixed { data: HEADERS, control: HEADERS };
    World::new(WorldConfig { seed: Seed(seed), headers, ..WorldConfig::default() })
}

fn hop(delay_ms: u64, limit: u32) -> HopConfig {
    HopConfig {
        rate: Rate::from_mbps(8),
        delay: Duration::from_millis(delay_ms),
        queue: QueueLimit::Packets(limit - 1),
        ..HopConfig::default()
    }
}

/// The sender and receiver of ns-2; the table in docs/validation.md says which field is what.
fn connection(variant: Variant, window: u32, ssthresh: u32) -> ConnectionConfig {
    let cc = NewRenoConfig {
        initial_window: 2,
        initial_ssthresh: Some(ssthresh),
        abc_limit: 1,
        slow_start: SlowStart::Standard,
    };
    let partial_acks = variant == Variant::Newreno;
    ConnectionConfig {
        cc: CcConfig::Newreno(cc),
        loss: LossConfig::Dupack(DupackConfig {
            threshold: 3,
            partial_acks,
            impatient: true,
            limited_transmit: true,
        }),
        receive_buffer: u64::from(window) * u64::from(MSS),
        sack: false,
        timestamps: false,
        delayed_ack: Duration::ZERO,
        min_rto: Duration::from_millis(200),
        initial_rto: Duration::from_secs(3),
        clock_granularity: Duration::from_millis(10),
        ..ConnectionConfig::default()
    }
}

fn bulk(
    world: &mut World,
    path: Path,
    start: Instant,
    config: ConnectionConfig,
) -> Result<FlowId, WorldError> {
    let paths = vec![(path, PathConfig { mss: MSS, ..PathConfig::default() })];
    let (sender, receiver) = (config.clone(), config);
    world.flow(FlowConfig { paths, start, sender, receiver, ..FlowConfig::default() })
}

fn mark(world: &World, flow: FlowId, hop: HopId, t: f64) -> Mark {
    let report = world.flow_report(flow);
    Mark {
        t,
        bytes: wire_bytes(report.bytes),
        sent: report.sender_paths.iter().map(|p| p.segments_sent).sum(),
        retransmissions: report.retransmissions(),
        timeouts: report.sender.timeouts,
        drops: world.hop_stats(hop).drops.iter().sum(),
    }
}

fn wire_bytes(data: u64) -> u64 {
    data / u64::from(MSS) * PACKET
}
