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

use polypath_wire::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

use super::controller::{Phase, Snapshot};
use super::hystart::{self, HyStart};
use super::paced::{self, Paced};
use super::per_path::Algorithm;
use crate::facts::{AckSample, Episode, KnownPath, LossCause, LossEvent, Pace};

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
    /// acknowledgments: 1). Paced, one counts for all that it acknowledges.
    pub abc_limit: u32,
    /// How the first slow start grows and ends.
    pub slow_start: SlowStart,
}

/// The first slow start of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SlowStart {
    /// The window doubles in a round trip until something is lost (RFC 5681).
    #[default]
    Standard,
    /// It also ends when the round trip grows (RFC 9406).
    Hystart,
    /// Packet trains show when the path is full; all segments are paced, also after slow start.
    Paced,
}

impl Default for NewRenoConfig {
    fn default() -> Self {
        Self { initial_window: 10, initial_ssthresh: None, abc_limit: 2, slow_start: SlowStart::Standard }
    }
}

/// A quantum is what the paced rate carries in this time, at most `MAX_QUANTUM` bytes.
const GRAIN: Duration = Duration::from_millis(1);
const MAX_QUANTUM: u64 = 1 << 16;
/// How late a timer of a real host may be: its tick and what else runs there.
const LATENESS: Duration = Duration::from_millis(5);
/// Smallest quantum in slow start, segments: a train.
const TRAIN: u64 = 8;

fn gain(rate: Rate, times: u64, over: u64) -> Rate {
    Rate(rate.0.saturating_mul(times) / over)
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
    start: Start,
    /// What pacing needs to know; none if the path is not paced.
    paced: Option<Known>,
    saved: Option<Saved>,
}

/// The law of the first slow start.
#[derive(Clone, Debug)]
enum Start {
    /// RFC 5681, as every later slow start.
    Standard,
    Hystart(HyStart),
    Paced(Paced),
}

/// What acknowledgments showed of the path.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    srtt: Option<Duration>,
    train_rate: Option<Rate>,
    /// Delivery rate times smallest round trip, bytes.
    pipe: u64,
}

/// What was before the last reduction, for undo.
#[derive(Debug)]
struct Saved {
    episode: Episode,
    cwnd: f64,
    ssthresh: f64,
    start: Start,
}

impl Known {
    fn learn(&mut self, sample: &AckSample) {
        (self.srtt, self.train_rate) = (sample.srtt, sample.train_rate);
        if let (Some(rate), Some(rtt), false) = (sample.delivery_rate, sample.min_rtt, sample.in_recovery) {
            self.pipe = rate.bytes_in(rtt);
        }
    }
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
            start: match config.slow_start {
                SlowStart::Standard => Start::Standard,
                SlowStart::Hystart => Start::Hystart(HyStart::default()),
                SlowStart::Paced => Start::Paced(Paced::default()),
            },
            paced: (config.slow_start == SlowStart::Paced).then(Known::default),
            saved: None,
        }
    }

    /// The law sees every acknowledgment, for its rounds; the window grows only while it is what limits.
    fn slow_start(&mut self, now: Instant, sample: &AckSample, acked: u64) {
        let advice = match &mut self.start {
            Start::Standard => hystart::Advice::Grow(acked),
            Start::Hystart(hystart) => hystart.on_ack(sample, acked),
            Start::Paced(paced) => {
                let advice = paced.on_ack(now, sample, self.cwnd);
                return self.follow(advice);
            }
        };
        match advice {
            hystart::Advice::Grow(bytes) if sample.window_limited => self.cwnd += bytes as f64, // (2)
            hystart::Advice::Grow(_) => {}
            hystart::Advice::Leave => self.ssthresh = self.cwnd,
        }
    }

    fn follow(&mut self, advice: paced::Advice) {
        match advice {
            paced::Advice::Grow(window) => self.cwnd = window,
            paced::Advice::Leave(window) => (self.cwnd, self.ssthresh) = (window, window),
        }
    }

    /// Whether the window limited what was sent. Pacing may hold back the last two quanta that it had room for.
    fn is_limiting(&self, sample: &AckSample) -> bool {
        let held = self.pace().map_or(0, |pace| 2 * pace.quantum);
        sample.window_limited || sample.prior_in_flight + held > self.window()
    }

    /// Bytes that an acknowledgment counts for: all that it acknowledges if what follows is paced.
    fn counted(&self, acked: u64) -> u64 {
        match self.paced {
            Some(_) => acked,
            None => acked.min(self.abc_limit * self.mss),
        }
    }

    /// What the path holds, bytes, if slow start caused this loss, else 0: a better threshold than half of what was
    /// in flight.
    fn pipe_at_start(&self, start: &Start, loss: &LossEvent) -> f64 {
        let lives = !matches!(loss.cause, LossCause::Timeout | LossCause::Silence);
        match (start, self.paced) {
            (Start::Paced(paced), Some(known)) if lives && paced.is_to_blame(loss.oldest_sent) => {
                (known.pipe as f64).min(self.cwnd)
            }
            _ => 0.0,
        }
    }

    fn phase(&self) -> Phase {
        if self.cwnd < self.ssthresh { Phase::SlowStart } else { Phase::CongestionAvoidance }
    }
}

