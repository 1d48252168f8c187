//! Reno's law (RFC 5681 §3.1, RFC 6582): one segment more each round trip, half of what was in flight after a loss.
//!
//! Deviation: equation (3), `cwnd += SMSS*SMSS/cwnd` per acknowledgment, is counted in acknowledged
//! bytes (RFC 3465), so that a delayed acknowledgment counts for what it acknowledges. The rest is in `window.rs`.

use polypath_wire::Instant;

use super::controller::Controller;
use super::law::{Env, Law};
use super::per_path::{PerPath, WindowLaw};
use super::window::{Window, WindowConfig};
use crate::about::About;
use crate::facts::{AckSample, ConfigError, LossEvent};

/// Parameters of NewReno.
pub type NewRenoConfig = WindowConfig;

/// NewReno on one path.
#[derive(Clone, Debug)]
pub(crate) struct NewReno {
    window: Window,
}

impl Law for NewReno {
    type Config = NewRenoConfig;
    const ABOUT: About = About { name: "newreno", help: "A NewReno window per path (RFC 5681, 6582), paced" };

    fn check(config: &NewRenoConfig) -> Result<(), ConfigError> {
        config.check()
    }

    fn of_today(config: NewRenoConfig) -> NewRenoConfig {
        config.paced()
    }

    fn build(config: NewRenoConfig, _: &Env) -> Box<dyn Controller> {
        let paths = PerPath::new(move |_, _, mss| Self::new(config, mss));
        Box::new(paths.window_only(config.is_window_only()))
    }
}

impl NewReno {
    /// A fresh window.
    pub(crate) fn new(config: NewRenoConfig, mss: u32) -> Self {
        Self { window: Window::new(config, mss) }
    }
}

impl WindowLaw for NewReno {
    fn state(&self) -> &Window {
        &self.window
    }

    fn state_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    #[inline]
    fn acked(&mut self, now: Instant, sample: &AckSample) {
        if let Some(acked) = self.window.on_ack(now, sample) {
            self.window.grow((self.window.mss() * acked) as f64 / self.window.cwnd()); // (3)
        }
    }

    fn lost(&mut self, loss: &LossEvent) {
        self.window.reduce(loss, loss.flight_size as f64 / 2.0); // (4)
    }
}

#[cfg(test)]
mod tests {
    use super::super::per_path::Algorithm;
    use super::*;
    use crate::facts::{Episode, LossCause};

    fn ack(segments: u64) -> AckSample {
        AckSample { newly_acked: 1000 * segments, window_limited: true, ..Default::default() }
    }

    fn loss(cause: LossCause, flight_size: u64) -> LossEvent {
        LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size, oldest_sent: Instant::ZERO }
    }

    fn reno(initial_window: u32, ssthresh: Option<u32>) -> NewReno {
        NewReno::new(NewRenoConfig { initial_window, initial_ssthresh: ssthresh, ..Default::default() }, 1000)
    }

    #[test]
    fn slow_start_adds_what_is_acknowledged_up_to_the_limit() {
        let mut r = reno(2, None);
        for (acked, expected) in [(1, 3000), (2, 5000), (5, 7000)] {
            r.on_ack(Instant::ZERO, &ack(acked));
            assert_eq!(r.window(), expected);
        }
    }

    #[test]
    fn avoidance_adds_one_segment_a_window() {
        let mut r = reno(10, Some(10));
        (0..10).for_each(|_| r.on_ack(Instant::ZERO, &ack(1)));
        // equation (3) lags one segment slightly, since the window grows while it is acknowledged
        assert!((10_950..=11_000).contains(&r.window()), "{}", r.window());
    }

    #[test]
    fn room_for_one_more_opens_at_the_acknowledgment_that_equation_3_says() {
        let mut r = NewReno::new(NewRenoConfig { initial_window: 70, ..Default::default() }, 1210);
        r.on_loss(Instant::ZERO, &loss(LossCause::DupAck, 70 * 1210 - 13));
        let mut packets = (70.0 - 13.0 / 1210.0) / 2.0;
        for n in 1..2000 {
            r.on_ack(Instant::ZERO, &AckSample { newly_acked: 1210, ..ack(1) });
            packets += 1.0 / packets;
            assert_eq!(r.window() / 1210, packets as u64, "after {n} acknowledgments");
        }
    }

    #[test]
    fn no_growth_in_recovery_nor_when_the_application_limits() {
        let mut r = reno(2, None);
        r.on_ack(Instant::ZERO, &AckSample { in_recovery: true, ..ack(1) });
        r.on_ack(Instant::ZERO, &AckSample { window_limited: false, ..ack(1) });
        assert_eq!(r.window(), 2000);
    }

    #[test]
    fn halves_on_loss_and_starts_over_on_timeout() {
        let mut r = reno(20, None);
        r.on_loss(Instant::ZERO, &loss(LossCause::DupAck, 20_000));
        assert_eq!((r.window(), r.snapshot().ssthresh), (10_000, Some(10_000)));
        r.on_loss(Instant::ZERO, &loss(LossCause::Timeout, 3000));
        assert_eq!((r.window(), r.snapshot().ssthresh), (1000, Some(2000)));
    }

    #[test]
    fn undo_restores_the_episode_it_names_only() {
        let mut r = reno(20, None);
        r.on_loss(Instant::ZERO, &loss(LossCause::DupAck, 20_000));
        r.on_undo(Instant::ZERO, Episode(2));
        assert_eq!(r.window(), 10_000);
        r.on_undo(Instant::ZERO, Episode(1));
        assert_eq!((r.window(), r.snapshot().ssthresh), (20_000, None));
    }
}
