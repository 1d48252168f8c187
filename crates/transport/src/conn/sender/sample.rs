//! What an acknowledgment tells estimator and controller of each path.

use polypath_wire::{Duration, Instant, PathId};

use super::Sender;
use super::ack::Ack;
use crate::conn::timers::Timers;
use crate::facts::{AckSample, PathState, PathView, RouteEstimate};
use crate::loss::scoreboard::{Delivery, History};
use crate::path::routes::AckedInfo;

/// Times that an acknowledgment told of one path.
#[derive(Clone, Copy, Default)]
pub(super) struct Learnt {
    /// Round trip of what it delivered, if that was sent once.
    pub rtt: Option<Duration>,
    /// The round trip that goes into the timeout.
    pub timed: Option<Duration>,
    /// Round trip of what was sent again: good enough for the timeout, if there is no other.
    pub proven: Option<Duration>,
    /// What R-M/TCP estimates.
    pub route: Option<RouteEstimate>,
}

impl Sender {
    /// Feeds estimator and controller of `path` with what was delivered on it; returns the bytes.
    pub(super) fn sample(&mut self, now: Instant, path: PathId, ack: &Ack<'_>, timers: &mut Timers) -> u64 {
        let fresh = *self.board.fresh(path);
        if fresh.bytes == 0 {
            return 0;
        }
        if !self.copies.under_way.is_empty() && self.copy_came_first(now, path, ack, &fresh, timers) {
            return fresh.bytes;
        }
        let once = fresh.newest.filter(|n| !n.retransmitted());
        let rtt = once.map(|n| now.since(n.sent_at));
        let timed = rtt.filter(|_| self.is_timed(ack, path, &fresh));
        let proven = self.proven_round_trip(now, ack, &fresh);
        let (route_rtt, route) = match self.observers.routes {
            Some(_) => self.route_estimate(now, path, ack, &fresh, rtt),
            None => (None, None),
        };
        let timed = timed.map(|rtt| route_rtt.unwrap_or(rtt));
        self.learn(now, path, ack, &fresh, Learnt { rtt, timed, proven, route });
        if self.observers.watch.marks_packets() {
            self.check_mark(now, path);
        }
        if self.views[path].state == PathState::Failed && !self.is_silent(path) {
            self.revive(now, path, timers);
        }
        fresh.bytes
    }

    /// Estimator and controller of `path` learn what `ack` delivered there.
    #[inline(always)]
    pub(super) fn learn(
        &mut self,
        now: Instant,
        path: PathId,
        ack: &Ack<'_>,
        fresh: &Delivery,
        learnt: Learnt,
    ) {
        let Learnt { rtt, timed, proven, route } = learnt;
        if let Some(rtt) = rtt
            && self.paths[path].known.is_some()
        {
            self.recall(path, rtt);
        }
        let in_recovery = self.is_recovering(path);
        let p = &mut self.paths[path];
        p.timeouts = 0;
        p.stats.bytes_delivered += fresh.bytes;
        if let Some(rtt) = timed {
            p.estimator.rtt.sample(rtt);
        } else if let Some(rtt) = proven {
            p.estimator.rtt.sample_again(rtt);
        }
        if let (Some(rtt), Some(reverse)) = (rtt, ack.reverse) {
            p.estimator.one_way.sample(now, rtt, reverse, ack.path == path);
        }
        let (mut delivery_rate, mut app_limited) = (None, false);
        if let Some(newest) = &fresh.newest {
            app_limited = newest.mark.app_limited();
            let latest = rtt.or(p.estimator.rtt.latest());
            let bandwidth = &mut p.estimator.bandwidth;
            delivery_rate = bandwidth.on_delivered(now, fresh.bytes, &newest.mark, newest.sent_at, latest);
        }
        let train_rate = match self.rules.window_only {
            true => None,
            false => {
                let calm = fresh.newest.filter(|_| !in_recovery);
                let sent = calm.map(|n| n.sent_at).zip(rtt);
                p.estimator.on_train(now, fresh.bytes, sent, ack.path)
            }
        };
        if let Some(rate) = train_rate.filter(|_| self.rules.trains) {
            p.estimator.show(rate);
        }
        let PathView { in_flight: prior_in_flight, mss, window, .. } = self.views[path];
        let sample = AckSample {
            newly_acked: fresh.bytes,
            newly_acked_segments: fresh.segments,
            rtt,
            one_way_queueing: p.estimator.one_way.forward_queueing(),
            srtt: p.estimator.rtt.srtt(),
            min_rtt: p.estimator.rtt.min(),
            delivery_rate,
            sent_at: fresh.newest.map(|n| n.sent_at),
            train_rate,
            prior_in_flight,
            route,
            app_limited,
            window_limited: prior_in_flight + u64::from(mss) > window,
            in_recovery,
        };
        self.controller.on_ack(now, path, &sample, self.views.as_slice());
    }

    /// Whether `path` stays in a loss episode, or, where one window limits all paths, any path is.
    fn is_recovering(&self, path: PathId) -> bool {
        match self.rules.one_window {
            true => self.paths.ids().any(|path| self.is_in_episode(path)),
            false => self.is_in_episode(path),
        }
    }

    fn is_in_episode(&self, path: PathId) -> bool {
        self.paths[path].recovering.is_some() && !self.policy.recovers(path, &self.board)
    }

    /// Where both ends know of routes: the round trip made of one-way trips, from which the timeout
    /// follows (paper 003, §2.2), and what the AckedInfoList says.
    #[inline(never)]
    fn route_estimate(
        &mut self,
        now: Instant,
        path: PathId,
        ack: &Ack<'_>,
        fresh: &Delivery,
        rtt: Option<Duration>,
    ) -> (Option<Duration>, Option<RouteEstimate>) {
        let Some((routes, newest)) = self.observers.routes.as_mut().zip(fresh.newest) else {
            return (None, None);
        };
        let (offset, sent_at) = (newest.offset, newest.sent_at);
        let info = AckedInfo { offset, sent_at, len: fresh.bytes, acked_at: now, via: ack.path };
        let round_trip =
            rtt.zip(ack.reverse).map(|(rtt, rev)| routes.on_round_trip(path, ack.path, rtt, rev));
        (round_trip, routes.on_acked(now, path, info))
    }

    /// Round trip of a segment that was sent again, if its timestamp tells which transmission is answered
    /// (Karn, RFC 6298 §3). That is good enough for the timeout and to end its backoff; a smallest round
    /// trip it is not, for the echo may be of another segment sent again that arrived before (RFC 7323 §4.3).
    fn proven_round_trip(&self, now: Instant, ack: &Ack<'_>, fresh: &Delivery) -> Option<Duration> {
        let newest = fresh.newest.filter(|n| n.history == History::AgainLater)?;
        ack.echo.is_some_and(|echo| echo >= newest.sent_at).then(|| now.since(newest.sent_at))
    }

    /// Whether this round trip goes into the timeout. Without timestamps one segment is timed at a time
    /// (RFC 6298 §3): many samples a round trip would make the variation die out.
    pub(super) fn is_timed(&mut self, ack: &Ack<'_>, path: PathId, fresh: &Delivery) -> bool {
        let p = &mut self.paths[path];
        let timed = ack.echo.is_some() || fresh.newest.is_some_and(|n| n.tx >= p.timed_from);
        if timed {
            p.timed_from = self.board.next_tx(path);
        }
        timed
    }
}