impl Algorithm for NewReno {
    fn on_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss);
        self.cwnd = self.cwnd.max(self.mss as f64);
    }

    fn limit_window(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.min(bytes as f64);
    }

    /// The window holds half of what the path held, and leaves at half the known rate until the next acknowledgment
    /// (draft-ietf-tsvwg-careful-resume, "Unvalidated"). A loss leaves what was delivered, or half of what was in flight
    /// ("Safe Retreat").
    fn on_known(&mut self, known: &KnownPath) {
        let (Start::Paced(_), Some(paced)) = (&self.start, &mut self.paced) else { return };
        self.cwnd = self.cwnd.max(known.rate.bytes_in(known.rtt) as f64 / 2.0);
        *paced = Known { srtt: Some(known.rtt), train_rate: Some(Rate(known.rate.0 / 2)), ..*paced };
    }

    fn on_ack(&mut self, now: Instant, sample: &AckSample) {
        if let Some(known) = &mut self.paced {
            known.learn(sample);
        }
        if sample.in_recovery {
            return;
        }
        let acked = self.counted(sample.newly_acked);
        match self.phase() {
            Phase::SlowStart => self.slow_start(now, sample, acked),
            Phase::CongestionAvoidance if self.is_limiting(sample) => {
                let again = match &mut self.start {
                    Start::Paced(paced) => paced.on_ack_later(sample),
                    _ => None,
                };
                self.cwnd += again.unwrap_or((self.mss * acked) as f64 / self.cwnd); // (3)
            }
            Phase::CongestionAvoidance => {}
        }
    }

    fn on_loss(&mut self, _: Instant, loss: &LossEvent) {
        let (episode, start) = (loss.episode, std::mem::replace(&mut self.start, Start::Standard));
        let (ssthresh, pipe) = (self.ssthresh, self.pipe_at_start(&start, loss));
        self.ssthresh = (loss.flight_size as f64 / 2.0).max((2 * self.mss) as f64).max(pipe); // (4)
        self.saved = Some(Saved { episode, cwnd: self.cwnd, ssthresh, start });
        self.cwnd = match loss.cause {
            LossCause::Timeout => self.mss as f64, // loss window, §3.1
            _ => self.ssthresh,                    // §3.2, step 6 brought forward
        };
    }

    fn on_undo(&mut self, _: Instant, episode: Episode) {
        if let Some(saved) = self.saved.take_if(|s| s.episode == episode) {
            self.cwnd = self.cwnd.max(saved.cwnd);
            self.ssthresh = saved.ssthresh;
            self.start = saved.start;
        }
    }

    fn window(&self) -> u64 {
        self.cwnd as u64
    }

    fn pace(&self) -> Option<Pace> {
        let known = self.paced?;
        let window = Rate::from_bytes_per(self.window(), known.srtt?);
        let rate = match self.phase() {
            Phase::SlowStart => {
                let doubled = gain(window, 2, 1);
                let trains = known.train_rate.map(|rate| doubled.clamp(gain(rate, 3, 4), rate));
                trains.unwrap_or(doubled).max(window)
            }
            Phase::CongestionAvoidance => gain(window, 5, 4),
        };
        let least = self.mss * if self.phase() == Phase::SlowStart { TRAIN } else { 2 };
        let quantum = rate.bytes_in(GRAIN).clamp(least, MAX_QUANTUM.max(least));
        Some(Pace { rate, quantum, credit: rate.transmission_time(quantum).max(LATENESS) })
    }

    fn snapshot(&self) -> Snapshot {
        let ssthresh = self.ssthresh.is_finite().then_some(self.ssthresh as u64);
        Snapshot { window: self.window(), ssthresh, rate: None, phase: self.phase() }
    }
}

