//! Packets of somebody else's transport over several paths, as mHIP carries them: an owner of an engine like a connection,
//! but only [repaired](Packet::repaired) packets go again, and nothing waits for other losses.
//!
//! `send.rs` says what leaves where, `reports.rs` what acknowledgments tell, `receipts.rs` makes them, `resequencer.rs` restores
//! the order of each flow, `timeouts.rs` does what is due, `forget.rs` gives memory back. `paths.rs` says how paths come and go, `queue.rs` is what waits,
//! `again.rs` repairs, `copies.rs` says what leaves a second time, `numbering.rs` and `seen.rs` count. The frames are those of
//! `polypath_wire::shim`; somebody else seals them, one path with one security association.

mod again;
pub(crate) mod config;
mod copies;
mod forget;
mod leaving;
mod numbering;
mod observe;
mod paths;
pub(crate) mod queue;
mod receipts;
mod reports;
mod resequencer;
mod seen;
mod send;
mod stats;
mod timeouts;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use polypath_wire::shim::{Frame, Shim};
use polypath_wire::{Ecn, Instant, PathId, WireError};

use crate::cc::Env;
use crate::engine::Engine;
use crate::engine::timers::Timer;
use crate::path_map::{OfPath, PathMap};
use again::Kept;
pub use config::PacketConfig;
use copies::Copies;
pub use leaving::Leaving;
use numbering::Numbering;
pub use queue::{Packet, PacketQueue, QueueStats, Tolerable};
use receipts::Receipts;
use reports::Sent;
use resequencer::Resequencer;
use seen::Seen;
pub use stats::{PacketStats, Refused};

impl Timer {
    /// A report is due.
    const REPORT: Self = Self::Owner(0);
    /// A gap is given up.
    const GAP: Self = Self::Owner(1);
    /// What was remembered for long enough is forgotten.
    const FORGET: Self = Self::Owner(2);
}

/// Packets between two hosts over any number of paths.
///
/// *Inputs* are [`push`](Self::push), [`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout) and what paths do;
/// after any of them poll [`poll_transmit`](Self::poll_transmit) and [`poll_deliver`](Self::poll_deliver) until `None`,
/// then [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct PacketFlow {
    engine: Engine,
    queue: Box<dyn PacketQueue>,
    /// What leaves next: it waits for a path.
    head: Option<Packet>,
    copies: Copies,
    /// What was lost and goes again.
    again: VecDeque<Kept>,
    numbering: Numbering,
    paths: PathMap<Path>,
    seen: Seen,
    resequencer: Resequencer,
    stats: PacketStats,
}

/// One path: what was sent there, and what came.
#[derive(Debug)]
struct Path {
    path: PathId,
    /// On the wire its transmissions are numbered from here on.
    first: u32,
    sent: Sent,
    /// What goes again if it is lost, by the numbers of its transmissions, while it is not known to have come.
    kept: BTreeMap<u64, Kept>,
    receipts: Receipts,
    /// When the latest left that was lost there.
    lost_of: Option<Instant>,
    /// A report must be requested from the peer.
    ask: bool,
}

impl OfPath for Path {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl PacketFlow {
    /// Without paths. What waits to be sent waits in `queue`; `seed` is for laws that throw dice.
    pub fn new(now: Instant, config: &PacketConfig, seed: u64, queue: Box<dyn PacketQueue>) -> Self {
        let env = Env { now, seed };
        let mut engine = Engine::new(
            &config.engine(),
            config.cc.build(&env),
            config.scheduler.build(),
            config.loss.build(true),
        );
        engine.agree(config.loss.build(true), false);
        Self {
            resequencer: Resequencer::new(config.held, config.allowance),
            engine,
            queue,
            head: None,
            copies: Copies::default(),
            again: VecDeque::new(),
            numbering: Numbering::default(),
            paths: PathMap::default(),
            seen: Seen::default(),
            stats: PacketStats::default(),
        }
    }

    /// Queues a packet to be sent.
    pub fn push(&mut self, now: Instant, packet: Packet) -> Result<(), Refused> {
        if packet.bytes.len() > self.largest().map_or(usize::MAX, |most| most as usize) {
            self.stats.too_big += 1;
            return Err(Refused::TooBig);
        }
        self.remember(now);
        let alone = self.numbering.arrive(now, packet.flow).then_some(now);
        if !self.queue.push(now, Packet { alone, ..packet }) {
            self.stats.refused += 1;
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// A frame came on `path`; it was opened and is authentic.
    pub fn handle(&mut self, now: Instant, path: PathId, frame: Bytes, ecn: Ecn) -> Result<(), WireError> {
        let parsed = Frame::parse(&frame)?;
        if !self.paths.contains(path) {
            self.stats.late_paths += 1;
            return Ok(());
        }
        match parsed {
            Frame::Packet(shim) => {
                self.receive(now, path, shim.number, ecn, false);
                self.take_packet(now, path, &shim, frame.slice(Shim::LEN..));
            }
            Frame::Report(report) => self.on_report(now, path, &report),
            Frame::Ask(ask) => self.receive(now, path, ask.number, ecn, true),
        }
        Ok(())
    }

    /// The transmission `number` came on `path`: it will be reported.
    fn receive(&mut self, now: Instant, path: PathId, number: u32, ecn: Ecn, asked: bool) {
        let receipts = &mut self.paths[path].receipts;
        receipts.take(now, number, ecn, asked);
        if let Some(at) = receipts.due() {
            self.engine.timers.set_earlier(Timer::REPORT, at);
        }
    }

    /// The packet behind `shim` is delivered, now or in the order of its flow.
    fn take_packet(&mut self, now: Instant, path: PathId, shim: &Shim, bytes: Bytes) {
        let Some(sequence) = self.seen.note(shim.sequence) else {
            self.stats.duplicates += 1;
            return;
        };
        self.stats.received += 1;
        self.remember(now);
        let previous = Some(u64::from(shim.previous)).filter(|back| *back > 0);
        let previous = previous.and_then(|back| sequence.checked_sub(back));
        let missed = previous.filter(|previous| !self.seen.contains(*previous));
        let Shim { flow, class, repaired, .. } = *shim;
        let packet = Packet { flow, class, repaired, bytes, ..Packet::default() };
        self.resequencer.arrived(now, path, (sequence, shim.stamp));
        self.resequencer.insert(now, sequence, (previous, missed.is_some()), packet);
        self.arm_gap();
    }

    /// The next packet to hand on, in the order of its flow as far as that could be waited for.
    #[must_use]
    pub fn poll_deliver(&mut self) -> Option<Packet> {
        self.resequencer.pop()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next: never late, sometimes early.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.engine.timers.next()
    }
}

#[cfg(test)]
mod tests;
