//! Two connections in virtual time, the wire between them, and a script that edits what is on it.
#![allow(dead_code, reason = "each test uses some of it")]

mod forge;

use std::collections::VecDeque;

use forge::Seen;
use polypath_transport::{
    CloseReason, Connection, ConnectionConfig, Event, PathConfig, Pattern, Payload, Ports, Registry, Segment,
    State,
};
use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Duration, Ecn, Instant, PathId, Seq};
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};

/// The end that connects, and the one that accepts.
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;
pub const ISN: [Seq; 2] = [Seq(u32::MAX - 2000), Seq(5000)];

const PORTS: [Ports; 2] = [Ports { local: 1000, remote: 2000 }, Ports { local: 2000, remote: 1000 }];

/// What says what a segment is for.
const CONTROL: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0 | TcpFlags::RST.0 | TcpFlags::FIN.0);

/// A segment on its way.
#[derive(Clone, Debug)]
pub struct Flying {
    pub sent: Instant,
    pub from: usize,
    pub path: PathId,
    pub segment: Segment,
    arrives: Instant,
    /// Which packet of its path it is, in its direction.
    number: u64,
}

/// What the script does with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
    Pass,
    Lose,
    Twice,
    Delay(Duration),
    /// A queue marks it, or loses it if it may not.
    Mark,
    /// Only so many bytes of data arrive.
    Cut(u64),
}

/// Both ends and what is between them. What each reads must be what the other wrote.
pub struct Pair {
    pub now: Instant,
    pub ends: [Option<Connection>; 2],
    pub events: [Vec<Event>; 2],
    pub received: [u64; 2],
    /// What an observer of the wire knows of each end.
    pub seen: [Seen; 2],
    /// Whether the applications read what arrives.
    pub reads: [bool; 2],
    /// Everything that was sent, in order.
    pub log: Vec<Flying>,
    /// Segments that are on the wire, in order of arrival.
    pub queue: VecDeque<Flying>,
    /// Whether each end hears that packets of a path are lost or late, as it does over ESP.
    pub numbered: bool,
    /// Per direction and path: packets sent, and the largest number that came.
    numbers: [Vec<(u64, u64)>; 2],
    script: Box<dyn FnMut(&Flying) -> Edit>,
    config: ConnectionConfig,
    paths: Vec<PathConfig>,
    delays: Vec<Duration>,
    written: [u64; 2],
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn at(n: u64) -> Instant {
    Instant::ZERO + ms(n)
}

/// The defaults, with acknowledgments at once and a short TIME-WAIT.
pub fn prompt() -> ConnectionConfig {
    ConnectionConfig { delayed_ack: Duration::ZERO, time_wait: ms(1000), ..ConnectionConfig::default() }
}

/// Every algorithm of a registry, with its defaults.
pub fn every<T: Registry + for<'de> Deserialize<'de>>() -> impl Iterator<Item = T> {
    T::ALL.iter().map(|about| {
        let named = MapDeserializer::<_, Error>::new([(T::TAG, about.name)].into_iter());
        T::deserialize(named).expect("a name is enough")
    })
}

impl Flying {
    pub fn has(&self, flag: TcpFlags) -> bool {
        self.segment.header.flags.contains(flag)
    }

    pub fn len(&self) -> u64 {
        self.segment.payload.len()
    }

    /// Offset of its data in the stream.
    pub fn offset(&self) -> u64 {
        u64::from(self.segment.header.seq.0.wrapping_sub(ISN[self.from].0.wrapping_add(1)))
    }

    /// Offset up to which it acknowledges the other stream.
    pub fn acks(&self) -> u64 {
        u64::from(self.segment.header.ack.0.wrapping_sub(ISN[1 - self.from].0.wrapping_add(1)))
    }

