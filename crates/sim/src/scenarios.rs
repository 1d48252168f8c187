//! Worlds that other simulators are timed with: NewReno in packets of 1250 bytes, and an acknowledgment for each
//! (docs/performance.md).

use polypath_endpoint::SecurityConfig;
use polypath_hop::{HopConfig, QueueLimit};
use polypath_transport::cc::{CcConfig, NewRenoConfig};
use polypath_transport::{ConnectionConfig, LossConfig, PathConfig};
use polypath_wire::{Duration, Instant, Rate, Seed};

use crate::host::{Headers, HostConfig, identity};
use crate::route::Path;
use crate::topology::{NodeId, Via};
use crate::traffic::{FlowConfig, FlowId};
use crate::world::{World, WorldConfig, WorldError};

/// Size of a packet on the wire, bytes.
pub const PACKET: u32 = 1250;

/// A world and its flows.
#[derive(Debug)]
pub struct Scenario {
    /// With everything in it, before its first packet.
    pub world: World,
    /// The flows, as many as were asked for.
    pub flows: Vec<FlowId>,
}

impl Scenario {
    /// Packets that the receivers have got in order.
    pub fn delivered(&self) -> u64 {
        let bytes: u64 = self.flows.iter().map(|flow| self.world.flow_report(*flow).bytes).sum();
        bytes / u64::from(PACKET)
    }
}

/// One flow over 1 Gbit/s and 20 ms.
pub fn link() -> Result<Scenario, WorldError> {
    let mut world = world();
    let [a, b] = hosts(&mut world, ["a", "b"])?;
    world.link(a, b, hop(1000, 20, 5999), hop(1000, 20, 5999))?;
    let path = world.path(a, b, &[])?;
    let flows = vec![flow(&mut world, path, Instant::ZERO, 4000)?];
    Ok(Scenario { world, flows })
}

/// One flow over 1 Gbit/s and 20 ms in ESP, with keys from a base exchange.
pub fn secure() -> Result<Scenario, WorldError> {
    let mut world = world();
    let [a, b] = ["a", "b"].map(|name| {
        let identity = identity(Seed(1).child(name));
        world.secure_host(name, HostConfig::default(), SecurityConfig::default(), identity)
    });
    let (a, b) = (a?, b?);
    world.link(a, b, hop(1000, 20, 5999), hop(1000, 20, 5999))?;
    let path = world.path(a, b, &[])?;
    let flows = vec![flow(&mut world, path, Instant::ZERO, 4000)?];
    Ok(Scenario { world, flows })
}

/// N flows, each between its own hosts, over one bottleneck of 1 Gbit/s and 18 ms. Slow start ends at
/// each flow's share of the pipe. Fails with more than 60,000 flows.
pub fn dumbbell(n: u32) -> Result<Scenario, WorldError> {
    let mut world = world();
    let [r1, r2] = ["r1", "r2"].map(|name| world.router(name));
    let (r1, r2) = (r1?, r2?);
    world.link(r1, r2, hop(1000, 18, 5999), hop(1000, 18, 5999))?;
    let access = || hop(10_000, 1, 99_999);
    let mut flows = Vec::new();
    for i in 0..n {
        let [s, d] = hosts(&mut world, [&format!("s{i}"), &format!("d{i}")])?;
        world.link(s, r1, access(), access())?;
        world.link(r2, d, access(), access())?;
        let path = world.path(s, d, &[])?;
        let start = Seed(7).child(&format!("start/{i}")).0 % 1_000_000_000;
        flows.push(flow(&mut world, path, Instant(start), (4000 / n).max(2))?);
    }
    Ok(Scenario { world, flows })
}

/// Two flows on the first path of the mHIP paper's Fig. 1, as TCP: n0 → n1 over n2.
pub fn mhip() -> Result<Scenario, WorldError> {
    let mut world = world();
    let [n0, n1, n2, n3, n4] = hosts(&mut world, ["n0", "n1", "n2", "n3", "n4"])?;
    for (a, b, mbps, packets) in
        [(n0, n2, 8, 143), (n2, n1, 8, 143), (n0, n3, 4, 71), (n3, n1, 4, 71), (n1, n4, 8, 143)]
    {
        world.link(a, b, hop(mbps, 30, packets), hop(mbps, 30, packets))?;
    }
    let path = world.path(n0, n1, &[Via::Node(n2)])?;
    let starts = [100, 537].map(|ms| Instant::ZERO + Duration::from_millis(ms));
    let flows = vec![flow(&mut world, path, starts[0], 96)?, flow(&mut world, path, starts[1], 96)?];
    Ok(Scenario { world, flows })
}

fn world() -> World {
    let headers = Headers::Fixed { data: 0, control: 40 };
    World::new(WorldConfig { headers, ..WorldConfig::default() })
}

fn hosts<const N: usize>(world: &mut World, names: [&str; N]) -> Result<[NodeId; N], WorldError> {
    let mut nodes = [NodeId(0); N];
    for (node, name) in nodes.iter_mut().zip(names) {
        *node = world.host(name, HostConfig::default())?;
    }
    Ok(nodes)
}

fn hop(mbps: u64, delay_ms: u64, packets: u32) -> HopConfig {
    let (rate, delay) = (Rate::from_mbps(mbps), Duration::from_millis(delay_ms));
    HopConfig { rate, delay, queue: QueueLimit::Packets(packets), ..HopConfig::default() }
}

/// NewReno as ns-2 has it: no SACK, no timestamps, an acknowledgment for every packet.
fn flow(world: &mut World, path: Path, start: Instant, ssthresh: u32) -> Result<FlowId, WorldError> {
    let config = ConnectionConfig {
        cc: CcConfig::Newreno(NewRenoConfig {
            initial_window: 2,
            initial_ssthresh: Some(ssthresh),
            ..NewRenoConfig::default()
        }),
        loss: LossConfig::Dupack(Default::default()),
        receive_buffer: 1 << 30,
        sack: false,
        timestamps: false,
        delayed_ack: Duration::ZERO,
        ..ConnectionConfig::default()
    };
    let paths = vec![(path, PathConfig { mss: PACKET, ..PathConfig::default() })];
    let (sender, receiver) = (config.clone(), config);
    world.flow(FlowConfig { paths, start, sender, receiver, ..FlowConfig::default() })
}
