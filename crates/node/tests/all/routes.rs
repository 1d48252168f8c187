//! The multi-route option of R-M/TCP (Rojviboonchai, Osuga and Aida, §2.1) between two of our hosts with two routes each.
//!
//! ```text
//!                   network namespace a                                network namespace b
//! host 10.78.0.2 ── tun `host0` ┤├ tun `link0` ══ emulated link ══ tun `link0` ┤├ tun `host0` ── 10.78.2.2 host
//!      10.79.0.2 ── tun `host1` ┤├ tun `link1` ══ emulated link ══ tun `link1` ┤├ tun `host1` ── 10.79.2.2
//! ```
//!
//! The kernels between only forward.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use polypath_endpoint::{EndpointConfig, ListenConfig, Locators};
use polypath_hop::{HopConfig, QueueLimit};
use polypath_node::{Clock, Node, Stream, Tun, TunConfig};
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;
use polypath_testbed::tun_end;
use polypath_transport::cc::CcConfig;
use polypath_transport::sched::DuplicateConfig;
use polypath_transport::{ConnectionConfig, PathConfig, Pattern, Payload, SchedulerConfig};
use polypath_wire::{Rate, Seed};
use tokio::runtime::Handle;

use crate::capture::Capture;
use crate::common::{read_exactly, ready, sh};

const MB: u64 = 1_000_000;
const CHUNK: u64 = 50_000;
const PORT: u16 = 5001;
/// Nothing here waits longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rate (Mbit/s) and one-way delay (ms) of the routes.
const ROUTES: [(u64, u64); 2] = [(80, 5), (40, 8)];

const DISTRIBUTION: SchedulerConfig = SchedulerConfig::EarliestArrival;
const DUPLICATION: SchedulerConfig = SchedulerConfig::Duplicate(DuplicateConfig { lost_only: false });

struct Bed {
    /// Fields drop in this order: nodes, links, namespaces.
    nodes: [Node; 2],
    links: Vec<EmulatedLink>,
    sides: [Netns; 2],
}

impl Bed {
    fn new() -> Self {
        let sides = ["a", "b"].map(|name| Netns::create(name).unwrap());
        let links = (0..ROUTES.len()).map(|route| link(&sides, route)).collect();
        let runtime = Handle::current();
        let host = |side: usize| {
            let _runtime = runtime.enter();
            let devices: Vec<_> = (0..ROUTES.len()).map(|route| device(side, route)).collect();
            Node::start(EndpointConfig::default(), Tun::open(&devices).unwrap()).unwrap()
        };
        let nodes = [0, 1].map(|side| sides[side].run(|| host(side)).unwrap());
        for (side, ns) in sides.iter().enumerate() {
            sh(ns, "echo 1 > /proc/sys/net/ipv4/ip_forward");
            for route in 0..ROUTES.len() {
                let (there, next) = (network(route, 1 - side), address(route, 1, 2 - side as u8));
                sh(ns, &format!("ip route add {there} via {next} dev link{route}"));
                sh(ns, &format!("ip link set host{route} txqueuelen 5000"));
            }
        }
        Self { nodes, links, sides }
    }

    /// A connection from host a over `routes`: its end there, and the other.
    async fn connect(&self, routes: &[usize], config: ConnectionConfig) -> [Stream; 2] {
        let [a, b] = &self.nodes;
        let listen = ListenConfig { connection: config.clone(), accept_paths: true, ..Default::default() };
        let listener = b.listen(PORT, listen).unwrap();
        let path = |route: &usize| (locators(*route), PathConfig::default());
        let paths: Vec<_> = routes.iter().map(path).collect();
        let (ours, theirs) = tokio::join!(a.connect(config, PORT, &paths), listener.accept());
        [ours.unwrap(), theirs.unwrap()]
    }

    /// Bytes that each route has carried from a to b.
    fn carried(&self) -> [u64; 2] {
        [0, 1].map(|route: usize| self.links[route].stats().hops[0].bytes_left)
    }
}

fn link(sides: &[Netns; 2], route: usize) -> EmulatedLink {
    let name = format!("link{route}");
    let ends =
        [0, 1].map(|side| tun_end(&sides[side], &name, address(route, 1, 1 + side as u8), 1500).unwrap());
    let (mbps, ms) = ROUTES[route];
    let hop = HopConfig {
        rate: Rate::from_mbps(mbps),
        delay: polypath_wire::Duration::from_millis(ms),
        queue: QueueLimit::Packets(1000),
        ..HopConfig::default()
    };
    EmulatedLink::start(&name, ends, [hop.clone(), hop], Seed(1), Clock::start()).unwrap()
}

/// Our host's device on `route`.
fn device(side: usize, route: usize) -> TunConfig {
    let subnet = 2 * side as u8;
    let (kernel, host) = (address(route, subnet, 1), address(route, subnet, 2));
    TunConfig { name: format!("host{route}"), kernel: (kernel, 24), host, mtu: 1500 }
}

fn address(route: usize, subnet: u8, host: u8) -> IpAddr {
    [10, 78 + route as u8, subnet, host].into()
}

fn network(route: usize, side: usize) -> String {
    format!("{}/24", address(route, 2 * side as u8, 0))
}

fn locators(route: usize) -> Locators {
    let host = |side| SocketAddr::new(device(side, route).host, 0);
    Locators { local: host(0), remote: host(1) }
}

fn routed(scheduler: SchedulerConfig) -> ConnectionConfig {
    let cc = CcConfig::RmTcp(Default::default());
    ConnectionConfig { multi_route: true, cc, scheduler, ..ConnectionConfig::default() }
}

