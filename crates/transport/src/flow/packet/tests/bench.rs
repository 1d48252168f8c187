//! Two ends, links between them, and what the first end sends.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use polypath_testing::{Bed, Link, Wire};
use polypath_wire::{Duration, Ecn, Instant, PathId, Rate};

use super::{MS, TWICE, at};
use crate::engine::config::PathConfig;
use crate::flow::packet::*;

pub(super) const PACKET: usize = 1000;

/// First in, first out, up to a number of bytes.
#[derive(Debug)]
struct Bounded {
    packets: VecDeque<Packet>,
    bytes: u64,
    most: u64,
}

impl Bounded {
    fn new(most: u64) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, most }
    }
}

impl PacketQueue for Bounded {
    fn push(&mut self, _: Instant, packet: Packet) -> bool {
        let bytes = self.bytes + packet.bytes.len() as u64;
        let fits = bytes <= self.most && !packet.bytes.is_empty();
        if fits {
            self.bytes = bytes;
            self.packets.push_back(packet);
        }
        fits
    }

    fn pop(&mut self, _: Instant, _: Tolerable) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.bytes.len() as u64;
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A link of this rate and delay, in ms, with a queue of 50 ms.
pub(super) fn link(mbps: u64, delay: u64) -> Link {
    Link::new(MS(delay)).with_rate(Rate::from_mbps(mbps), MS(50))
}

/// Two ends; the first one sends.
pub(super) struct Bench {
    pub(super) now: Instant,
    pub(super) ends: [PacketFlow; 2],
    /// A link for each path.
    pub(super) wire: Wire<(PathId, Bytes)>,
    /// What the first end calls its first path.
    pub(super) first_path: PathId,
    /// Every 10 ms from 2 s on a packet of this flow and class, with this number, is given to the first end besides.
    pub(super) pushes: Option<(u16, u8, u64)>,
    /// What the second end handed on: flow and number of each packet.
    pub(super) out: Vec<(u16, u64)>,
}

impl Bench {
    pub(super) fn new(config: &PacketConfig, links: &[Link]) -> Self {
        let end = |_| {
            let queue = Box::new(Bounded::new(100_000));
            let mut end = PacketFlow::new(Instant::ZERO, config, 1, queue);
            for path in 0..links.len() {
                let config = PathConfig { mss: 1400, ..PathConfig::default() };
                end.add_path(Instant::ZERO, PathId(path as u16), &config, u32::MAX - 100);
            }
            end
        };
        Self {
            now: Instant::ZERO,
            ends: [0, 1].map(end),
            wire: Wire::new(links.to_vec()),
            first_path: PathId::FIRST,
            pushes: None,
            out: Vec::new(),
        }
    }

    /// Packet `number` of `flow` is given to the first end.
    pub(super) fn push(&mut self, flow: u16, class: u8, number: u64) -> bool {
        self.push_as(Packet { flow, class, twice: class == TWICE, ..Packet::default() }, number)
    }

    /// The same for one that goes again if it is lost.
    pub(super) fn push_repaired(&mut self, number: u64) {
        assert!(self.push_as(Packet { flow: 1, repaired: true, ..Packet::default() }, number));
    }

    pub(super) fn push_as(&mut self, packet: Packet, number: u64) -> bool {
        let mut bytes = vec![0; PACKET];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        self.ends[0].push(self.now, Packet { bytes: bytes.into(), ..packet }).is_ok()
    }

    /// Keeps the queue of the first end full until `end`, with packets of `flows` in turn.
    pub(super) fn fill_until(&mut self, end: Instant, flows: u64) {
        let mut numbers = vec![0; flows as usize];
        let mut turn = 0;
        while self.now < end {
            let next = self.push_beside().min(end);
            while self.pushes.is_none() || self.ends[0].waiting() < 50_000 {
                let flow = (turn % flows) as usize;
                if !self.push(flow as u16, 0, numbers[flow]) {
                    break;
                }
                numbers[flow] += 1;
                turn += 1;
            }
            self.advance(next);
        }
    }

    /// The next packet of the flow beside, if it is due; when the one after that is.
    pub(super) fn push_beside(&mut self) -> Instant {
        let Some((flow, class, number)) = self.pushes else { return Instant::MAX };
        let due = |number| at(2000) + MS(10).times(number);
        if due(number) > self.now {
            return due(number);
        }
        assert!(self.push(flow, class, number));
        self.pushes = Some((flow, class, number + 1));
        due(number + 1)
    }

    /// Whatever is due next happens, not after `end`; the packets of the first end have left.
    pub(super) fn advance(&mut self, end: Instant) {
        let before = self.now;
        self.run_until_done(end, |bench| bench.now > before);
    }

    /// How many packets of a flow were handed on after a later one.
    pub(super) fn disorder(&self) -> usize {
        let mut highest = BTreeMap::new();
        let late = |(flow, number): &&(u16, u64)| {
            let before = highest.get(flow).copied();
            highest.insert(*flow, before.max(Some(*number)).unwrap_or_default());
            before.is_some_and(|before| before > *number)
        };
        self.out.iter().filter(late).count()
    }

    /// Of the capacity of all paths, in so much time, the part that was handed on.
    pub(super) fn share(&self, time: Duration) -> f64 {
        let carried: u64 =
            self.wire.links.iter().flat_map(|link| link.rate).map(|rate| rate.bytes_in(time)).sum();
        (self.out.len() * PACKET) as f64 / carried as f64
    }

    /// Frames of the first end that links lost.
    pub(super) fn dropped(&self) -> u64 {
        self.wire.links.iter().map(|link| link.ways[0].lost).sum()
    }
}

impl Bed for Bench {
    type Packet = (PathId, Bytes);

    fn clock(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn wire(&mut self) -> &mut Wire<(PathId, Bytes)> {
        &mut self.wire
    }

    fn arrive(&mut self, to: usize, (path, frame): (PathId, Bytes)) {
        let path = if to == 0 && path.index() == 0 { self.first_path } else { PathId(path.place().into()) };
        self.ends[to].handle(self.now, path, frame, Ecn::None).expect("it is a frame");
    }

    fn turn(&mut self, from: usize) -> Option<Instant> {
        while let Some(leaving) = self.ends[from].poll_transmit(self.now) {
            let frame = leaving.to_bytes();
            assert_eq!(frame.len(), leaving.len());
            let largest = self.ends[from].largest().unwrap_or_default() as usize + Shim::LEN;
            assert!(frame.len() <= largest, "{} bytes leave, {largest} are carried", frame.len());
            let path = self.ends[from].path_stats(leaving.path);
            let most = if frame.len() > PACKET { path.cwnd } else { u64::MAX };
            assert!(path.in_flight <= most, "no packet leaves beyond the window: {path:?}");
            self.wire.send(self.now, from, leaving.path.index(), frame.len(), (leaving.path, frame));
        }
        while let Some(packet) = self.ends[1].poll_deliver() {
            let number = packet.bytes[..8].try_into().map_or(0, u64::from_be_bytes);
            self.out.push((packet.flow, number));
        }
        self.ends[from].poll_timeout()
    }

    fn expire(&mut self) {
        self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
    }
}
