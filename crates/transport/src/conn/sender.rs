//! The sending half: what it knows of the stream and of its paths. `next.rs` says which bytes go next,
//! `ack.rs` what acknowledgments mean.

use polypath_wire::{Duration, Instant, PathId};

use super::config::{ConnectionConfig, PathConfig};
use super::copies::Duplication;
use super::stats::PathStats;
use super::timers::{Timer, Timers};
use crate::cc::controller::Controller;
use crate::facts::{Episode, LossCause, LossEvent, PathState, PathView};
use crate::flow::stream::SendStream;
use crate::loss::policy::{LossPolicy, Verdict};
use crate::loss::scoreboard::{Scoreboard, Status};
use crate::path::estimator::PathEstimator;
use crate::path::knowledge::{Knowledge, KnowledgeConfig};
use crate::path::routes::Routes;
use crate::path::rtt::RtoLimits;
use crate::sched::scheduler::Scheduler;

const LONGEST_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    /// What the application wrote.
    pub stream: SendStream,
    pub(super) board: Scoreboard,
    pub(super) controller: Box<dyn Controller>,
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) policy: Box<dyn LossPolicy>,
    pub(super) paths: Vec<PathSender>,
    pub(super) views: Vec<PathView>,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) losses: Losses,
    /// Offset up to which the peer lets us send.
    pub(super) edge: u64,
    /// Largest window the peer ever offered.
    pub(super) max_window: u64,
    /// Retransmissions that leave whatever the window says (RFC 5681 §3.2 step 3, RFC 6582 §3.2 step 3).
    pub(super) urgent: u32,
    /// The policy probes tails.
    pub(super) probes: bool,
    /// The tail of this path is to be probed, whatever the window says (RFC 8985 §7.3).
    pub(super) probe: Option<PathId>,
    /// Send even a small segment: the override timer of RFC 9293 §3.8.6.2.1 (4).
    pub(super) override_sws: bool,
    pub(super) sack: bool,
    /// Timeouts on any path since anything was delivered.
    pub(super) stalled: u32,
    pub(super) knowledge: KnowledgeConfig,
    pub(super) no_delay: bool,
    divide_window: bool,
    /// One window limits all paths.
    pub(super) one_window: bool,
    /// The controller's windows are all there is of it.
    pub(super) window_only: bool,
    /// Copies of segments on further paths.
    pub(super) copies: Duplication,
    /// Estimates of R-M/TCP, if both ends know of routes.
    pub(super) routes: Option<Routes>,
    limits: RtoLimits,
    fail_after: u32,
}

/// The sender's state of one path.
#[derive(Debug)]
pub struct PathSender {
    pub(super) estimator: PathEstimator,
    pub(super) knowledge: Knowledge,
    pub(super) stats: PathStats,
    pub(super) recovering: Option<Episode>,
    pub(super) timeouts: u32,
    /// Without timestamps: the next transmission that is timed.
    pub(super) timed_from: u64,
    /// Bytes sent since pacing last held the path back.
    pub(super) burst: u64,
}

/// Losses judged since the owner looked, for records.
pub type Losses = Vec<(PathId, u64, u32, LossCause, Episode)>;

impl Sender {
    /// A sender without paths; the policy is chosen when SACK is agreed upon.
    pub fn new(config: &ConnectionConfig) -> Self {
        let controller = config.cc.build();
        Self {
            stream: SendStream::new(config.send_buffer),
            board: Scoreboard::default(),
            one_window: controller.total_window().is_some(),
            window_only: controller.window_only(),
            controller,
            scheduler: config.scheduler.build(),
            policy: config.loss.build(false),
            paths: Vec::new(),
            views: Vec::new(),
            verdicts: Vec::new(),
            losses: Vec::new(),
            edge: 0,
            max_window: 0,
            urgent: 0,
            probes: false,
            probe: None,
            override_sws: false,
            sack: false,
            stalled: 0,
            knowledge: config.knowledge,
            no_delay: config.no_delay,
            divide_window: config.divide_window,
            copies: Duplication::default(),
            routes: None,
            limits: RtoLimits {
                initial: config.initial_rto,
                min: config.min_rto,
                max: config.max_rto,
                granularity: config.clock_granularity,
            },
            fail_after: config.path_fail_timeouts.max(1),
        }
    }

