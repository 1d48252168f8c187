//! The congestion context of one bottleneck: one window for all paths that lead through it.
//!
//! Acknowledgments of all its paths let the window grow, as those of one path would. A loss on any of them reduces it, once:
//! what was lost that had left before the last reduction belongs to that. A timeout of one path while others
//! deliver is a loss like any other: the bottleneck works.

use polypath_wire::{Duration, Instant, PathId, Rate};

use super::base::Base;
use super::config::PolypathConfig;
use super::standing::{Load, Standing, Step};
use crate::cc::controller::Phase;
use crate::cc::per_path::Algorithm;
use crate::facts::{AckSample, LossCause, LossEvent, Pace};

/// A window counts as full if this part of it is in flight and data waits. Shares change by less.
const FULL: f64 = 0.75;
/// If more than this many segments of the window are not in flight, its paths send faster, by this factor.
const SHORT: u64 = 4;
const HASTE: f64 = 2.0;

#[derive(Clone, Debug)]
pub(super) struct Context {
    base: Base,
    members: Vec<PathId>,
    /// When a loss last reduced the window, and until when it recovers: a round trip.
    reduced: Option<(Instant, Instant)>,
    /// Whether what its paths lose counts: since the first loss.
    counts: bool,
    /// Smoothed round trip that the law knows.
    srtt: Duration,
    /// The target for the queue, if there is one, and the law before its last reduction.
    standing: Option<Standing>,
    before: Option<Box<Base>>,
}

impl Context {
    pub(super) fn new(config: &PolypathConfig, base: Base, members: Vec<PathId>) -> Self {
        let target = Some(config.queue_target).filter(|target| *target > Duration::ZERO);
        let standing = target.map(Standing::new);
        let (reduced, counts, srtt, before) = (None, false, Duration::ZERO, None);
        Self { base, members, reduced, counts, srtt, standing, before }
    }

    /// The context of `members` after `before`: that of the largest window among those that they were in, which becomes at most
    /// what they had of it together; `window` of a path is what it had. None if they had none.
    pub(super) fn joined(
        before: &[Self],
        members: &[PathId],
        window: impl Fn(PathId) -> u64,
    ) -> Option<Self> {
        let stays = |path: &&PathId| members.contains(path);
        let of = |context: &Self| context.members.iter().filter(stays).map(|path| window(*path)).sum::<u64>();
        let had = before.iter().filter(|context| context.members.iter().any(|path| members.contains(path)));
        let counts = had.clone().any(|context| context.counts);
        let largest = had.max_by_key(|context| of(context))?;
        let mut context = Self { members: members.to_vec(), counts, ..largest.clone() };
        if largest.members != members {
            context.end_trial(Standing::on_loss);
        }
        if !largest.members.iter().all(|path| members.contains(path)) {
            context.law_mut().limit_window(of(largest).max(1));
        }
        Some(context)
    }

    pub(super) fn law(&self) -> &dyn Algorithm {
        self.base.law()
    }

    pub(super) fn law_mut(&mut self) -> &mut dyn Algorithm {
        self.base.law_mut()
    }

    pub(super) fn set_mss(&mut self, mss: u32) {
        self.law_mut().on_mss(mss);
        self.before.iter_mut().for_each(|before| before.law_mut().on_mss(mss));
    }

    /// Random losses kept the window small: it makes up for that.
    pub(super) fn make_up(&mut self, bytes: f64) {
        self.base.grow(bytes);
    }

    /// What a loss took below `bytes` comes back.
    pub(super) fn keep(&mut self, bytes: u64) {
        self.base.grow(bytes.saturating_sub(self.law().window()) as f64);
    }

    /// Whether `path` is one of its paths.
    pub(super) fn has(&self, path: PathId) -> bool {
        self.members.contains(&path)
    }

    /// Whether it has one path only.
    pub(super) fn is_alone(&self) -> bool {
        self.members.len() < 2
    }

    /// Whether its only path is in its first slow start.
    pub(super) fn starts(&self) -> bool {
        self.is_alone() && self.law().snapshot().ssthresh.is_none()
    }

    /// Whether what its paths lose counts.
    pub(super) fn counts(&self) -> bool {
        self.counts
    }

    /// What its paths lose counts from now on; whether it did not before.
    pub(super) fn begin_counting(&mut self) -> bool {
        !std::mem::replace(&mut self.counts, true)
    }

    /// Whether the last reduction was for what left before `loss` ended.
    pub(super) fn was_reduced_for(&self, loss: &LossEvent) -> bool {
        self.reduced.is_some_and(|(at, _)| loss.oldest_sent <= at)
    }

