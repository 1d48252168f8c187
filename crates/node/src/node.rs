//! A running endpoint.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polypath_endpoint::{
    ConnectionHandle, Endpoint, EndpointConfig, EndpointStats, Input, ListenConfig, Locators, OpenError,
    PathLoad, PathName, PathReport, PeerEvent, PeerFailure, Reach, SecurityConfig, SecurityStats,
};
use polypath_hip::suite::has_aes;
use polypath_hip::{Accept, ConnectError, Identity};
use polypath_transport::{ConnectionConfig, KnownPath, PathConfig, Ports, State};
use polypath_wire::hip::Hit;
use polypath_wire::{Instant, Seed};
use thiserror::Error;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

use crate::carrier::Carrier;
use crate::driver::Driver;
use crate::events::Observer;
use crate::incoming::Interceptor;
use crate::shared::{ListenerState, PeerState, Shared, Stop, forget};
use crate::sockets::{UdpPath, UdpSockets};
use crate::stream::{Stream, StreamError};
use crate::wishes::{StreamState, wait};

/// How long the answers to CLOSE are waited for.
const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// Why there is no association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AssociateError {
    /// It could not be begun.
    #[error(transparent)]
    Begin(#[from] ConnectError),
    /// It came to nothing.
    #[error(transparent)]
    Failed(#[from] PeerFailure),
    /// It was ended before it was there.
    #[error("the association was ended")]
    Ended,
    /// The node has stopped.
    #[error("node stopped")]
    Stopped,
}

/// An endpoint with its driver task. Dropping it resets all connections; [`shutdown`](Self::shutdown)
/// lets them finish.
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    locals: Vec<SocketAddr>,
    driver: Option<JoinHandle<()>>,
}

impl Node {
    /// An endpoint on one UDP socket for each of `paths`. Needs a tokio runtime.
    pub fn udp(config: EndpointConfig, paths: &[UdpPath]) -> io::Result<Self> {
        Self::on_sockets(config, UdpSockets::bind(paths)?)
    }

    /// An endpoint on sockets that are open already. Needs a tokio runtime.
    pub fn on_sockets(config: EndpointConfig, sockets: UdpSockets) -> io::Result<Self> {
        let locals = sockets.locals().collect();
        let mut node = Self::start(config, sockets)?;
        node.locals = locals;
        Ok(node)
    }

    /// An endpoint on any carrier. Needs a tokio runtime.
    pub fn start(config: EndpointConfig, carrier: impl Carrier) -> io::Result<Self> {
        let shared = Shared::new(Endpoint::new(config, random_seed()?));
        let driver = Driver::start(&shared, carrier)?;
        Ok(Self { shared, locals: Vec::new(), driver: Some(driver) })
    }

    /// Tells `observer` what the endpoint records ([`EndpointConfig::record`]) from now on.
    pub fn observe(&self, observer: Observer) {
        self.shared.act(|state, now| {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            state.observer = Some(observer.since(since_1970.as_secs_f64() - now.0 as f64 / 1e9));
        });
    }

