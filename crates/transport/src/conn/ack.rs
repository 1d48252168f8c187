//! What an acknowledgment means for the sending half:
//! scoreboard → estimates → controller → loss policy → timers.

use polypath_wire::{Duration, Instant, PathId};

use super::sender::Sender;
use super::timers::{Timer, Timers};
use crate::facts::{AckSample, Episode, LossCause, LossEvent, PathState, PathView, RouteEstimate};
use crate::loss::policy::Verdict;
use crate::loss::scoreboard::{Delivery, SentId};
use crate::path::routes::AckedInfo;

/// An acknowledgment in terms of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The path it came on.
    pub path: PathId,
    /// The path of what it acknowledges, as far as it says so; otherwise the same.
    pub route: PathId,
    /// Everything below arrived.
    pub una: u64,
    /// SACK blocks.
    pub blocks: &'a [(u64, u64)],
    /// It looks like a duplicate: no data, no change of the window (RFC 5681 §2).
    pub pure: bool,
    /// Whether TSecr proves that it answers the last transmission of a segment sent then.
    pub echo: Option<Instant>,
    /// Arrival minus TSval, nanoseconds up to the peer's clock offset.
    pub reverse: Option<i64>,
}

impl Ack<'_> {
    /// Whether its first block is of something that had arrived before (RFC 2883 §4).
    fn reports_duplicate(&self) -> bool {
        match self.blocks {
            [first, ..] if first.1 <= self.una => true,
            [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
            _ => false,
        }
    }
}

/// What an acknowledgment changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acked {
    /// The cumulative acknowledgment moved.
    pub advanced: bool,
    /// SACK blocks that cannot be true.
    pub bad_blocks: u32,
    /// Bytes newly delivered on all paths.
    pub delivered: u64,
    /// New loss episodes.
    pub episodes: u32,
    /// Episodes undone.
    pub undone: u32,
}

/// Times that an acknowledgment told of one path.
#[derive(Clone, Copy, Default)]
struct Learnt {
    /// Round trip of what it delivered, if that was sent once.
    rtt: Option<Duration>,
    /// The round trip that goes into the timeout.
    timed: Option<Duration>,
    /// Round trip of what was sent again: good enough for the timeout, if there is no other.
    proven: Option<Duration>,
    /// What R-M/TCP estimates.
    route: Option<RouteEstimate>,
}

