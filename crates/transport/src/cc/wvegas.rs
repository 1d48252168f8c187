//! wVegas, "weighted Vegas" (Cao, Xu and Fu, Delay-based congestion control for multipath TCP, ICNP 2012): each path keeps
//! its share of `total_alpha` packets queued, the share of the connection's rate that it carries.
//!
//! | symbol | here |
//! |---|---|
//! | cwnd_s, baseRTT_s, RTT_s | `window`, `base`, the mean round trip of a round |
//! | diff_s = cwnd_s (RTT_s − baseRTT_s) / RTT_s | `Path::queued` |
//! | weight_s = x_s / Σ x | `WVegas::weight` |
//! | α_s = weight_s · total_α | `Path::alpha` |
//! | q_s | `Path::least_queueing` |
//! | γ | `SLOW_START_EXIT` |
//!
//! Once a round trip: slow start ends when more than γ packets are queued; a path that has its share or more
//! gets a new one; the window moves one packet towards it. When queueing has doubled over its smallest, the window is cut so
//! that the queue drains and baseRTT is seen again. A loss halves, as in TCP.
//!
//! Choices: α_s begins as total_α; a path that is not active has no share in the rate.
//!
//! Like every law that keeps queues short, it yields to laws that fill them.

use polypath_wire::{Duration, Instant, PathId};
use serde::{Deserialize, Serialize};

use super::controller::{Controller, Phase, Snapshot};
use super::law::{Env, Law};
use super::window::no_window;
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, LossCause, LossEvent, PathState, PathView};
use crate::path_map::{OfPath, PathMap};

/// Queued packets that end slow start, γ.
const SLOW_START_EXIT: f64 = 1.0;
/// Smallest α of a path, and window, packets.
const LEAST: f64 = 2.0;

/// Parameters of wVegas.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WVegasConfig {
    /// Packets that the connection keeps queued on all paths, total_α, above 0 (10).
    pub total_alpha: f64,
    /// Initial window, packets (RFC 6928: 10).
    pub initial_window: u32,
}

impl Default for WVegasConfig {
    fn default() -> Self {
        Self { total_alpha: 10.0, initial_window: 10 }
    }
}

/// Weighted Vegas over all paths.
#[derive(Debug)]
pub(crate) struct WVegas {
    config: WVegasConfig,
    paths: PathMap<Path>,
}

/// One path.
#[derive(Debug)]
struct Path {
    id: PathId,
    mss: f64,
    /// Packets.
    window: f64,
    ssthresh: f64,
    alpha: f64,
    /// Smallest round trip, seconds.
    base: Option<f64>,
    /// Packets a second in the last round.
    rate: f64,
    least_queueing: Option<f64>,
    /// The present round: bytes still to be acknowledged, round trips summed, and how many.
    left: u64,
    sum: f64,
    samples: u32,
    saved: Option<(Episode, f64, f64)>,
}

impl OfPath for Path {
    #[inline]
    fn path(&self) -> PathId {
        self.id
    }
}

impl Law for WVegas {
    type Config = WVegasConfig;
    const ABOUT: About =
        About { name: "wvegas", help: "Coupled: wVegas, a few packets queued on all paths together" };

    fn coupled_by(_: &WVegasConfig) -> Option<(&'static str, &'static str)> {
        Some(("algorithm", Self::ABOUT.name))
    }

    fn check(config: &WVegasConfig) -> Result<(), ConfigError> {
        let few = ConfigError::new("cc.total_alpha", "not above 0", "the paper's is 10 packets");
        let positive = config.total_alpha > 0.0 && config.total_alpha.is_finite();
        ConfigError::first(&[(config.initial_window == 0, no_window()), (!positive, few)])
    }

    fn build(config: WVegasConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(Self { config, paths: PathMap::default() })
    }
}

impl WVegas {
    /// The share of `path` in the connection's rate.
    fn weight(&self, path: &Path, views: &[PathView]) -> f64 {
        let state = |id: PathId| views.iter().find(|view| view.id == id).map(|view| view.state);
        let counts = |p: &&Path| state(p.id).is_none_or(|state| state == PathState::Active);
        let all: f64 = self.paths.iter().filter(counts).map(|p| p.rate).sum();
        if all > 0.0 { path.rate / all } else { 1.0 }
    }
}

