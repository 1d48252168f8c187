//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last loss, with its plateau where that happened.
//!
//! | symbol | here |
//! |---|---|
//! | cwnd, ssthresh | [`Window`], there in bytes, here in segments |
//! | W_max, K, W_est, cwnd_prior | `Curve` |
//! | t | `Curve::elapsed`, seconds; time in which the window was not what limited is left out (§4.2) |
//! | C, β_cubic, α_cubic | `C`, `BETA`, `ALPHA` |
//!
//! Choices where the RFC leaves them: an increment per acknowledgment counts for each segment that it acknowledges, as W_est
//! does; where W_est is below the window, the window stays. Slow start is HyStart++ unless a spec says otherwise
//! (§4.10 recommends it).

use polypath_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::controller::Controller;
use super::law::{Env, Law};
use super::per_path::{PerPath, WindowLaw};
use super::window::{SlowStart, Window, WindowConfig};
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, LossCause, LossEvent};

/// Segments per second³ (§5.1).
const C: f64 = 0.4;
/// What a loss leaves (§4.6).
const BETA: f64 = 0.7;
/// Segments per round trip that make AIMD with `BETA` as quick as Reno (§4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Most growth in a round trip (§4.2).
const MOST: f64 = 1.5;

/// Parameters of CUBIC.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CubicConfig {
    /// Initial window, segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Initial slow start threshold, segments; none is as large as possible (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
    /// Most segments that one acknowledgment may count for (RFC 3465's L: 2). Paced, one counts for all that it
    /// acknowledges.
    pub abc_limit: u32,
    /// How the first slow start grows and ends.
    pub slow_start: SlowStart,
    /// Give up more of the window where less was reached than before, for flows that join (§4.7).
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        let WindowConfig { initial_window, initial_ssthresh, abc_limit, .. } = WindowConfig::default();
        let slow_start = SlowStart::Hystart;
        Self { initial_window, initial_ssthresh, abc_limit, slow_start, fast_convergence: true }
    }
}

impl CubicConfig {
    fn window(self) -> WindowConfig {
        let Self { initial_window, initial_ssthresh, abc_limit, slow_start, .. } = self;
        WindowConfig { initial_window, initial_ssthresh, abc_limit, slow_start }
    }
}

/// CUBIC on one path.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    window: Window,
    curve: Curve,
    fast_convergence: bool,
    /// When the last acknowledgment came.
    last: Instant,
    saved: Option<(Episode, Curve)>,
}

/// The function that the window follows, in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// W_max; 0 where nothing is known, or a timeout forgot it.
    plateau: f64,
    /// The window when the threshold was set last.
    prior: f64,
    /// The present stage of congestion avoidance; none before its first acknowledgment.
    stage: Option<Stage>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// Seconds from its beginning to the plateau.
    k: f64,
    /// Seconds since its beginning.
    elapsed: f64,
    /// What Reno's window would be.
    reno: f64,
}

impl Law for Cubic {
    type Config = CubicConfig;
    const ABOUT: About =
        About { name: "cubic", help: "A CUBIC window per path (RFC 9438), as most hosts have it" };

    fn check(config: &CubicConfig) -> Result<(), ConfigError> {
        config.window().check()
    }

    fn of_today(config: CubicConfig) -> CubicConfig {
        CubicConfig { slow_start: SlowStart::Paced, ..config }
    }

    fn build(config: CubicConfig, _: &Env) -> Box<dyn Controller> {
        let paths = PerPath::new(move |now, _, mss| Self::new(config, now, mss));
        Box::new(paths.window_only(config.window().is_window_only()))
    }
}

impl Curve {
    /// The stage that goes on, or one that begins with a window of `w` (§4.2, §4.8, §4.10).
    fn stage(&mut self, w: f64) -> &mut Stage {
        if self.stage.is_none() && w >= self.plateau {
            self.plateau = w;
        }
        if self.prior == 0.0 {
            self.prior = w; // slow start ended without a loss
        }
        let k = ((self.plateau - w) / C).cbrt(); // equation 2
        self.stage.get_or_insert(Stage { k, elapsed: 0.0, reno: w })
    }

    /// The window after `segments` were acknowledged, `waited` after the acknowledgment before.
    fn follow(&mut self, w: f64, segments: f64, waited: Duration, rtt: Duration) -> f64 {
        let (began, prior) = (self.stage.is_some(), self.prior);
        let stage = self.stage(w);
        stage.elapsed += if began { waited.as_secs_f64() } else { 0.0 };
        let alpha = if prior > 0.0 && stage.reno < prior { ALPHA } else { 1.0 };
        stage.reno += alpha * segments / w; // equation 4
        let Stage { k, elapsed, reno } = *stage;
        let cubic = |t: f64| C * (t - k).powi(3) + self.plateau; // equation 1
        if cubic(elapsed) < reno {
            return w.max(reno);
        }
        let target = cubic(elapsed + rtt.as_secs_f64()).clamp(w, MOST * w);
        w + (target - w) / w * segments
    }

    /// A loss at a window of `w` (§4.6, §4.7).
    fn lose(&mut self, w: f64, fast_convergence: bool, timeout: bool) {
        let released = fast_convergence && w < self.plateau;
        self.plateau = if released { w * (1.0 + BETA) / 2.0 } else { w };
        if timeout {
            self.plateau = 0.0; // §4.8
        }
        (self.prior, self.stage) = (w, None);
    }

    /// The same windows in segments of another size, `segments` to one of before; a stage begins at the present one.
    fn resize(&mut self, segments: f64) {
        *self = Self { plateau: self.plateau * segments, prior: self.prior * segments, stage: None };
    }
}

impl Cubic {
    /// A fresh window.
    pub(crate) fn new(config: CubicConfig, now: Instant, mss: u32) -> Self {
        Self {
            window: Window::new(config.window(), mss),
            curve: Curve::default(),
            fast_convergence: config.fast_convergence,
            last: now,
            saved: None,
        }
    }

    /// The window in segments.
    fn segments(&self) -> f64 {
        self.window.cwnd() / self.window.mss() as f64
    }
}

impl WindowLaw for Cubic {
    fn state(&self) -> &Window {
        &self.window
    }

    fn state_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn acked(&mut self, now: Instant, sample: &AckSample) {
        let waited = now.since(std::mem::replace(&mut self.last, now));
        let Some(acked) = self.window.on_ack(now, sample) else { return };
        let (w, mss) = (self.segments(), self.window.mss() as f64);
        let rtt = sample.srtt.unwrap_or(Duration::ZERO);
        let next = self.curve.follow(w, acked as f64 / mss, waited, rtt);
        self.window.grow((next - w) * mss);
    }

    fn lost(&mut self, loss: &LossEvent) {
        self.saved = Some((loss.episode, self.curve));
        let timeout = loss.cause == LossCause::Timeout;
        self.curve.lose(self.segments(), self.fast_convergence, timeout);
        self.window.reduce(loss, loss.flight_size as f64 * BETA);
    }

    fn give_up(&mut self, bytes: f64) {
        self.curve.lose(self.segments(), false, false);
        self.window.give_up(bytes);
    }

    fn undone(&mut self, episode: Episode) {
        if let Some((_, curve)) = self.saved.take_if(|saved| saved.0 == episode) {
            self.curve = curve;
        }
    }

    fn resized(&mut self, segments: f64) {
        self.curve.resize(segments);
        if let Some((_, curve)) = &mut self.saved {
            curve.resize(segments);
        }
    }
}

#[cfg(test)]
mod tests;
