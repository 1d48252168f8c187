//! Two connections that exchange patterns over a wire in virtual time, and somebody who sees all of
//! it and may put segments of his own into it.

use std::collections::BTreeMap;

use polypath_transport::{
    Connection, ConnectionConfig, Event, PathConfig, Pattern, Payload, Ports, Segment, State,
};
use polypath_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use polypath_wire::{Duration, Instant, PathId, Seq};

/// One way, on every path.
pub const DELAY: Duration = Duration::from_millis(10);
const FIRST: PathId = PathId::FIRST;

/// What an observer knows of one end from the segments it sent.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    /// Its initial sequence number.
    pub isn: Seq,
    /// After the last byte it sent.
    pub nxt: Seq,
    /// What it acknowledged last.
    pub ack: Seq,
    /// The largest window field it sent.
    pub window: u16,
    /// Its clock.
    pub clock: Option<u32>,
    /// Segments.
    pub segments: u64,
}

/// Two ends and the wire.
pub struct Pair {
    /// The present.
    pub now: Instant,
    /// Client and server.
    pub ends: [Connection; 2],
    /// What each sent.
    pub seen: [Seen; 2],
    /// Bytes of the other's stream that each has read.
    pub got: [u64; 2],
    /// Events of each.
    pub events: [Vec<Event>; 2],
    wire: BTreeMap<(Instant, u64), (usize, PathId, Segment)>,
    count: u64,
}

impl Pair {
    /// The client's SYN has reached the server.
    pub fn new(config: &ConnectionConfig, paths: usize) -> Self {
        let paths = vec![PathConfig::default(); paths];
        let ports = |local, remote| Ports { local, remote };
        let now = Instant::ZERO;
        let mut client = Connection::connect(now, config.clone(), ports(1, 2), Seq(u32::MAX - 5000), &paths);
        let syn = client.poll_transmit(now).expect("connect sends a SYN");
        let isn = Seq(77);
        let server =
            Connection::accept(now, config.clone(), ports(2, 1), isn, &paths, syn.path, &syn.segment);
        let mut pair = Self {
            now,
            ends: [client, server],
            seen: Default::default(),
            got: [0; 2],
            events: Default::default(),
            wire: BTreeMap::new(),
            count: 0,
        };
        pair.look(0, &syn.segment);
        pair
    }

    /// Each end sends `len` bytes to the other, and no more.
    pub fn send(&mut self, len: u64) {
        for (key, end) in self.ends.iter_mut().enumerate() {
            end.write(Pattern { key: key as u32, offset: 0, len }.into());
            end.close();
        }
    }

    /// The connection is established and data under way.
    pub fn running(config: &ConnectionConfig, paths: usize, len: u64) -> Self {
        let mut pair = Self::new(config, paths);
        pair.send(len);
        pair.run_for(Duration::from_millis(95));
        assert!(pair.got.iter().all(|got| *got > 0 && *got < len), "{:?}", pair.got);
        pair
    }

    /// Lets `time` pass.
    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.pump();
            let timeouts = self.ends.iter().filter_map(|e| e.poll_timeout());
            let next = timeouts.chain(self.wire.keys().next().map(|k| k.0)).min();
            let Some(next) = next.filter(|n| *n <= until) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, path, segment) = entry.remove();
                self.ends[to].handle(self.now, path, segment);
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|e| e.handle_timeout(now));
        }
        self.now = until;
    }

    /// Everything arrives as if nobody had interfered: all bytes, FINs, no loss of the connection.
    pub fn finish(&mut self, len: u64) {
        self.run_for(Duration::from_secs(600));
        let drops = [self.ends[0].stats().drops, self.ends[1].stats().drops];
        assert_eq!(self.got, [len; 2], "{drops:?}");
        assert_eq!([self.ends[0].state(), self.ends[1].state()], [State::Closed; 2]);
        for events in &self.events {
            assert!(events.contains(&Event::PeerFinished) && events.contains(&Event::Finished));
            assert!(!events.iter().any(|e| matches!(e, Event::Lost(_))), "{events:?}");
        }
    }

    /// Puts `segment` before the end `to`, and sends what that makes it send.
    pub fn inject(&mut self, to: usize, segment: Segment) {
        self.ends[to].handle(self.now, FIRST, segment);
        self.pump();
    }

    /// An empty segment as the peer of `to` might send it now.
    pub fn forge(&self, to: usize) -> Segment {
        let (from, to) = (&self.seen[1 - to], &self.seen[to]);
        let timestamps = from.clock.map(|value| Timestamps { value, echo: to.clock.unwrap_or(0) });
        Segment {
            header: TcpHeader {
                seq: to.ack,
                ack: from.ack,
                flags: TcpFlags::ACK,
                window: from.window,
                options: TcpOptions { timestamps, ..Default::default() },
                ..Default::default()
            },
            payload: Payload::Empty,
        }
    }

    /// The bytes of the stream towards `to` that belong at `seq`.
    pub fn truth(&self, to: usize, seq: Seq, len: u64) -> Payload {
        let first = self.seen[1 - to].isn.plus(1);
        let near = i64::from(seq.distance(first.plus(self.got[to] as u32)));
        let offset = (self.got[to] as i64 + near).max(0) as u64;
        Pattern { key: 1 - to as u32, offset, len }.into()
    }

    /// What waits to be read or sent, until nothing does.
    pub fn pump(&mut self) {
        for i in 0..2 {
            while let Some(chunk) = self.ends[i].read(u64::MAX) {
                let expected = Pattern { key: 1 - i as u32, offset: self.got[i], len: chunk.len() };
                assert!(chunk.same_bytes(&expected.into()), "wrong bytes at {}", self.got[i]);
                self.got[i] += chunk.len();
            }
            while let Some(sent) = self.ends[i].poll_transmit(self.now) {
                self.look(i, &sent.segment);
                self.count += 1;
                self.wire.insert((self.now + DELAY, self.count), (1 - i, sent.path, sent.segment));
            }
            self.events[i].extend(std::iter::from_fn(|| self.ends[i].poll_event()));
        }
    }

    fn look(&mut self, from: usize, segment: &Segment) {
        let (seen, header) = (&mut self.seen[from], &segment.header);
        seen.segments += 1;
        let end = header.seq.plus(segment.seq_len());
        if header.flags.contains(TcpFlags::SYN) {
            (seen.isn, seen.nxt) = (header.seq, end);
        } else {
            seen.window = seen.window.max(header.window);
        }
        if seen.nxt.before(end) {
            seen.nxt = end;
        }
        if header.flags.contains(TcpFlags::ACK) {
            seen.ack = header.ack;
        }
        seen.clock = header.options.timestamps.map(|t| t.value).or(seen.clock);
    }
}
