//! The sending half: what it knows of the stream and of its paths.
//!
//! `next.rs` says which bytes go next, `ack.rs` what acknowledgments mean: `sample.rs` for the estimates and the
//! controller, `verdicts.rs` for what is lost. `timeouts.rs` does what is due, `eifel.rs` undoes it, `copies.rs` duplicates. Of paths,
//! `paths.rs` tells how they come and go, `silence.rs` which are lost, `queues.rs` what stands in
//! their queues, `views.rs` what others see of them. `observers.rs` watches it all.

mod ack;
mod copies;
mod eifel;
mod next;
mod observers;
mod paths;
mod peer_window;
mod queues;
mod rules;
mod sample;
mod silence;
mod timeouts;
mod verdicts;
mod views;

use polypath_wire::{Instant, PathId};

use super::config::ConnectionConfig;
use super::stats::PathStats;
use crate::cc::Env;
use crate::cc::controller::Controller;
use crate::facts::{Episode, KnownPath, LossCause, PathView, Why};
use crate::flow::stream::SendStream;
use crate::loss::policy::{LossPolicy, Verdict};
use crate::loss::scoreboard::Scoreboard;
use crate::path::estimator::PathEstimator;
use crate::path::limit::Limit;
use crate::path::routes::Routes;
use crate::path_map::{OfPath, PathMap};
use crate::sched::scheduler::Scheduler;
pub use ack::{Ack, Acked};
use copies::Duplication;
use eifel::Doubt;
pub use next::Outgoing;
use observers::Observers;
use peer_window::PeerWindow;
use rules::Rules;
use silence::Silence;

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    /// What the application wrote.
    pub stream: SendStream,
    /// The last write was not taken whole: more than the stream holds waits to be sent.
    pub cut_short: bool,
    /// What became of it.
    pub board: Scoreboard,
    /// How much of it may go.
    pub window: PeerWindow,
    /// What may go all the same.
    pub exceptions: Exceptions,
    /// What does not change.
    pub rules: Rules,
    controller: Box<dyn Controller>,
    scheduler: Box<dyn Scheduler>,
    policy: Box<dyn LossPolicy>,
    paths: PathMap<PathSender>,
    /// The same paths, as controller and scheduler see them.
    pub views: PathMap<PathView>,
    /// Room to work in: what the policy says.
    verdicts: Vec<Verdict>,
    /// What it judged lost since the owner looked.
    pub losses: Losses,
    /// Whether its owner wants to know why segments take their paths, and why the last one did.
    pub explains: bool,
    pub why: Option<Why>,
    /// Timeouts on any path since anything was delivered.
    pub stalled: u32,
    /// When anything was delivered last.
    delivered_at: Instant,
    /// Copies of segments on further paths.
    copies: Duplication,
    /// What watches beside the estimators.
    observers: Observers,
}

/// What leaves although the windows are full, or is too small to be worth it.
#[derive(Debug, Default)]
pub struct Exceptions {
    /// So many retransmissions (RFC 5681 §3.2 step 3, RFC 6582 §3.2 step 3).
    urgent: u32,
    /// A probe of the tail of this path (RFC 8985 §7.3).
    probe: Option<PathId>,
    /// Even a small segment: the override timer of RFC 9293 §3.8.6.2.1 (4).
    pub small: bool,
}

/// The sender's state of one path.
#[derive(Debug)]
struct PathSender {
    path: PathId,
    estimator: PathEstimator,
    stats: PathStats,
    recovering: Option<Episode>,
    timeouts: u32,
    silence: Silence,
    /// Set by a timeout, until an acknowledgment shows whether it was for nothing.
    doubt: Option<Doubt>,
    /// Without timestamps: the next transmission that is timed.
    timed_from: u64,
    /// Bytes sent since pacing last held the path back.
    burst: u64,
    /// What it is limited to.
    limit: Option<Limit>,
    /// What an earlier connection measured, until the first round trip shows whether it still holds.
    known: Option<KnownPath>,
    /// Copies sent before this have had their reduction.
    copies_reduced: Instant,
}

impl OfPath for PathSender {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

/// Losses, for records: path, offset, length, cause, episode.
pub type Losses = Vec<(PathId, u64, u32, LossCause, Episode)>;

impl Sender {
    /// A sender without paths; the policy is chosen when SACK is agreed upon.
    pub fn new(config: &ConnectionConfig, env: &Env) -> Self {
        let controller = config.cc.build(env);
        Self {
            stream: SendStream::new(config.send_buffer),
            cut_short: false,
            board: Scoreboard::default(),
            window: PeerWindow::default(),
            exceptions: Exceptions::default(),
            rules: Rules::new(config, &*controller),
            controller,
            scheduler: config.scheduler.build(),
            policy: config.loss.build(false),
            paths: PathMap::default(),
            views: PathMap::default(),
            verdicts: Vec::new(),
            losses: Vec::new(),
            explains: false,
            why: None,
            stalled: 0,
            delivered_at: Instant::ZERO,
            copies: Duplication::default(),
            observers: Observers::new(config.knowledge),
        }
    }

    /// The handshake agreed on SACK and on the multi-route option, or did not.
    pub fn agree(&mut self, config: &ConnectionConfig, sack: bool, multi_route: bool) {
        self.observers.routes = multi_route.then(Routes::default);
        self.copies.under_way.agree(multi_route);
        self.policy = config.loss.build(sack);
        self.rules.sack = sack;
        self.rules.probes = self.policy.probes();
        self.rules.undoes_timeouts = self.policy.undoes_timeouts();
    }

    /// Another scheduler from now on.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduler = scheduler;
    }

    /// Offset after everything that wants to be sent: the data and, once finished, the FIN.
    pub fn goal(&self) -> u64 {
        self.stream.end() + u64::from(self.stream.is_finished())
    }

    /// How much of that has not been sent yet.
    pub fn waiting(&self) -> u64 {
        self.goal().saturating_sub(self.board.nxt())
    }

    /// Whether something waits that only the peer's window holds back.
    pub fn window_blocked(&self) -> bool {
        self.board.is_idle() && self.board.nxt() < self.goal()
    }

    /// Everything sent and acknowledged, the FIN included.
    pub fn is_done(&self) -> bool {
        self.stream.is_finished() && self.board.una() == self.goal()
    }
}
