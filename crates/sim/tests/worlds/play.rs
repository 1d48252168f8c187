//! Plays a world to its end.

use polypath_hop::{Drop, Fate, Hop, Label};
use polypath_transport::{AckReturn, CloseReason, Connection, PathConfig, Ports, Segment, TimeoutTakes};
use polypath_wire::tcp::{TcpFlags, TcpHeader};
use polypath_wire::{Duration, Ecn, Instant, PathId, Seq};

use crate::end::{End, Progress};
use crate::happenings::What;
use crate::hops::{IPV4_HEADER, hops_of, shortest};
use crate::segments::{check_corrupted, describe};
use crate::spec::Spec;

/// Turns of the event loop after which a world is taken to spin.
pub const MOST_TURNS: u64 = 3_000_000;
/// Timeouts in a row that chance does not explain: with 30 % loss in both directions one round trip
/// fails with probability 0.51, and 0.51⁴⁵ < 10⁻¹³.
const UNLUCKY: u64 = 45;
/// Timeouts until a segment goes again if each takes one: all that is in flight may have its turn before.
const ONE_BY_ONE: u64 = 2000;

struct World<'a> {
    spec: &'a Spec,
    now: Instant,
    /// Per path: from end 0, from end 1.
    hops: Vec<[Hop<Segment>; 2]>,
    ends: [End; 2],
    joined: usize,
    /// How many of the happenings have happened.
    happened: usize,
    gone: Vec<bool>,
    progress: ([Progress; 2], Instant),
    last_sent: Instant,
    hash: u64,
    look: Look,
}

/// What happened in a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Of every segment sent and every record made.
    pub hash: u64,
    /// Bytes delivered to applications.
    pub bytes: u64,
    /// Packets offered to hops.
    pub packets: u64,
    pub dropped: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub timeouts: u64,
}

impl std::ops::AddAssign for Outcome {
    fn add_assign(&mut self, other: Self) {
        self.hash ^= other.hash;
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.dropped += other.dropped;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.timeouts += other.timeouts;
    }
}

/// How closely to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// At segments.
    Quick,
    /// At the content of records too.
    Close,
    /// And print everything.
    Trace,
}

/// Plays `spec`; returns what happened, or what went wrong.
pub fn play(spec: &Spec, look: Look) -> Result<Outcome, String> {
    let mut world = World::new(spec, look);
    world.connect()?;
    let mut turns = 0;
    while let Some(next) = world.next_event() {
        world.now = world.now.max(next);
        world.turn()?;
        turns += 1;
        if turns > MOST_TURNS {
            return Err(format!("spins at {:?}: {}", world.now, world.summary()));
        }
    }
    world.check_end()?;
    Ok(world.outcome())
}

impl<'a> World<'a> {
    fn new(spec: &'a Spec, look: Look) -> Self {
        Self {
            spec,
            now: Instant::ZERO,
            hops: hops_of(spec),
            ends: [End::new(spec.ends[0].clone(), 6), End::new(spec.ends[1].clone(), 7)],
            happened: 0,
            joined: spec.paths.iter().filter(|p| p.joins.is_none()).count(),
            gone: vec![false; spec.paths.len()],
            progress: (Default::default(), Instant::ZERO),
            last_sent: Instant::ZERO,
            hash: 0xcbf2_9ce4_8422_2325,
            look,
        }
    }

    fn connect(&mut self) -> Result<(), String> {
        let end = &self.spec.ends[0];
        let now = end.clock.local(self.now);
        let ports = Ports { local: 1000, remote: 2000 };
        let client = Connection::connect(now, end.config.clone(), ports, end.isn, &self.path_configs());
        self.ends[0].begin(client);
        self.drain()
    }

    fn path_configs(&self) -> Vec<PathConfig> {
        self.spec.paths[..self.joined].iter().map(|p| p.config).collect()
    }

    fn next_event(&self) -> Option<Instant> {
        let hops = self.hops.iter().flatten().filter_map(Hop::next_event);
        let ends = self.ends.iter().filter_map(|e| e.next_event(self.now));
        let is_open = !self.ends.iter().all(End::is_closed);
        let change = self.spec.next_change(self.joined, self.happened, &self.gone).filter(|_| is_open);
        hops.chain(ends).chain(change).min()
    }

