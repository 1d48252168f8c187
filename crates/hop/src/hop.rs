//! The way of a packet through a hop.
//!
//! Where packets leave in the order in which they came, the server is lazy: when a packet is accepted, the times at
//! which it will have been served and will arrive are computed at once, so a packet costs one event, its arrival.
//! Only a scheduled change of rate, delay or state looks at the packets again. A discipline that decides when a packet
//! leaves keeps it in a [`Store`] until the server takes it, which is an event more. Times are whole nanoseconds;
//! what the division of size by rate leaves over is carried to the next packet of the busy period, so the long-run
//! rate is exact.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Debug;

use polypath_wire::{Duration, Instant, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::aqm::Verdict;
use crate::config::HopConfig;
use crate::discipline::Aqm;
use crate::limit::QueueLimit;
use crate::packet::{Chance, Departure, Fate, HeldBack, Label, Packet};
use crate::server::Server;
use crate::stats::{Drop, HopStats};
use crate::store::Waiting;
use crate::trace::Cursor;

/// One direction of a link that carries items of type `T` (a datagram, the index of a packet).
///
/// [`enqueue`](Self::enqueue) what comes, call [`poll`](Self::poll) until `None` whenever
/// [`next_event`](Self::next_event) is reached. Calls must not go back in time. An accepted item
/// comes out of `poll` exactly once, whatever befell it.
#[derive(Debug)]
pub struct Hop<T> {
    /// When anything happens next to what is in it; `MAX` while it is empty.
    pub(crate) due: Instant,
    pub(crate) server: Server,
    /// In order of arrival: first those on the wire (`served` of them), then the one in service,
    /// then those that wait. `served` and `backlog` are of the time when somebody last asked.
    pub(crate) line: VecDeque<Packet<T>>,
    pub(crate) served: u32,
    /// Bytes of the line in service or waiting.
    pub(crate) backlog: u64,
    pub(crate) queue: QueueLimit,
    /// Largest packet, bytes.
    pub(crate) mtu: u32,
    pub(crate) up: bool,
    /// Something happens to packets, or may.
    pub(crate) faulty: bool,
    /// First in, first out at some rate, and nothing else happens: drop-tail, up, not `faulty`, no trace, and no step
    /// of the schedule to come.
    pub(crate) plain: bool,
    /// Most packets that ever waited.
    pub(crate) peak_waiting: u32,
    pub(crate) counts: Counts,
    pub(crate) rare: Box<Rare<T>>,
}

/// What is counted of every packet: [`HopStats`] says what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub entered: u64,
    pub bytes_entered: u64,
    pub left: u64,
    pub bytes_left: u64,
}

/// What most packets have nothing to do with: it stays out of the cache.
#[derive(Debug)]
pub(crate) struct Rare<T> {
    pub config: HopConfig,
    pub next_step: usize,
    /// Instead of the rate.
    pub trace: Option<Cursor>,
    /// None is drop-tail.
    pub aqm: Option<Aqm<T>>,
    /// All that is not among the [`Counts`].
    pub stats: HopStats,
    pub held_back: BinaryHeap<Reverse<HeldBack<T>>>,
    held_back_count: u64,
    rng: Pcg64Mcg,
}

impl<T: Debug + Send + 'static> Hop<T> {
    /// A hop that draws its chance from `seed`. Rates below 1 bit/s count as 1 bit/s.
    pub fn new(config: HopConfig, seed: Seed) -> Self {
        let chances = [config.loss, config.duplication, config.reordering, config.corruption];
        let mut hop = Self {
            due: Instant::MAX,
            server: Server::new(config.rate, config.delay),
            line: VecDeque::new(),
            served: 0,
            backlog: 0,
            queue: config.queue,
            mtu: config.mtu.unwrap_or(u32::MAX),
            up: config.up,
            faulty: chances.iter().any(|p| *p > 0.0),
            plain: false,
            peak_waiting: 0,
            counts: Counts::default(),
            rare: Box::new(Rare {
                next_step: 0,
                trace: config.trace.clone().map(Cursor::new),
                aqm: config.discipline.build(config.queue, seed.child("queue")),
                stats: HopStats::default(),
                held_back: BinaryHeap::new(),
                held_back_count: 0,
                rng: Pcg64Mcg::seed_from_u64(seed.0),
                config,
            }),
        };
        hop.classify();
        hop
    }
}

