//! What the driver and the applications share: the endpoint under a lock, its events, and who waits for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use polypath_endpoint::{ConnectionHandle, Endpoint, Event, PeerEvent, PeerFailure};
use polypath_wire::Instant;
use polypath_wire::hip::Hit;

use crate::clock::Clock;
use crate::events::Observer;
use crate::wishes::{StreamState, wake};

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
    /// Who waits for the driver's end, or for the last association or connection to close.
    pub waiting: Vec<Waker>,
    /// Who waits for the driver's end and for nothing else.
    pub ended: Vec<Waker>,
    /// Who waits for events of associations.
    pub curious: Vec<Waker>,
    /// Who waits for connections to addresses of others.
    pub asked: Vec<Waker>,
    /// Who waits for packets of peers.
    pub carried: Vec<Waker>,
    pub driver: Option<Waker>,
    /// Who gets what the endpoint records.
    pub observer: Option<Observer>,
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

/// What became of an association.
#[derive(Debug, Default)]
pub(crate) struct PeerState {
    pub up: bool,
    pub failed: Option<PeerFailure>,
    /// Who waits for it.
    pub waiting: Vec<Waker>,
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
            ended: Vec::new(),
            curious: Vec::new(),
            asked: Vec::new(),
            carried: Vec::new(),
            driver: None,
            observer: None,
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

/// What becomes of a peer by `event`, which wakes those who wait for it and nobody else. Nothing is kept of one without an association,
/// also when paths end after it.
fn note(peers: &mut BTreeMap<Hit, PeerState>, hit: Hit, event: &PeerEvent) {
    let (up, failed) = match event {
        PeerEvent::Up => (true, None),
        PeerEvent::Failed(failure) => (peers.get(&hit).is_some_and(|peer| peer.up), Some(*failure)),
        PeerEvent::Down | PeerEvent::Stranger { .. } => return forget(peers, hit),
        PeerEvent::PathUp(_)
        | PeerEvent::PathDown(_)
        | PeerEvent::PathSilent(_)
        | PeerEvent::PathAnswers(_) => return,
    };
    let peer = peers.entry(hit).or_default();
    (peer.up, peer.failed) = (up, failed);
    wake(&mut peer.waiting);
}

/// There is no association with the peer, and none is asked for.
pub(crate) fn forget(peers: &mut BTreeMap<Hit, PeerState>, hit: Hit) {
    peers.remove(&hit).into_iter().for_each(|mut gone| wake(&mut gone.waiting));
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
        // Its file may be waited for from now on.
        self.observer = None;
    }

    fn take_peer_events(&mut self) {
        while let Some((hit, event)) = self.endpoint.poll_peer_event() {
            note(&mut self.peers, hit, &event);
            if self.peer_events.len() == MAX_PEER_EVENTS {
                self.peer_events.pop_front();
            }
            self.peer_events.push_back((hit, event));
            wake(&mut self.curious);
        }
    }

    /// Takes the events of the endpoint, and wakes those who wait for them.
    pub fn take_events(&mut self, now: Instant) {
        self.take_peer_events();
        while let Some((handle, event)) = self.endpoint.poll_event() {
            match event {
                Event::Accepted { port } => self.accepted(now, handle, port),
                Event::Connection(event) => {
                    self.streams.get_mut(&handle).into_iter().for_each(|stream| stream.note(event));
                }
                Event::Closed => {
                    if let Some(stream) = self.streams.get_mut(&handle) {
                        stream.closed = true;
                        stream.wake_all();
                    }
                }
            }
        }
        while let Some((handle, record)) = self.endpoint.poll_record() {
            if let Some(observer) = &self.observer {
                observer.connection(handle, record);
            }
        }
        while let Some(record) = self.endpoint.poll_hip_record() {
            if let Some(observer) = &self.observer {
                observer.association(record);
            }
        }
        if self.endpoint.has_incoming() {
            wake(&mut self.asked);
        }
        if self.endpoint.has_carried() {
            wake(&mut self.carried);
        }
        wake(&mut self.waiting);
    }

    fn accepted(&mut self, now: Instant, handle: ConnectionHandle, port: u16) {
        if let Some(stream) = self.streams.get_mut(&handle) {
            return stream.note(polypath_transport::Event::Connected); // it was taken up before
        }
        match self.listeners.get_mut(&port) {
            Some(listener) if listener.accepted.len() < MAX_ACCEPTED => {
                self.streams.insert(handle, StreamState { connected: true, ..StreamState::default() });
                listener.accepted.push_back(handle);
                wake(&mut listener.waiting);
            }
            _ => self.discard(now, handle),
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

    /// Resets all connections.
    pub fn abort_all(&mut self, now: Instant) {
        let handles: Vec<_> = self.endpoint.connections().map(|(handle, _)| handle).collect();
        for handle in handles {
            if let Some(connection) = self.endpoint.connection_mut(handle) {
                connection.abort(now);
            }
        }
    }

    /// The driver has ended, with the text of an error if not on purpose.
    pub fn end(&mut self, error: Option<String>) {
        self.stop = Stop::Done(error);
        self.observer = None;
        wake(&mut self.waiting);
        wake(&mut self.ended);
        wake(&mut self.curious);
        wake(&mut self.asked);
        wake(&mut self.carried);
        self.peers.values_mut().for_each(|peer| wake(&mut peer.waiting));
        self.streams.values_mut().for_each(StreamState::wake_all);
        self.listeners.values_mut().for_each(|l| wake(&mut l.waiting));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::task::Wake;

    use polypath_endpoint::{EndpointConfig, Locators};
    use polypath_wire::Seed;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_round_of_the_driver_wakes_none_of_a_thousand_who_wait_for_other_peers() {
        let shared = Shared::new(Endpoint::new(EndpointConfig::default(), Seed(1)));
        let (woken, mut state) = (Arc::new(Woken::default()), shared.lock());
        let hit = |n: u16| Hit([n.to_be_bytes(); 8].concat().try_into().unwrap());
        for n in 0..1000 {
            state.peers.entry(hit(n)).or_default().waiting.push(woken.clone().into());
        }
        state.take_events(Instant::ZERO);
        assert_eq!(woken.0.load(Relaxed), 0);
        let failed = PeerEvent::Failed(PeerFailure::Timeout);
        for (n, event) in [(0, PeerEvent::Up), (1, failed), (2, PeerEvent::Down)] {
            note(&mut state.peers, hit(n), &event);
            assert_eq!(woken.0.load(Relaxed), usize::from(n) + 1, "{event:?}");
        }
        state.end(None);
        assert_eq!(woken.0.load(Relaxed), 1000);
    }

    #[test]
    fn nothing_is_kept_of_a_peer_whose_association_is_over() {
        let (mut peers, hit) = (BTreeMap::new(), Hit([1; 16]));
        let end = |last| ([127, 0, 0, last], 7).into();
        let path = Locators { local: end(1), remote: end(2) };
        for event in [PeerEvent::Up, PeerEvent::PathUp(path), PeerEvent::Down, PeerEvent::PathDown(path)] {
            note(&mut peers, hit, &event);
        }
        assert!(peers.is_empty(), "{peers:?}");
    }
}
