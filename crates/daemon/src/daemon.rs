//! A running daemon.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use polypath_endpoint::{EndpointConfig, ListenConfig, OpenError, SecurityConfig};
use polypath_hip::{Accept, HipConfig, Identity};
use polypath_node::{Choice, Gateway, GatewayConfig, GatewayStats, HostSockets, Node};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::lane::{Counters, Lane, NotCarried, Packets};
use crate::peers::Peers;
use crate::request::PORT;
use crate::routes::{self, RouteError};
use crate::status::Status;
use crate::{associations, far, near, packets};

/// Why a daemon does not start.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// No device.
    #[error("{0}")]
    Device(io::Error),
    /// No sockets.
    #[error("no UDP socket on port {port}: {source}")]
    Sockets {
        /// The port asked for.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// No random numbers.
    #[error("cannot start: {0}")]
    Start(io::Error),
    /// A route was refused.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The configuration asks for connections that cannot be.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// How long the peers may take to hear that a daemon stops.
const GRACE: Duration = Duration::from_millis(500);
/// Connections of peers that nobody has taken up, in all and of one peer.
const UNSERVED: (u32, u32) = (4096, 512);

/// A running daemon. Dropping it resets all connections, and the device goes with its routes.
pub struct Daemon {
    lane: Arc<Lane>,
    device: String,
    gateway: Arc<GatewayStats>,
    places: usize,
    tasks: JoinSet<()>,
}

impl Daemon {
    /// Makes the device and its routes and begins to carry connections, in the network namespace of the calling thread.
    /// Needs `CAP_NET_ADMIN` and a tokio runtime whose threads are in that namespace.
    pub async fn start(config: &Config, identity: Identity) -> Result<Self, DaemonError> {
        let gateway = Gateway::create(&GatewayConfig {
            name: config.tunnel.name.clone(),
            addresses: config.tunnel.addresses.iter().map(|net| (net.addr(), net.prefix_len())).collect(),
            mtu: config.tunnel.mtu,
        });
        let mut gateway = gateway.map_err(DaemonError::Device)?;
        let (device, stats) = (gateway.name().map_err(DaemonError::Device)?, gateway.stats());
        let outer = outer(config, &device, identity)?;
        let packets = Packets {
            device: gateway.bypass(config.lane.exclusion()),
            peers: outer.carry_packets(config.lane.packets()).map_err(OpenError::from)?,
            counters: NotCarried::default(),
        };
        let lane = Lane {
            inner: Node::start(limits(config), gateway).map_err(DaemonError::Start)?,
            peers: Peers::new(&config.peers, &config.lane.outer(), config.lane.spare),
            connection: config.lane.inner(),
            mtu: config.tunnel.mtu.into(),
            places: Arc::new(Semaphore::new(config.lane.connections as usize)),
            counters: Counters::default(),
            packets,
            outer,
        };
        let places = config.lane.connections as usize;
        let tasks = JoinSet::new();
        let mut daemon = Self { lane: Arc::new(lane), device, gateway: stats, places, tasks };
        daemon.run(config).await?;
        Ok(daemon)
    }

    async fn run(&mut self, config: &Config) -> Result<(), DaemonError> {
        let (lane, tasks) = (&self.lane, &mut self.tasks);
        let interceptor = lane.inner.intercept(lane.connection.clone(), lane.mtu)?;
        let accepted = ListenConfig { connection: config.lane.outer(), ..ListenConfig::default() };
        let listener = lane.outer.listen(PORT, accepted)?;
        tasks.spawn(near::serve(lane.clone(), interceptor));
        tasks.spawn(far::serve(lane.clone(), listener));
        tasks.spawn(associations::watch(lane.clone()));
        tasks.spawn(packets::outward(lane.clone()));
        tasks.spawn(packets::inward(lane.clone()));
        for peer in lane.peers.iter() {
            tasks.spawn(associations::keep(lane.clone(), peer.clone()));
            let (lane, peer) = (lane.clone(), peer.clone());
            tasks.spawn(async move { peer.pool.fill(&lane.outer).await });
        }
        let prefixes: Vec<_> = config.peers.iter().flat_map(|peer| peer.prefixes.clone()).collect();
        Ok(routes::add(&self.device, &prefixes, &config.tunnel.addresses).await?)
    }

    /// How it is now.
    pub fn status(&self) -> Status {
        Status::of(&self.lane, &self.device, &self.gateway, self.places)
    }

    /// Resets all connections, tells the peers, and takes the device away.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.lane.inner.abort(GRACE).await;
        self.lane.outer.abort(GRACE).await;
    }
}

/// HIP and ESP on all interfaces that the configuration admits, but not on the device itself.
fn outer(config: &Config, device: &str, identity: Identity) -> Result<Node, DaemonError> {
    let peers = config.peers.iter().map(|peer| peer.hit).collect();
    let hip = HipConfig {
        accept: Accept::Only(peers),
        tell_refused: true,
        retransmit: polypath_wire::Duration::from_millis(500),
        ..HipConfig::of_today()
    };
    let except = [config.paths.exclude.as_slice(), &[device.to_owned()]].concat();
    let mut choice = Choice::new(config.paths.include.clone(), Vec::new(), BTreeMap::new());
    choice.except = except;
    let port = config.listen.port;
    let sockets = HostSockets::bind(port, choice).map_err(|source| DaemonError::Sockets { port, source })?;
    let security = SecurityConfig { hip, ..SecurityConfig::default() };
    let spare = (config.lane.spare * config.peers.len() * 2) as u32;
    let limits = limits(config);
    let limits = EndpointConfig { max_connections: limits.max_connections.saturating_add(spare), ..limits };
    Node::secure(limits, security, identity, sockets).map_err(DaemonError::Start)
}

/// Connections that are ending count too.
fn limits(config: &Config) -> EndpointConfig {
    let (max_unserved, max_unserved_of_peer) = UNSERVED;
    let max_connections = config.lane.connections.saturating_mul(2);
    let defaults = EndpointConfig::default();
    // A SYN beyond this waits for its next copy.
    let max_half_open = max_connections.max(defaults.max_half_open);
    EndpointConfig { max_connections, max_half_open, max_unserved, max_unserved_of_peer, ..defaults }
}