#[cfg(test)]
mod tests {
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

    fn paced(window: u32) -> NewReno {
        let config = NewRenoConfig { slow_start: SlowStart::Paced, ..Default::default() };
        NewReno::new(NewRenoConfig { initial_window: window, ..config }, 1000)
    }

    /// An acknowledgment on a path of 80 Mbit/s, 40 ms: 400 kB.
    fn of_path(rtt_ms: u64, in_flight: u64) -> AckSample {
        let rtt = Some(Duration::from_millis(rtt_ms));
        let (delivery_rate, train_rate) = (Some(Rate::from_mbps(80)), Some(Rate::from_mbps(80)));
        let (srtt, min_rtt) = (rtt, Some(Duration::from_millis(40)));
        let sample = AckSample { rtt, srtt, min_rtt, delivery_rate, train_rate, ..ack(1) };
        AckSample { prior_in_flight: in_flight, ..sample }
    }

    #[test]
    fn what_slow_start_lost_leaves_what_the_path_holds_and_what_is_lost_later_half() {
        let mut r = paced(600);
        (0..610).for_each(|_| r.on_ack(Instant(9), &of_path(50, 600_000)));
        assert_eq!((r.window() / 1000, r.phase()), (450, Phase::CongestionAvoidance));
        r.on_loss(Instant::ZERO, &loss(LossCause::LaterDelivered, 450_000));
        assert_eq!(r.window(), 400_000, "it left before slow start did");
        r.on_loss(Instant::ZERO, &loss(LossCause::LaterDelivered, 400_000));
        assert_eq!(r.window(), 200_000);
    }

    #[test]
    fn paced_is_what_leaves_at_twice_the_window_then_as_fast_as_the_bottleneck_then_at_the_window_and_a_quarter()
     {
        let mut r = paced(100);
        assert_eq!(r.pace(), None, "nothing is known");
        r.on_ack(Instant::ZERO, &AckSample { train_rate: None, ..of_path(40, 0) });
        let rate = |r: &NewReno| r.pace().map(|p| p.rate);
        assert_eq!(rate(&r), Some(Rate::from_mbps(40)), "100 kB in 40 ms are 20 Mbit/s");
        r.on_ack(Instant::ZERO, &of_path(40, 0));
        assert_eq!(rate(&r), Some(Rate::from_mbps(60)), "three quarters of what trains tell");
        r.cwnd = 300_000.0;
        assert_eq!(rate(&r), Some(Rate::from_mbps(80)));
        r.ssthresh = 0.0;
        assert_eq!(rate(&r), Some(Rate::from_mbps(75)));
        assert_eq!(r.pace().map(|p| (p.quantum, p.credit.0)), Some((9375, 5_000_000)), "1 ms");
    }

    #[test]
    fn a_path_that_is_known_begins_with_half_of_what_it_holds_at_half_its_rate() {
        let known = KnownPath { rate: Rate::from_mbps(80), rtt: Duration::from_millis(40) };
        let mut r = paced(10);
        r.on_known(&known);
        assert_eq!(r.window(), 200_000);
        assert_eq!(r.pace().map(|p| p.rate), Some(Rate::from_mbps(40)));
        r.on_loss(Instant::ZERO, &loss(LossCause::LaterDelivered, 200_000));
        assert_eq!(r.window(), 100_000, "it was too much");
        let mut standard = reno(10, None);
        standard.on_known(&known);
        assert_eq!(standard.window(), 10_000);
    }

    #[test]
    fn a_stretched_acknowledgment_counts_for_all_it_acknowledges_if_what_follows_is_paced() {
        let mut r = paced(20);
        r.on_ack(Instant::ZERO, &AckSample { prior_in_flight: 20_000, ..ack(16) });
        assert_eq!(r.window(), 36_000);
    }

    fn with_hystart() -> NewReno {
        NewReno::new(NewRenoConfig { slow_start: SlowStart::Hystart, ..Default::default() }, 1000)
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