impl Path {
    /// Takes a round trip; the mean of a round that ends, if it had samples.
    fn count(&mut self, sample: &AckSample) -> Option<f64> {
        if let Some(rtt) = sample.rtt.map(Duration::as_secs_f64) {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            (self.sum, self.samples) = (self.sum + rtt, self.samples + 1);
        }
        if self.left > sample.newly_acked {
            self.left -= sample.newly_acked;
            return None;
        }
        self.left = sample.prior_in_flight;
        let (sum, samples) = (std::mem::take(&mut self.sum), std::mem::take(&mut self.samples));
        (samples > 0).then(|| sum / f64::from(samples))
    }

    /// diff: packets in the queues of the path.
    fn queued(&self, rtt: f64) -> f64 {
        self.window * (rtt - self.base.unwrap_or(rtt)) / rtt
    }

    /// A round of congestion avoidance ended.
    fn adjust(&mut self, rtt: f64, may_grow: bool) {
        let queued = self.queued(rtt);
        if queued > self.alpha {
            self.window -= 1.0;
        } else if queued < self.alpha && may_grow {
            self.window += 1.0;
        }
        let base = self.base.unwrap_or(rtt);
        let queueing = rtt - base;
        let least = self.least_queueing.map_or(queueing, |least| least.min(queueing));
        self.least_queueing = Some(least);
        if queueing >= 2.0 * least && least > 0.0 {
            self.window *= base / (2.0 * rtt);
            self.least_queueing = None;
        }
        self.window = self.window.max(LEAST);
        self.ssthresh = self.ssthresh.min(self.window);
    }

    /// A round of slow start ended.
    fn leave_slow_start(&mut self, rtt: f64) {
        if self.queued(rtt) > SLOW_START_EXIT {
            let pipe = self.window * self.base.unwrap_or(rtt) / rtt;
            self.window = self.window.min(pipe + 1.0).max(LEAST);
            self.ssthresh = self.window;
        }
    }

    fn is_starting(&self) -> bool {
        self.window < self.ssthresh
    }
}

