//! One task owns the sockets, knows the time, and keeps an endpoint going.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use polypath_endpoint::{ConnectionHandle, Endpoint, Event, Input, PeerEvent, PeerFailure, pump};
use polypath_transport::CloseReason;
use polypath_wire::Instant;
use polypath_wire::hip::Hit;
use tokio::time::Sleep;

use crate::carrier::Carrier;
use crate::clock::Clock;

/// What the driver and the applications share.
pub(crate) struct Shared {
    pub clock: Clock,
    state: Mutex<State>,
}

/// The endpoint, and who waits for what.
pub(crate) struct State {
    pub endpoint: Endpoint,
    pub streams: BTreeMap<ConnectionHandle, StreamState>,
    pub listeners: BTreeMap<u16, ListenerState>,
    pub peers: BTreeMap<Hit, PeerState>,
    /// What happened to associations, for whoever asks.
    pub peer_events: VecDeque<(Hit, PeerEvent)>,
    pub stop: Stop,
    /// Who waits for the driver's end, or for the last connection to close.
    pub waiting: Vec<Waker>,
    driver: Option<Waker>,
}

/// Whether the driver goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// It runs.
    No,
    /// It resets all connections and ends.
    Asked,
    /// It has ended; with the text of an error if not on purpose.
    Done(Option<String>),
}

/// What the application was told of one connection, and who waits for more.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub connected: bool,
    pub write_finished: bool,
    pub peer_finished: bool,
    pub finished: bool,
    pub lost: Option<CloseReason>,
    pub closed: bool,
    pub waiting: Vec<Waker>,
}

/// What became of an association.
#[derive(Debug, Default)]
pub(crate) struct PeerState {
    pub up: bool,
    pub failed: Option<PeerFailure>,
}

/// Connections nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct ListenerState {
    pub accepted: VecDeque<ConnectionHandle>,
    pub waiting: Vec<Waker>,
}

/// Most events of associations that wait for somebody who asks; the oldest are forgotten.
const MAX_PEER_EVENTS: usize = 1024;
/// Most accepted connections that wait to be taken; more are reset.
const MAX_ACCEPTED: usize = 1024;

impl Shared {
    pub fn new(endpoint: Endpoint) -> Arc<Self> {
        let state = State {
            endpoint,
            streams: BTreeMap::new(),
            listeners: BTreeMap::new(),
            peers: BTreeMap::new(),
            peer_events: VecDeque::new(),
            stop: Stop::No,
            waiting: Vec::new(),
            driver: None,
        };
        Arc::new(Self { clock: Clock::start(), state: Mutex::new(state) })
    }

    /// The state. A panic of another holder leaves it as usable as a lost packet does.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the endpoint and has the driver act on it.
    pub fn act<T>(&self, action: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut state = self.lock();
        let result = action(&mut state, self.clock.now());
        state.wake_driver();
        result
    }
}

impl State {
    pub fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Has the driver end, if it has not.
    pub fn ask_to_stop(&mut self) {
        if self.stop == Stop::No {
            self.stop = Stop::Asked;
        }
    }

    fn take_peer_events(&mut self) {
        while let Some((hit, event)) = self.endpoint.poll_peer_event() {
            let peer = self.peers.entry(hit).or_default();
            match event {
                PeerEvent::Up => *peer = PeerState { up: true, failed: None },
                PeerEvent::Failed(failure) => peer.failed = Some(failure),
                PeerEvent::Down | PeerEvent::Stranger { .. } => _ = self.peers.remove(&hit),
                _ => {}
            }
            if self.peer_events.len() == MAX_PEER_EVENTS {
                self.peer_events.pop_front();
            }
            self.peer_events.push_back((hit, event));
        }
    }

    fn take_events(&mut self, now: Instant) {
        self.take_peer_events();
        while let Some((handle, event)) = self.endpoint.poll_event() {
            match event {
                Event::Accepted { port } => self.accepted(now, handle, port),
                Event::Connection(event) => self.stream_event(handle, event),
                Event::Closed => {
                    if let Some(stream) = self.streams.get_mut(&handle) {
                        stream.closed = true;
                    }
                }
            }
            if let Some(stream) = self.streams.get_mut(&handle) {
                wake(&mut stream.waiting);
            }
        }
        while self.endpoint.poll_record().is_some() {}
        while self.endpoint.poll_hip_record().is_some() {}
        wake(&mut self.waiting);
    }

    fn accepted(&mut self, now: Instant, handle: ConnectionHandle, port: u16) {
        match self.listeners.get_mut(&port) {
            Some(listener) if listener.accepted.len() < MAX_ACCEPTED => {
                self.streams.insert(handle, StreamState { connected: true, ..StreamState::default() });
                listener.accepted.push_back(handle);
                wake(&mut listener.waiting);
            }
            _ => self.discard(now, handle),
        }
    }