    fn turn(&mut self) -> Result<(), String> {
        self.change_paths();
        self.let_happen();
        for path in 0..self.hops.len() {
            for from in 0..2 {
                while let Some(departure) = self.hops[path][from].poll(self.now) {
                    if let Fate::Arrived { copies, corrupted, marked } = departure.fate {
                        let mut segment = departure.item;
                        segment.ecn = if marked { Ecn::Marked } else { segment.ecn };
                        self.arrive(path, from, copies, corrupted, segment)?;
                    }
                }
            }
        }
        self.drain()?;
        self.check_progress()
    }

    fn change_paths(&mut self) {
        while let Some(path) =
            self.spec.paths.get(self.joined).filter(|p| p.joins.is_some_and(|j| j <= self.now))
        {
            self.joined += 1;
            for end in &mut self.ends {
                let local = end.spec.clock.local(self.now);
                let Some(connection) = &mut end.connection else { continue };
                match path.unproved {
                    true => connection.add_unproved_path(local, path.config),
                    false => connection.add_path(local, path.config),
                };
            }
            self.tell(|| "a path joined".to_owned());
        }
        for i in 0..self.spec.paths.len() {
            if !self.gone[i] && self.spec.paths[i].leaves.is_some_and(|at| at <= self.now) {
                self.gone[i] = true;
                for end in &mut self.ends {
                    let local = end.spec.clock.local(self.now);
                    if let Some(connection) = &mut end.connection {
                        connection.remove_path(local, PathId(i as u16));
                    }
                }
                self.tell(|| format!("path {i} left"));
            }
        }
    }

    fn let_happen(&mut self) {
        while let Some(happening) = self.spec.happenings.get(self.happened).filter(|h| h.at <= self.now) {
            self.happened += 1;
            let end = &mut self.ends[happening.end];
            let local = end.spec.clock.local(self.now);
            end.was_short |= matches!(happening.what, What::Memory(limit) if limit < u64::MAX);
            if let Some(connection) = &mut end.connection {
                happening.what.happen(local, connection);
            }
            self.tell(|| format!("{happening:?}"));
        }
    }

    fn arrive(
        &mut self,
        path: usize,
        from: usize,
        copies: u32,
        corrupted: Option<u64>,
        segment: Segment,
    ) -> Result<(), String> {
        if let Some(word) = corrupted {
            return check_corrupted(&segment, word);
        }
        for _ in 0..copies {
            self.tell(|| format!("{} <- {path}: {}", 1 - from, describe(&segment)));
            self.deliver(path, 1 - from, segment.clone());
            self.drain()?;
        }
        Ok(())
    }

