//! Two endpoints back to back in virtual time.
#![allow(dead_code, clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use polypath_endpoint::frame::encode_datagram;
use polypath_endpoint::{
    ConnectionHandle, Endpoint, EndpointConfig, Event, Input, ListenConfig, Locators, Outlet, pump,
};
use polypath_transport::{ConnectionConfig, PathConfig, Pattern, Payload, Segment};
use polypath_wire::{Duration, Instant, Seed};

pub const PORT: u16 = 80;
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// Which segments the wire between the two loses: told the side that sends, the locators as that
/// side sees them, and the segment.
pub type Loses = Box<dyn FnMut(usize, &Locators, &Segment) -> bool>;

/// When an endpoint was given what; nothing for a turn without arrival.
pub type Log = Vec<(Instant, Option<Input>)>;

/// Two endpoints and the wire between them: a fixed delay, everything else by `loses`.
pub struct Pair {
    pub now: Instant,
    pub endpoints: [Endpoint; 2],
    pub events: [Vec<(ConnectionHandle, Event)>; 2],
    pub loses: Loses,
    /// Everything that was sent: when, by which side, in bytes.
    pub sent: Vec<(Instant, usize, Locators, Bytes)>,
    pub delay: Duration,
    /// What the server was given, if that is to be logged.
    pub log: Option<Log>,
    wire: BTreeMap<(Instant, u64), (usize, Locators, Segment)>,
    number: u64,
    timeouts: [Option<Instant>; 2],
}

/// Collects what one side sends in one turn.
#[derive(Clone, Default)]
struct Out(Rc<RefCell<VecDeque<(Locators, Segment)>>>);

impl Outlet for Out {
    fn send(&mut self, _now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        self.0.borrow_mut().push_back((*locators, *std::mem::take(segment)));
    }
}

impl Pair {
    pub fn new(configs: [EndpointConfig; 2]) -> Self {
        let [client, server] = configs;
        Self {
            now: Instant::ZERO,
            endpoints: [Endpoint::new(client, Seed(1)), Endpoint::new(server, Seed(2))],
            events: [Vec::new(), Vec::new()],
            loses: Box::new(|_, _, _| false),
            sent: Vec::new(),
            delay: Duration::from_millis(10),
            log: None,
            wire: BTreeMap::new(),
            number: 0,
            timeouts: [None; 2],
        }
    }

    /// A pair whose server listens.
    pub fn listening(accept_paths: bool) -> Self {
        let mut pair = Self::new([EndpointConfig::default(), EndpointConfig::default()]);
        pair.endpoints[SERVER].listen(PORT, ListenConfig { accept_paths, ..Default::default() }).unwrap();
        pair
    }

    /// Opens a connection over `paths` paths.
    pub fn connect(&mut self, paths: u8) -> ConnectionHandle {
        let paths: Vec<_> = (0..paths).map(|i| (locators(i), PathConfig::default())).collect();
        self.endpoints[CLIENT].connect(self.now, ConnectionConfig::default(), PORT, &paths).unwrap()
    }

    /// Lets both endpoints work, and time pass, until `until`; or until nothing is left to happen.
    pub fn run(&mut self, until: Duration) {
        let until = Instant::ZERO + until;
        loop {
            (0..2).for_each(|side| self.turn(side));
            let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
            let next = self.timeouts.into_iter().chain([arrival]).flatten().min();
            let Some(next) = next.filter(|at| *at <= until) else { break };
            self.now = next.max(self.now);
            while let Some(entry) = self.wire.first_entry().filter(|e| e.key().0 <= self.now) {
                let (side, locators, segment) = entry.remove();
                let input = Input::Segment { locators, segment };
                if let Some(log) = self.log.as_mut().filter(|_| side == SERVER) {
                    log.push((self.now, Some(input.clone())));
                }
                self.endpoints[side].handle(self.now, input);
            }
        }
        self.now = until.max(self.now);
    }

    fn turn(&mut self, side: usize) {
        if let Some(log) = self.log.as_mut().filter(|_| side == SERVER) {
            log.push((self.now, None));
        }
        let out = Out::default();
        let endpoint = &mut self.endpoints[side];
        self.timeouts[side] = pump(endpoint, self.now, &mut out.clone());
        while let Some(event) = endpoint.poll_event() {
            self.events[side].push(event);
        }
        for (locators, segment) in out.0.take() {
            let mut bytes = [0; 2000];
            let len = encode_datagram(&segment, &mut bytes).unwrap();
            self.sent.push((self.now, side, locators, Bytes::copy_from_slice(&bytes[..len])));
            if !(self.loses)(side, &locators, &segment) {
                self.number += 1;
                let key = (self.now + self.delay, self.number);
                self.wire.insert(key, (1 - side, locators.reversed(), segment));
            }
        }
    }

    /// The one connection of a side.
    pub fn only(&self, side: usize) -> ConnectionHandle {
        let mut all = self.endpoints[side].connections();
        let (handle, _) = all.next().expect("a connection");
        assert!(all.next().is_none(), "more than one connection");
        handle
    }

    pub fn write(&mut self, side: usize, handle: ConnectionHandle, len: u64) {
        let pattern = Payload::from(Pattern { key: 7, offset: 0, len });
        assert_eq!(self.endpoints[side].connection_mut(handle).unwrap().write(pattern), len);
    }

    /// Reads all there is, checking that it is what `write` wrote, and returns how much that was.
    pub fn read(&mut self, side: usize, handle: ConnectionHandle) -> u64 {
        let connection = self.endpoints[side].connection_mut(handle).unwrap();
        let mut offset = 0;
        while let Some(data) = connection.read(u64::MAX) {
            assert!(data.same_bytes(&Pattern { key: 7, offset, len: data.len() }.into()));
            offset += data.len();
        }
        offset
    }

    pub fn close(&mut self, side: usize, handle: ConnectionHandle) {
        self.endpoints[side].connection_mut(handle).unwrap().close();
    }

    pub fn has(&self, side: usize, event: Event) -> bool {
        self.events[side].iter().any(|(_, e)| *e == event)
    }
}

/// Path `i` as the client sees it.
pub fn locators(i: u8) -> Locators {
    Locators { local: ([10, 0, i, 1], 0).into(), remote: ([10, 0, i, 2], 0).into() }
}
