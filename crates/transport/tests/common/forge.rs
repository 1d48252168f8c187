//! What somebody who sees the wire knows, and the segments that he could put on it.

use polypath_transport::{Pattern, Payload, Segment};
use polypath_wire::Seq;
use polypath_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

use super::{ISN, Pair};

/// What the segments that an end sent tell of it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// After the last byte it sent.
    pub nxt: Seq,
    /// What it acknowledged last.
    pub ack: Seq,
    /// The largest window field it sent.
    pub window: u16,
    /// Its clock.
    pub clock: Option<u32>,
}

impl Seen {
    pub fn new(isn: Seq) -> Self {
        Self { nxt: isn, ack: Seq(0), window: 0, clock: None }
    }

    pub fn look(&mut self, segment: &Segment) {
        let header = &segment.header;
        let end = header.seq.plus(segment.seq_len());
        if self.nxt.before(end) {
            self.nxt = end;
        }
        if header.flags.contains(TcpFlags::ACK) {
            self.ack = header.ack;
        }
        if !header.flags.contains(TcpFlags::SYN) {
            self.window = self.window.max(header.window);
        }
        self.clock = header.options.timestamps.map(|t| t.value).or(self.clock);
    }
}

impl Pair {
    /// An empty segment as the peer of `to` might send it now.
    pub fn forge(&self, to: usize) -> Segment {
        let (from, to) = (&self.seen[1 - to], &self.seen[to]);
        let timestamps = from.clock.map(|value| Timestamps { value, echo: to.clock.unwrap_or(0) });
        let header = TcpHeader {
            seq: to.ack,
            ack: from.ack,
            flags: TcpFlags::ACK,
            window: from.window,
            options: TcpOptions { timestamps, ..TcpOptions::default() },
            ..TcpHeader::default()
        };
        Segment { header, ..Segment::default() }
    }

    /// Where `seq` of the stream towards `to` is in it, near what `to` has read; negative before its start.
    pub fn place(&self, to: usize, seq: Seq) -> i64 {
        let read = ISN[1 - to].plus(1).plus(self.received[to] as u32);
        self.received[to] as i64 + i64::from(seq.distance(read))
    }

    /// The bytes of the stream towards `to` that belong at `seq`; none before its start.
    pub fn truth(&self, to: usize, seq: Seq, len: u64) -> Payload {
        match u64::try_from(self.place(to, seq)) {
            Ok(offset) => Pattern { key: 1 - to as u32, offset, len }.into(),
            Err(_) => Payload::EMPTY,
        }
    }
}