    pub fn is_data_of(&self, end: usize) -> bool {
        self.from == end && self.len() > 0
    }
}

impl Pair {
    /// A client that has just sent its SYN, over paths with these one-way delays in ms.
    pub fn connecting(client: ConnectionConfig, server: ConnectionConfig, delays: &[u64]) -> Self {
        let paths = vec![PathConfig { mss: 1000, ..PathConfig::default() }; delays.len()];
        let client = Connection::connect(Instant::ZERO, client, PORTS[CLIENT], ISN[CLIENT], &paths);
        Self {
            now: Instant::ZERO,
            ends: [Some(client), None],
            events: Default::default(),
            received: [0; 2],
            seen: ISN.map(Seen::new),
            reads: [true; 2],
            log: Vec::new(),
            queue: VecDeque::new(),
            numbered: false,
            numbers: [vec![(0, 0); delays.len()], vec![(0, 0); delays.len()]],
            script: Box::new(|_| Edit::Pass),
            config: server,
            paths,
            delays: delays.iter().map(|d| ms(*d)).collect(),
            written: [0; 2],
        }
    }

    /// A pair with the handshake done, at 1 s; the log is empty.
    pub fn open(config: ConnectionConfig, delays: &[u64]) -> Self {
        let mut pair = Self::connecting(config.clone(), config, delays);
        pair.run_until(at(1000));
        assert_eq!(pair.states(), [State::Established; 2]);
        pair.log.clear();
        pair
    }

    /// The second end connects too instead of accepting.
    pub fn connect_server(&mut self) {
        let (config, ports) = (self.config.clone(), PORTS[SERVER]);
        self.ends[SERVER] = Some(Connection::connect(self.now, config, ports, ISN[SERVER], &self.paths));
    }

    /// From now on `script` decides about every segment that is sent.
    pub fn script(&mut self, script: impl FnMut(&Flying) -> Edit + 'static) {
        self.script = Box::new(script);
    }

    pub fn end(&mut self, end: usize) -> &mut Connection {
        self.ends[end].as_mut().expect("the end exists")
    }

    pub fn states(&self) -> [State; 2] {
        [0, 1].map(|i| self.ends[i].as_ref().map_or(State::Closed, Connection::state))
    }

    /// Writes the next `len` bytes of the stream of `end`.
    pub fn write(&mut self, end: usize, len: u64) {
        let pattern = Pattern { key: end as u32, offset: self.written[end], len };
        self.written[end] += self.end(end).write(pattern.into());
    }

    pub fn close(&mut self, end: usize) {
        self.end(end).close();
    }

    pub fn has(&self, end: usize, event: Event) -> bool {
        self.events[end].contains(&event)
    }

    pub fn lost(&self, end: usize) -> Option<CloseReason> {
        self.events[end].iter().find_map(|e| match e {
            Event::Lost(reason) => Some(*reason),
            _ => None,
        })
    }

    /// Gives `segment` to `end` as if it had come on `path`.
    pub fn inject(&mut self, end: usize, path: u16, segment: Segment) {
        let now = self.now;
        self.end(end).handle(now, PathId(path), segment);
        self.pump();
    }

    /// A path with this one-way delay, added at both ends.
    pub fn add_path(&mut self, delay: u64) -> PathId {
        self.add_path_with(delay, self.paths[0])
    }

    /// The same with a configuration of its own.
    pub fn add_path_with(&mut self, delay: u64, config: PathConfig) -> PathId {
        let now = self.now;
        self.paths.push(config);
        let ids: Vec<_> = self.ends.iter_mut().flatten().filter_map(|e| e.add_path(now, config)).collect();
        let places = self.delays.len().max(ids[0].index() + 1);
        self.delays.resize(places, Duration::ZERO);
        self.delays[ids[0].index()] = ms(delay);
        self.numbers.iter_mut().for_each(|paths| paths.resize(places, (0, 0)));
        ids[0]
    }

    /// Removes a path at both ends, with all that is on it.
    pub fn remove_path(&mut self, path: PathId) {
        let now = self.now;
        self.ends.iter_mut().flatten().for_each(|e| e.remove_path(now, path));
        self.queue.retain(|f| f.path != path);
    }

