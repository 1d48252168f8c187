//! What an acknowledgment tells estimator and controller of each path.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use super::lane::{Lane, Start};
use super::machine::{Engine, case};
use crate::facts::{AckSample, PathState, PathView, RouteEstimate};
use crate::loss::policy::Order;
use crate::path::estimator::PathEstimator;
use crate::path::flight::Delivery;
use crate::path::peer_clock::PeerClock;
use crate::path::routes::AckedInfo;

/// How an acknowledgment came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// By which path.
    pub via: PathId,
    /// Arrival minus the peer's time when it left, nanoseconds up to the peer's clock offset.
    pub reverse: Option<i64>,
}

/// Times that an acknowledgment shows of one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Learnt {
    /// Round trip of what it delivered, if that was sent once.
    pub rtt: Option<Duration>,
    /// The round trip that goes into the timeout.
    pub timed: Option<Duration>,
    /// Round trip of what was sent again: good enough for the timeout, if there is no other.
    pub proven: Option<Duration>,
    /// What R-M/TCP estimates.
    pub route: Option<RouteEstimate>,
}

impl Engine {
    /// Begins the account of a new acknowledgment.
    pub(crate) fn begin_account(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.flight.begin_account());
    }

    /// Lanes forget what is settled.
    pub(crate) fn trim(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.flight.trim());
    }

    /// Estimator and controller of `path` learn what was delivered there.
    #[inline(always)]
    pub(crate) fn learn(
        &mut self,
        now: Instant,
        path: PathId,
        answer: &Answer,
        learnt: Learnt,
        order: &dyn Order,
    ) {
        let Learnt { rtt, route, .. } = learnt;
        let Lane { known, recovering, .. } = &self.lanes[path];
        let (is_known, recovers) = (known.is_some(), recovering.is_some() || self.rules.one_window);
        if let Some(rtt) = rtt.filter(|_| is_known) {
            self.recall(path, rtt);
        }
        let in_recovery = recovers && self.is_recovering(now, path, order);
        let in_recovery = in_recovery || self.lanes[path].marks.hold_back(now);
        let takes = self.next_takes(path);
        let (lane, view) = (&mut self.lanes[path], &self.views[path]);
        let fresh = lane.flight.fresh();
        lane.timeouts = 0;
        lane.stats.bytes_delivered += fresh.bytes;
        if lane.start != Start::Over && lane.stats.bytes_delivered >= lane.first_flight {
            (lane.start, lane.had_turn) = (Start::Over, false);
        }
        let estimator = &mut lane.estimator;
        hear_times(now, path, answer, &learnt, estimator, &mut self.clock);
        let newest = fresh.newest.as_ref().map(|(_, newest)| newest);
        let sent_at = newest.map(|newest| newest.sent_at);
        let delivery_rate = newest.and_then(|newest| estimator.on_delivered(now, fresh.bytes, newest, rtt));
        let train_rate = match self.rules.window_only {
            true => None,
            false => {
                let sent = sent_at.filter(|_| !in_recovery).zip(rtt);
                estimator.on_train(now, fresh.bytes, sent, answer.via)
            }
        };
        if let Some(rate) = train_rate.filter(|_| self.rules.trains) {
            estimator.show(rate);
        }
        let PathView { in_flight: prior_in_flight, window, .. } = *view;
        let sample = AckSample {
            newly_acked: fresh.bytes,
            newly_acked_segments: fresh.segments,
            rtt,
            one_way_queueing: estimator.one_way.forward_queueing(),
            srtt: estimator.rtt.srtt(),
            min_rtt: estimator.rtt.min(),
            delivery_rate,
            sent_at,
            train_rate,
            prior_in_flight,
            route,
            app_limited: newest.is_some_and(|newest| newest.mark.app_limited()),
            window_limited: prior_in_flight + takes > window,
            in_recovery,
        };
        self.controller.on_ack(now, path, &sample, self.views.as_slice());
        let longer = || sample.rtt.zip(sample.min_rtt).map(|(rtt, least)| rtt - least);
        if let Some(wait) = sample.one_way_queueing.or_else(longer).filter(|_| rtt.is_some()) {
            self.note_wait(now, path, wait);
        }
        if self.views[path].earliest_send > now && !self.lanes[path].is_outstanding() {
            self.end_pace(now, path);
        }
    }

    /// Whether the controller goes by packet trains.
    #[inline]
    pub(crate) fn goes_by_trains(&self) -> bool {
        self.rules.trains
    }

    /// Whether the controller compares the delays of several paths.
    #[inline]
    pub(crate) fn compares_paths(&self) -> bool {
        self.rules.compares
    }

    /// An acknowledgment that came by `path` itself is the first there to cover `bytes` of its first flight, of which the
    /// newest left at `sent_at`. If that shows the rate of the path before anything else did, the controller hears it at once.
    pub(crate) fn on_first_flight(&mut self, now: Instant, path: PathId, bytes: u64, sent_at: Instant) {
        let Some(lane) = self.lanes.get_mut(path).filter(|lane| lane.recovering.is_none()) else { return };
        let estimator = &mut lane.estimator;
        let Some(rate) = estimator.on_first_flight(now, bytes, sent_at, path) else { return };
        estimator.show(rate);
        let sample = AckSample {
            srtt: estimator.rtt.srtt(),
            min_rtt: estimator.rtt.min(),
            train_rate: Some(rate),
            prior_in_flight: self.views[path].in_flight,
            ..AckSample::default()
        };
        self.controller.on_ack(now, path, &sample, self.views.as_slice());
        self.refresh_all(now);
    }

    /// An acknowledgment came by `path` itself, of which it covers nothing newer than what left at `sent_at`; `reverse` as in
    /// [`Answer`].
    pub(crate) fn on_own_ack(&mut self, now: Instant, path: PathId, sent_at: Instant, reverse: Option<i64>) {
        let Some(lane) = self.lanes.get_mut(path) else { return };
        let (rtt, one_way) = (now.since(sent_at), &mut lane.estimator.one_way);
        if let Some(reverse) = reverse {
            one_way.sample(now, rtt, reverse, true);
            self.clock.learn(path, one_way);
        }
        self.tell_wait(now, path, rtt);
    }

    /// The controller hears how long the newest packet waited that an acknowledgment by `path` itself covers.
    pub(super) fn tell_wait(&mut self, now: Instant, path: PathId, rtt: Duration) {
        let estimator = &self.lanes[path].estimator;
        let least = estimator.one_way.round_trip().map(|trip| Duration(trip.max(0) as u64));
        let sample = AckSample {
            rtt: Some(rtt),
            min_rtt: least.or(estimator.rtt.min()),
            one_way_queueing: estimator.one_way.forward_queueing(),
            ..AckSample::default()
        };
        self.controller.on_own_ack(now, path, &sample);
    }

    /// After [`learn`](Self::learn): whether a marked packet was late, and a path that had failed works again.
    pub(crate) fn after_delivery(&mut self, now: Instant, path: PathId) {
        if self.observers.watch.marks_packets() {
            self.check_mark(now, path);
        }
        if self.views[path].state == PathState::Failed && !self.is_silent(path) {
            self.revive(now, path);
        }
    }

    /// Whether `path` stays in a loss episode, or, where one window limits all paths, any path is.
    #[cold]
    fn is_recovering(&self, now: Instant, path: PathId, order: &dyn Order) -> bool {
        match self.rules.one_window {
            true => self.lanes.ids().any(|path| self.is_in_episode(now, path, order)),
            false => self.is_in_episode(now, path, order),
        }
    }

    fn is_in_episode(&self, now: Instant, path: PathId, order: &dyn Order) -> bool {
        let recovers = || self.policy.recovers(&case(now, path, (&self.views, &self.lanes), order));
        self.lanes[path].recovering.is_some() && !recovers()
    }

    /// Whether any path is in a loss episode.
    pub(crate) fn recovers_anywhere(&self) -> bool {
        self.lanes.iter().any(|lane| lane.recovering.is_some())
    }

    /// Where both ends know of routes: the round trip made of one-way trips, from which the timeout
    /// follows (Rojviboonchai, Osuga and Aida, §2.2), and what the AckedInfoList says.
    #[inline(never)]
    pub(crate) fn route_estimate(
        &mut self,
        now: Instant,
        path: PathId,
        answer: &Answer,
        rtt: Option<Duration>,
    ) -> (Option<Duration>, Option<RouteEstimate>) {
        let fresh = self.lanes[path].flight.fresh();
        let Some((routes, (_, newest))) = self.observers.routes.as_mut().zip(fresh.newest) else {
            return (None, None);
        };
        let (offset, sent_at) = (newest.cargo.key, newest.sent_at);
        let info = AckedInfo { offset, sent_at, len: fresh.bytes, acked_at: now, via: answer.via };
        let round_trip =
            rtt.zip(answer.reverse).map(|(rtt, rev)| routes.on_round_trip(path, answer.via, rtt, rev));
        (round_trip, routes.on_acked(now, path, info))
    }

    /// Whether this round trip goes into the timeout. Without timestamps one segment is timed at a time
    /// (RFC 6298 §3): many samples a round trip would make the variation die out.
    #[inline]
    pub(crate) fn is_timed(&mut self, path: PathId, stamped: bool) -> bool {
        let lane = &mut self.lanes[path];
        let newest = |fresh: &Delivery| fresh.newest.is_some_and(|(number, _)| number >= lane.timed_from);
        let timed = stamped || newest(lane.flight.fresh());
        if timed {
            lane.timed_from = lane.flight.next_number();
        }
        timed
    }

    /// Whether observers want no more of an acknowledgment than what it delivered.
    #[inline]
    pub(crate) fn observers_are_idle(&self) -> bool {
        self.observers.are_idle()
    }

    /// Whether R-M/TCP's estimates are made.
    #[inline]
    pub(crate) fn observers_estimate_routes(&self) -> bool {
        self.observers.routes.is_some()
    }

    /// Whether the only path, on which nothing was lost, has no credit.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        matches!(self.lanes.as_slice(), [only] if only.recovering.is_none()) && !self.credited
    }

    /// An acknowledgment delivered something: paths that are silent meanwhile fail, if any may. Returns them.
    pub(crate) fn listen_for_silence(&mut self, now: Instant, order: &dyn Order) -> PathSet {
        match self.rules.fail_silent {
            true => self.listen(now, order),
            false => PathSet::EMPTY,
        }
    }
}

/// Round trips and one-way delays of `path` by an acknowledgment.
#[inline(always)]
fn hear_times(
    now: Instant,
    path: PathId,
    answer: &Answer,
    &Learnt { rtt, timed, proven, .. }: &Learnt,
    estimator: &mut PathEstimator,
    clock: &mut PeerClock,
) {
    if let Some(rtt) = timed {
        estimator.rtt.sample(rtt);
    } else if let Some(rtt) = proven {
        estimator.rtt.sample_again(rtt);
    }
    if let (Some(rtt), Some(reverse)) = (rtt, answer.reverse) {
        estimator.one_way.sample(now, rtt, reverse, answer.via == path);
        if answer.via == path {
            clock.learn(path, &estimator.one_way);
        }
    }
}