impl<T> Hop<T> {
    /// Finds out whether it is plain.
    pub(crate) fn classify(&mut self) {
        let Rare { aqm, trace, .. } = &*self.rare;
        let ordinary = aqm.is_none() && trace.is_none() && self.upcoming_step().is_none();
        self.plain = ordinary && self.up && !self.faulty;
    }

    /// Whether it looks at more of a packet than its size.
    #[inline]
    pub fn reads_labels(&self) -> bool {
        !self.plain && self.rare.aqm.is_some()
    }

    /// Offers an item. Its label may be its size alone, in bytes, unless the hop
    /// [reads labels](Self::reads_labels). An error means that it was dropped at once, and counted.
    pub fn enqueue(&mut self, now: Instant, item: T, label: impl Into<Label>) -> Result<(), Drop> {
        let label = label.into();
        let size = label.size;
        self.counts.entered += 1;
        self.counts.bytes_entered += u64::from(size);
        if !self.plain {
            return self.enqueue_otherwise(now, item, label);
        }
        let admitted = if size > self.mtu { Err(Drop::TooBig) } else { self.find_room(now, size) };
        admitted.inspect_err(|cause| self.count_drop(*cause))?;
        let times = self.server.serve(now, size);
        self.join(item, size, times, Chance::FINE);
        self.due = self.due.min(times.1);
        Ok(())
    }

    #[inline(never)]
    fn enqueue_otherwise(&mut self, now: Instant, item: T, label: Label) -> Result<(), Drop> {
        self.apply_steps(now);
        let admitted = self.admit(now, label).inspect_err(|cause| self.count_drop(*cause))?;
        if let Some(Aqm::Store(_)) = self.rare.aqm {
            return self.store(now, Waiting { item, label, came: now, marked: false });
        }
        let times = self.server.serve_by(&mut self.rare.trace, now, label.size);
        let chance = if self.faulty { self.draw() } else { Chance::FINE };
        self.join(item, label.size, times, chance.with(Chance::MARKED, admitted == Verdict::Mark));
        self.due = self.upcoming();
        Ok(())
    }

    #[cold]
    pub(crate) fn count_drop(&mut self, cause: Drop) {
        self.rare.stats.drops[cause as usize] += 1;
    }

    /// The line's last packet, with its times of service and arrival.
    pub(crate) fn join(&mut self, item: T, size: u32, times: (Instant, Instant), chance: Chance) {
        self.backlog += u64::from(size);
        self.line.push_back(Packet { served_at: times.0, arrives_at: times.1, item, size, chance });
    }

    /// The next item that has left by `now`.
    #[must_use]
    pub fn poll(&mut self, now: Instant) -> Option<Departure<T>> {
        if now < self.due {
            return None;
        }
        let departure = if self.plain { self.leave(now) } else { self.leave_otherwise(now) };
        self.due = self.upcoming();
        departure
    }

    #[inline(never)]
    fn leave_otherwise(&mut self, now: Instant) -> Option<Departure<T>> {
        self.apply_steps(now);
        let dropped = if self.rare.aqm.is_some() { self.take_dropped(now) } else { None };
        match dropped {
            Some(_) => dropped,
            None if self.faulty => self.leave_by_chance(now),
            None => self.leave(now),
        }
    }