    /// Runs for a while.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs until `until`.
    pub fn run_until(&mut self, until: Instant) {
        self.pump();
        while let Some(next) = self.next_event().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Runs until `done`, at most 10 minutes.
    pub fn run_while(&mut self, mut going: impl FnMut(&mut Self) -> bool) {
        let limit = self.now + Duration::from_secs(600);
        self.pump();
        while going(self) {
            let next = self.next_event().unwrap_or_else(|| panic!("nothing is due: {:?}", self.states()));
            assert!(next < limit, "{:?} after {:?}", self.states(), self.now);
            self.now = self.now.max(next);
            self.step();
        }
    }

    /// Runs until `end` has received `bytes` in all.
    pub fn run_until_received(&mut self, end: usize, bytes: u64) {
        self.run_while(|p| p.received[end] < bytes);
    }

    /// The data segments of `end` since the log was cleared: when (ms), where, offset.
    pub fn data(&self, end: usize) -> Vec<(u64, u16, u64)> {
        let of = |f: &Flying| (f.sent.0 / 1_000_000, f.path.0, f.offset());
        self.log.iter().filter(|f| f.is_data_of(end)).map(of).collect()
    }

    /// When (ms) `end` sent a segment of which `what` holds.
    pub fn times(&self, end: usize, what: impl Fn(&Flying) -> bool) -> Vec<u64> {
        self.log.iter().filter(|f| f.from == end && what(f)).map(|f| f.sent.0 / 1_000_000).collect()
    }

    fn next_event(&self) -> Option<Instant> {
        let timers = self.ends.iter().flatten().filter_map(Connection::poll_timeout);
        timers.chain(self.queue.front().map(|f| f.arrives)).min()
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(flying) = self.queue.pop_front_if(|f| f.arrives <= now) {
            self.deliver(flying);
            self.pump();
        }
        self.ends.iter_mut().flatten().for_each(|e| e.handle_timeout(now));
        self.pump();
    }

    fn deliver(&mut self, Flying { from, path, segment, number, .. }: Flying) {
        let (now, to) = (self.now, 1 - from);
        let largest = &mut self.numbers[from][path.index()].1;
        let skipped = number > std::mem::replace(largest, number.max(*largest)) + 1;
        if self.numbered && skipped {
            self.end(to).path_skipped(path);
        }
        match &mut self.ends[to] {
            Some(connection) => connection.handle(now, path, segment),
            closed if segment.header.flags.0 & CONTROL.0 == TcpFlags::SYN.0 => {
                let (config, ports, paths) = (self.config.clone(), PORTS[to], &self.paths);
                *closed = Some(Connection::accept(now, config, ports, ISN[to], paths, path, &segment));
            }
            None => {}
        }
    }

    /// Everything that can be done now.
    pub fn pump(&mut self) {
        let now = self.now;
        for i in 0..2 {
            let Some(connection) = &mut self.ends[i] else { continue };
            while let Some(chunk) = self.reads[i].then(|| connection.read(u64::MAX)).flatten() {
                let offset = self.received[i];
                let expected = Pattern { key: 1 - i as u32, offset, len: chunk.len() };
                assert!(chunk.same_bytes(&Payload::from(expected)), "wrong bytes at {offset}");
                self.received[i] += chunk.len();
            }
            while let Some(transmit) = self.end(i).poll_transmit(now) {
                self.send(i, transmit.path, transmit.segment);
            }
            self.events[i].extend(std::iter::from_fn(|| self.ends[i].as_mut()?.poll_event()));
        }
    }

    fn send(&mut self, from: usize, path: PathId, segment: Segment) {
        let arrives = self.now + self.delays[path.index()];
        let (sent, _) = &mut self.numbers[from][path.index()];
        *sent += 1;
        let mut flying = Flying { sent: self.now, from, path, segment, arrives, number: *sent };
        self.seen[from].look(&flying.segment);
        self.log.push(flying.clone());
        match (self.script)(&flying) {
            Edit::Pass => {}
            Edit::Lose => return,
            Edit::Twice => self.fly(flying.clone()),
            Edit::Delay(more) => flying.arrives = arrives + more,
            Edit::Mark if flying.segment.ecn == Ecn::None => return,
            Edit::Mark => flying.segment.ecn = Ecn::Marked,
            Edit::Cut(len) => flying.segment.payload = flying.segment.payload.slice(0, len),
        }
        self.fly(flying);
    }

    fn fly(&mut self, flying: Flying) {
        let i = self.queue.partition_point(|f| f.arrives <= flying.arrives);
        self.queue.insert(i, flying);
    }
}