    fn stream_event(&mut self, handle: ConnectionHandle, event: polypath_transport::Event) {
        use polypath_transport::Event as E;
        let Some(stream) = self.streams.get_mut(&handle) else { return };
        match event {
            E::Connected => stream.connected = true,
            E::PeerFinished => stream.peer_finished = true,
            E::Finished => stream.finished = true,
            E::Lost(reason) => stream.lost = Some(reason),
            E::Readable | E::Writable => {}
        }
    }

    /// Ends our direction of a connection.
    pub fn finish(&mut self, handle: ConnectionHandle) {
        if let Some(stream) = self.streams.get_mut(&handle) {
            stream.write_finished = true;
        }
        if let Some(connection) = self.endpoint.connection_mut(handle) {
            connection.close();
        }
    }

    /// Resets a connection that nobody wants and forgets it.
    pub fn discard(&mut self, now: Instant, handle: ConnectionHandle) {
        self.streams.remove(&handle);
        if let Some(connection) = self.endpoint.connection_mut(handle) {
            connection.abort(now);
        }
        self.endpoint.release(handle);
    }

    fn abort_all(&mut self, now: Instant) {
        let handles: Vec<_> = self.endpoint.connections().map(|(handle, _)| handle).collect();
        for handle in handles {
            if let Some(connection) = self.endpoint.connection_mut(handle) {
                connection.abort(now);
            }
        }
    }

    fn end(&mut self, error: Option<String>) {
        self.stop = Stop::Done(error);
        wake(&mut self.waiting);
        self.streams.values_mut().for_each(|s| wake(&mut s.waiting));
        self.listeners.values_mut().for_each(|l| wake(&mut l.waiting));
    }
}

fn wake(waiting: &mut Vec<Waker>) {
    waiting.drain(..).for_each(Waker::wake);
}

/// Remembers to wake the task of `cx`, once.
pub(crate) fn wait(waiting: &mut Vec<Waker>, cx: &Context<'_>) {
    if !waiting.iter().any(|w| w.will_wake(cx.waker())) {
        waiting.push(cx.waker().clone());
    }
}

/// The driver: a future that ends when it is stopped or when its carrier fails.
pub(crate) struct Driver<C> {
    shared: Arc<Shared>,
    carrier: C,
    /// What one round received; kept for its memory.
    inbox: Vec<Input>,
    sleep: Pin<Box<Sleep>>,
}

impl<C: Carrier> Driver<C> {
    pub fn new(shared: Arc<Shared>, carrier: C) -> Self {
        let now = shared.clock.os_instant(shared.clock.now());
        Self { shared, carrier, inbox: Vec::new(), sleep: Box::pin(tokio::time::sleep_until(now.into())) }
    }

    /// One round: receive, let timers expire, send, tell. `true` if there is more to do at once.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut state = self.shared.lock();
        state.driver = Some(cx.waker().clone());
        let now = self.shared.clock.now();
        let mut more = self.carrier.poll_receive(cx, &mut self.inbox)?;
        // Each arrival is answered on its own, as in the simulator: an acknowledgment says what was
        // known when its segment arrived, not what a later one of the same batch added.
        for input in self.inbox.drain(..) {
            state.endpoint.handle(now, input);
            pump(&mut state.endpoint, now, &mut self.carrier);
        }
        if state.stop == Stop::Asked {
            state.abort_all(now);
        }
        let due = pump(&mut state.endpoint, now, &mut self.carrier);
        let was_full = self.carrier.is_full();
        self.carrier.poll_flush(cx)?;
        more |= was_full && !self.carrier.is_full();
        state.take_events(now);
        drop(state);
        Ok(more | self.sleep_until(cx, due))
    }

    /// Has the task woken at `due`; `true` if that has passed.
    fn sleep_until(&mut self, cx: &mut Context<'_>, due: Option<Instant>) -> bool {
        let Some(due) = due else { return false };
        let at = tokio::time::Instant::from_std(self.shared.clock.os_instant(due));
        if self.sleep.deadline() != at {
            self.sleep.as_mut().reset(at);
        }
        self.sleep.as_mut().poll(cx).is_ready()
    }
}

impl<C: Carrier> Future for Driver<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let result = self.round(cx);
        let mut state = self.shared.lock();
        let error = match result {
            Ok(_) if state.stop == Stop::Asked => None,
            Ok(more) => {
                if more {
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            }
            Err(error) => Some(error.to_string()),
        };
        state.end(error);
        Poll::Ready(())
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !matches!(state.stop, Stop::Done(_)) {
            state.end(Some("the runtime was shut down".into()));
        }
    }
}
