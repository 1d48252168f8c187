//! The sending half: what it knows of the stream. What becomes of it on which path is the engine's.
//!
//! `next.rs` says which bytes go next, `ack.rs` what acknowledgments mean: `sample.rs` what they tell the engine of each
//! path. `timeouts.rs` does what is due, `eifel.rs` undoes it, `copies.rs` and `duplication.rs` duplicate. `own_acks.rs` hears
//! what the acknowledgments of a path itself tell of it.

mod ack;
mod copies;
mod duplication;
mod eifel;
mod next;
mod own_acks;
mod peer_window;
mod sample;
mod timeouts;

use polypath_wire::PathId;

use super::config::ConnectionConfig;
use super::stream_map::StreamMap;
use crate::cc::Env;
use crate::engine::Engine;
use crate::engine::config::EngineConfig;
use crate::engine::facts::Fact;
use crate::facts::{Episode, LossCause};
use crate::flow::stream::SendStream;
use crate::path::rtt::RtoLimits;
use crate::path_map::PathMap;
pub(super) use ack::{Ack, Acked};
use duplication::Duplication;
pub(super) use next::Outgoing;
use own_acks::OwnAcks;
use peer_window::PeerWindow;

/// The sending half of a connection.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Sender {
    /// Where it left.
    pub map: StreamMap,
    /// How much of it may go.
    pub window: PeerWindow,
    /// What may go all the same.
    pub exceptions: Exceptions,
    /// The last write was not taken whole: more than the stream holds waits to be sent.
    pub cut_short: bool,
    /// The FIN waits for the handshake.
    pub holds_fin: bool,
    /// The handshake agreed on SACK.
    pub sack: bool,
    /// Small segments do not wait for acknowledgments (RFC 9293 §3.7.4).
    no_delay: bool,
    /// What a timer gave up avoids its path.
    repair_elsewhere: bool,
    /// Something left on several paths: before that nothing is among the `copies`.
    copied: bool,
    /// What the application wrote.
    pub stream: SendStream,
    /// What was judged lost since the owner looked.
    pub losses: Losses,
    /// What the acknowledgments of each path itself tell of it.
    own_acks: PathMap<OwnAcks>,
    /// Copies of segments on further paths.
    copies: Duplication,
}

/// What leaves although the windows are full, or is too small to be worth it.
#[derive(Debug, Default)]
pub(super) struct Exceptions {
    /// Number of retransmissions (RFC 5681 §3.2 step 3, RFC 6582 §3.2 step 3).
    urgent: u32,
    /// Even a small segment: the override timer of RFC 9293 §3.8.6.2.1 (4).
    pub small: bool,
}

/// Losses, for records: path, offset, length, cause, episode.
pub(super) type Losses = Vec<(PathId, u64, u32, LossCause, Episode)>;

/// The engine of a connection, without paths; the policy is chosen when SACK is agreed upon.
pub(super) fn engine(config: &ConnectionConfig, env: &Env) -> Engine {
    let rto = RtoLimits {
        initial: config.initial_rto,
        min: config.min_rto,
        max: config.max_rto,
        granularity: config.clock_granularity,
    };
    let of_engine = EngineConfig {
        rto,
        fail_after: (config.path_fail_timeouts > 0).then_some(config.path_fail_timeouts),
        fail_silent: config.fail_silent,
        divide_window: config.divide_window,
        knowledge: config.knowledge,
        others: false,
        timeout_takes: config.timeout_takes,
        segmentation: config.segmentation,
    };
    Engine::new(&of_engine, config.cc.build(env), config.scheduler.build(), config.loss.build(false))
}

impl Sender {
    /// Nothing was written yet.
    pub(super) fn new(config: &ConnectionConfig) -> Self {
        Self {
            stream: SendStream::new(config.send_buffer),
            cut_short: false,
            map: StreamMap::default(),
            window: PeerWindow::default(),
            exceptions: Exceptions::default(),
            losses: Vec::new(),
            holds_fin: false,
            sack: false,
            no_delay: config.no_delay,
            repair_elsewhere: config.repair_elsewhere,
            copied: false,
            copies: Duplication::default(),
            own_acks: PathMap::default(),
        }
    }

    /// Gives back memory, as nothing is outstanding.
    pub(super) fn shrink(&mut self) {
        self.map.shrink();
        self.losses.shrink_to_fit();
        self.own_acks.iter_mut().for_each(OwnAcks::shrink);
    }

    /// The handshake agreed on SACK and on the multi-route option, or did not.
    pub(super) fn agree(&mut self, sack: bool, multi_route: bool) {
        self.sack = sack;
        self.copies.under_way.agree(multi_route);
    }

    /// Offset after everything that wants to be sent: the data and, once finished, the FIN.
    pub(super) fn goal(&self) -> u64 {
        self.stream.end() + u64::from(self.stream.is_finished() && !self.holds_fin)
    }

    /// How much of that has not been sent yet.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        self.goal().saturating_sub(self.map.nxt())
    }

    /// How much of that the peer's window has room for.
    #[inline]
    pub(super) fn usable(&self) -> u64 {
        self.window.left(self.map.nxt()).min(self.waiting())
    }

    /// Whether something waits that only the peer's window holds back.
    pub(super) fn window_blocked(&self) -> bool {
        self.map.is_idle() && self.map.nxt() < self.goal()
    }

    /// Everything sent and acknowledged, the FIN included.
    pub(super) fn is_done(&self) -> bool {
        self.stream.is_finished() && !self.holds_fin && self.map.una() == self.goal()
    }

    /// Tells the engine what the peer's window leaves.
    #[inline]
    pub(super) fn offer(&self, engine: &mut Engine) {
        engine.set_offered(self.window.left(self.map.una()));
    }

    /// Takes what the engine found out.
    #[inline]
    pub(super) fn follow(&mut self, engine: &mut Engine) {
        if engine.has_facts() {
            self.take_facts(engine);
        }
    }

    #[cold]
    fn take_facts(&mut self, engine: &mut Engine) {
        let facts = engine.take_facts();
        for fact in &facts {
            match *fact {
                Fact::Lost { what, transmission, cause, episode, charged, first } => {
                    self.map.mark_lost(&what, transmission);
                    let len = transmission.cargo.len;
                    self.losses.push((charged, what.cargo, len, cause, episode));
                    self.exceptions.urgent += u32::from(first || cause == LossCause::PartialAck);
                }
                Fact::LostAside(path) => self.copies.under_way.lose(path),
            }
        }
        engine.put_back(facts);
    }

    /// `path` is gone from the engine.
    pub(super) fn remove_path(&mut self, path: PathId) {
        self.forget_copies(path);
        self.own_acks.remove(path);
    }

    /// Largest cargo on a path whose segments carry up to `mss` bytes: a FIN takes no room in them.
    pub(super) fn largest(&self, mss: u32) -> u32 {
        mss + u32::from(self.stream.is_finished())
    }
}
