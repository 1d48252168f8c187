//! One direction of a link: a drop-tail queue, a server of some rate, a wire with a delay, and
//! everything that can go wrong on it. Driven by `now`; the simulator and the real-time emulator
//! use the same value.
//!
//! The server is lazy: when a packet is accepted, the times at which it will have been served and
//! will arrive are computed at once, so a packet costs one event, its arrival. Only a scheduled
//! change of rate, delay or state looks at the packets again. Times are whole nanoseconds; what the
//! division of size by rate leaves over is carried to the next packet of the busy period, so the
//! long-run rate is exact.

mod config;
mod server;
mod stats;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use polypath_wire::{Duration, Instant, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub use config::{Change, HopConfig, HopError, QueueLimit, Step};
use server::Server;
pub use stats::{Drop, HopStats};

/// One direction of a link that carries items of type `T` (a datagram, the index of a packet).
///
/// [`enqueue`](Self::enqueue) what comes, call [`poll`](Self::poll) until `None` whenever
/// [`next_event`](Self::next_event) is reached. Calls must not go back in time. An accepted item
/// comes out of `poll` exactly once, whatever befell it.
#[derive(Debug)]
pub struct Hop<T> {
    /// When the schedule says something next.
    step_due: Instant,
    /// When anything happens next to what is in it; `MAX` while it is empty.
    due: Instant,
    server: Server,
    /// In order of arrival: first those on the wire (`served` of them), then the one in service,
    /// then those that wait. `served` and `backlog` are of the time when somebody last asked.
    line: VecDeque<Packet<T>>,
    served: usize,
    /// Bytes in service or waiting.
    backlog: u64,
    queue: QueueLimit,
    /// Largest packet, bytes.
    mtu: u32,
    up: bool,
    /// Something happens to packets, or may.
    faulty: bool,
    stats: HopStats,
    rare: Box<Rare<T>>,
}

/// What most packets have nothing to do with.
#[derive(Debug)]
struct Rare<T> {
    config: HopConfig,
    next_step: usize,
    held_back: BinaryHeap<Reverse<HeldBack<T>>>,
    held_back_count: u64,
    rng: Pcg64Mcg,
}

/// An item that left the hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure<T> {
    /// The item.
    pub item: T,
    /// Its size, bytes.
    pub size: u32,
    /// What happened to it.
    pub fate: Fate,
}

/// What happened to an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It reached the far end.
    Arrived {
        /// How often: 2 if the hop duplicated it, else 1.
        copies: u32,
        /// A random word that says which bits to flip, if it was corrupted.
        corrupted: Option<u64>,
    },
    /// It was lost on the way.
    Lost(Drop),
}

impl<T> Hop<T> {
    /// A hop that draws its chance from `seed`. Rates below 1 bit/s count as 1 bit/s.
    pub fn new(config: HopConfig, seed: Seed) -> Self {
        let chances = [config.loss, config.duplication, config.reordering, config.corruption];
        Self {
            step_due: config.schedule.first().map_or(Instant::MAX, |step| step.at),
            due: Instant::MAX,
            server: Server::new(config.rate, config.delay),
            line: VecDeque::new(),
            served: 0,
            backlog: 0,
            queue: config.queue,
            mtu: config.mtu.unwrap_or(u32::MAX),
            up: config.up,
            faulty: chances.iter().any(|p| *p > 0.0),
            stats: HopStats::default(),
            rare: Box::new(Rare {
                next_step: 0,
                held_back: BinaryHeap::new(),
                held_back_count: 0,
                rng: Pcg64Mcg::seed_from_u64(seed.0),
                config,
            }),
        }
    }

    /// Offers an item of `size` bytes. An error means that it was dropped at once, and counted.
    pub fn enqueue(&mut self, now: Instant, item: T, size: u32) -> Result<(), Drop> {
        self.apply_steps(now);
        self.stats.entered += 1;
        self.stats.bytes_entered += u64::from(size);
        self.admit(now, size).inspect_err(|&cause| self.stats.drops[cause as usize] += 1)?;
        let (served_at, arrives_at) = self.server.serve(now, size);
        let chance = if self.faulty { self.draw() } else { Chance::FINE };
        self.backlog += u64::from(size);
        self.line.push_back(Packet { served_at, arrives_at, item, size, chance });
        self.due = self.due.min(arrives_at).min(self.step_due);
        Ok(())
    }

    /// The next item that has left by `now`.
    #[must_use]
    pub fn poll(&mut self, now: Instant) -> Option<Departure<T>> {
        if now < self.due {
            return None;
        }
        self.apply_steps(now);
        let departure = if self.faulty { self.leave_by_chance(now) } else { self.leave(now) };
        self.due = self.upcoming();
        departure
    }