impl Controller for WVegas {
    fn on_path_added(&mut self, _: Instant, path: PathId, mss: u32) {
        self.paths.insert(Path {
            id: path,
            mss: f64::from(mss),
            window: f64::from(self.config.initial_window.max(1)),
            ssthresh: f64::INFINITY,
            alpha: self.config.total_alpha,
            base: None,
            rate: 0.0,
            least_queueing: None,
            left: 0,
            sum: 0.0,
            samples: 0,
            saved: None,
        });
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.paths.remove(path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        self.paths.get_mut(path).into_iter().for_each(|p| p.mss = f64::from(mss));
    }

    fn window_only(&self) -> bool {
        true
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        self.paths.get_mut(path).into_iter().for_each(|p| p.window = p.window.min(bytes as f64 / p.mss));
    }

    fn on_ack(&mut self, _: Instant, path: PathId, sample: &AckSample, views: &[PathView]) {
        let total = self.config.total_alpha;
        let Some(p) = self.paths.get_mut(path) else { return };
        let round = p.count(sample);
        if sample.in_recovery {
            return;
        }
        if p.is_starting() {
            let acked = if sample.window_limited { sample.newly_acked as f64 / p.mss } else { 0.0 };
            p.window += acked;
            return round.into_iter().for_each(|rtt| p.leave_slow_start(rtt));
        }
        let Some(rtt) = round else { return };
        p.rate = p.window / rtt;
        let has_its_share = p.queued(rtt) >= p.alpha;
        let weight = self.weight(&self.paths[path], views);
        let p = &mut self.paths[path];
        if has_its_share {
            p.alpha = (weight * total).max(LEAST);
        }
        p.adjust(rtt, sample.window_limited);
    }

    fn on_loss(&mut self, _: Instant, path: PathId, loss: &LossEvent, _: &[PathView]) {
        let Some(p) = self.paths.get_mut(path) else { return };
        p.saved = Some((loss.episode, p.window, p.ssthresh));
        p.ssthresh = (loss.flight_size as f64 / p.mss / 2.0).max(LEAST);
        p.window = if loss.cause == LossCause::Timeout { 1.0 } else { p.ssthresh };
    }

    fn on_undo(&mut self, _: Instant, path: PathId, episode: Episode) {
        let Some(p) = self.paths.get_mut(path) else { return };
        if let Some((_, window, ssthresh)) = p.saved.take_if(|saved| saved.0 == episode) {
            (p.window, p.ssthresh) = (p.window.max(window), ssthresh);
        }
    }

    fn window(&self, path: PathId) -> u64 {
        self.paths.get(path).map_or(0, |p| (p.window * p.mss) as u64)
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        let Some(p) = self.paths.get(path) else { return Snapshot::default() };
        let ssthresh = p.ssthresh.is_finite().then_some((p.ssthresh * p.mss) as u64);
        let phase = if p.is_starting() { Phase::SlowStart } else { Phase::CongestionAvoidance };
        Snapshot { window: self.window(path), ssthresh, rate: None, phase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    /// Two paths of 40 ms with windows of 60 and 20 packets of 1,000 bytes, past slow start.
    fn two() -> WVegas {
        let mut w = WVegas { config: WVegasConfig::default(), paths: PathMap::default() };
        for (path, window) in [(A, 60.0), (B, 20.0)] {
            w.on_path_added(Instant::ZERO, path, 1000);
            let p = &mut w.paths[path];
            (p.window, p.ssthresh, p.base) = (window, window, Some(0.04));
        }
        w
    }

    /// A round trip whose acknowledgments all took `rtt`; the window, packets.
    fn round(w: &mut WVegas, path: PathId, rtt_us: u64) -> f64 {
        round_beside(w, path, rtt_us, &[])
    }

    fn round_beside(w: &mut WVegas, path: PathId, rtt_us: u64, views: &[PathView]) -> f64 {
        let prior_in_flight = w.window(path);
        let rtt = Some(Duration::from_micros(rtt_us));
        let sample =
            AckSample { newly_acked: 1000, prior_in_flight, rtt, window_limited: true, ..Default::default() };
        let p = &mut w.paths[path];
        (p.left, p.sum, p.samples) = (1000, 0.0, 0);
        w.on_ack(Instant::ZERO, path, &sample, views);
        w.paths[path].window
    }

    #[test]
    fn a_window_moves_a_packet_a_round_towards_its_share_of_the_queue() {
        let mut w = two();
        assert_eq!(round(&mut w, A, 46_000), 61.0, "60 · 6/46 = 7.8 packets are fewer than 10");
        assert_eq!(round(&mut w, A, 48_000), 60.0, "61 · 8/48 = 10.2 are more");
        assert_eq!(round(&mut w, A, 47_000), 61.0, "60 · 7/47 = 8.9");
    }

    /// A carries 60/48 and B 20/48 packets a millisecond: B's share of 10 packets is 2.5.
    #[test]
    fn shares_follow_the_rates() {
        let mut w = two();
        round(&mut w, A, 48_000);
        w.paths[B].alpha = 3.0;
        round(&mut w, B, 48_000);
        let alpha = w.paths[B].alpha;
        assert!((alpha - 2.5).abs() < 0.1, "{alpha}");
    }

    #[test]
    fn a_path_that_failed_has_no_share() {
        for (state, alpha) in [(PathState::Active, 7.5), (PathState::Failed, 10.0)] {
            let mut w = two();
            round(&mut w, B, 48_000);
            w.paths[A].alpha = 3.0;
            let view = PathView { state, ..PathView::new(B, 1000) };
            round_beside(&mut w, A, 48_000, &[view]);
            let found = w.paths[A].alpha;
            assert!((found - alpha).abs() < 0.1, "{found}");
        }
    }

    #[test]
    fn queueing_that_has_doubled_is_drained() {
        let mut w = two();
        round(&mut w, A, 44_000);
        let drained = round(&mut w, A, 49_000);
        assert!((drained - 60.0 * 40.0 / 98.0).abs() < 1e-9, "{drained}");
    }

    #[test]
    fn slow_start_ends_when_a_packet_queues() {
        let mut w = two();
        w.paths[A].ssthresh = f64::INFINITY;
        assert_eq!(round(&mut w, A, 40_500), 61.0);
        assert_eq!(round(&mut w, A, 40_500), 62.0, "61 · 0.5/40.5 = 0.75 packets");
        let left = round(&mut w, A, 42_000);
        assert!((left - 61.0).abs() < 1e-9, "63 · 40/42 + 1, not {left}");
        assert_eq!(w.snapshot(A).phase, Phase::CongestionAvoidance);
    }

    #[test]
    fn a_loss_halves_and_is_undone() {
        let mut w = two();
        let cause = LossCause::LaterDelivered;
        let loss = LossEvent {
            cause,
            episode: Episode(1),
            bytes: 1000,
            flight_size: 60_000,
            oldest_sent: Instant::ZERO,
        };
        w.on_loss(Instant::ZERO, A, &loss, &[]);
        assert_eq!((w.window(A), w.window(B)), (30_000, 20_000));
        w.on_undo(Instant::ZERO, A, Episode(1));
        assert_eq!(w.window(A), 60_000);
    }
}
