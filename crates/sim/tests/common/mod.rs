//! Small worlds for tests.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses some of it, and a broken world fails it")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use polypath_sim::{
    FlowId, HopConfig, HostConfig, LinkId, NodeId, Path, QueueLimit, Via, World, WorldConfig,
};
use polypath_wire::{Duration, Instant, Rate, Seed};

pub fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

pub fn hop(mbps: u64, delay_ms: u64, packets: u32) -> HopConfig {
    let (rate, delay) = (Rate::from_mbps(mbps), Duration::from_millis(delay_ms));
    HopConfig { rate, delay, queue: QueueLimit::Packets(packets), ..HopConfig::default() }
}

/// Hosts `a` and `b` with a router between them; the second link, `r`–`b`, is the given one.
pub struct Line {
    pub world: World,
    pub a: NodeId,
    pub b: NodeId,
    pub first: LinkId,
    pub second: LinkId,
    pub path: Path,
}

pub fn line(seed: u64, bottleneck: HopConfig) -> Line {
    line_of(WorldConfig { seed: Seed(seed), ..WorldConfig::default() }, HostConfig::default(), bottleneck)
}

pub fn line_of(config: WorldConfig, host: HostConfig, bottleneck: HopConfig) -> Line {
    let mut world = World::new(config);
    let [a, b] = ["a", "b"].map(|name| world.host(name, host.clone()).unwrap());
    let r = world.router("r").unwrap();
    let first = world.link(a, r, hop(1000, 1, 1000), hop(1000, 1, 1000)).unwrap();
    let back = hop(1000, bottleneck.delay.as_millis_f64() as u64, 1000);
    let second = world.link(r, b, bottleneck, back).unwrap();
    let path = world.path(a, b, &[]).unwrap();
    Line { world, a, b, first, second, path }
}

/// Hosts `a` and `b`, and a path over a link of each of these `hops`.
pub fn between<const N: usize>(hops: [HopConfig; N]) -> (World, [Path; N]) {
    let mut world = World::new(WorldConfig { seed: Seed(1), ..WorldConfig::default() });
    let [a, b] = ["a", "b"].map(|name| world.host(name, HostConfig::default()).unwrap());
    let links = hops.map(|hop| world.link(a, b, hop.clone(), hop).unwrap());
    let paths = links.map(|link| world.path(a, b, &[Via::Link(link)]).unwrap());
    (world, paths)
}

/// Runs in steps of `step` until all that was written has been read, and returns how long that took.
pub fn finish(world: &mut World, flow: FlowId, step: Duration) -> Duration {
    let began = world.now();
    while world.flow_report(flow).finished.is_none() {
        assert!(world.now().since(began) < Duration::from_secs(10), "it does not end");
        let next = world.now() + step;
        world.run(next);
    }
    world.now().since(began)
}

/// At each hop, nothing has appeared or vanished.
pub fn assert_conserved(world: &World) {
    for hop in world.hops() {
        let s = world.hop_stats(hop);
        let out = s.left + s.dropped_total() + world.hop_queued(hop) as u64;
        assert_eq!(s.entered + s.duplicated, out, "{}: {s:?}", world.hop_name(hop));
    }
}

/// A writer, and what was written to it.
pub fn shared_buffer() -> (Box<SharedBuffer>, Arc<Mutex<Vec<u8>>>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    (Box::new(SharedBuffer(written.clone())), written)
}

pub struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
