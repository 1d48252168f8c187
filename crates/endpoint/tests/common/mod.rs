//! Two endpoints back to back in virtual time.
#![allow(dead_code, clippy::unwrap_used)]

pub mod out;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use polypath_endpoint::frame::encode_datagram;
use polypath_endpoint::{
    ConnectionHandle, Endpoint, EndpointConfig, Event, Input, ListenConfig, Locators, Outlet, pump,
};
pub use polypath_testing::{Bed, CLIENT, SERVER};
use polypath_testing::{Fate, Link, Wire};
use polypath_transport::{ConnectionConfig, PathConfig, Pattern, Payload, Segment};
use polypath_wire::{Duration, Instant, Seed};

pub const PORT: u16 = 80;

/// A segment on its way: the side that sent it, and the locators as that side sees them.
#[derive(Clone)]
pub struct Flying {
    pub from: usize,
    pub locators: Locators,
    pub segment: Segment,
}

/// When an endpoint was given what; nothing for a turn without arrival.
pub type Log = Vec<(Instant, Option<Input>)>;

/// Two endpoints, and a delay of 10 ms between them.
pub struct Pair {
    pub now: Instant,
    pub endpoints: [Endpoint; 2],
    pub events: [Vec<(ConnectionHandle, Event)>; 2],
    pub wire: Wire<Flying>,
    /// Everything that was sent: when, by which side, in bytes.
    pub sent: Vec<(Instant, usize, Locators, Bytes)>,
    /// What the server was given, if that is logged.
    pub log: Option<Log>,
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
            wire: Wire::new([Link::new(Duration::from_millis(10))]),
            sent: Vec::new(),
            log: None,
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

    /// From now on the segments of which `lost` holds are lost.
    pub fn lose(&mut self, mut lost: impl FnMut(&Flying) -> bool + 'static) {
        self.wire.script(move |flying| Fate::lose_if(lost(flying)));
    }

    /// Runs until so long after the start.
    pub fn run(&mut self, until: Duration) {
        self.run_until(Instant::ZERO + until);
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

impl Bed for Pair {
    type Packet = Flying;

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn wire(&mut self) -> &mut Wire<Flying> {
        &mut self.wire
    }

    fn arrive(&mut self, side: usize, Flying { locators, segment, .. }: Flying) {
        let input = Input::Segment { locators: locators.reversed(), segment };
        if let Some(log) = self.log.as_mut().filter(|_| side == SERVER) {
            log.push((self.now, Some(input.clone())));
        }
        self.endpoints[side].handle(self.now, input);
    }

    fn turn(&mut self, side: usize) -> Option<Instant> {
        if let Some(log) = self.log.as_mut().filter(|_| side == SERVER) {
            log.push((self.now, None));
        }
        let out = Out::default();
        let endpoint = &mut self.endpoints[side];
        let due = pump(endpoint, self.now, &mut out.clone());
        self.events[side].extend(std::iter::from_fn(|| endpoint.poll_event()));
        for (locators, segment) in out.0.take() {
            let mut bytes = [0; 2000];
            let len = encode_datagram(&segment, &mut bytes).unwrap();
            self.sent.push((self.now, side, locators, Bytes::copy_from_slice(&bytes[..len])));
            self.wire.send(self.now, side, 0, len, Flying { from: side, locators, segment });
        }
        due
    }
}

/// Path `i` as the client sees it.
pub fn locators(i: u8) -> Locators {
    Locators { local: ([10, 0, i, 1], 0).into(), remote: ([10, 0, i, 2], 0).into() }
}
