//! A running endpoint.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use polypath_endpoint::{
    ConnectionHandle, Endpoint, EndpointConfig, EndpointStats, ListenConfig, Locators, OpenError,
};
use polypath_transport::{ConnectionConfig, PathConfig, State};
use polypath_wire::Seed;
use tokio::task::JoinHandle;

use crate::carrier::Carrier;
use crate::driver::{Driver, ListenerState, Shared, Stop, StreamState, wait};
use crate::sockets::{UdpPath, UdpSockets};
use crate::stream::{Stream, StreamError};

/// An endpoint with its driver task. Dropping it resets all connections; [`shutdown`](Self::shutdown)
/// lets them finish.
pub struct Node {
    shared: Arc<Shared>,
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
        let driver = tokio::spawn(Driver::new(shared.clone(), carrier));
        Ok(Self { shared, locals: Vec::new(), driver: Some(driver) })
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
        let handle = self.shared.act(|state, now| {
            if let Stop::Done(error) = &state.stop {
                return Err(StreamError::Stopped(error.clone()));
            }
            let handle = state.endpoint.connect(now, config, port, paths)?;
            state.streams.insert(handle, StreamState::default());
            Ok(handle)
        })?;
        let stream = Stream::new(self.shared.clone(), handle);
        stream.connected().await?;
        Ok(stream)
    }

    /// Accepts connections to our port `port`.
    pub fn listen(&self, port: u16, config: ListenConfig) -> Result<Listener, OpenError> {
        self.shared.act(|state, _| {
            state.endpoint.listen(port, config)?;
            state.listeners.insert(port, ListenerState::default());
            Ok(Listener { shared: self.shared.clone(), port })
        })
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
        self.shared.act(|state, _| state.ask_to_stop());
        if let Some(driver) = self.driver.take() {
            // An error means the runtime is shutting down: then the task has ended as well.
            let _ = driver.await;
        }
        clean
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