    pub(super) fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        let recovers = !self.is_alone() && self.reduced.is_some_and(|(_, until)| now < until);
        self.srtt = sample.srtt.unwrap_or(self.srtt);
        let tries = self.standing.as_ref().is_some_and(|queue| queue.tries(now)) && self.is_steady();
        let sample = AckSample { in_recovery: sample.in_recovery || recovers || tries, ..*sample };
        self.law_mut().on_ack(now, &sample);
    }

    fn is_steady(&self) -> bool {
        self.law().snapshot().phase == Phase::CongestionAvoidance
    }

    /// A packet of its only path that left at `sent` waited this long; of several paths the packets wait for different times. A queue is
    /// not this window's if it is mostly unused, nor until it has been used for a while: it grows then, whatever is given up.
    pub(super) fn on_delay(
        &mut self,
        now: Instant,
        (sent, wait): (Instant, Duration),
        sample: &AckSample,
        mss: u32,
    ) {
        if self.standing.is_none() || !self.is_alone() || !self.is_steady() {
            return;
        }
        if 2 * sample.prior_in_flight < self.law().window() {
            self.end_trial(Standing::restart);
            return;
        }
        let (rate, window, mss) = (sample.delivery_rate, self.law().window(), mss.into());
        let Some((standing, rate)) = self.standing.as_mut().zip(rate) else { return };
        match standing.on_delay(now, sent, wait, Load { rate, window, mss }) {
            Some(Step::GiveUp(bytes)) => {
                self.before = Some(Box::new(self.base.clone()));
                self.base.give_up(bytes as f64);
            }
            Some(Step::TakeBack) => self.before.take().into_iter().for_each(|before| self.base = *before),
            None => {}
        }
    }

    /// Whether its only path holds more than its window, although no loss made it as small.
    pub(super) fn is_short(&self) -> bool {
        let holds =
            self.standing.as_ref().filter(|_| self.is_alone()).and_then(|queue| queue.holds(self.srtt));
        holds.is_some_and(|bytes| self.law().window() < bytes)
    }

    /// A loss on a path with a round trip of `srtt`, while its siblings had `elsewhere` bytes in flight; `works`: they deliver.
    pub(super) fn on_loss(
        &mut self,
        now: Instant,
        loss: &LossEvent,
        elsewhere: u64,
        works: bool,
        srtt: Duration,
    ) {
        if self.is_alone() {
            let loss = self.after_trial(loss);
            return self.law_mut().on_loss(now, &loss);
        }
        if works && self.was_reduced_for(loss) {
            return;
        }
        self.reduced = Some((now, now + srtt));
        let cause =
            if works && loss.cause == LossCause::Timeout { LossCause::LaterDelivered } else { loss.cause };
        let flight_size = (loss.flight_size + elsewhere).min(self.law().window());
        self.law_mut().on_loss(now, &LossEvent { cause, flight_size, ..*loss });
    }

    /// A loss ends a trial: the law takes it with the window that it had before, as what was lost left with that.
    fn after_trial(&mut self, loss: &LossEvent) -> LossEvent {
        let flight_size =
            if self.end_trial(Standing::on_loss) { self.law().window() } else { loss.flight_size };
        LossEvent { flight_size, ..*loss }
    }

    /// The law becomes what it was before a reduction whose outcome is not known yet, if there was one by what `ends` says.
    fn end_trial(&mut self, ends: impl FnOnce(&mut Standing) -> bool) -> bool {
        let ends_trial = self.standing.as_mut().is_some_and(ends);
        let before = self.before.take_if(|_| ends_trial);
        before.map(|before| self.base = *before).is_some()
    }

    /// Whether `in_flight` bytes count as a full window.
    pub(super) fn is_filled_by(&self, in_flight: u64) -> bool {
        in_flight as f64 >= FULL * self.law().window() as f64
    }

    /// The pace of a path whose share of the window is `window` bytes; `in_flight` are the bytes of all paths. It sends segments singly:
    /// in pairs, paths that share a window have less than a TCP (docs/controller.md).
    pub(super) fn pace(&self, window: u64, in_flight: u64, srtt: Duration, mss: u32) -> Option<Pace> {
        let (pace, all, mss) = (self.law().pace()?, self.law().window(), u64::from(mss));
        let share = window as f64 / all.max(1) as f64;
        let longer = self.srtt.0.max(1) as f64 / srtt.0.max(1) as f64;
        let haste = if in_flight + SHORT * mss < all { HASTE } else { 1.0 };
        let rate = Rate((pace.rate.0 as f64 * share * longer * haste) as u64);
        let quantum = Pace::whole((pace.quantum as f64 * share) as u64, mss);
        Some(Pace {
            rate,
            quantum,
            credit: rate.transmission_time(quantum).max(pace.credit),
            together: 0,
            ..pace
        })
    }
}
