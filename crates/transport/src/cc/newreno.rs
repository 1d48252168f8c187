//! The window of Reno and NewReno (RFC 5681 §3.1, RFC 6582).
//!
//! | symbol | here |
//! |---|---|
//! | SMSS | `mss` |
//! | cwnd, ssthresh | `cwnd`, `ssthresh` |
//! | FlightSize | `LossEvent::flight_size` |
//! | N, L | `AckSample::newly_acked`, `abc_limit` (RFC 3465) |
//!
//! Deviations: equation (3), `cwnd += SMSS*SMSS/cwnd` per acknowledgment, is counted in acknowledged
//! bytes (RFC 3465), so that a delayed acknowledgment counts for what it acknowledges. The window keeps
//! its fraction of a byte, also when it is halved: by (3) room for one more segment often opens within a
//! byte of an acknowledgment, and a byte less means one acknowledgment later. The inflation of fast
//! recovery is not here: the sender takes what duplicate acknowledgments report out of what is in flight,
//! which is the same arithmetic on the other side. After an idle time the window stays as it was, where §4.1 would
//! shrink it to the initial one: a path may be idle because the scheduler found others better, and as a window
//! grows only while it is filled, this one was filled once.

use polypath_wire::Instant;
use serde::{Deserialize, Serialize};

use super::controller::{Phase, Snapshot};
use super::hystart::{Advice, HyStart};
use super::per_path::Algorithm;
use crate::facts::{AckSample, Episode, LossCause, LossEvent};

/// Parameters of NewReno.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct NewRenoConfig {
    /// Initial window, segments (RFC 6928: 10; ns-2: 2).
    pub initial_window: u32,
    /// Initial slow start threshold, segments; none is as large as possible (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u32>,
    /// Most segments that one acknowledgment may count for (RFC 3465's L: 2; ns-2 counts
    /// acknowledgments: 1).
    pub abc_limit: u32,
    /// Leave the first slow start when the round trip grows (RFC 9406).
    pub hystart: bool,
}

impl Default for NewRenoConfig {
    fn default() -> Self {
        Self { initial_window: 10, initial_ssthresh: None, abc_limit: 2, hystart: false }
    }
}

/// NewReno on one path.
#[derive(Debug)]
pub struct NewReno {
    mss: u64,
    abc_limit: u64,
    /// Bytes.
    cwnd: f64,
    /// Bytes; infinite until it is known.
    ssthresh: f64,
    /// Until slow start ends for the first time, if wanted.
    hystart: Option<HyStart>,
    saved: Option<Saved>,
}

/// What was before the last reduction, for undo.
#[derive(Debug)]
struct Saved {
    episode: Episode,
    cwnd: f64,
    ssthresh: f64,
    hystart: Option<HyStart>,
}

impl NewReno {
    /// A fresh window.
    pub fn new(config: NewRenoConfig, mss: u32) -> Self {
        let mss = u64::from(mss);
        Self {
            mss,
            abc_limit: u64::from(config.abc_limit.max(1)),
            cwnd: (u64::from(config.initial_window.max(1)) * mss) as f64,
            ssthresh: config.initial_ssthresh.map_or(f64::INFINITY, |s| (u64::from(s) * mss) as f64),
            hystart: config.hystart.then(HyStart::default),
            saved: None,
        }
    }

    /// HyStart++ sees every acknowledgment, for its rounds; the window grows only while it is what limits.
    fn slow_start(&mut self, sample: &AckSample, acked: u64) {
        match self.hystart.as_mut().map_or(Advice::Grow(acked), |h| h.on_ack(sample, acked)) {
            Advice::Grow(bytes) if sample.window_limited => self.cwnd += bytes as f64, // (2)
            Advice::Grow(_) => {}
            Advice::Leave => self.ssthresh = self.cwnd,
        }
    }

    fn phase(&self) -> Phase {
        if self.cwnd < self.ssthresh { Phase::SlowStart } else { Phase::CongestionAvoidance }
    }
}

impl Algorithm for NewReno {
    const WINDOW_ONLY: bool = true;

    fn on_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss);
        self.cwnd = self.cwnd.max(self.mss as f64);
    }

    fn limit_window(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.min(bytes as f64);
    }

    fn on_ack(&mut self, _: Instant, sample: &AckSample) {
        if sample.in_recovery {
            return;
        }
        let acked = sample.newly_acked.min(self.abc_limit * self.mss);
        match self.phase() {
            Phase::SlowStart => self.slow_start(sample, acked),
            Phase::CongestionAvoidance if sample.window_limited => {
                self.cwnd += (self.mss * acked) as f64 / self.cwnd; // (3)
            }
            Phase::CongestionAvoidance => {}
        }
    }

    fn on_loss(&mut self, _: Instant, loss: &LossEvent) {
        let (episode, hystart) = (loss.episode, self.hystart.take());
        self.saved = Some(Saved { episode, cwnd: self.cwnd, ssthresh: self.ssthresh, hystart });
        self.ssthresh = (loss.flight_size as f64 / 2.0).max((2 * self.mss) as f64); // (4)
        self.cwnd = match loss.cause {
            LossCause::Timeout => self.mss as f64, // loss window, §3.1
            _ => self.ssthresh,                    // §3.2, step 6 brought forward
        };
    }

    fn on_undo(&mut self, _: Instant, episode: Episode) {
        if let Some(saved) = self.saved.take_if(|s| s.episode == episode) {
            self.cwnd = self.cwnd.max(saved.cwnd);
            self.ssthresh = saved.ssthresh;
            self.hystart = saved.hystart;
        }
    }

    fn window(&self) -> u64 {
        self.cwnd as u64
    }

    fn snapshot(&self) -> Snapshot {
        let ssthresh = self.ssthresh.is_finite().then_some(self.ssthresh as u64);
        Snapshot { window: self.window(), ssthresh, rate: None, phase: self.phase() }
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Duration;

    use super::*;

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

    /// A round of ten segments with this round trip.
    fn hystart_round(r: &mut NewReno, rtt_ms: u64, window_limited: bool) {
        let rtt = Some(Duration::from_millis(rtt_ms));
        let sample = AckSample { rtt, prior_in_flight: 10_000, window_limited, ..ack(1) };
        (0..10).for_each(|_| r.on_ack(Instant::ZERO, &sample));
    }

    fn with_hystart() -> NewReno {
        NewReno::new(NewRenoConfig { hystart: true, ..Default::default() }, 1000)
    }

    #[test]
    fn hystart_counts_rounds_that_do_not_fill_the_window() {
        let mut r = with_hystart();
        hystart_round(&mut r, 40, true);
        hystart_round(&mut r, 50, false);
        assert_eq!(r.window(), 20_000);
        hystart_round(&mut r, 50, true); // a quarter of slow start's growth
        assert_eq!(r.window(), 22_500);
        (0..4).for_each(|_| hystart_round(&mut r, 50, false));
        assert_eq!(r.snapshot().ssthresh, Some(22_500));
    }

    #[test]
    fn undo_resumes_hystart_too() {
        let mut r = with_hystart();
        hystart_round(&mut r, 40, true);
        r.on_loss(Instant::ZERO, &loss(LossCause::LaterDelivered, 20_000));
        r.on_undo(Instant::ZERO, Episode(1));
        assert_eq!((r.window(), r.snapshot().ssthresh), (20_000, None));
        (0..6).for_each(|_| hystart_round(&mut r, 50, true));
        assert!(r.snapshot().ssthresh.is_some(), "it ends slow start as if nothing had happened");
    }
}
