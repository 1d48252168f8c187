//! The engine: its parts, and how it begins.
//!
//! `paths.rs` says how paths come and go, `send.rs` which takes what and that it left, `reinject.rs` what leaves on a second one,
//! `answers.rs` what acknowledgments tell, `verdicts.rs` what is lost, `timeouts.rs` what is due; `silence.rs` and `queues.rs` which
//! paths are, `views.rs` what controller and scheduler see of them; `credit.rs` ends an acknowledgment. `numbers.rs` takes
//! acknowledgments by number, `aside.rs` what the owner accounts for itself.

use polypath_wire::{Instant, PathId, PathSet};

use super::config::EngineConfig;
use super::facts::Fact;
use super::lane::Lane;
use super::observers::Observers;
use super::rules::Rules;
use super::timers::Timers;
use crate::bottleneck;
use crate::cc::controller::Controller;
use crate::facts::{PathView, Why};
use crate::loss::policy::{Case, LossPolicy, Order, Verdict};
use crate::path::flight::Flight;
use crate::path::peer_clock::PeerClock;
use crate::path::routes::Routes;
use crate::path_map::PathMap;
use crate::sched::scheduler::Scheduler;

/// What leaves on which path, and what became of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Engine {
    /// The paths.
    pub(super) lanes: PathMap<Lane>,
    /// The same, as controller and scheduler see them.
    pub(super) views: PathMap<PathView>,
    pub(super) controller: Box<dyn Controller>,
    pub(super) policy: Box<dyn LossPolicy>,
    /// The tail of this path must be probed.
    pub(super) probe: Option<PathId>,
    /// The first flights of these paths lost something.
    pub(super) lost_starts: PathSet,
    /// Timeouts on any path since anything was delivered.
    pub(super) stalled: u32,
    /// Some lane has credit.
    pub(super) credited: bool,
    /// Whether somebody wants to know why parcels take their paths.
    pub(super) explains: bool,
    /// Bytes beyond what was acknowledged that the peer lets the owner have outstanding.
    pub(super) offered: u64,
    /// What the owner has not taken yet.
    pub(super) facts: Vec<Fact>,
    /// Room to work in: what the policy says.
    pub(super) verdicts: Vec<Verdict>,
    pub(super) rules: Rules,
    /// What is due when: the engine's timers and its owner's.
    pub timers: Timers,
    /// What watches beside the estimators.
    pub(super) observers: Observers,
    pub(super) scheduler: Box<dyn Scheduler>,
    /// The peer's clock, for one-way delays.
    pub(super) clock: PeerClock,
    /// When anything was delivered last.
    pub(super) delivered_at: Instant,
    /// Why the last parcel took its path, if somebody wants to know.
    pub(super) why: Option<Why>,
}

impl Engine {
    /// An engine without paths.
    pub(crate) fn new(
        config: &EngineConfig,
        controller: Box<dyn Controller>,
        scheduler: Box<dyn Scheduler>,
        policy: Box<dyn LossPolicy>,
    ) -> Self {
        Self {
            lanes: PathMap::default(),
            views: PathMap::default(),
            timers: Timers::default(),
            rules: Rules::new(config, &*controller),
            controller,
            scheduler,
            policy,
            clock: PeerClock::default(),
            observers: Observers::new(config.knowledge),
            verdicts: Vec::new(),
            facts: Vec::new(),
            probe: None,
            lost_starts: PathSet::EMPTY,
            stalled: 0,
            delivered_at: Instant::ZERO,
            credited: false,
            offered: 0,
            explains: false,
            why: None,
        }
    }

    /// From now on `policy` judges losses; both ends know of routes, or do not.
    pub(crate) fn agree(&mut self, policy: Box<dyn LossPolicy>, routes: bool) {
        self.observers.routes = routes.then(Routes::default);
        self.rules.follow(&*policy);
        self.policy = policy;
    }

    /// Another scheduler from now on.
    pub(crate) fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduler = scheduler;
    }

    /// Whether somebody wants to know why parcels take their paths.
    pub(crate) fn explain_choices(&mut self, wanted: bool) {
        self.explains = wanted;
    }

    /// Why the last parcel took its path, where that was a choice.
    pub(crate) fn take_why(&mut self) -> Option<Why> {
        self.why.take()
    }

    /// The peer lets the owner have `bytes` outstanding beyond what was acknowledged.
    #[inline]
    pub(crate) fn set_offered(&mut self, bytes: u64) {
        self.offered = bytes;
    }

    /// The paths, as controller and scheduler see them.
    #[inline]
    pub(crate) fn views(&self) -> &PathMap<PathView> {
        &self.views
    }

    /// The paths, in the order in which they came.
    #[inline]
    pub(crate) fn lanes(&self) -> &PathMap<Lane> {
        &self.lanes
    }

    /// What left on `path`, to say what became of it.
    #[inline]
    pub(crate) fn flight_mut(&mut self, path: PathId) -> Option<&mut Flight> {
        self.lanes.get_mut(path).map(|lane| &mut lane.flight)
    }

    /// Timeouts on any path since anything was delivered.
    pub(crate) fn stalled(&self) -> u32 {
        self.stalled
    }

    /// Something shows that all goes on.
    #[inline]
    pub(crate) fn goes_on(&mut self) {
        self.stalled = 0;
    }

    /// Which paths share a bottleneck, if that changed since it was asked.
    pub(crate) fn poll_verdict(&mut self) -> Option<bottleneck::Verdict> {
        self.controller.poll_verdict()
    }

    /// Takes out what became of what left. Give the room [back](Self::put_back) when it is read.
    #[inline]
    pub(crate) fn take_facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.facts)
    }

    /// The room of [`take_facts`](Self::take_facts), to be used again.
    pub(crate) fn put_back(&mut self, mut facts: Vec<Fact>) {
        facts.clear();
        self.facts = facts;
    }

    /// Gives back the memory of what was in flight when that was more, and of what was measured too long ago.
    pub(crate) fn rest(&mut self, now: Instant) {
        self.controller.rest(now);
        self.lanes.iter_mut().for_each(|lane| lane.flight.shrink());
        self.facts.shrink_to_fit();
        self.verdicts.shrink_to_fit();
    }

    /// All that decides what it does next, for tests that compare.
    #[cfg(test)]
    pub(crate) fn summary(&self) -> String {
        let Self { timers, controller, policy, views, stalled, .. } = self;
        let estimators: Vec<_> =
            self.lanes.iter().map(|l| (&l.estimator, &l.stats, l.recovering, l.doubt)).collect();
        format!("{timers:?} {controller:?} {policy:?} {views:?} {stalled} {estimators:?}")
    }

    /// Whether facts wait.
    #[inline]
    pub(crate) fn has_facts(&self) -> bool {
        !self.facts.is_empty()
    }
}

/// What the policy judges of `path`.
#[inline(always)]
pub(super) fn case<'a>(
    now: Instant,
    path: PathId,
    (views, lanes): (&'a PathMap<PathView>, &'a PathMap<Lane>),
    order: &'a dyn Order,
) -> Case<'a> {
    Case { now, view: &views[path], flight: &lanes[path].flight, order }
}