    /// An endpoint whose connections are with HITs, over HIP and ESP, on any carrier. AES is slow where the processor has no
    /// instructions for it. Needs a tokio runtime.
    pub fn secure(
        config: EndpointConfig,
        mut security: SecurityConfig,
        identity: Identity,
        carrier: impl Carrier,
    ) -> io::Result<Self> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut()).map_err(|error| io::Error::other(error.to_string()))?;
        security.hip.slow_aes |= !has_aes();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut endpoint = Endpoint::secure(config, security, identity, *secret, since.as_secs());
        endpoint.prepare(Instant::ZERO);
        let shared = Shared::new(endpoint);
        for local in carrier.locals() {
            shared.act(|state, now| state.endpoint.handle(now, local));
        }
        let driver = Driver::start(&shared, carrier)?;
        Ok(Self { shared, locals: Vec::new(), driver: Some(driver) })
    }

    /// Begins an association with `peer` and waits until it is there. Its paths come by and by.
    pub async fn associate(&self, peer: Hit, reach: Reach) -> Result<(), AssociateError> {
        self.shared.act(|state, now| {
            state.endpoint.associate(now, peer, reach)?;
            state.peers.entry(peer).or_default().failed = None;
            Ok::<_, ConnectError>(())
        })?;
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let stopped = matches!(state.stop, Stop::Done(_));
            match state.peers.get_mut(&peer) {
                Some(PeerState { up: true, .. }) => return Poll::Ready(Ok(())),
                Some(PeerState { failed: Some(why), .. }) => return Poll::Ready(Err((*why).into())),
                _ if stopped => return Poll::Ready(Err(AssociateError::Stopped)),
                None => return Poll::Ready(Err(AssociateError::Ended)),
                Some(PeerState { waiting, .. }) => wait(waiting, cx),
            }
            Poll::Pending
        })
        .await
    }

    /// Whether there is an association with `peer`.
    pub fn is_associated(&self, peer: Hit) -> bool {
        self.shared.lock().peers.get(&peer).is_some_and(|peer| peer.up)
    }

    /// Of each of `peers` whether there is an association, and nothing came on any of its paths for `least`, despite heartbeats.
    pub fn silent(&self, peers: impl Iterator<Item = Hit>, least: polypath_wire::Duration) -> Vec<bool> {
        let (state, now) = (self.shared.lock(), self.shared.clock.now());
        peers.map(|peer| state.endpoint.is_silent(now, peer, least)).collect()
    }

    /// Has heartbeats to a silent peer leave as soon as the usual pause allows.
    pub fn ask(&self, peer: Hit) {
        self.shared.act(|state, now| state.endpoint.ask(now, peer));
    }

    /// Sets the maximum number of connections. Existing connections stay open, even above it.
    pub fn limit_connections(&self, max: u32) {
        self.shared.act(|state, _| state.endpoint.limit_connections(max));
    }

    /// From now on answers those peers and no others. Associations that there are stay.
    pub fn accept_peers(&self, accept: Accept) {
        self.shared.act(|state, _| state.endpoint.accept_peers(accept));
    }

    /// Has the driver look at once at what it looks at now and then, such as the [choice](crate::LiveChoice) of its
    /// interfaces.
    pub fn look(&self) {
        self.shared.act(|_, _| ());
    }

    /// Ends the association with `peer`, whose connections are reset.
    pub fn dissociate(&self, peer: Hit) {
        self.shared.act(|state, now| {
            forget(&mut state.peers, peer);
            state.endpoint.dissociate(now, peer);
        });
    }

    /// Opens a connection to port `port` of `peer`, with which there is an association, over all its paths.
    pub async fn connect_peer(
        &self,
        config: ConnectionConfig,
        peer: Hit,
        port: u16,
    ) -> Result<Stream, StreamError> {
        self.open(|endpoint, now| endpoint.connect_peer(now, config, peer, port)).await
    }

    /// The same without waiting for the peer's answer: what is written meanwhile leaves at once if `config` has
    /// [`early_data`](ConnectionConfig::early_data) and the peer takes it. That it refuses shows when the stream is used.
    pub fn open_peer(&self, config: ConnectionConfig, peer: Hit, port: u16) -> Result<Stream, StreamError> {
        self.begin(|endpoint, now| endpoint.connect_peer(now, config, peer, port))
    }

    /// What was measured of paths, each with its age: a later process can [`recall`](Self::recall) it.
    pub fn known_paths(&self) -> Vec<(PathName, KnownPath, polypath_wire::Duration)> {
        let mut state = self.shared.lock();
        state.endpoint.known_paths(self.shared.clock.now())
    }

    /// Gives the endpoint what an earlier process measured of the path `name`, `age` ago.
    pub fn recall(&self, name: PathName, path: KnownPath, age: polypath_wire::Duration) {
        self.shared.act(|state, now| state.endpoint.handle(now, Input::Known { name, path, age }));
    }

    /// What happened to associations since the last call, oldest first; waits until something does.
    /// `None` if the node has stopped.
    pub async fn peer_event(&self) -> Option<(Hit, PeerEvent)> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(event) = state.peer_events.pop_front() {
                return Poll::Ready(Some(event));
            }
            if matches!(state.stop, Stop::Done(_)) {
                return Poll::Ready(None);
            }
            wait(&mut state.curious, cx);
            Poll::Pending
        })
        .await
    }

    /// Our HIT, if the node is secure.
    pub fn hit(&self) -> Option<Hit> {
        self.shared.lock().endpoint.hit()
    }

    /// The paths of all associations.
    pub fn secure_paths(&self) -> Vec<PathReport> {
        self.shared.lock().endpoint.secure_paths().collect()
    }

    /// What open connections and flows of packets have on the paths, by the locators that they know these by.
    pub fn path_loads(&self) -> BTreeMap<Locators, PathLoad> {
        self.shared.lock().endpoint.path_loads()
    }

    /// Counters of what came in HIP and ESP.
    pub fn security_stats(&self) -> SecurityStats {
        self.shared.lock().endpoint.security_stats().unwrap_or_default()
    }

    /// The addresses of the sockets, in the order they were asked for.
    pub fn locals(&self) -> &[SocketAddr] {
        &self.locals
    }

    /// Opens a connection to port `port` of the peer over `paths`; the first one carries the handshake.
    /// Cancelled, it resets what it began.
    pub async fn connect(
        &self,
        config: ConnectionConfig,
        port: u16,
        paths: &[(Locators, PathConfig)],
    ) -> Result<Stream, StreamError> {
        self.open(|endpoint, now| endpoint.connect(now, config, port, paths)).await
    }

    /// Opens a connection from `local` to `remote`, whoever has these addresses; `mtu`: the largest IP packet, bytes.
    pub async fn connect_between(
        &self,
        config: ConnectionConfig,
        local: SocketAddr,
        remote: SocketAddr,
        mtu: u32,
    ) -> Result<Stream, StreamError> {
        let ports = Ports { local: local.port(), remote: remote.port() };
        let [local, remote] = [local, remote].map(|end| SocketAddr::new(end.ip(), 0));
        let locators = Locators { local, remote };
        self.open(|endpoint, now| endpoint.connect_between(now, config, locators, ports, mtu)).await
    }

    /// Takes up the connections that others open to any address, with segments that fit into IP packets of `mtu` bytes.
    pub fn intercept(&self, config: ConnectionConfig, mtu: u32) -> Result<Interceptor, OpenError> {
        self.shared.act(|state, _| state.endpoint.intercept(config, mtu))?;
        Ok(Interceptor::new(self.shared.clone()))
    }

    /// Opens a connection and waits until it is there.
    async fn open(
        &self,
        connect: impl FnOnce(&mut Endpoint, Instant) -> Result<ConnectionHandle, OpenError>,
    ) -> Result<Stream, StreamError> {
        let stream = self.begin(connect)?;
        stream.connected().await?;
        Ok(stream)
    }

    /// Begins to open a connection.
    fn begin(
        &self,
        connect: impl FnOnce(&mut Endpoint, Instant) -> Result<ConnectionHandle, OpenError>,
    ) -> Result<Stream, StreamError> {
        let handle = self.shared.act(|state, now| {
            if let Stop::Done(error) = &state.stop {
                return Err(StreamError::Stopped(error.clone()));
            }
            let handle = connect(&mut state.endpoint, now)?;
            state.streams.insert(handle, StreamState::default());
            Ok(handle)
        })?;
        Ok(Stream::new(self.shared.clone(), handle))
    }

    /// Waits until the driver has ended: the text of the error, if not on purpose.
    pub async fn stopped(&self) -> Option<String> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Stop::Done(error) = &state.stop {
                return Poll::Ready(error.clone());
            }
            wait(&mut state.ended, cx);
            Poll::Pending
        })
        .await
    }

    /// Accepts connections to our port `port`.
    pub fn listen(&self, port: u16, config: ListenConfig) -> Result<Listener, OpenError> {
        self.shared.act(|state, _| {
            state.endpoint.listen(port, config)?;
            state.listeners.insert(port, ListenerState::default());
            Ok(Listener { shared: self.shared.clone(), port })
        })
    }

    /// Bytes that all connections hold, if [that is limited](EndpointConfig::memory).
    pub fn memory(&self) -> u64 {
        self.shared.lock().endpoint.memory()
    }

    /// Counters of the endpoint.
    pub fn stats(&self) -> EndpointStats {
        self.shared.lock().endpoint.stats().clone()
    }

    /// Finishes all connections, waits at most `grace` until the peers have everything and have
    /// finished too, resets what is left, and stops. Whether nothing had to be reset.
    pub async fn shutdown(mut self, grace: Duration) -> bool {
        self.shared.act(|state, _| {
            let handles: Vec<_> = state.endpoint.connections().map(|(handle, _)| handle).collect();
            handles.into_iter().for_each(|handle| state.finish(handle));
        });
        let clean = tokio::time::timeout(grace, self.quiet()).await.is_ok();
        self.close_associations(grace).await;
        self.shared.act(|state, _| state.ask_to_stop());
        if let Some(driver) = self.driver.take() {
            // An error means the runtime is shutting down: then the task has ended as well.
            let _ = driver.await;
        }
        clean
    }

    /// Resets all connections, ends the associations, waiting at most `grace` for the peers to know, and has the driver
    /// stop. For a node that others still hold.
    pub async fn abort(&self, grace: Duration) {
        self.shared.act(|state, now| state.abort_all(now));
        self.close_associations(grace).await;
        self.shared.act(|state, _| state.ask_to_stop());
    }

    /// Ends all associations, begins none for peers that call, and waits a little for the peers to say that they know.
    async fn close_associations(&self, grace: Duration) {
        let any = self.shared.act(|state, now| {
            state.endpoint.accept_peers(Accept::Nobody);
            let peers: Vec<Hit> = state.endpoint.associations().collect();
            peers.iter().for_each(|peer| state.endpoint.dissociate(now, *peer));
            !peers.is_empty()
        });
        if any {
            let over = poll_fn(|cx| {
                let mut state = self.shared.lock();
                let open = |hit| state.endpoint.association(hit) == Some(polypath_hip::State::Closing);
                if matches!(state.stop, Stop::Done(_)) || !state.endpoint.associations().any(open) {
                    return Poll::Ready(());
                }
                wait(&mut state.waiting, cx);
                Poll::Pending
            });
            let _ = tokio::time::timeout(grace.min(CLOSE_GRACE), over).await;
        }
    }

    /// Waits until no connection has anything left to deliver, in either direction.
    async fn quiet(&self) {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let open = state
                .endpoint
                .connections()
                .any(|(_, connection)| !matches!(connection.state(), State::TimeWait | State::Closed));
            if !open || matches!(state.stop, Stop::Done(_)) {
                return Poll::Ready(());
            }
            wait(&mut state.waiting, cx);
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.act(|state, _| state.ask_to_stop());
    }
}

