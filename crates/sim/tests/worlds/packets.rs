//! Packets of somebody else's transport in the same random worlds. Whatever the world, a packet arrives at most once and as it was
//! sent, flows stay in order unless a gap was given up, nothing is held for longer than is allowed, nothing waits for ever, nothing is
//! sent beyond a window, what was lost is known to be lost, and every packet is accounted for.

mod end;
mod source;

use bytes::Bytes;
use end::End;
use polypath_hop::{Drop, Fate, Hop, Label};
use polypath_wire::shim::Frame;
use polypath_wire::{Duration, Ecn, Instant, PathId};
use source::name;

use crate::happenings::What;
use crate::hops::{IPV4_HEADER, hops_of, shortest};
use crate::play::{Look, MOST_TURNS};
use crate::spec::Spec;

/// Longest retransmission timeout of a flow of packets, and what clocks may be off.
const SILENCE: Duration = Duration::from_secs(61);

/// A report is put off for no longer.
const LONGEST_REPORT: Duration = Duration::from_millis(10);

/// Events of one world, and of one instant.
const MOST: u64 = MOST_TURNS / 10;
const MOST_AT_ONCE: u64 = 20_000;

/// A frame on the way.
#[derive(Clone, Debug)]
struct Flying {
    frame: Bytes,
    ecn: Ecn,
}

struct World<'a> {
    spec: &'a Spec,
    now: Instant,
    hops: Vec<[Hop<Flying>; 2]>,
    ends: [End; 2],
    joined: usize,
    gone: Vec<bool>,
    happened: usize,
    hash: u64,
    look: Look,
}

/// Plays `spec`; returns a hash of what was sent, or what went wrong.
pub fn play(spec: &Spec, look: Look) -> Result<u64, String> {
    let mut world = World {
        spec,
        now: Instant::ZERO,
        hops: hops_of(spec),
        ends: [0, 1].map(|i| End::new(spec, i)),
        joined: 0,
        gone: vec![false; spec.paths.len()],
        happened: 0,
        hash: 0,
        look,
    };
    world.drain()?;
    let (mut turns, mut still) = (0, 0);
    while let Some(next) = world.next_event() {
        still = if next > world.now { 0 } else { still + 1 };
        world.now = world.now.max(next);
        world.turn()?;
        turns += 1;
        if turns > MOST || still > MOST_AT_ONCE {
            return Err(format!("spins at {:?}: {}", world.now, world.summary()));
        }
    }
    world.check_end()?;
    Ok(world.hash)
}