    /// The segment reaches its connection, a listener, or nobody.
    fn deliver(&mut self, path: usize, to: usize, segment: Segment) {
        let (now, id) = (self.now, PathId(path as u16));
        let flags = segment.header.flags;
        let opens = flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK);
        if self.ends[to].connection.is_none() && opens {
            let end = &self.spec.ends[to];
            let mut paths = self.path_configs();
            paths.extend((path >= paths.len()).then(|| self.spec.paths[path].config));
            let (local, ports) = (end.clock.local(now), Ports { local: 2000, remote: 1000 });
            let mut server =
                Connection::accept(local, end.config.clone(), ports, end.isn, &paths, id, &segment);
            let gone = self.gone.iter().zip(0..).filter(|(gone, _)| **gone);
            gone.for_each(|(_, i)| server.remove_path(local, PathId(i)));
            self.ends[to].begin(server);
        } else if self.ends[to].is_closed() {
            self.refuse(path, to, &segment);
        } else {
            self.ends[to].handle(now, id, segment);
        }
    }

    /// RFC 9293 §3.10.7.1: what reaches no connection is answered by a reset.
    fn refuse(&mut self, path: usize, from: usize, segment: &Segment) {
        let h = &segment.header;
        let is_early = self.ends[from].connection.is_none() && !h.flags.contains(TcpFlags::ACK);
        if h.flags.contains(TcpFlags::RST) || is_early {
            return; // data without ACK came before the SYN: the endpoint waits for that
        }
        let (seq, ack, flags) = match h.flags.contains(TcpFlags::ACK) {
            true => (h.ack, Seq(0), TcpFlags::RST),
            false => (Seq(0), h.seq.plus(segment.seq_len()), TcpFlags::RST | TcpFlags::ACK),
        };
        let header =
            TcpHeader { src_port: h.dst_port, dst_port: h.src_port, seq, ack, flags, ..Default::default() };
        self.send(path, from, Segment { header, ..Segment::default() });
    }

    /// Applications, timers and sending, until nothing is left to do now.
    fn drain(&mut self) -> Result<(), String> {
        for i in 0..2 {
            self.ends[i].work(self.now).map_err(|e| self.blame(i, &e))?;
            loop {
                let (edge, shift) = (self.ends[1 - i].edge, self.ends[1 - i].shift);
                let next = self.ends[i].transmit(self.now, edge, shift).map_err(|e| self.blame(i, &e))?;
                let Some(transmit) = next else { break };
                self.send(transmit.path.index(), i, transmit.segment);
            }
            self.records(i);
        }
        Ok(())
    }

    fn send(&mut self, path: usize, from: usize, segment: Segment) {
        self.tell(|| format!("{from} -> {path}: {}", describe(&segment)));
        self.note(&[self.now.0, path as u64, from as u64, segment.payload.len()]);
        self.last_sent = self.now;
        let size = (segment.header.len() as u64 + segment.payload.len()) as u32 + IPV4_HEADER;
        let label = Label { size, flow: 0, ecn_capable: segment.ecn == Ecn::Capable };
        let result = self.hops[path][from].enqueue(self.now, segment, label);
        let mtu = self.hops[path][from].config().mtu;
        if let (Err(Drop::TooBig), Some(mtu)) = (result, mtu) {
            // a router tells; the message arrives at once
            let end = &mut self.ends[from];
            let local = end.spec.clock.local(self.now);
            if let Some(connection) = &mut end.connection {
                connection.path_mss(local, PathId(path as u16), mtu - IPV4_HEADER - 20);
            }
        }
    }

    fn records(&mut self, i: usize) {
        while let Some(record) = self.ends[i].connection.as_mut().and_then(Connection::poll_record) {
            self.note(&[i as u64, record.at.0, record.path.map_or(99, |p| u64::from(p.0))]);
            if self.look != Look::Quick {
                let what = format!("{:?}", record.what);
                what.bytes().for_each(|b| self.note(&[u64::from(b)]));
                self.tell(|| format!("{i}: {what}"));
            }
        }
    }

    /// FNV-1a over words.
    fn note(&mut self, words: &[u64]) {
        for word in words {
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
    }

    fn outcome(&self) -> Outcome {
        let mut sum = Outcome { hash: self.hash, ..Outcome::default() };
        for stats in self.hops.iter().flatten().map(Hop::stats) {
            sum.packets += stats.entered;
            sum.dropped += stats.dropped_total();
            sum.duplicated += stats.duplicated;
            sum.reordered += stats.reordered;
            sum.corrupted += stats.corrupted;
        }
        for end in &self.ends {
            sum.bytes += end.received;
            sum.timeouts += end.connection.as_ref().map_or(0, |c| c.stats().timeouts);
        }
        sum
    }

    fn check_progress(&mut self) -> Result<(), String> {
        let progress = [self.ends[0].progress(), self.ends[1].progress()];
        if progress != self.progress.0 {
            self.progress = (progress, self.now);
        }
        let waited = self.now.since(self.progress.1.max(self.spec.calm));
        let aborted = self.ends.iter().any(|e| e.spec.abort.is_some());
        let silent = self.now.since(self.last_sent.max(self.progress.1));
        if silent > self.longest_silence() && !self.ends.iter().all(End::is_done) && !aborted {
            return Err(format!("silent for {silent:?} at {:?}: {}", self.now, self.summary()));
        }
        if waited <= self.patience() || self.ends.iter().all(End::is_closed) || aborted {
            return Ok(());
        }
        Err(format!("no progress for {waited:?} at {:?}: {}", self.now, self.summary()))
    }

    /// How long nobody may send, read or write while something is left to do: whoever waits for an answer asks again at the
    /// latest after the largest timeout, and an application goes on after its pause. However slow, however
    /// unlucky: that much holds of a transfer that has not stalled.
    fn longest_silence(&self) -> Duration {
        self.longest(|e| e.spec.config.max_rto.max(e.spec.config.initial_rto))
            + self.longest(|e| e.spec.read.map_or(Duration::ZERO, |r| r.1)).times(2)
            + self.longest(|e| e.spec.write.1)
            + Duration::from_secs(2) // closing later, drifting clocks
    }

    /// How long nothing may be achieved.
    fn patience(&self) -> Duration {
        let longest = |of: fn(&End) -> Duration| self.longest(of);
        let one_by_one = self.ends.iter().any(|e| e.spec.config.timeout_takes == TimeoutTakes::Segment);
        longest(|e| e.spec.config.max_rto.max(e.spec.config.keep_alive).max(e.spec.config.initial_rto))
            .times(if one_by_one { ONE_BY_ONE } else { UNLUCKY })
            + longest(|e| e.spec.config.time_wait).times(3)
            + longest(|e| e.spec.read.map_or(Duration::ZERO, |r| r.1)).times(2)
            + Duration::from_secs(100)
    }

    fn longest(&self, of: fn(&End) -> Duration) -> Duration {
        self.ends.iter().map(of).max().unwrap_or_default()
    }

    fn check_end(&self) -> Result<(), String> {
        for (i, hop) in self.hops.iter().flatten().enumerate() {
            let s = hop.stats();
            if s.entered + s.duplicated != s.left + s.dropped_total() + hop.queued() as u64 {
                return Err(format!("hop {i} does not account for its packets: {s:?}"));
            }
        }
        for i in 0..2 {
            self.check_outcome(i).and_then(|()| self.check_round_trips(i)).map_err(|e| self.blame(i, &e))?;
        }
        Ok(())
    }

    /// No path can have had a round trip that is shorter than the way there and the shortest way back, unless two clocks measure it, or
    /// acknowledgments come from anywhere.
    fn check_round_trips(&self, i: usize) -> Result<(), String> {
        let peer = &self.spec.ends[1 - i].config;
        if peer.multi_route || peer.ack_return == AckReturn::RoundRobin {
            return Ok(());
        }
        let back = self.spec.paths.iter().map(|path| shortest(path, 1 - i)).min().unwrap_or_default();
        for (path, id) in self.spec.paths.iter().zip(0..) {
            let stats = self.ends[i].connection.as_ref().map(|c| c.path_stats(PathId(id)));
            let least = shortest(path, i) + back;
            let least = Duration(least.0 - least.0 / 1000); // drifting clocks
            if let Some(rtt) = stats.and_then(|s| s.min_rtt).filter(|rtt| *rtt < least) {
                return Err(format!("a round trip of {rtt:?} on path {id}, which takes {least:?} at least"));
            }
        }
        Ok(())
    }

    fn check_outcome(&self, i: usize) -> Result<(), String> {
        let (end, peer) = (&self.ends[i], &self.ends[1 - i]);
        if self.ends.iter().any(|e| e.spec.abort.is_some()) {
            return Ok(()); // what arrived was checked as it arrived; a reset may be lost for ever
        }
        if !end.is_closed() {
            return Err("nothing is due, and it is still open".to_owned());
        }
        if end.received != peer.spec.send {
            return Err(format!("received {} of {}", end.received, peer.spec.send));
        }
        // whoever waits for the last acknowledgment may be told that the peer has forgotten all
        let forgiven = end.lost == Some(CloseReason::Reset) && peer.finished && end.peer_finished;
        match end.lost {
            Some(_) if forgiven => Ok(()),
            Some(reason) => Err(format!("lost: {reason:?}")),
            None if !end.peer_finished || !end.connected || !end.finished => {
                Err("it was not told how it ended".to_owned())
            }
            None => Ok(()),
        }
    }

    fn blame(&self, i: usize, what: &str) -> String {
        format!("end {i} at {:?}: {what}: {}", self.now, self.summary())
    }

    fn summary(&self) -> String {
        let of = |e: &End| {
            let state = e.connection.as_ref().map(Connection::state);
            let timeout = e.connection.as_ref().and_then(Connection::poll_timeout);
            format!(
                "{state:?} received {} wrote {:?} of {} timeout {timeout:?} finished {} {}",
                e.received,
                e.progress().1,
                e.spec.send,
                e.finished,
                e.peer_finished
            )
        };
        format!("[{} | {}]", of(&self.ends[0]), of(&self.ends[1]))
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.look == Look::Trace {
            println!("{:?} {}", self.now, what());
        }
    }
}