/// The next `len` bytes of the pattern from `from` to `to`, where every byte is looked at.
async fn carry([from, to]: &[Stream; 2], key: u32, len: u64) {
    let chunk = |i| Payload::from(Pattern { key, offset: i * CHUNK, len: CHUNK }).to_bytes();
    let sending = async {
        for i in 0..len / CHUNK {
            from.write(chunk(i)).await.unwrap();
        }
    };
    let receiving = async {
        for i in 0..len / CHUNK {
            assert_eq!(read_exactly(to, CHUNK).await, chunk(i), "chunk {i}");
        }
    };
    let both = async { tokio::join!(sending, receiving) };
    tokio::time::timeout(PATIENCE, both).await.expect("the stream stalled");
}

/// Both sides finish, and have everything.
async fn close(streams: &[Stream; 2]) {
    streams.iter().for_each(Stream::finish);
    let both = async { tokio::join!(streams[0].finished(), streams[1].finished()) };
    let (ours, theirs) = tokio::time::timeout(PATIENCE, both).await.expect("it does not close");
    assert_eq!((ours, theirs), (Ok(()), Ok(())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_routes_carry_a_stream_each_way() {
    if !ready(&["ip", "setpriv", "tcpdump", "tshark"]) {
        return;
    }
    let bed = Bed::new();
    let captures = [0, 1].map(|route| Capture::start(&bed.sides[0], &format!("link{route}")));
    let [ours, theirs] = bed.connect(&[0, 1], routed(DISTRIBUTION)).await;
    let there = [ours, theirs];
    carry(&there, 1, 10 * MB).await;
    let [ours, theirs] = there;
    let back = [theirs, ours];
    carry(&back, 2, 5 * MB).await;
    close(&back).await;
    let carried = bed.carried();
    assert!(carried.iter().all(|bytes| *bytes > 2 * MB), "{carried:?}");
    for (route, capture) in captures.into_iter().enumerate() {
        let packets = capture.finish();
        let bare = "tcp.option_kind == 253";
        assert_eq!(packets.count(&format!("tcp.flags.reset == 0 && !({bare})")), 0, "route {route}");
        assert_eq!(packets.count("_ws.malformed || tcp.option.len.invalid"), 0);
        // Kind, length, `Poly`, the route, and the route that is answered.
        let of = |option: &str| packets.count(&format!("tcp.options contains fd:08:50:6f:6c:79:{option}"));
        let (all, answers) = (of(&format!("0{route}")), of(&format!("0{route}:0{route}")));
        assert_eq!(packets.count("tcp"), all, "all name route {route}");
        assert!(answers > 500, "acknowledgments answer route {route}: {answers} of {all}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_modes_change_during_a_connection() {
    if !ready(&["ip", "setpriv"]) {
        return;
    }
    let bed = Bed::new();
    let streams = bed.connect(&[0, 1], routed(DISTRIBUTION)).await;
    let len = 4 * MB;
    for (n, mode) in
        [DISTRIBUTION, DUPLICATION, SchedulerConfig::RoundRobin, DUPLICATION].into_iter().enumerate()
    {
        streams[0].set_scheduler(mode.clone());
        let before = bed.carried();
        carry(&streams, n as u32, len).await;
        // What was copied on the slower route may still be under way.
        let idle = async {
            while streams[0].stats().paths.iter().any(|(_, _, path)| path.in_flight > 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, idle).await.expect("something is never answered");
        let after = bed.carried();
        let [first, second] = [0, 1].map(|route: usize| after[route] - before[route]);
        println!("{mode:?}: {first} and {second} bytes");
        match mode {
            SchedulerConfig::Duplicate(_) => assert!(first.min(second) > len, "{first} {second}"),
            _ => assert!(first.min(second) > len / 10 && first + second < len * 3 / 2, "{first} {second}"),
        }
    }
    close(&streams).await;
}

/// Each route once, in the network and at the host itself. No timeout is due before a minute: had the
/// stream to wait for one, it would stall.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_route_may_die_in_duplication_mode() {
    if !ready(&["ip", "setpriv"]) {
        return;
    }
    for kill in ["link0 down", "link1 down", "host0 down", "host1 down"] {
        let bed = Bed::new();
        let minute = polypath_wire::Duration::from_secs(60);
        let config = ConnectionConfig { min_rto: minute, ..routed(DUPLICATION) };
        let streams = bed.connect(&[0, 1], config).await;
        carry(&streams, 1, 2 * MB).await;
        let dying = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            sh(&bed.sides[0], &format!("ip link set {kill}"));
        };
        tokio::join!(carry(&streams, 2, 10 * MB), dying);
        let stats = streams[0].stats();
        assert_eq!(stats.connection.timeouts, 0, "{kill}: {stats:?}");
        let dead = usize::from(kill.contains('1'));
        let sent: Vec<u64> = stats.paths.iter().map(|(_, _, path)| path.bytes_delivered).collect();
        println!("{kill}: {sent:?} bytes delivered by the routes");
        assert!(sent[1 - dead] > sent[dead], "{kill}: {sent:?}");
    }
}

/// A host whose device is gone lives on by the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_survives_the_loss_of_a_device() {
    if !ready(&["ip", "setpriv"]) {
        return;
    }
    let bed = Bed::new();
    let streams = bed.connect(&[0, 1], routed(DISTRIBUTION)).await;
    carry(&streams, 1, MB).await;
    sh(&bed.sides[0], "ip link delete host0");
    carry(&streams, 2, 2 * MB).await;
    close(&streams).await;
}