    /// The handshake agreed on SACK and on the multi-route option, or did not.
    pub fn agree(&mut self, config: &ConnectionConfig, sack: bool, multi_route: bool) {
        self.sack = sack;
        self.routes = multi_route.then(Routes::default);
        self.copies.under_way.agree(multi_route);
        self.policy = config.loss.build(sack);
        self.probes = self.policy.probes();
    }

    /// Another scheduler from now on.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduler = scheduler;
    }

    /// Adds a path whose segments carry up to `mss` bytes.
    pub fn add_path(&mut self, now: Instant, config: &PathConfig, mss: u32) {
        let id = PathId(self.paths.len() as u8);
        self.controller.on_path_added(now, id, mss);
        self.board.add_lane();
        self.routes.iter_mut().for_each(Routes::add);
        self.paths.reserve_exact(1); // most connections have one path, and a vector makes room for four
        self.views.reserve_exact(1);
        self.paths.push(PathSender {
            estimator: PathEstimator::new(self.limits, config.rate, config.one_way),
            knowledge: Knowledge::default(),
            stats: PathStats::default(),
            recovering: None,
            timeouts: 0,
            timed_from: 0,
            burst: 0,
        });
        let overhead = if config.rate.is_some() { config.overhead } else { 0 };
        self.views.push(PathView { idle_at: now, overhead, ..PathView::new(id, mss) });
        self.refresh(now, id);
    }

    /// The largest payload of `path` is `mss` from now on. What is under way and larger will not arrive:
    /// it goes again at once, and as this is no congestion, the window stays (RFC 1191 §6.4).
    pub fn set_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        let most = mss + u32::from(self.stream.is_finished());
        for id in self.board.in_flight_ids(path) {
            if self.board.segment(id).is_some_and(|s| s.len > most)
                && let Some(sent) = self.board.mark_lost(id)
            {
                self.losses.push((path, sent.offset, sent.len, LossCause::TooBig, Episode::default()));
            }
        }
        self.views[path.index()].mss = mss;
        self.controller.on_mss(path, mss);
        self.refresh(now, path);
    }

    /// State of a path.
    pub fn path_state(&self, path: PathId) -> PathState {
        self.views[path.index()].state
    }

    /// The path for a segment that is not data: `preferred` if it works, else the quickest that does.
    pub fn path_for_control(&self, preferred: PathId) -> PathId {
        let active = |v: &&PathView| v.state == PathState::Active;
        match self.views.get(preferred.index()).filter(active) {
            Some(view) => view.id,
            None => self.views.iter().filter(active).min_by_key(|v| v.srtt).map_or(preferred, |v| v.id),
        }
    }

    /// A segment without data leaves on `path`.
    pub fn on_bare(&mut self, now: Instant, path: PathId) {
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        if self.views[path.index()].overhead > 0 {
            p.estimator.occupy(now, u64::from(self.views[path.index()].overhead));
            self.refresh(now, path);
        }
    }

    /// Offset after everything that wants to be sent: the data and, once finished, the FIN.
    pub fn goal(&self) -> u64 {
        self.stream.end() + u64::from(self.stream.is_finished())
    }

    /// Whether something waits that only the peer's window holds back.
    pub fn window_blocked(&self) -> bool {
        self.board.is_idle() && self.board.nxt() < self.goal()
    }

    /// Everything sent and acknowledged, the FIN included.
    pub fn is_done(&self) -> bool {
        self.stream.is_finished() && self.board.una() == self.goal()
    }

    /// Nothing was heard of `path` for so long that its tail is probed.
    pub fn on_tail_timeout(&mut self, path: PathId) {
        let active = self.views[path.index()].state == PathState::Active;
        if active && self.board.is_outstanding(path) && !self.board.has_lost() {
            self.probe = Some(path);
        }
    }

    /// The retransmission timer of `path` expired. Returns whether the path failed.
    pub fn on_rto(&mut self, now: Instant, path: PathId, timers: &mut Timers) -> bool {
        let reneged = self.reneged().is_some();
        if !self.is_outstanding(path) && !reneged {
            return false;
        }
        self.stalled += 1;
        let p = &mut self.paths[path.index()];
        p.timeouts += 1;
        p.estimator.rtt.back_off();
        let first = p.timeouts == 1;
        self.board.clear_credit();
        if reneged {
            self.board.renege();
        }
        let episode = self.policy.on_timeout(path, &self.board);
        self.lose_all(now, path, LossCause::Timeout, episode, first);
        let alone = !self.views.iter().any(|v| v.id != path && v.state == PathState::Active);
        let failed = !alone && self.paths[path.index()].timeouts >= self.fail_after;
        if failed {
            self.views[path.index()].state = PathState::Failed;
            self.keep_one_open();
            timers.set(Timer::Probe(path), now + self.paths[path.index()].estimator.rtt.rto());
        }
        (0..self.paths.len()).for_each(|i| self.refresh(now, PathId(i as u8))); // all lost their credit
        failed
    }

    /// The path of the oldest segment, if it was acknowledged selectively and yet nothing acknowledges it
    /// cumulatively: the peer may have taken it back (RFC 2018 §8).
    pub(super) fn reneged(&self) -> Option<PathId> {
        self.board.head().filter(|(_, s)| s.status == Status::Sacked).map(|(_, s)| s.path)
    }

    /// A failed path answered.
    #[cold]
    pub fn revive(&mut self, now: Instant, path: PathId, timers: &mut Timers) {
        self.views[path.index()].state = PathState::Active;
        self.paths[path.index()].timeouts = 0;
        timers.stop(Timer::Probe(path));
        self.refresh(now, path);
    }

    /// Takes a path away; what was in flight there is lost.
    pub fn remove_path(&mut self, now: Instant, path: PathId, timers: &mut Timers) {
        self.lose_all(now, path, LossCause::PathRemoved, Episode::default(), false);
        self.views[path.index()].state = PathState::Removed;
        self.controller.on_path_removed(path);
        self.keep_one_open();
        timers.stop(Timer::Rto(path));
        timers.stop(Timer::Tail(path));
        timers.stop(Timer::Probe(path));
        self.refresh(now, path);
    }

    /// A heartbeat leaves on `path`.
    pub fn heartbeat_sent(&mut self, now: Instant, path: PathId, number: u32) {
        let wait = self.own_wait(now, path);
        self.paths[path.index()].knowledge.on_heartbeat_sent(now, u64::from(number), wait);
    }

    /// A heartbeat came back on `path`. Returns whether that opens the path again.
    pub fn on_heartbeat(&mut self, now: Instant, path: PathId, number: u32) -> bool {
        let Some(p) = self.paths.get_mut(path.index()) else { return false };
        let told = p.estimator.told_round_trip();
        let reopened = p.knowledge.on_heartbeat(now, u64::from(number), told);
        let congested = self.views[path.index()].state == PathState::Congested;
        if reopened && congested {
            self.views[path.index()].state = PathState::Active;
        }
        self.refresh(now, path);
        reopened && congested
    }

    /// A packet on `path` waits this long: of it the model knows our own part.
    pub fn reveal_queues(&mut self, now: Instant, path: PathId, wait: Duration) {
        let Some(p) = self.paths.get_mut(path.index()) else { return };
        let own = p.estimator.idle_at(now, self.board.in_flight(path)).since(now);
        p.knowledge.reveal(wait - own);
        self.refresh(now, path);
    }

    /// Closes `path`, which is congested, if that leaves another one open; `late`: by how much more than
    /// expected its packets take.
    #[cold]
    pub(super) fn close_congested(&mut self, path: PathId, late: Duration) {
        let open = self.views.iter().filter(|v| v.state == PathState::Active).count();
        if self.views[path.index()].state == PathState::Active && open > 1 {
            self.views[path.index()].state = PathState::Congested;
            let knowledge = &mut self.paths[path.index()].knowledge;
            knowledge.close(&self.knowledge, knowledge.excess() - late);
        }
    }

    /// "At least one available path should not be congested": if none is open, all that are closed are.
    fn keep_one_open(&mut self) {
        if self.views.iter().any(|v| v.state == PathState::Active) {
            return;
        }
        for (view, p) in self.views.iter_mut().zip(&mut self.paths) {
            if view.state == PathState::Congested {
                view.state = PathState::Active;
                p.knowledge.reopen();
            }
        }
    }

    /// How long a packet given to `path` now waits behind our own.
    pub(super) fn own_wait(&self, now: Instant, path: PathId) -> Duration {
        let in_flight = self.views[path.index()].in_flight;
        self.paths[path.index()].estimator.idle_at(now, in_flight).since(now)
    }

    /// How long until the next probe of a failed path: its timeout, but soon enough that a path that
    /// came back is used again within seconds.
    pub fn probe_interval(&self, path: PathId) -> Duration {
        self.paths[path.index()].estimator.rtt.rto().min(LONGEST_PROBE_INTERVAL)
    }

    /// The controller's period is over.
    pub fn on_congestion_timeout(&mut self, now: Instant, timers: &mut Timers) {
        self.controller.on_timeout(now, &self.views);
        if let Some(at) = self.controller.next_timeout() {
            timers.set(Timer::Congestion, at);
        }
        (0..self.paths.len()).for_each(|i| self.refresh(now, PathId(i as u8)));
    }

    /// Brings the view of `path` up to date.
    #[inline]
    pub(super) fn refresh(&mut self, now: Instant, path: PathId) {
        let (view, estimator) = (&mut self.views[path.index()], &self.paths[path.index()].estimator);
        view.srtt = estimator.rtt.srtt();
        view.rttvar = estimator.rtt.rttvar();
        view.min_rtt = estimator.rtt.min();
        view.window = self.controller.window(path);
        if self.paths.len() > 1 {
            let excess = self.paths[path.index()].knowledge.excess();
            view.one_way = estimator.base_one_way().map(|base| base + excess);
            view.rate = estimator.rate();
        }
        self.refresh_room(now, path);
    }

    /// The part of it that changes with what is in flight.
    #[inline]
    pub(super) fn refresh_room(&mut self, now: Instant, path: PathId) {
        let in_flight = self.board.in_flight(path) + self.copies.under_way.in_flight(path);
        let view = &mut self.views[path.index()];
        view.in_flight = in_flight;
        view.room = view.window as i64 - in_flight as i64;
        if self.paths.len() > 1 {
            self.refresh_among_others(now, path, in_flight);
        }
    }

    #[inline(never)]
    fn refresh_among_others(&mut self, now: Instant, path: PathId, in_flight: u64) {
        let idle_at = self.paths[path.index()].estimator.idle_at(now, in_flight);
        self.views[path.index()].idle_at = idle_at;
        self.share_room();
    }

    /// Cuts the room of each path to what all have together: the controller's total window, or the
    /// path's share of the peer's.
    fn share_room(&mut self) {
        let total = self.controller.total_window();
        if total.is_none() && !self.divide_window {
            return;
        }
        let offered = self.edge.saturating_sub(self.board.una());
        let open = || self.views.iter().filter(|v| v.state == PathState::Active);
        let in_flight: u64 = self.views.iter().map(|v| v.in_flight).sum();
        let windows: u64 = open().map(|v| self.controller.window(v.id)).sum();
        for view in &mut self.views {
            let window = self.controller.window(view.id);
            let share = u128::from(offered) * u128::from(window) / u128::from(windows.max(1));
            let own = if self.divide_window { window.min(share as u64) } else { window };
            let left = total.map_or(i64::MAX, |total| total as i64 - in_flight as i64);
            view.room = (own as i64 - view.in_flight as i64).min(left);
        }
    }

    /// Counters and state of `path`.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        let p = &self.paths[path.index()];
        let snapshot = self.controller.snapshot(path);
        PathStats {
            cwnd: snapshot.window,
            ssthresh: snapshot.ssthresh,
            in_flight: self.board.in_flight(path),
            srtt: p.estimator.rtt.srtt(),
            min_rtt: p.estimator.rtt.min(),
            rate: snapshot.rate.or(p.estimator.rate()),
            ..p.stats.clone()
        }
    }

    fn lose_all(&mut self, now: Instant, path: PathId, cause: LossCause, episode: Episode, reduce: bool) {
        let ids = self.board.in_flight_ids(path);
        let flight_size = self.flight_size(path);
        let mut event = LossEvent { cause, episode, bytes: 0, flight_size, oldest_sent: now };
        for id in ids {
            if let Some(sent) = self.board.mark_lost(id) {
                event.bytes += u64::from(sent.len);
                event.oldest_sent = event.oldest_sent.min(sent.sent_at);
                self.losses.push((path, sent.offset, sent.len, cause, episode));
            }
        }
        event.bytes += self.copies.under_way.lose(path);
        if reduce && event.bytes > 0 {
            self.paths[path.index()].recovering = Some(episode);
            self.controller.on_loss(now, path, &event, &self.views);
        }
        if cause == LossCause::Timeout {
            self.paths[path.index()].recovering = None; // slow start begins at once (RFC 5681 §3.1)
        }
    }

    /// FlightSize, not counting what limited transmit sent beyond the window (RFC 3042, RFC 5681 §3.2).
    pub(super) fn flight_size(&self, path: PathId) -> u64 {
        let mss = self.views[path.index()].mss;
        let all = self.board.flight_size(path, mss) + self.copies.under_way.in_flight(path);
        all.min(self.controller.window(path))
    }
}