    /// When to poll next; `None` while it is empty.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        Some(self.due).filter(|due| *due < Instant::MAX)
    }

    #[inline]
    fn leave(&mut self, now: Instant) -> Option<Departure<T>> {
        let Packet { item, size, .. } = self.next_in_line(now)?;
        self.stats.left += 1;
        self.stats.bytes_left += u64::from(size);
        Some(Departure { item, size, fate: Fate::Arrived { copies: 1, corrupted: None } })
    }

    #[inline(never)]
    fn leave_by_chance(&mut self, now: Instant) -> Option<Departure<T>> {
        loop {
            if let Some(Reverse(held)) = self.rare.held_back.peek()
                && held.until <= self.line.front().map_or(now, |head| now.min(head.arrives_at))
            {
                let Reverse(HeldBack { packet, .. }) = self.rare.held_back.pop().expect("it was peeked");
                return Some(self.depart(packet));
            }
            let packet = self.next_in_line(now)?;
            if !packet.chance.has(Chance::LATE) {
                return Some(self.depart(packet));
            }
            self.hold_back(packet);
        }
    }

    fn next_in_line(&mut self, now: Instant) -> Option<Packet<T>> {
        let packet = self.line.pop_front_if(|head| head.arrives_at <= now)?;
        match self.served.checked_sub(1) {
            Some(served) => self.served = served,
            None => self.backlog -= u64::from(packet.size), // nobody asked since it was served
        }
        Some(packet)
    }

    /// Counters.
    pub fn stats(&self) -> &HopStats {
        &self.stats
    }

    /// Packets that wait, are served or are on the wire.
    pub fn queued(&self) -> usize {
        self.line.len() + self.rare.held_back.len()
    }

    /// Packets and bytes that wait at `now`, without the packet in service.
    pub fn waiting(&mut self, now: Instant) -> (u64, u64) {
        self.settle(now);
        (self.unserved().saturating_sub(1), self.waiting_bytes())
    }

    /// Parameters it was made with; the schedule may have changed some since.
    pub fn config(&self) -> &HopConfig {
        &self.rare.config
    }

    fn admit(&mut self, now: Instant, size: u32) -> Result<(), Drop> {
        if !self.up {
            return Err(Drop::Down);
        }
        if size > self.mtu {
            return Err(Drop::TooBig);
        }
        // At a tie the newcomer comes first: what brought it was under way before (ns-2 does so).
        let before = now - Duration::from_nanos(1);
        if self.server.is_idle(before) {
            (self.served, self.backlog) = (self.line.len(), 0);
        } else if !self.has_room(size) || self.unserved() > self.stats.peak_waiting {
            self.settle_server(before);
            if !self.has_room(size) && !self.server.is_idle(now) {
                return Err(Drop::QueueFull);
            }
            self.stats.peak_waiting = self.stats.peak_waiting.max(self.unserved());
        }
        Ok(())
    }

    /// Whether a packet of `size` bytes may wait behind those that are not known to be served.
    fn has_room(&self, size: u32) -> bool {
        match self.queue {
            QueueLimit::Packets(limit) => self.unserved() <= u64::from(limit),
            QueueLimit::Bytes(limit) => self.waiting_bytes() + u64::from(size) <= limit,
        }
    }

    /// Chance is drawn once per accepted packet, in their order, and only where it can matter.
    #[inline(never)]
    fn draw(&mut self) -> Chance {
        let rng = &mut self.rare.rng;
        let mut happens = |p: f64| p > 0.0 && ((rng.next_u64() >> 11) as f64) < p * (1u64 << 53) as f64;
        if happens(self.rare.config.loss) {
            return Chance::LOST;
        }
        let HopConfig { duplication, reordering, corruption, .. } = self.rare.config;
        let mut chance = Chance::FINE;
        for (p, what) in
            [(duplication, Chance::COPIED), (reordering, Chance::LATE), (corruption, Chance::CORRUPTED)]
        {
            chance.0 |= if happens(p) { what.0 } else { 0 };
        }
        chance
    }

    fn hold_back(&mut self, packet: Packet<T>) {
        self.stats.reordered += 1;
        self.rare.held_back_count += 1;
        let until = packet.arrives_at + self.rare.config.reorder_delay;
        self.rare.held_back.push(Reverse(HeldBack { until, number: self.rare.held_back_count, packet }));
    }

    fn depart(&mut self, packet: Packet<T>) -> Departure<T> {
        let Packet { item, size, chance, .. } = packet;
        for (what, cause) in [(Chance::LOST, Drop::Loss), (Chance::DOWN, Drop::Down)] {
            if chance.has(what) {
                self.stats.drops[cause as usize] += 1;
                return Departure { item, size, fate: Fate::Lost(cause) };
            }
        }
        let (copied, corrupted) = (chance.has(Chance::COPIED), chance.has(Chance::CORRUPTED));
        self.stats.duplicated += u64::from(copied);
        self.stats.corrupted += u64::from(corrupted);
        let (copies, corrupted) = (1 + u32::from(copied), corrupted.then(|| self.rare.rng.next_u64()));
        self.stats.left += u64::from(copies);
        self.stats.bytes_left += u64::from(copies) * u64::from(size);
        Departure { item, size, fate: Fate::Arrived { copies, corrupted } }
    }

    /// How long a packet that comes at `now` waits until it is served.
    pub fn wait(&self, now: Instant) -> Duration {
        self.server.wait(now)
    }

    /// Packets that wait at `now`, the one in service not among them.
    pub fn queue_length(&self, now: Instant) -> usize {
        (self.line.len() - self.line.partition_point(|p| p.served_at <= now)).saturating_sub(1)
    }

    /// Packets not known to be served: at most one more than wait.
    fn unserved(&self) -> u64 {
        (self.line.len() - self.served) as u64
    }

    fn waiting_bytes(&self) -> u64 {
        self.line.get(self.served).map_or(0, |in_service| self.backlog - u64::from(in_service.size))
    }
}

