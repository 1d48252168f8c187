//! What leaves next, and on which path.

use polypath_wire::shim::{Ask, Shim};
use polypath_wire::{Duration, Ecn, Instant, PathId, PathSet};

use super::again::Kept;
use super::copies::Copy;
use super::leaving::{Leaving, What, frame_len};
use super::numbering::ALONE;
use super::queue::{Packet, Tolerable};
use super::resequencer::stamp_of;
use super::{PacketFlow, Path};
use crate::engine::timers::Timer;
use crate::facts::{Parcel, PathState, PathView};
use crate::path::transmission::{Cargo, History};
use crate::sched::scheduler::{Choice, arrival, is_open};

/// Key of a transmission without a packet.
pub(super) const ASK: u64 = u64::MAX;

/// Packets wait no longer for a quick path than this, on top of what they may anyway: CoDel's interval.
const LONGEST_DETOUR: Duration = Duration::from_millis(100);

/// How long a path counts as one that loses packets, after a loss.
const LOSSY: Duration = Duration::from_secs(10);

impl PacketFlow {
    /// The next frame to send. It counts as sent.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Leaving> {
        if let Some(report) = self.next_report(now) {
            return Some(report);
        }
        if let Some(path) = self.engine.take_probe().filter(|path| self.paths.contains(*path)) {
            self.engine.begin_probe(path);
            self.paths[path].ask = true;
        }
        let asked = self.paths.iter_mut().find_map(|path| std::mem::take(&mut path.ask).then_some(path.path));
        match asked {
            Some(path) => Some(self.ask(now, path)),
            None => self.next_copy(now).or_else(|| self.next_again(now)).or_else(|| self.next_packet(now)),
        }
    }

    fn next_report(&mut self, now: Instant) -> Option<Leaving> {
        let views = self.engine.views();
        self.paths.iter_mut().find_map(|Path { path, receipts, .. }| {
            let mut report = receipts.report(now)?;
            report.fit(views[*path].mss as usize);
            Some(Leaving { path: *path, ecn: Ecn::None, what: What::Report(report) })
        })
    }

    /// A question takes a number of its own, so its answer tells what was sent before it and did not come. It is small, and
    /// the window does not hold it back.
    fn ask(&mut self, now: Instant, path: PathId) -> Leaving {
        let number = self.engine.send_free(now, path, ASK);
        if let Some(before) = self.paths[path].sent.asks(number) {
            self.engine.forget(path, before);
        }
        Leaving { path, ecn: Ecn::None, what: What::Ask(Ask { number: self.on_wire(path, number) }) }
    }

    fn next_packet(&mut self, now: Instant) -> Option<Leaving> {
        let largest = self.largest()?;
        loop {
            if self.head.is_none() {
                self.head = self.queue.pop(now, self.tolerable(now));
            }
            let packet = self.head.as_ref()?;
            if packet.bytes.len() <= largest as usize {
                break;
            }
            self.head = None;
            self.stats.too_big += 1;
        }
        let packet = self.head.take()?;
        let (path, others) = self.paths_of(now, &packet).or_else(|| {
            self.head = Some(packet.clone());
            None
        })?;
        let (sequence, previous) = self.numbering.take(now, packet.flow);
        self.stats.sent += 1;
        let copies = self.copies_of(&packet, path, others);
        let Packet { flow, class, bytes, .. } = packet;
        let repaired = packet.repaired && copies.is_empty();
        let stamp = stamp_of(now);
        let shim = Shim { class, repaired, flow, previous, stamp, sequence: sequence as u32, number: 0 };
        // Before its copies wait: they do not keep the path busy.
        let leaving = self.leave(now, path, Kept { shim, bytes: bytes.clone(), times: 1, since: now });
        copies.into_iter().for_each(|to| self.copies.push(now, shim, bytes.clone(), to));
        Some(leaving)
    }

    /// The paths of each copy of `packet`, which leaves on `path`: those that the scheduler chose, or any second path that carries it.
    fn copies_of(&self, packet: &Packet, path: PathId, others: PathSet) -> Vec<PathSet> {
        let len = frame_len(packet.bytes.len());
        let carries =
            |view: &&PathView| view.id != path && view.state == PathState::Active && view.mss >= len;
        let second: PathSet = self.engine.views().iter().filter(carries).map(|view| view.id).collect();
        match packet.twice && others.is_empty() {
            true => Some(second).filter(|second| !second.is_empty()).into_iter().collect(),
            false => {
                let chosen = self.engine.views().ids().filter(|path| others.contains(*path));
                chosen.map(|id| [id].into_iter().collect()).collect()
            }
        }
    }

    /// The path that takes `packet` now, and those that have room for copies besides. What leaves twice waits for no better path than
    /// those that have room: any may be dead.
    fn paths_of(&mut self, now: Instant, packet: &Packet) -> Option<(PathId, PathSet)> {
        let len = frame_len(packet.bytes.len());
        // What is alone and had its turn at once does not hurry for what waits behind it.
        let is_call = packet.alone.is_some_and(|taken| now.since(taken) <= ALONE);
        let behind = if is_call { 0 } else { self.queue.bytes() };
        let waiting = behind + u64::from(len);
        let parcel =
            Parcel { offset: self.numbering.next(), len, waiting, window: u64::MAX, ..Parcel::default() };
        let choice = match packet.twice {
            true => self.engine.pick_soonest(now, &parcel, |_| true),
            false => self.engine.pick_whole(now, &parcel),
        };
        let (path, others) = self.engine.paths_of(now, &parcel, choice)?;
        let open = |view: &&PathView| others.contains(view.id) && is_open(now, view, len);
        Some((path, self.engine.views().iter().filter(open).map(|view| view.id).collect()))
    }

    /// How much later a packet that leaves now arrives on the slowest path than on the quickest: who waits no longer than that for
    /// the quickest loses nothing. What goes again if it is lost may arrive a round trip later on a path that loses packets, and
    /// all that follows waits for it.
    pub(super) fn tolerable(&self, now: Instant) -> Tolerable {
        let active = self.engine.views().iter().filter(|view| view.state == PathState::Active);
        let (mut first, mut last, mut repaired) = (Instant::MAX, now, now);
        for view in active {
            let arrives = arrival(now, view, view.mss);
            let is_lossy = self
                .paths
                .get(view.id)
                .and_then(|path| path.lost_of)
                .is_some_and(|left| now.since(left) < LOSSY);
            let again = view.srtt.filter(|_| is_lossy).unwrap_or_default();
            (first, last, repaired) = (first.min(arrives), last.max(arrives), repaired.max(arrives + again));
        }
        let detour = |last: Instant| last.since(first).min(LONGEST_DETOUR);
        Tolerable { repaired: detour(repaired), others: detour(last) }
    }

    /// The first copy for which a second path has room.
    fn next_copy(&mut self, now: Instant) -> Option<Leaving> {
        let (engine, mut opens) = (&self.engine, None);
        let path = |copy: &Copy| {
            let parcel = Parcel { len: frame_len(copy.bytes.len()), window: u64::MAX, ..Parcel::default() };
            match engine.pick_soonest(now, &parcel, |path| copy.to.contains(path)) {
                Choice::Send(path) => Some(path),
                Choice::Wait(until) => {
                    opens = opens.into_iter().chain(until).min();
                    None
                }
                Choice::Copies(_) => None,
            }
        };
        match self.copies.take(now, path) {
            Some((copy, path)) => {
                self.stats.copies += 1;
                let shim = Shim { stamp: stamp_of(now), ..copy.shim };
                Some(self.leave(now, path, Kept { shim, bytes: copy.bytes, times: 1, since: now }))
            }
            None => {
                opens.into_iter().for_each(|at| self.engine.timers.set_earlier(Timer::Pacing, at));
                None
            }
        }
    }

    /// `packet` leaves on `path`.
    pub(super) fn leave(&mut self, now: Instant, path: PathId, packet: Kept) -> Leaving {
        let (shim, bytes) = (packet.shim, packet.bytes.clone());
        let key = u64::from(shim.sequence);
        let cargo = Cargo { key, len: frame_len(bytes.len()), history: History::Once };
        let last = self.queue.is_empty() && self.copies.is_empty() && self.again.is_empty();
        let number = self.engine.send(now, path, cargo, last);
        self.engine.arm_tail(now, path);
        if shim.repaired {
            self.paths[path].kept.insert(number, packet);
        }
        let ecn = if self.engine.heeds_marks() { Ecn::Capable } else { Ecn::None };
        Leaving { path, ecn, what: What::Packet(Shim { number: self.on_wire(path, number), ..shim }, bytes) }
    }

    /// What the peer sees of the transmission `number` of `path`.
    fn on_wire(&self, path: PathId, number: u64) -> u32 {
        self.paths[path].first.wrapping_add(number as u32)
    }

    /// A timer says when the next gap is given up.
    pub(super) fn arm_gap(&mut self) {
        match self.resequencer.next_timeout() {
            Some(at) => self.engine.timers.set(Timer::GAP, at),
            None => self.engine.timers.stop(Timer::GAP),
        }
    }
}