impl Sender {
    /// Takes an acknowledgment; `ack.una` is not beyond what was sent.
    pub fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) -> Acked {
        match self.is_expected(ack) {
            true => self.on_expected_ack(now, ack, timers),
            false => self.on_any_ack(now, ack, timers),
        }
    }

    /// Whether it acknowledges what was sent first, on the only path, while nothing is missing: most do.
    fn is_expected(&self, ack: &Ack<'_>) -> bool {
        let plain =
            self.copies.under_way.is_empty() && self.routes.is_none() && !self.knowledge.marks_packets();
        let calm = matches!(&self.paths[..], [only] if only.recovering.is_none());
        ack.una > self.board.una() && ack.blocks.is_empty() && self.board.is_orderly() && calm && plain
    }

    /// What [`on_any_ack`](Self::on_any_ack) comes to then.
    fn on_expected_ack(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) -> Acked {
        let path = PathId::FIRST;
        self.board.ack_in_order(ack.una);
        let fresh = *self.board.fresh(path);
        let rtt = fresh.newest.map(|n| now.since(n.sent_at));
        let timed = rtt.filter(|_| self.is_timed(ack, path, &fresh));
        self.learn(now, path, ack, &fresh, Learnt { rtt, timed, ..Learnt::default() });
        self.stalled = 0;
        self.stream.release(ack.una);
        let mut result = Acked { advanced: true, delivered: fresh.bytes, ..Acked::default() };
        self.judge(now, timers, &mut result);
        self.restart_rto(now, path, timers);
        self.refresh(now, path);
        result
    }

    fn on_any_ack(&mut self, now: Instant, ack: &Ack<'_>, timers: &mut Timers) -> Acked {
        let mut result = Acked::default();
        self.board.begin_ack();
        result.advanced = self.board.ack_up_to(ack.una);
        if self.sack {
            result.bad_blocks = ack.blocks.iter().map(|b| u32::from(!self.board.sack(b.0, b.1))).sum();
        }
        if ack.reports_duplicate() {
            self.board.note_duplicate(ack.route);
            self.on_duplicate(now, ack, timers);
        }
        self.board.vouch(ack.route, ack.una, ack.blocks);
        let duplicate = !result.advanced && self.is_duplicate(ack);
        if duplicate {
            self.board.count_dupack();
        }
        for i in 0..self.paths.len() {
            result.delivered += self.sample(now, PathId(i as u8), ack, timers);
        }
        if result.delivered > 0 {
            self.stalled = 0;
        }
        if result.advanced {
            self.stream.release(ack.una);
        }
        self.judge(now, timers, &mut result);
        self.restart_rtos(now, timers);
        if duplicate && !self.sack {
            self.make_room(ack.path);
        }
        if result.advanced && self.paths.iter().all(|p| p.recovering.is_none()) {
            self.board.clear_credit();
        }
        for i in 0..self.paths.len() {
            self.refresh(now, PathId(i as u8));
        }
        result
    }

    /// Lets the policy judge all paths and carries out what it says.
    #[inline(always)]
    pub fn judge(&mut self, now: Instant, timers: &mut Timers, result: &mut Acked) {
        timers.stop(Timer::Recheck);
        for i in 0..self.paths.len() {
            let path = PathId(i as u8);
            self.policy.judge(now, path, &self.board, &self.views[i], &mut self.verdicts);
            if !self.verdicts.is_empty() {
                let mut verdicts = std::mem::take(&mut self.verdicts);
                self.carry_out(now, path, &verdicts, timers, result);
                verdicts.clear();
                self.verdicts = verdicts;
            }
        }
    }

    fn is_duplicate(&self, ack: &Ack<'_>) -> bool {
        let pure = ack.pure || !ack.blocks.is_empty();
        pure && ack.una == self.board.una() && !self.board.is_idle()
    }

    /// Without SACK a duplicate says that some segment left the network. That makes room for another
    /// in recovery (RFC 5681 §3.2 step 4) and otherwise as often as the policy says (RFC 3042: twice): after a
    /// timeout most duplicates answer what we sent again without need.
    fn make_room(&mut self, path: PathId) {
        let limited_transmit = self.board.dupacks() <= self.policy.limited_transmit();
        if limited_transmit || self.paths.iter().any(|p| p.recovering.is_some()) {
            self.board.add_credit(path, self.views[path.index()].mss);
        }
    }

    /// Feeds estimator and controller of `path` with what was delivered on it; returns the bytes.
    fn sample(&mut self, now: Instant, path: PathId, ack: &Ack<'_>, timers: &mut Timers) -> u64 {
        let fresh = *self.board.fresh(path);
        if fresh.bytes == 0 {
            return 0;
        }
        if !self.copies.under_way.is_empty() && self.copy_came_first(now, path, ack, &fresh, timers) {
            return fresh.bytes;
        }
        let once = fresh.newest.filter(|n| !n.retransmitted);
        let rtt = once.map(|n| now.since(n.sent_at));
        let timed = rtt.filter(|_| self.is_timed(ack, path, &fresh));
        let proven = self.proven_round_trip(now, ack, &fresh);
        let (route_rtt, route) = self.route_estimate(now, path, ack, &fresh, rtt);
        let timed = timed.map(|rtt| route_rtt.unwrap_or(rtt));
        self.learn(now, path, ack, &fresh, Learnt { rtt, timed, proven, route });
        if self.knowledge.marks_packets() {
            self.check_mark(now, path);
        }
        if self.views[path.index()].state == PathState::Failed {
            self.revive(now, path, timers);
        }
        fresh.bytes
    }

    /// Estimator and controller of `path` learn what `ack` delivered there.
    #[inline(always)]
    fn learn(&mut self, now: Instant, path: PathId, ack: &Ack<'_>, fresh: &Delivery, learnt: Learnt) {
        let Learnt { rtt, timed, proven, route } = learnt;
        let in_recovery = self.is_recovering(path);
        let p = &mut self.paths[path.index()];
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
            app_limited = newest.mark.app_limited;
            let latest = rtt.or(p.estimator.rtt.latest());
            let bandwidth = &mut p.estimator.bandwidth;
            delivery_rate = bandwidth.on_delivered(now, fresh.bytes, &newest.mark, newest.sent_at, latest);
        }
        let PathView { in_flight: prior_in_flight, mss, window, .. } = self.views[path.index()];
        let sample = AckSample {
            newly_acked: fresh.bytes,
            newly_acked_segments: fresh.segments,
            cumulative: self.board.dupacks() == 0,
            rtt,
            one_way_queueing: p.estimator.one_way.forward_queueing(),
            delivery_rate,
            prior_in_flight,
            route,
            marks: 0,
            app_limited,
            window_limited: prior_in_flight + u64::from(mss) > window,
            in_recovery,
        };
        self.controller.on_ack(now, path, &sample, &self.views);
    }

    /// A marked packet that came late closes its path.
    fn check_mark(&mut self, now: Instant, path: PathId) {
        let p = &mut self.paths[path.index()];
        let (highest, fastest) = (self.board.highest_delivered(path), p.estimator.rtt.min());
        let Some((highest, fastest)) = highest.zip(fastest) else { return };
        let late = p.knowledge.on_delivered(now, highest, fastest);
        if let Some((late, limit)) = late.zip(self.knowledge.close_late)
            && late > limit
        {
            self.close_congested(path, late);
        }
    }

    /// Whether `path` is in a loss episode, or, where one window limits all paths, any path is.
    fn is_recovering(&self, path: PathId) -> bool {
        match self.one_window {
            true => self.paths.iter().any(|p| p.recovering.is_some()),
            false => self.paths[path.index()].recovering.is_some(),
        }
    }

    /// Where both ends know of routes: the round trip made of one-way trips, from which the timeout
    /// follows (paper 003, §2.2), and what the AckedInfoList says.
    fn route_estimate(
        &mut self,
        now: Instant,
        path: PathId,
        ack: &Ack<'_>,
        fresh: &Delivery,
        rtt: Option<Duration>,
    ) -> (Option<Duration>, Option<RouteEstimate>) {
        match self.routes {
            Some(_) => self.route_estimated(now, path, ack, fresh, rtt),
            None => (None, None),
        }
    }

    fn route_estimated(
        &mut self,
        now: Instant,
        path: PathId,
        ack: &Ack<'_>,
        fresh: &Delivery,
        rtt: Option<Duration>,
    ) -> (Option<Duration>, Option<RouteEstimate>) {
        let Some((routes, newest)) = self.routes.as_mut().zip(fresh.newest) else { return (None, None) };
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
        let newest = fresh.newest.filter(|n| n.retransmitted && n.told_apart)?;
        ack.echo.is_some_and(|echo| echo >= newest.sent_at).then(|| now.since(newest.sent_at))
    }

    /// Whether this round trip goes into the timeout. Without timestamps one segment is timed at a time
    /// (RFC 6298 §3): many samples a round trip would make the variation die out.
    fn is_timed(&mut self, ack: &Ack<'_>, path: PathId, fresh: &Delivery) -> bool {
        let p = &mut self.paths[path.index()];
        let timed = ack.echo.is_some() || fresh.newest.is_some_and(|n| n.tx >= p.timed_from);
        if timed {
            p.timed_from = self.board.next_tx(path);
        }
        timed
    }

    /// Once the policy has judged, which may hold a timer, or just have let it go.
    fn restart_rtos(&mut self, now: Instant, timers: &mut Timers) {
        for i in 0..self.paths.len() {
            let path = PathId(i as u8);
            if self.board.fresh(path).bytes > 0 {
                self.restart_rto(now, path, timers);
            }
        }
        if self.board.has_sacked()
            && let Some(path) = self.reneged()
            && !timers.is_set(Timer::Rto(path))
        {
            timers.set(Timer::Rto(path), now + self.paths[path.index()].estimator.rtt.rto());
        }
    }

    /// RFC 6298 §5.2 and 5.3.
    #[inline(always)]
    fn restart_rto(&mut self, now: Instant, path: PathId, timers: &mut Timers) {
        if !self.is_outstanding(path) {
            timers.stop(Timer::Rto(path));
            timers.stop(Timer::Tail(path));
            return;
        }
        self.arm_tail(now, path, timers);
        if !self.policy.holds_timer(path) {
            timers.set(Timer::Rto(path), now + self.paths[path.index()].estimator.rtt.rto());
        }
    }

    #[cold]
    fn carry_out(
        &mut self,
        now: Instant,
        path: PathId,
        verdicts: &[Verdict],
        timers: &mut Timers,
        result: &mut Acked,
    ) {
        for verdict in verdicts {
            match *verdict {
                Verdict::Lost { id, cause, episode } => self.lose(now, path, id, cause, episode, result),
                Verdict::Repaired(episode) => self.reduce(now, path, episode, result),
                Verdict::Recovered(_) => self.paths[path.index()].recovering = None,
                Verdict::Undo(episode) => {
                    self.paths[path.index()].recovering = None;
                    self.controller.on_undo(now, path, episode);
                    result.undone += 1;
                }
                Verdict::RecheckAt(at) => timers.set_earlier(Timer::Recheck, at),
            }
        }
        self.refresh(now, path);
    }

    /// What a tail probe repaired was lost like anything else (RFC 8985 §7.4).
    fn reduce(&mut self, now: Instant, path: PathId, episode: Episode, result: &mut Acked) {
        self.paths[path.index()].recovering = Some(episode);
        let event = LossEvent {
            cause: LossCause::TailProbe,
            episode,
            bytes: u64::from(self.views[path.index()].mss),
            flight_size: self.flight_size(path),
            oldest_sent: now,
        };
        self.controller.on_loss(now, path, &event, &self.views);
        result.episodes += 1;
    }

    fn lose(
        &mut self,
        now: Instant,
        path: PathId,
        id: SentId,
        cause: LossCause,
        episode: Episode,
        result: &mut Acked,
    ) {
        let flight_size = self.flight_size(path);
        let Some(sent) = self.board.mark_lost(id) else { return };
        self.losses.push((path, sent.offset, sent.len, cause, episode));
        let new_episode = self.paths[path.index()].recovering != Some(episode);
        if new_episode {
            self.paths[path.index()].recovering = Some(episode);
            let event = LossEvent {
                cause,
                episode,
                bytes: u64::from(sent.len),
                flight_size,
                oldest_sent: sent.sent_at,
            };
            self.controller.on_loss(now, path, &event, &self.views);
            result.episodes += 1;
            if self.knowledge.close_on_loss {
                self.close_congested(sent.path, Duration::ZERO);
            }
        }
        self.urgent += u32::from(new_episode || cause == LossCause::PartialAck);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conn::config::{ConnectionConfig, PathConfig};
    use crate::loss::LossConfig;
    use crate::payload::Pattern;

    const MSS: u64 = 1000;

    fn sender(config: &ConnectionConfig) -> (Sender, Timers) {
        let (mut sender, mut timers) = (Sender::new(config), Timers::default());
        timers.add_path();
        sender.agree(config, config.sack, false);
        sender.add_path(Instant::ZERO, &PathConfig::default(), MSS as u32);
        sender.stream.write(&Pattern { key: 0, offset: 0, len: u64::MAX / 2 }.into());
        (sender.edge, sender.max_window) = (u64::MAX / 2, 1 << 20);
        (sender, timers)
    }

    /// All of it that may differ later: what it would do, and what it tells.
    fn state(sender: &Sender, timers: &Timers) -> String {
        let Sender { controller, policy, paths, views, urgent, probe, losses, stalled, .. } = sender;
        let board = &sender.board;
        let path = PathId::FIRST;
        let lane = (
            board.flight_size(path, 1),
            board.next_tx(path),
            board.vouched(path),
            board.highest_delivered(path),
        );
        let board = (board.una(), board.nxt(), board.dupacks(), board.in_lane(path).collect::<Vec<_>>());
        format!(
            "{controller:?} {policy:?} {paths:?} {views:?} {urgent} {probe:?} {losses:?} {stalled} {lane:?} {board:?} {timers:?}"
        )
    }

    proptest! {
        /// The short way is a shorter way to the same place.
        #[test]
        fn an_expected_ack_does_what_any_ack_does(
            rack in any::<bool>(), stamps in any::<bool>(),
            steps in prop::collection::vec((0u64..8, 0u64..2500, 0u64..30), 1..200),
        ) {
            let loss = if rack { LossConfig::Rack } else { LossConfig::Dupack { threshold: 3, partial_acks: true, impatient: true } };
            let config = ConnectionConfig { loss, sack: rack, ..ConnectionConfig::default() };
            let [mut short, mut long] = [sender(&config), sender(&config)];
            let (mut now, mut expected) = (Instant::ZERO, 0);
            for (what, bytes, ms) in steps {
                now += Duration::from_millis(ms);
                let una = short.0.board.una();
                let una = if what < 6 { (una + bytes).min(short.0.board.nxt()) } else { una };
                let blocks = [(una + MSS, una + 2 * MSS)];
                let blocks = if rack && what == 6 && blocks[0].1 <= short.0.board.nxt() { &blocks[..] } else { &[] };
                let (echo, reverse) = (stamps.then_some(now), stamps.then_some(ms as i64));
                let path = PathId::FIRST;
                let ack = Ack { path, route: path, una, blocks, pure: what > 3, echo, reverse };
                expected += u32::from(short.0.is_expected(&ack));
                let results = [short.0.on_ack(now, &ack, &mut short.1), long.0.on_any_ack(now, &ack, &mut long.1)];
                prop_assert_eq!(results[0], results[1]);
                if what == 7 && bytes > 2000 {
                    for (sender, timers) in [&mut short, &mut long] {
                        sender.on_rto(now, path, timers);
                    }
                }
                while let Some(sent) = short.0.next(now, &mut short.1) {
                    prop_assert_eq!(Some(sent), long.0.next(now, &mut long.1));
                }
                prop_assert_eq!(None, long.0.next(now, &mut long.1));
                prop_assert_eq!(state(&short.0, &short.1), state(&long.0, &long.1));
            }
            prop_assume!(expected > 0);
        }
    }
}