/// The schedule and the passing of time.
impl<T> Hop<T> {
    fn settle(&mut self, now: Instant) {
        self.apply_steps(now);
        self.settle_server(now);
    }

    /// Counts those as served that are by `now`.
    fn settle_server(&mut self, now: Instant) {
        while let Some(packet) = self.line.get(self.served).filter(|p| p.served_at <= now) {
            self.backlog -= u64::from(packet.size);
            self.served += 1;
        }
    }

    #[inline]
    fn apply_steps(&mut self, now: Instant) {
        if self.step_due <= now {
            self.apply_due_steps(now);
        }
    }

    #[cold]
    fn apply_due_steps(&mut self, now: Instant) {
        while let Some(&Step { at, change }) = self.upcoming_step().filter(|s| s.at <= now) {
            self.rare.next_step += 1;
            self.settle_server(at);
            match change {
                Change::Rate(rate) => self.reserve(at, |server| server.set_rate(rate)),
                Change::Delay(delay) => self.reserve(at, |server| server.delay = delay),
                Change::Loss(p) => {
                    self.rare.config.loss = p;
                    self.faulty |= p > 0.0;
                }
                Change::Up => self.up = true,
                Change::Down => self.go_down(at),
            }
        }
        self.step_due = self.upcoming_step().map_or(Instant::MAX, |step| step.at);
        self.due = self.upcoming();
    }

    fn upcoming_step(&self) -> Option<&Step> {
        self.rare.config.schedule.get(self.rare.next_step)
    }

    fn upcoming(&self) -> Instant {
        let head = self.line.front().map_or(Instant::MAX, |p| p.arrives_at);
        let held = if self.faulty { self.rare.held_back.peek() } else { None };
        let arrival = held.map_or(head, |Reverse(held)| head.min(held.until));
        if arrival == Instant::MAX { arrival } else { arrival.min(self.step_due) }
    }

    /// Serves again what is not yet served, after `change`.
    fn reserve(&mut self, at: Instant, change: impl FnOnce(&mut Server)) {
        let last_arrival = self.served.checked_sub(1).map_or(Instant::ZERO, |i| self.line[i].arrives_at);
        let in_service = self.line.get(self.served).map(|p| p.served_at);
        let rest = self.server.interrupt(at, in_service, last_arrival);
        change(&mut self.server);
        for (i, packet) in self.line.iter_mut().skip(self.served).enumerate() {
            let times =
                if i == 0 { self.server.resume(at, rest) } else { self.server.serve(at, packet.size) };
            (packet.served_at, packet.arrives_at) = times;
        }
    }

    fn go_down(&mut self, at: Instant) {
        (self.up, self.faulty) = (false, true);
        for packet in self.line.iter_mut().filter(|p| p.arrives_at > at) {
            packet.chance = Chance::DOWN;
            (packet.served_at, packet.arrives_at) = (packet.served_at.min(at), at);
        }
        let held = std::mem::take(&mut self.rare.held_back).into_iter().map(|Reverse(mut held)| {
            if held.until > at {
                held.until = at;
                held.packet.chance = Chance::DOWN;
            }
            Reverse(held)
        });
        self.rare.held_back = held.collect();
        self.server.reset(at);
        self.settle_server(at);
    }
}

#[derive(Debug)]
struct Packet<T> {
    served_at: Instant,
    arrives_at: Instant,
    item: T,
    size: u32,
    chance: Chance,
}

/// What happens to a packet, in bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Chance(u8);

impl Chance {
    const FINE: Self = Self(0);
    const LOST: Self = Self(1);
    const DOWN: Self = Self(2);
    const COPIED: Self = Self(4);
    const LATE: Self = Self(8);
    const CORRUPTED: Self = Self(16);

    fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }
}

/// A packet that others pass, ordered by time and then by number.
#[derive(Debug)]
struct HeldBack<T> {
    until: Instant,
    number: u64,
    packet: Packet<T>,
}

impl<T> HeldBack<T> {
    fn key(&self) -> (Instant, u64) {
        (self.until, self.number)
    }
}
impl<T> PartialEq for HeldBack<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for HeldBack<T> {}
impl<T> PartialOrd for HeldBack<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for HeldBack<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
