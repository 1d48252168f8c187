//! A random topology: a connection of two to four paths, each through one of some bottlenecks, and TCPs beside it.

use polypath_sim::{FlowConfig, FlowId, HopConfig, HostConfig, NodeId, QueueLimit, Via, World, WorldConfig};
use polypath_transport::cc::{CcConfig, PolypathConfig};
use polypath_transport::{AckConfig, ConnectionConfig, DetectionConfig, PathConfig};
use polypath_wire::{Duration, Instant, Rate, Seed};

use super::Result;

/// Bytes of a packet.
const PACKET: f64 = 1500.0;

/// A path: which bottleneck it goes through, and its round trip without queues.
#[derive(Debug)]
pub struct Path {
    pub bottleneck: usize,
    pub rtt: Duration,
}

/// A bottleneck: rate, queue in BDPs of its quickest path, and how many TCPs besides.
#[derive(Debug)]
pub struct Bottleneck {
    pub rate: Rate,
    pub bdps: f64,
    pub rivals: usize,
}

/// A topology.
#[derive(Debug)]
pub struct Scenario {
    seed: u64,
    pub paths: Vec<Path>,
    pub bottlenecks: Vec<Bottleneck>,
}

/// Draws by name.
struct Dice(Seed);

impl Dice {
    /// From 0 to 1.
    fn unit(&self, name: &str) -> f64 {
        (self.0.child(name).0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log(&self, name: &str, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit(name))
    }

    fn below(&self, name: &str, n: usize) -> usize {
        (self.unit(name) * n as f64) as usize
    }
}

impl Scenario {
    /// The scenario of `seed`.
    pub fn of(seed: u64) -> Self {
        let dice = Dice(Seed(seed).child("detection"));
        let count = 2 + dice.below("paths", 3);
        let kind = dice.below("kind", 3);
        let place = |n: usize| match kind {
            0 => n,
            1 => 0,
            _ => dice.below(&format!("place/{n}"), count.max(3) - 1),
        };
        let path = |n: usize| Path {
            bottleneck: place(n),
            rtt: Duration::from_secs_f64(dice.log(&format!("rtt/{n}"), 0.005, 0.15)),
        };
        let bottleneck = |n: usize| Bottleneck {
            rate: Rate(dice.log(&format!("rate/{n}"), 1e6, 1e8) as u64),
            bdps: dice.log(&format!("queue/{n}"), 0.25, 4.0),
            rivals: dice.below(&format!("rivals/{n}"), 3),
        };
        Self { seed, paths: (0..count).map(path).collect(), bottlenecks: (0..4).map(bottleneck).collect() }
    }

    fn members(&self, n: usize) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(move |p| p.bottleneck == n)
    }

    /// Whether no queue is below half a BDP.
    pub fn is_deep(&self) -> bool {
        self.paths.iter().all(|p| self.bottlenecks[p.bottleneck].bdps >= 0.5)
    }

    /// In one line.
    pub fn shown(&self) -> String {
        let used = self.bottlenecks.iter().enumerate().filter(|(n, _)| self.members(*n).count() > 0);
        let one = |(n, b): (usize, &Bottleneck)| {
            let rtts: Vec<String> =
                self.members(n).map(|p| format!("{:.0}", p.rtt.as_millis_f64())).collect();
            format!("{:.1} Mbit/s {:.2} bdp +{} [{} ms]", b.rate.as_mbps(), b.bdps, b.rivals, rtts.join(" "))
        };
        used.map(one).collect::<Vec<_>>().join("; ")
    }

    /// Its world and the connection in question.
    pub fn world(&self, method: DetectionConfig, acks: AckConfig) -> Result<(World, FlowId)> {
        let mut world = World::new(WorldConfig { seed: Seed(self.seed), ..WorldConfig::default() });
        let slowest = self.bottlenecks.iter().map(|b| b.rate).min().unwrap_or_default();
        let jitter = slowest.transmission_time(PACKET as u64);
        let host = |processing| HostConfig { processing, ..HostConfig::default() };
        let a = world.host("a", host(jitter.min(Duration::from_millis(1))))?;
        let b = world.host("b", HostConfig::default())?;
        let mut paths = Vec::new();
        let mut ends = Vec::new();
        for (n, bottleneck) in self.bottlenecks.iter().enumerate() {
            let Some(least) = self.members(n).map(|p| p.rtt).min() else {
                ends.push(None);
                continue;
            };
            let [near, far] = ["near", "far"].map(|end| world.router(&format!("{end}{n}")));
            let (near, far) = (near?, far?);
            let bytes = bottleneck.bdps * bottleneck.rate.bytes_in(least) as f64;
            let queue = QueueLimit::Bytes(bytes.max(10.0 * PACKET) as u64);
            let narrow =
                HopConfig { rate: bottleneck.rate, delay: Duration::ZERO, queue, ..HopConfig::default() };
            let wide = wide(bottleneck.rate, Duration::ZERO);
            world.link(near, far, narrow, wide.clone())?;
            world.link(far, b, wide.clone(), wide)?;
            ends.push(Some((near, far)));
            for rival in 0..bottleneck.rivals {
                let host =
                    world.host(&format!("t{n}.{rival}"), host(jitter.min(Duration::from_millis(1))))?;
                let way = wide_link(&mut world, host, near, bottleneck.rate, least)?;
                let path = world.path(host, b, &[Via::Link(way), Via::Node(far)])?;
                let start =
                    Duration::from_millis(Seed(self.seed).child(&format!("start/{n}/{rival}")).0 % 3000);
                let flow = FlowConfig {
                    paths: vec![(path, PathConfig::default())],
                    start: Instant::ZERO + start,
                    sender: rival_config(),
                    receiver: rival_config(),
                    ..FlowConfig::default()
                };
                world.flow(flow)?;
            }
        }
        for (n, path) in self.paths.iter().enumerate() {
            let Some((near, far)) = ends[path.bottleneck] else { continue };
            let gate = world.router(&format!("gate{n}"))?;
            let rate = self.bottlenecks[path.bottleneck].rate;
            let own = world.link(a, gate, wide(rate, Duration::ZERO), wide(rate, Duration::ZERO))?;
            let way = wide_link(&mut world, gate, near, rate, path.rtt)?;
            paths.push((
                world.path(a, b, &[Via::Link(own), Via::Link(way), Via::Node(far)])?,
                PathConfig::default(),
            ));
        }
        let cc = PolypathConfig { bottlenecks: method, ..PolypathConfig::default() };
        let config = ConnectionConfig {
            cc: CcConfig::Polypath(cc),
            acks,
            receive_buffer: 64 << 20,
            ..ConnectionConfig::default()
        };
        let flow = FlowConfig { paths, sender: config.clone(), receiver: config, ..FlowConfig::default() };
        let flow = world.flow(flow)?;
        Ok((world, flow))
    }
}

fn rival_config() -> ConnectionConfig {
    ConnectionConfig { receive_buffer: 64 << 20, ..ConnectionConfig::default() }
}

/// A link that is no bottleneck.
fn wide(rate: Rate, delay: Duration) -> HopConfig {
    HopConfig { rate: Rate(rate.0 * 10), delay, queue: QueueLimit::Packets(100_000), ..HopConfig::default() }
}

/// With half of a round trip to either side.
fn wide_link(
    world: &mut World,
    a: NodeId,
    b: NodeId,
    rate: Rate,
    rtt: Duration,
) -> Result<polypath_sim::LinkId> {
    let hop = wide(rate, rtt.over(2));
    Ok(world.link(a, b, hop.clone(), hop)?)
}
