//! FAST TCP (Arshad and Mian, §2.1): the window follows the queueing delay, a loss only halves it.
//!
//! | symbol | here |
//! |---|---|
//! | w | `window`, packets |
//! | baseRTT | `delays.base` |
//! | average RTT | `delays.rtt()` |
//! | qdelay | `delays.queueing` |
//! | α(w, qdelay) | `alpha` |
//! | γ of equation (1), γ of slow start | `gamma`, `slow_start_exit`: the paper uses one letter for both |
//!
//! Phases: *slow start* until more than `slow_start_exit` packets are queued; *multiplicative increase*
//! while hardly anything is queued; otherwise *exponential convergence* by equation (1). The last two
//! act on alternate round trips only.
//!
//! Choices where the paper is silent: the averages weigh a new sample by min(3/w, 1/4), as the authors of
//! FAST publish it; a round lasts one average RTT; a window that is not used does not grow; after a
//! timeout slow start begins again. An update is spread over the acknowledgments of one window, and
//! packets may be paced somewhat faster than a window per round trip (FAST's burstiness control, of which
//! the paper says nothing): where the pipe is not full, the queue of one's own bursts counts as queueing.

mod alpha;
mod config;
mod delays;

use polypath_wire::{Duration, Instant, Rate};

use super::controller::{Controller, Phase, Snapshot};
use super::law::{Env, Law};
use super::per_path::{Algorithm, PerPath};
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, LossCause, LossEvent, Pace};
use alpha::Alpha;
pub use config::{DelaySignal, FastConfig};
use delays::Delays;

/// A window never shrinks below this many packets.
const LEAST_WINDOW: f64 = 2.0;

/// FAST on one path.
#[derive(Debug)]
pub(crate) struct Fast {
    config: FastConfig,
    mss: u64,
    window: f64,
    alpha: Alpha,
    delays: Delays,
    /// What the last update wants: change per acknowledged packet, and where it ends.
    step: f64,
    aim: f64,
    slow_start: bool,
    /// Rounds since the last update, and when the present one ends.
    rounds: u32,
    round_ends: Instant,
    saved: Option<(Episode, f64, bool)>,
}

impl Law for Fast {
    type Config = FastConfig;
    const ABOUT: About =
        About { name: "fast", help: "A FAST window per path, which keeps a few packets queued" };

    fn check(config: &FastConfig) -> Result<(), ConfigError> {
        config.check()
    }

    fn build(config: FastConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(PerPath::new(move |_, _, mss| Self::new(config, mss)))
    }
}

impl Fast {
    /// A fresh window.
    pub(crate) fn new(config: FastConfig, mss: u32) -> Self {
        Self {
            config,
            mss: u64::from(mss),
            window: f64::from(config.initial_window.max(1)),
            alpha: Alpha::new(&config),
            delays: Delays::default(),
            step: 0.0,
            aim: 0.0,
            slow_start: true,
            rounds: 0,
            round_ends: Instant::ZERO,
            saved: None,
        }
    }

    /// Packets in the queues of the path: w·(1 − baseRTT/RTT).
    fn queued(&self) -> f64 {
        let rtt = self.delays.rtt();
        if rtt > 0.0 { self.window * self.delays.queueing / rtt } else { 0.0 }
    }

    /// Whether a round ended now, so that the window must be updated.
    fn end_round(&mut self, now: Instant) -> bool {
        if now < self.round_ends {
            return false;
        }
        self.round_ends = now + Duration::from_secs_f64(self.delays.round_trip);
        self.rounds = (self.rounds + 1) % self.config.rounds_per_update.max(1);
        self.rounds == 0
    }

    /// Equation (1); the change is spread over one window of acknowledgments.
    fn converge(&mut self, may_grow: bool) {
        let (w, gamma) = (self.window, self.config.gamma);
        let aim = w * self.delays.base.unwrap_or(0.0) / self.delays.rtt() + self.alpha.packets;
        let next = ((1.0 - gamma) * w + gamma * aim).min(2.0 * w).max(LEAST_WINDOW);
        self.aim = if may_grow { next } else { next.min(w) };
        self.step = (self.aim - w) / w;
    }