impl World<'_> {
    fn next_event(&self) -> Option<Instant> {
        let hops = self.hops.iter().flatten().filter_map(Hop::next_event);
        let ends = self.ends.iter().filter_map(End::next_event);
        let change = self.spec.next_change(self.joined, self.happened, &self.gone);
        hops.chain(ends).chain(change).min()
    }

    fn turn(&mut self) -> Result<(), String> {
        self.change_paths();
        self.let_happen();
        for path in 0..self.hops.len() {
            for from in 0..2 {
                while let Some(departure) = self.hops[path][from].poll(self.now) {
                    match departure.fate {
                        Fate::Arrived { copies, corrupted: None, marked } => {
                            for _ in 0..copies {
                                self.arrive(path, 1 - from, &departure.item, marked)?;
                            }
                        }
                        _ => self.lose(from, &departure.item),
                    }
                }
            }
        }
        self.drain()?;
        self.check_silence()
    }

    fn change_paths(&mut self) {
        while let Some(path) =
            self.spec.paths.get(self.joined).filter(|p| p.joins.unwrap_or_default() <= self.now)
        {
            for end in &mut self.ends {
                let local = end.clock.local(self.now);
                end.flow.add_path(local, PathId(self.joined as u16), &path.config, u32::MAX - 100);
            }
            self.tell(|| format!("path {} joined", self.joined));
            self.joined += 1;
        }
        for i in 0..self.spec.paths.len() {
            if !self.gone[i] && self.spec.paths[i].leaves.is_some_and(|at| at <= self.now) {
                self.gone[i] = true;
                for end in &mut self.ends {
                    end.flow.remove_path(end.clock.local(self.now), PathId(i as u16));
                }
                self.tell(|| format!("path {i} left"));
            }
        }
    }

    fn let_happen(&mut self) {
        while let Some(happening) = self.spec.happenings.get(self.happened).filter(|h| h.at <= self.now) {
            self.happened += 1;
            let end = &mut self.ends[happening.end];
            match happening.what {
                What::Spill(path, spill) => end.flow.path_spills(path, spill),
                What::Answered(path, rtt) => end.flow.path_answered(end.clock.local(self.now), path, rtt),
                _ => continue,
            }
            self.tell(|| format!("{happening:?}"));
        }
    }

    fn arrive(&mut self, path: usize, to: usize, flying: &Flying, marked: bool) -> Result<(), String> {
        self.tell(|| format!("{to} <- {path}: {}", describe(&flying.frame)));
        let ecn = if marked { Ecn::Marked } else { flying.ecn };
        let end = &mut self.ends[to];
        if let Ok(Frame::Packet(_)) = Frame::parse(&flying.frame)
            && !self.gone[path]
        {
            let packet = &flying.frame[polypath_wire::shim::Shim::LEN..];
            end.came.entry(name(packet)).or_insert(self.now);
        }
        let local = end.clock.local(self.now);
        let parsed = end.flow.handle(local, PathId(path as u16), flying.frame.clone(), ecn);
        parsed.map_err(|e| format!("no frame: {e}"))?;
        self.drain()
    }

    fn lose(&mut self, from: usize, flying: &Flying) {
        self.tell(|| format!("lost {from}: {}", describe(&flying.frame)));
        let is_packet = matches!(Frame::parse(&flying.frame), Ok(Frame::Packet(_)));
        self.ends[from].lost += u64::from(is_packet);
    }

    /// Sources, timers, sending and handing on, until nothing is left to do now.
    fn drain(&mut self) -> Result<(), String> {
        for i in 0..2 {
            self.ends[i].work(self.now).map_err(|e| self.blame(i, &e))?;
            let local = self.ends[i].clock.local(self.now);
            while let Some(leaving) = self.ends[i].flow.poll_transmit(local) {
                let frame = leaving.to_bytes();
                self.check_leaving(i, leaving.path, &frame).map_err(|e| self.blame(i, &e))?;
                self.send(leaving.path.index(), i, Flying { frame, ecn: leaving.ecn });
            }
            let [a, b] = &mut self.ends;
            let (end, peer) = if i == 0 { (a, b) } else { (b, a) };
            end.hand_on(self.now, peer).map_err(|e| self.blame(i, &e))?;
        }
        Ok(())
    }

    fn check_leaving(&self, i: usize, path: PathId, frame: &Bytes) -> Result<(), String> {
        if self.gone[path.index()] {
            return Err(format!("sent on {path:?}, which is gone"));
        }
        let stats = self.ends[i].flow.path_stats(path);
        let is_packet = matches!(Frame::parse(frame), Ok(Frame::Packet(_)));
        match is_packet && stats.in_flight > stats.cwnd + frame.len() as u64 {
            true => Err(format!("{} in flight on {path:?}, window {}", stats.in_flight, stats.cwnd)),
            false => Ok(()),
        }
    }

    fn send(&mut self, path: usize, from: usize, flying: Flying) {
        self.tell(|| format!("{from} -> {path}: {}", describe(&flying.frame)));
        let words = [self.now.0, path as u64, from as u64, flying.frame.len() as u64];
        words.iter().for_each(|word| {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
        });
        if let Ok(Frame::Packet(_)) = Frame::parse(&flying.frame) {
            self.ends[from].sent = self.now;
        }
        let size = flying.frame.len() as u32 + IPV4_HEADER;
        let label = Label { size, flow: 0, ecn_capable: flying.ecn == Ecn::Capable };
        let hop = &mut self.hops[path][from];
        let (result, mtu) = (hop.enqueue(self.now, flying.clone(), label), hop.config().mtu);
        if result.is_err() {
            self.lose(from, &flying);
        }
        if let (Err(Drop::TooBig), Some(mtu)) = (result, mtu) {
            // a router tells; the message arrives at once
            let end = &mut self.ends[from];
            end.flow.path_carries(end.clock.local(self.now), PathId(path as u16), mtu - IPV4_HEADER);
        }
    }

    /// What waits leaves before long, once the links are up.
    fn check_silence(&mut self) -> Result<(), String> {
        for i in 0..2 {
            let end = &mut self.ends[i];
            if end.flow.waiting() == 0 {
                end.sent = self.now;
            }
            if self.now.since(end.sent.max(self.spec.calm)) > SILENCE {
                return Err(self.blame(i, "silent, although packets wait"));
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), String> {
        (0..2).try_for_each(|i| self.check(i).map_err(|e| self.blame(i, &e)))
    }

    fn check(&self, i: usize) -> Result<(), String> {
        let (end, peer) = (&self.ends[i], &self.ends[1 - i]);
        let (sent, got) = (end.flow.stats(), peer.flow.stats());
        let taken = end.taken.len() as u64;
        if end.flow.waiting() > 0 || taken != sent.sent + sent.dropped + sent.too_big - end.too_big {
            return Err(format!("{taken} were taken: {sent:?}"));
        }
        if got.received != peer.came.len() as u64 || peer.came.len() != peer.out.len() {
            return Err(format!("{} came, {} were handed on: {got:?}", peer.came.len(), peer.out.len()));
        }
        if got.gaps == 0 && peer.disorder > 0 {
            return Err(format!("{} out of order although no gap was given up", peer.disorder));
        }
        let last = peer.out.iter().filter(|(flow, _)| *flow == 99).count();
        if last == 0 {
            return Err("nothing arrived after all was calm".to_owned());
        }
        let leaves = self.spec.paths.iter().any(|path| path.leaves.is_some());
        if !leaves && sent.lost < end.lost {
            return Err(format!("{} were lost: {sent:?}", end.lost));
        }
        for (path, id) in self.spec.paths.iter().zip(0..) {
            let stats = end.flow.path_stats(PathId(id));
            if stats.in_flight > 0 {
                return Err(format!("{} in flight on path {id} at the end", stats.in_flight));
            }
            let least = shortest(path, i) + shortest(path, 1 - i);
            // Clocks drift, the one that counts how long a report was put off included.
            let least = Duration(least.0 - (least.0 + 2 * LONGEST_REPORT.0) / 1000);
            if let Some(rtt) = stats.min_rtt.filter(|rtt| *rtt < least) {
                return Err(format!("a round trip of {rtt:?} on path {id}, which takes {least:?} at least"));
            }
        }
        Ok(())
    }

    fn blame(&self, i: usize, what: &str) -> String {
        format!("packets of end {i} at {:?}: {what}: {}", self.now, self.summary())
    }

    fn summary(&self) -> String {
        let of = |end: &End| {
            let (stats, waiting, timeout) = (end.flow.stats(), end.flow.waiting(), end.flow.poll_timeout());
            format!("{waiting} wait, timeout {timeout:?}, {stats:?}")
        };
        format!("[{} | {}]", of(&self.ends[0]), of(&self.ends[1]))
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.look == Look::Trace {
            println!("{:?} {}", self.now, what());
        }
    }
}

fn describe(frame: &Bytes) -> String {
    match Frame::parse(frame) {
        Ok(Frame::Packet(shim)) => format!("{shim:?} {:?}", name(&frame[polypath_wire::shim::Shim::LEN..])),
        Ok(other) => format!("{other:?}"),
        Err(e) => e.to_string(),
    }
}