/// Accepts the connections to one port. Dropping it closes the port and resets those not yet taken.
pub struct Listener {
    shared: Arc<Shared>,
    port: u16,
}

impl Listener {
    /// The next connection. Cancelled, it has taken none.
    pub async fn accept(&self) -> Result<Stream, StreamError> {
        let handle = poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(handle) = state.listeners.get_mut(&self.port).and_then(|l| l.accepted.pop_front()) {
                return Poll::Ready(Ok(handle));
            }
            if let Stop::Done(error) = &state.stop {
                return Poll::Ready(Err(StreamError::Stopped(error.clone())));
            }
            if let Some(listener) = state.listeners.get_mut(&self.port) {
                wait(&mut listener.waiting, cx);
            }
            Poll::Pending
        })
        .await?;
        Ok(Stream::new(self.shared.clone(), handle))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.act(|state, now| {
            state.endpoint.unlisten(self.port);
            let listener = state.listeners.remove(&self.port).unwrap_or_default();
            let waiting: Vec<ConnectionHandle> = listener.accepted.into_iter().collect();
            waiting.into_iter().for_each(|handle| state.discard(now, handle));
        });
    }
}

fn random_seed() -> io::Result<Seed> {
    getrandom::u64().map(Seed).map_err(|error| io::Error::other(error.to_string()))
}
