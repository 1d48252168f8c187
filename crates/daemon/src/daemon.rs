//! A running daemon.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polypath_endpoint::{EndpointConfig, ListenConfig, OpenError, SecurityConfig};
use polypath_hip::{HipConfig, Identity};
use polypath_node::events::Observer;
use polypath_node::{Choice, Gateway, GatewayConfig, HostSockets, LiveChoice, Node};
use polypath_wire::hip::Hit;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::warn;

use crate::config::{Config, Place};
use crate::device::Device;
use crate::exclusion::Exclusion;
use crate::kill_switch::KillSwitch;
use crate::lane::{Counters, Lane, NotCarried, Packets};
use crate::leases::{self, LeaseError};
use crate::netlink::RouteError;
use crate::own::Own;
use crate::panics::Panics;
use crate::peers::Peers;
use crate::quota::Quotas;
use crate::request::PORT;
use crate::routes::Routes;
use crate::status::Status;
use crate::view::View;
use crate::{address, associations, backups, far, metrics, near, orphans, packets};

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
    /// No port for metrics.
    #[error("{at}: {source}")]
    Metrics {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// No random numbers.
    #[error("cannot start: {0}")]
    Start(io::Error),
    /// A route was refused.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// There is no address for a peer.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The configuration asks for connections that cannot be.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A part of it has ended.
    #[error("{part} ended: {why}")]
    Ended {
        /// Which.
        part: &'static str,
        /// Why.
        why: String,
    },
}

impl DaemonError {
    /// What in the configuration it is about.
    pub fn place(&self) -> Option<Place> {
        let value = |keys| Some(Place::Value(keys));
        match self {
            Self::Device(e) if is_taken(e) => value(["tunnel", "name"]),
            Self::Device(e) if has_no_queues(e) => value(["tunnel", "queues"]),
            Self::Sockets { .. } => value(["listen", "port"]),
            Self::Metrics { .. } => value(["metrics", "listen"]),
            Self::Lease(e) => Some(e.place()),
            Self::Route(e) => e.place(),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Device(e) if is_taken(e) => {
                "another interface or program has that name: write another one, for example \"polypath1\""
            }
            Self::Device(e) if has_no_queues(e) => {
                "write fewer: with 1 the daemon's own thread reads and writes"
            }
            Self::Device(_) => "it needs root (CAP_NET_ADMIN) and /dev/net/tun",
            Self::Metrics { .. } => "name an address of this host, and a port that no other program has",
            Self::Sockets { .. } => {
                "another program may use the port: write another one, here and in the peers' addresses of this host"
            }
            Self::Lease(e) => e.help(),
            Self::Route(e) => return Some(e.help()),
            Self::Start(_) | Self::Open(_) | Self::Ended { .. } => return None,
        };
        Some(help.to_owned())
    }
}

/// Whether there is such a device already.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::ResourceBusy)
}