    /// `acked` packets were acknowledged: goes on towards the aim.
    fn approach(&mut self, acked: f64) {
        let next = self.window + self.step * acked;
        let beyond = if self.step < 0.0 { next <= self.aim } else { next >= self.aim };
        self.window = if beyond { self.aim } else { next };
        if beyond {
            self.step = 0.0;
        }
    }
}

impl Algorithm for Fast {
    fn on_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss);
    }

    fn limit_window(&mut self, bytes: u64) {
        self.window = self.window.min(bytes as f64 / self.mss as f64);
    }

    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        self.delays.update(sample, self.config.signal, self.window);
        if self.delays.base.is_none() || sample.in_recovery {
            return;
        }
        let update = self.end_round(now);
        if update && self.config.tune_alpha && sample.window_limited {
            self.alpha.tune(self.window / self.delays.round_trip);
        }
        self.slow_start &= self.queued() <= f64::from(self.config.slow_start_exit);
        let acked = f64::from(sample.newly_acked_segments);
        let idle_queue = self.delays.queueing < self.config.multiplicative_increase_below.as_secs_f64();
        if self.slow_start {
            self.window += if sample.window_limited { acked } else { 0.0 };
        } else if idle_queue {
            let turn = self.rounds == 0 && sample.window_limited;
            self.window += if turn { acked } else { 0.0 };
        } else {
            if update {
                self.converge(sample.window_limited);
            }
            if self.step != 0.0 {
                self.approach(acked);
            }
        }
    }

    fn on_loss(&mut self, _: Instant, loss: &LossEvent) {
        self.saved = Some((loss.episode, self.window, self.slow_start));
        self.slow_start = loss.cause == LossCause::Timeout;
        self.step = 0.0;
        self.window = if self.slow_start { 1.0 } else { (self.window / 2.0).max(LEAST_WINDOW) };
    }

    fn on_undo(&mut self, _: Instant, episode: Episode) {
        if let Some((_, window, slow_start)) = self.saved.take_if(|s| s.0 == episode) {
            self.window = self.window.max(window);
            self.slow_start = slow_start;
        }
    }

    fn window(&self) -> u64 {
        (self.window * self.mss as f64) as u64
    }

    fn pace(&self) -> Option<Pace> {
        let gain = self.config.pacing * if self.slow_start { 2.0 } else { 1.0 };
        let paced = gain > 0.0 && self.delays.round_trip > 0.0;
        let rate = gain * 8.0 * self.window * self.mss as f64 / self.delays.round_trip;
        paced.then_some(Pace {
            rate: Rate(rate as u64),
            quantum: self.mss,
            credit: Duration::ZERO,
            together: 0,
            spreads_window: false,
        })
    }

    fn snapshot(&self) -> Snapshot {
        let phase = if self.slow_start { Phase::SlowStart } else { Phase::CongestionAvoidance };
        Snapshot { window: self.window(), ssthresh: None, rate: None, phase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(rtt_ms: u64) -> AckSample {
        AckSample {
            newly_acked: 1000,
            newly_acked_segments: 1,
            rtt: Some(Duration::from_millis(rtt_ms)),
            window_limited: true,
            ..Default::default()
        }
    }

    /// A window of `window` packets in convergence, baseRTT 100 ms.
    fn settled(window: f64, queueing_ms: f64, config: FastConfig) -> Fast {
        let fast = Fast::new(config, 1000);
        let queueing = queueing_ms / 1e3;
        let delays = Delays { base: Some(0.1), queueing, round_trip: 0.1 + queueing };
        Fast { window, delays, slow_start: false, ..fast }
    }

    #[test]
    fn equation_1_by_hand() {
        // (w, qdelay ms, γ, next): aim = w·100/(100+q) + 100
        let table = [
            (400.0, 100.0 / 3.0, 0.5, 400.0), // the fixed point: 300 in the pipe, 100 queued
            (400.0, 100.0, 0.5, 350.0),       // aim 200 + 100
            (200.0, 25.0, 0.5, 230.0),        // aim 160 + 100
            (200.0, 25.0, 1.0, 260.0),
            (20.0, 25.0, 1.0, 40.0), // aim 116, but never more than twice
        ];
        for (w, queueing, gamma, next) in table {
            let mut fast = settled(w, queueing, FastConfig { gamma, ..Default::default() });
            fast.converge(true);
            (0..w as u32 + 1).for_each(|_| fast.approach(1.0));
            assert!((fast.window - next).abs() < 1e-9, "{w} {queueing}: {} not {next}", fast.window);
        }
    }

    #[test]
    fn slow_start_doubles_until_gamma_packets_are_queued() {
        let mut fast = Fast::new(FastConfig::default(), 1000);
        (0..98).for_each(|_| fast.on_ack(Instant::ZERO, &ack(100)));
        assert_eq!((fast.window(), fast.snapshot().phase), (100_000, Phase::SlowStart));
        // 20 of 100 packets are queued once the average round trip is 125 ms: three of 100 per sample
        let left = (1..).find(|_| {
            fast.on_ack(Instant::ZERO, &ack(200));
            fast.snapshot().phase != Phase::SlowStart
        });
        assert!(fast.queued() > 20.0);
        assert!((6..12).contains(&left.expect("found")), "{left:?}");
    }

    #[test]
    fn the_window_changes_in_alternate_rounds() {
        let mut fast = settled(200.0, 25.0, FastConfig::default());
        let mut changes = Vec::new();
        for ms in 0..1250 {
            let before = fast.aim;
            fast.delays.queueing = 0.025;
            fast.on_ack(Instant(ms * 1_000_000), &ack(125));
            changes.extend((fast.aim != before).then_some(ms));
        }
        assert_eq!(changes, [125, 375, 625, 875, 1125]);
    }

    #[test]
    fn an_idle_queue_doubles_the_window_in_every_second_round() {
        let mut fast = settled(50.0, 0.0, FastConfig::default());
        let mut windows = Vec::new();
        for round in 0..4 {
            for i in 0..50 {
                fast.on_ack(Instant((round * 50 + i) * 2_000_000), &ack(100));
            }
            windows.push(fast.window as u64);
        }
        assert_eq!(windows, [50, 100, 100, 150]);
    }

    #[test]
    fn losses_halve_timeouts_start_over_and_undo_restores() {
        let loss = |cause| LossEvent {
            cause,
            episode: Episode(1),
            bytes: 1000,
            flight_size: 90_000,
            oldest_sent: Instant::ZERO,
        };
        let mut fast = settled(90.0, 50.0, FastConfig::default());
        fast.on_loss(Instant::ZERO, &loss(LossCause::LaterDelivered));
        assert_eq!(fast.window(), 45_000);
        fast.on_undo(Instant::ZERO, Episode(1));
        assert_eq!(fast.window(), 90_000);
        fast.on_loss(Instant::ZERO, &loss(LossCause::Timeout));
        assert_eq!((fast.window(), fast.snapshot().phase), (1000, Phase::SlowStart));
    }

    #[test]
    fn no_growth_while_the_window_is_not_used() {
        let unused = AckSample { window_limited: false, ..ack(100) };
        let mut fast = Fast::new(FastConfig::default(), 1000);
        (0..9).for_each(|_| fast.on_ack(Instant::ZERO, &unused));
        assert_eq!(fast.window(), 2000);
        let mut fast = settled(200.0, 25.0, FastConfig::default());
        fast.converge(false);
        assert_eq!((fast.aim, fast.step), (200.0, 0.0));
    }
}