    /// When to poll next; `None` while it is empty.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        Some(self.due).filter(|due| *due < Instant::MAX)
    }

    #[inline]
    fn leave(&mut self, now: Instant) -> Option<Departure<T>> {
        let Packet { item, size, chance, .. } = self.next_in_line(now)?;
        self.counts.left += 1;
        self.counts.bytes_left += u64::from(size);
        let marked = chance.has(Chance::MARKED);
        Some(Departure { item, size, fate: Fate::Arrived { copies: 1, corrupted: None, marked } })
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
    pub fn stats(&self) -> HopStats {
        let Counts { entered, bytes_entered, left, bytes_left } = self.counts;
        let peak_waiting = self.peak_waiting.into();
        HopStats { entered, bytes_entered, left, bytes_left, peak_waiting, ..self.rare.stats }
    }

    /// Packets that wait, are served or are on the wire.
    pub fn queued(&self) -> usize {
        let stored = self.in_store().map_or(0, |store| store.waiting().0 + store.dropped.len());
        self.line.len() + self.rare.held_back.len() + stored
    }

    /// Packets and bytes that wait at `now`, without the packet in service.
    pub fn waiting(&mut self, now: Instant) -> (u64, u64) {
        self.apply_steps(now);
        self.feed(now);
        self.settle_server(now);
        if let Some(store) = self.in_store() {
            let (packets, bytes) = store.waiting();
            return (packets as u64, bytes);
        }
        (self.unserved().saturating_sub(1), self.waiting_bytes())
    }

    /// Parameters it was made with; the schedule may have changed some since.
    pub fn config(&self) -> &HopConfig {
        &self.rare.config
    }

    /// How long a packet that comes at `now` waits until it is served.
    pub fn wait(&self, now: Instant) -> Duration {
        match self.in_store() {
            Some(store) => self.server.wait_behind(&self.rare.trace, now, store.waiting().1),
            None => self.server.wait(now),
        }
    }

    /// Packets that wait at `now`, the one in service not among them.
    pub fn queue_length(&self, now: Instant) -> usize {
        match self.in_store() {
            Some(store) => store.waiting().0,
            None => (self.line.len() - self.line.partition_point(|p| p.served_at <= now)).saturating_sub(1),
        }
    }

    /// Chance is drawn once per accepted packet, in their order, and only where it can matter.
    #[inline(never)]
    pub(crate) fn draw(&mut self) -> Chance {
        let rng = &mut self.rare.rng;
        let mut happens = |p: f64| p > 0.0 && ((rng.next_u64() >> 11) as f64) < p * (1u64 << 53) as f64;
        if happens(self.rare.config.loss) {
            return Chance::LOST;
        }
        let HopConfig { duplication, reordering, corruption, .. } = self.rare.config;
        [(duplication, Chance::COPIED), (reordering, Chance::LATE), (corruption, Chance::CORRUPTED)]
            .into_iter()
            .fold(Chance::FINE, |chance, (p, what)| chance.with(what, happens(p)))
    }

    fn hold_back(&mut self, packet: Packet<T>) {
        self.rare.stats.reordered += 1;
        self.rare.held_back_count += 1;
        let until = packet.arrives_at + self.rare.config.reorder_delay;
        self.rare.held_back.push(Reverse(HeldBack { until, number: self.rare.held_back_count, packet }));
    }

    fn depart(&mut self, packet: Packet<T>) -> Departure<T> {
        let Packet { item, size, chance, .. } = packet;
        for (what, cause) in [(Chance::LOST, Drop::Loss), (Chance::DOWN, Drop::Down)] {
            if chance.has(what) {
                return self.lose(item, size, cause);
            }
        }
        let (copied, corrupted) = (chance.has(Chance::COPIED), chance.has(Chance::CORRUPTED));
        self.rare.stats.duplicated += u64::from(copied);
        self.rare.stats.corrupted += u64::from(corrupted);
        let (copies, corrupted) = (1 + u32::from(copied), corrupted.then(|| self.rare.rng.next_u64()));
        self.counts.left += u64::from(copies);
        self.counts.bytes_left += u64::from(copies) * u64::from(size);
        let marked = chance.has(Chance::MARKED);
        Departure { item, size, fate: Fate::Arrived { copies, corrupted, marked } }
    }

    pub(crate) fn lose(&mut self, item: T, size: u32, cause: Drop) -> Departure<T> {
        self.count_drop(cause);
        Departure { item, size, fate: Fate::Lost(cause) }
    }
}