/// Whether the kernel refuses the device several queues.
fn has_no_queues(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// How long the peers may take to hear that a daemon stops.
const GRACE: Duration = Duration::from_millis(500);
/// Connections of peers that nobody has taken up, in all and of one peer.
const UNSERVED: (u32, u32) = (4096, 512);

/// Peers that there is room for at least: the configuration may name more of them later.
const PEERS: usize = 64;

/// A running daemon. Dropping it resets all connections, and the device goes with its routes.
pub struct Daemon {
    pub(crate) view: View,
    pub(crate) exclusion: Exclusion,
    pub(crate) rules: KillSwitch,
    pub(crate) routes: Routes,
    config: Mutex<Config>,
    /// Held while it changes to another one.
    pub(crate) changing: tokio::sync::Mutex<()>,
    tasks: Mutex<JoinSet<()>>,
}

impl Daemon {
    /// Makes the device and its routes and begins to carry connections, in the network namespace of the calling thread.
    /// Needs `CAP_NET_ADMIN` and a tokio runtime whose threads are in that namespace. A [kill switch](crate::kill_switch) stands from the
    /// beginning, and stays if an error ends this; what an earlier one left for other prefixes goes once the routes stand.
    pub async fn start(config: &Config, identity: Identity) -> Result<Self, DaemonError> {
        Self::start_observed(config, identity, None).await
    }

    /// The same; `observer` gets what is recorded between the peers.
    pub async fn start_observed(
        config: &Config,
        identity: Identity,
        observer: Option<Observer>,
    ) -> Result<Self, DaemonError> {
        let (config, rules) = (&leases::assign(config)?, KillSwitch::default());
        rules.arm(&config.protected()).await?;
        let gateway = Gateway::create(&GatewayConfig {
            name: config.tunnel.name.clone(),
            addresses: config.tunnel.addresses.iter().map(|net| (net.addr(), net.prefix_len())).collect(),
            mtu: config.tunnel.mtu,
            queues: config.tunnel.queues,
        });
        let mut gateway = gateway.map_err(DaemonError::Device)?;
        let device = Device::named(gateway.name().to_owned())?;
        let stats = gateway.stats();
        let (quotas, exclusion) = (Quotas::new(config), Exclusion::of(&config.lane));
        let choice = LiveChoice::from(Choice { spent: quotas.spent(), ..config.choice(&device) });
        let outer = outer(config, choice.clone(), identity, observer)?;
        let packets = Packets {
            device: gateway.bypass(exclusion.rule()),
            peers: outer.carry_packets(config.lane.packets()).map_err(OpenError::from)?,
            networks: config.tunnel.addresses.clone(),
            counters: NotCarried::default(),
            own: Own::default(),
        };
        let lane = Lane {
            inner: Node::start(limits(config), gateway).map_err(DaemonError::Start)?,
            peers: Peers::new(&config.peers, &config.outer(), config.lane.spare),
            connection: config.lane.inner(),
            mtu: config.tunnel.mtu.into(),
            places: Arc::new(Semaphore::new(config.lane.connections as usize)),
            connections: config.lane.connections as usize,
            counters: Counters::default(),
            panics: Panics::default(),
            packets,
            outer,
        };
        let (lane, places) = (Arc::new(lane), config.lane.connections as usize);
        let view = View { lane, device, choice, quotas, gateway: stats, places };
        let (config, routes) = (Mutex::new(config.clone()), Routes::through(&view.device));
        let changing = tokio::sync::Mutex::default();
        let daemon = Self { view, exclusion, rules, routes, config, changing, tasks: Mutex::default() };
        daemon.run().await?;
        Ok(daemon)
    }

    async fn run(&self) -> Result<(), DaemonError> {
        let (lane, config) = (&self.view.lane, self.config());
        let orphans = orphans::now(&lane.peers.now());
        let interceptor = lane.inner.intercept(lane.connection.clone(), lane.mtu)?;
        let accepted = ListenConfig { connection: config.outer(), ..ListenConfig::default() };
        let listener = lane.outer.listen(PORT, accepted)?;
        self.spawn(near::serve(lane.clone(), interceptor));
        self.spawn(far::serve(lane.clone(), listener));
        self.spawn(associations::watch(lane.clone()));
        self.spawn(associations::listen(lane.clone()));
        let addresses = lane.outer.listen(address::PORT, address::connections())?;
        self.spawn(address::serve(lane.clone(), addresses));
        if let Some(hit) = config.tunnel.addresses_from {
            self.spawn(address::follow(lane.clone(), self.view.device.clone(), hit));
        }
        self.spawn(packets::outward(lane.clone()));
        self.spawn(packets::inward(lane.clone()));
        self.spawn(backups::mind(lane.clone(), self.view.choice.clone()));
        self.spawn(self.view.quotas.clone().mind(lane.clone(), self.view.choice.clone()));
        config.peers.iter().for_each(|peer| self.serve(peer.hit));
        if let Some(at) = config.metrics.listen {
            let listener =
                TcpListener::bind(at).await.map_err(|source| DaemonError::Metrics { at, source })?;
            self.spawn(metrics::serve(listener, self.view.clone()));
        }
        self.routes.add(&config).await?;
        self.settle(&config).await;
        self.spawn(orphans::reset(lane.clone(), self.exclusion.rule(), orphans));
        self.spawn(self.routes.clone().keep());
        self.spawn(self.rules.clone().keep());
        Ok(())
    }

    /// Lifts the rules that `config` does not name.
    pub(crate) async fn settle(&self, config: &Config) {
        if let Err(error) = self.rules.settle(&config.protected()).await {
            warn!("{error}: prefixes that are no longer named stay blocked (`ip rule`)");
        }
    }

    /// Keeps the association and the spare connections with a peer, as long as the configuration names it.
    pub(crate) fn serve(&self, hit: Hit) {
        let Some(peer) = self.view.lane.peers.with_hit(hit) else { return };
        let (lane, choice, link) = (self.view.lane.clone(), self.view.choice.clone(), peer.link.clone());
        self.spawn(async move {
            let kept = async {
                tokio::join!(associations::keep(&lane, &choice, &link), link.pool.fill(&lane.outer))
            };
            tokio::select! {
                () = link.ended() => {}
                _ = kept => {}
            }
        });
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {} // those that have ended
        tasks.spawn(self.view.lane.panics.clone().noted(task));
    }

    /// The configuration that it follows.
    pub fn config(&self) -> Config {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_config(&self, config: &Config) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config.clone();
    }

    /// How it is now.
    pub fn status(&self) -> Status {
        self.view.status()
    }

    /// Waits until it cannot go on, as when another program deletes the device; why.
    pub async fn failed(&self) -> DaemonError {
        let Lane { inner, outer, panics, .. } = &*self.view.lane;
        let (part, why) = tokio::select! {
            why = inner.stopped() => ("the device", why),
            why = outer.stopped() => ("the UDP sockets", why),
            said = panics.first() => ("a task", Some(said)),
        };
        DaemonError::Ended { part, why: why.unwrap_or_default() }
    }

    /// Has what is for the peers' prefixes leave as if there were no tunnel, once the device is gone.
    pub async fn lift_kill_switch(&self) -> Result<(), RouteError> {
        match self.config().tunnel.kill_switch {
            true => self.rules.settle(&[]).await,
            false => Ok(()),
        }
    }

    /// Resets all connections, tells the peers, and takes the device away. A kill switch stays.
    pub async fn stop(self) {
        self.tasks.into_inner().unwrap_or_else(PoisonError::into_inner).shutdown().await;
        self.view.quotas.keep().await;
        self.view.lane.inner.abort(GRACE).await;
        self.view.lane.outer.abort(GRACE).await;
    }
}

/// HIP and ESP on all interfaces that the configuration admits, but not on the device itself.
fn outer(
    config: &Config,
    choice: LiveChoice,
    identity: Identity,
    observer: Option<Observer>,
) -> Result<Node, DaemonError> {
    let hip = HipConfig {
        accept: config.accept(),
        tell_refused: false,
        several: false, // one daemon has the identity: where it begins anew, the old one has ended
        retransmit: polypath_wire::Duration::from_millis(500),
        ..HipConfig::of_today()
    };
    let port = config.listen.port;
    let sockets = HostSockets::bind(port, choice).map_err(|source| DaemonError::Sockets { port, source })?;
    let security = SecurityConfig { hip, ecn: config.tunnel.ecn, ..SecurityConfig::default() };
    let record = observer.as_ref().map(Observer::filter).unwrap_or_default();
    let limits = EndpointConfig { max_connections: outer_connections(config), record, ..limits(config) };
    let node = Node::secure(limits, security, identity, sockets).map_err(DaemonError::Start)?;
    observer.into_iter().for_each(|observer| node.observe(observer));
    Ok(node)
}

/// Most connections with peers at a time, those that are opened ahead at either end included.
pub(crate) fn outer_connections(config: &Config) -> u32 {
    let spare = config.lane.spare.saturating_mul(config.peers.len().max(PEERS)).saturating_mul(2);
    limits(config).max_connections.saturating_add(u32::try_from(spare).unwrap_or(u32::MAX))
}

/// Limits of either endpoint: each may hold half of the memory. Connections that are ending count too.
fn limits(config: &Config) -> EndpointConfig {
    let (max_unserved, max_unserved_of_peer) = UNSERVED;
    let max_connections = config.lane.connections.saturating_mul(2);
    let defaults = EndpointConfig::default();
    // A SYN beyond this waits for its next copy.
    let max_half_open = max_connections.max(defaults.max_half_open);
    let memory = config.lane.memory().map(|all| all / 2);
    EndpointConfig { max_connections, max_half_open, max_unserved, max_unserved_of_peer, memory, ..defaults }
}
