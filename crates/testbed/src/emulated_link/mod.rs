//! The simulator's hops, driven by the wall clock.
//!
//! Two [`Hop`]s, one each way, between two [`End`]s: TUN devices (of two network namespaces) or UDP
//! sockets. A thread of its own moves packets; where it may, it runs with real-time priority. What
//! it does late it does as if it had been in time: a hop computes every arrival from the arrivals
//! before, not from when the thread woke up, so a busy machine delays packets but does not lower
//! the rate.

mod end;
mod label;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use polypath_hop::{Fate, Hop, HopConfig, HopError, HopStats, Label};
use polypath_wire::{Duration, Instant, Seed};
use serde::Serialize;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

pub use end::End;
pub(crate) use end::enlarge_buffer;
use polypath_node::Clock;

/// Packets taken from one end before the other end and the clock get their turn.
const BATCH: usize = 64;
/// A delivery this long after its time counts as late.
const LATE: Duration = Duration::from_micros(500);

/// Why a link did not start.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A hop that cannot be.
    #[error(transparent)]
    Hop(#[from] HopError),
    /// The system refused something it needs.
    #[error("emulated link `{name}`: {source}")]
    Os {
        /// The link's name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Counters of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LinkStats {
    /// The hop from the first end to the second, and the hop back.
    pub hops: [HopStats; 2],
    /// Packets that the far end did not take: its device is down, its socket's buffer full.
    pub refused: u64,
    /// Packets delivered more than half a millisecond late, because the machine was busy.
    pub late: u64,
    /// The latest delivery.
    pub worst_lateness: Duration,
}

/// A running link; dropping it ends it and loses what is under way.
#[derive(Debug)]
pub struct EmulatedLink {
    stop: Arc<EventFd>,
    is_cut: Arc<AtomicBool>,
    stats: Arc<Mutex<LinkStats>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl EmulatedLink {
    /// Starts to carry packets between `ends`, from the first to the second through the first of
    /// `hops` and back through the second. Steps in a hop's schedule are in the time of `clock`.
    pub fn start(
        name: &str,
        ends: [End; 2],
        hops: [HopConfig; 2],
        seed: Seed,
        clock: Clock,
    ) -> Result<Self, LinkError> {
        hops.iter().try_for_each(HopConfig::validate)?;
        let [there, back] = hops;
        let hops = [Hop::new(there, seed.child("there")), Hop::new(back, seed.child("back"))];
        let (stats, is_cut) = (Arc::default(), Arc::default());
        let refused = |source| LinkError::Os { name: name.to_owned(), source };
        let stop = Arc::new(EventFd::new().map_err(|e| refused(e.into()))?);
        let forwarder = Forwarder {
            ends,
            hops,
            clock,
            stop: Arc::clone(&stop),
            is_cut: Arc::clone(&is_cut),
            shared: Arc::clone(&stats),
            stats: LinkStats::default(),
            buffer: vec![0; 1 << 16].into(),
        };
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || forwarder.run()).map_err(refused)?;
        Ok(Self { stop, is_cut, stats, thread: Some(thread) })
    }

    /// From now on it takes no packets, without an error; what is under way arrives.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// The counters as they were a moment ago.
    pub fn stats(&self) -> LinkStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EmulatedLink {
    fn drop(&mut self) {
        // Writing 1 to an eventfd that nobody else writes to cannot fail.
        let _ = self.stop.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread owns. `ends[i]` feeds `hops[i]`, which leads to the other end.
struct Forwarder {
    ends: [End; 2],
    hops: [Hop<Box<[u8]>>; 2],
    clock: Clock,
    stop: Arc<EventFd>,
    is_cut: Arc<AtomicBool>,
    shared: Arc<Mutex<LinkStats>>,
    stats: LinkStats,
    buffer: Box<[u8]>,
}

impl Forwarder {
    /// Carries packets until it is stopped or an end is gone (its device was removed).
    fn run(mut self) -> io::Result<()> {
        be_punctual();
        loop {
            let mut more = false;
            for side in 0..2 {
                more |= self.admit(side)?;
                self.deliver(side);
            }
            self.publish();
            if !more && !self.wait()? {
                return Ok(());
            }
        }
    }

    /// Takes what waits at one end into its hop; says whether there may be more.
    fn admit(&mut self, side: usize) -> io::Result<bool> {
        for _ in 0..BATCH {
            let Some(len) = self.ends[side].receive(&mut self.buffer)? else { return Ok(false) };
            if self.is_cut.load(Ordering::Relaxed) {
                continue;
            }
            let size = len as u32 + self.ends[side].overhead();
            let packet = &self.buffer[..len];
            let label = match &self.ends[side] {
                End::Tun(_) if self.hops[side].reads_labels() => label::label(packet, size),
                _ => Label::from(size),
            };
            // A drop is counted by the hop.
            let _ = self.hops[side].enqueue(self.clock.now(), packet.into(), label);
        }
        Ok(true)
    }

    /// Hands over what is due.
    fn deliver(&mut self, side: usize) {
        let now = self.clock.now();
        while let Some(due) = self.hops[side].next_event().filter(|&due| due <= now) {
            let Some(departure) = self.hops[side].poll(now) else { continue };
            self.note_lateness(now.since(due));
            if let Fate::Arrived { copies, corrupted, marked } = departure.fate {
                let mut packet = departure.item;
                if marked {
                    label::mark(&mut packet);
                }
                if let Some(word) = corrupted {
                    flip_a_bit(&mut packet, word);
                }
                for _ in 0..copies {
                    self.stats.refused += u64::from(!self.ends[1 - side].send(&packet));
                }
            }
        }
    }

    fn note_lateness(&mut self, lateness: Duration) {
        self.stats.late += u64::from(lateness > LATE);
        self.stats.worst_lateness = self.stats.worst_lateness.max(lateness);
    }

    fn publish(&mut self) {
        self.stats.hops = [self.hops[0].stats(), self.hops[1].stats()];
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = self.stats;
    }

    /// Sleeps until a packet comes or one is due; false if the link is to end.
    fn wait(&self) -> io::Result<bool> {
        let fd = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = [fd(self.stop.as_fd()), fd(self.ends[0].as_fd()), fd(self.ends[1].as_fd())];
        let due = self.hops.iter().filter_map(Hop::next_event).min();
        let rest = due.map(|at: Instant| TimeSpec::from_duration(at.since(self.clock.now()).into()));
        match ppoll(&mut fds, rest, None) {
            Ok(_) | Err(Errno::EINTR) => Ok(fds[0].any() == Some(false)),
            Err(e) => Err(e.into()),
        }
    }
}

/// Wakes this thread as close to its timeouts as the system lets it.
fn be_punctual() {
    // Both only sharpen timing; without them (no privilege) the link still works.
    let _ = set_timerslack(1);
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo);
}

fn flip_a_bit(packet: &mut [u8], word: u64) {
    if let Some(bits) = (packet.len() as u64).checked_mul(8).filter(|&n| n > 0) {
        let bit = (word % bits) as usize;
        packet[bit / 8] ^= 1 << (bit % 8);
    }
}
