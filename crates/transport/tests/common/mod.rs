//! Two connections in virtual time, the wire between them, and a script that edits what is on it.
#![allow(dead_code, reason = "each test uses some of it")]

mod forge;

use forge::Seen;
pub use polypath_testing::{Bed, CLIENT, SERVER};
use polypath_testing::{Fate, Link, Wire};
use polypath_transport::{
    CloseReason, Connection, ConnectionConfig, Event, PathConfig, Pattern, Payload, Ports, Registry, Segment,
    State,
};
use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Duration, Ecn, Instant, PathId, Seq};
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer};

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
    /// Which packet of its path it is, in its direction.
    number: u64,
}

/// What the script does with it.
pub type Edit = Fate<Flying>;

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
    pub wire: Wire<Flying>,
    /// Whether each end hears that packets of a path are lost or late, as it does over ESP.
    pub numbered: bool,
    /// Per direction and path: packets sent, and the largest number that came.
    numbers: [Vec<(u64, u64)>; 2],
    config: ConnectionConfig,
    paths: Vec<PathConfig>,
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

    /// A queue marks it, or loses it if it may not.
    pub fn marked(&self) -> Edit {
        let mut marked = self.clone();
        marked.segment.ecn = Ecn::Marked;
        if self.segment.ecn == Ecn::None { Edit::Lose } else { Edit::replaced(marked) }
    }

    /// Only `len` bytes of data arrive.
    pub fn cut(&self, len: u64) -> Edit {
        let mut cut = self.clone();
        cut.segment.payload = cut.segment.payload.slice(0, len);
        Edit::replaced(cut)
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
            wire: Wire::new(delays.iter().map(|delay| Link::new(ms(*delay)))),
            numbered: false,
            numbers: [vec![(0, 0); delays.len()], vec![(0, 0); delays.len()]],
            config: server,
            paths,
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
        self.wire.script(script);
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
        let places = self.wire.links.len().max(ids[0].index() + 1);
        self.wire.links.resize(places, Link::new(Duration::ZERO));
        self.wire.links[ids[0].index()].delay = ms(delay);
        self.numbers.iter_mut().for_each(|paths| paths.resize(places, (0, 0)));
        ids[0]
    }

    /// Removes a path at both ends, with all that is on it.
    pub fn remove_path(&mut self, path: PathId) {
        let now = self.now;
        self.ends.iter_mut().flatten().for_each(|e| e.remove_path(now, path));
        self.wire.retain(|f| f.path != path);
    }

    /// Runs while `going`, less than 10 minutes.
    pub fn run_while(&mut self, mut going: impl FnMut(&mut Self) -> bool) {
        let limit = self.now + Duration::from_secs(600);
        assert!(self.run_until_done(limit, |pair| !going(pair)), "{:?} at {:?}", self.states(), self.now);
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

    /// Both ends have read all, and the connection is closed without having been lost.
    pub fn assert_closed(&self) {
        assert_eq!(self.states(), [State::Closed; 2]);
        for end in [CLIENT, SERVER] {
            assert!(self.has(end, Event::PeerFinished) && self.has(end, Event::Finished));
            assert_eq!(self.lost(end), None);
        }
    }

    /// Everything that can be done now.
    pub fn pump(&mut self) {
        self.turns();
    }

    fn read(&mut self, end: usize) {
        while let Some(chunk) = self.reads[end].then(|| self.end(end).read(u64::MAX)).flatten() {
            let offset = self.received[end];
            let expected = Pattern { key: 1 - end as u32, offset, len: chunk.len() };
            assert!(chunk.same_bytes(&Payload::from(expected)), "wrong bytes at {offset}");
            self.received[end] += chunk.len();
        }
    }

    fn send(&mut self, from: usize, path: PathId, segment: Segment) {
        let (sent, _) = &mut self.numbers[from][path.index()];
        *sent += 1;
        let flying = Flying { sent: self.now, from, path, segment, number: *sent };
        self.seen[from].look(&flying.segment);
        self.log.push(flying.clone());
        self.wire.send(self.now, from, path.index(), flying.len() as usize, flying);
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

    fn arrive(&mut self, to: usize, Flying { from, path, segment, number, .. }: Flying) {
        let now = self.now;
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

    fn turn(&mut self, end: usize) -> Option<Instant> {
        self.ends[end].as_ref()?;
        self.read(end);
        while let Some(transmit) = self.ends[end].as_mut()?.poll_transmit(self.now) {
            self.send(end, transmit.path, transmit.segment);
        }
        self.events[end].extend(std::iter::from_fn(|| self.ends[end].as_mut()?.poll_event()));
        self.ends[end].as_ref()?.poll_timeout()
    }

    fn expire(&mut self) {
        let now = self.now;
        self.ends.iter_mut().flatten().for_each(|end| end.handle_timeout(now));
    }
}
