//! BBR version 3 (draft-ietf-ccwg-bbr, "BBR Congestion Control"): a model of the path, its bandwidth and its smallest round
//! trip, says how fast to send and how much may be in flight; losses bound the model where there are too many.
//!
//! | draft | here |
//! |---|---|
//! | BBR.state, ack_phase, ProbeBW state | `State`, `probe_bw.rs` |
//! | RS, P.delivered, P.tx_in_flight, P.lost | `Sample`, `sent.rs` |
//! | max_bw, bw_shortterm, inflight_longterm, inflight_shortterm, bw_latest, extra_acked | `model.rs` |
//! | full_bw, full_bw_now, full_bw_reached | `pipe.rs` |
//! | min_rtt, ProbeRTT state | `probe_rtt.rs` |
//! | C.pacing_rate, C.send_quantum, C.cwnd | `control.rs` |
//! | undo state | `undo.rs` |
//!
//! Units: bytes, seconds, bytes a second. Deviations: a delivery rate counts as limited by the application if the
//! segment was the last one that waited; what is lost is heard after the acknowledgment that shows it; the first
//! pacing rate waits for a round trip; a delivery rate is taken from half a round trip on, where the draft asks for the smallest; ranges of lost bytes are distinguished by their offsets; a path restarts from idle whenever it
//! sends with nothing in flight, unless its timer ran out; the filter of extra_acked has two halves of five round trips each, and
//! of one in Startup; losses are judged as with selective acknowledgments even if there are none; marks are ignored, and so
//! nothing is sent that may be marked (the draft leaves ECN open).

mod control;
mod model;
mod pipe;
mod probe_bw;
mod probe_rtt;
mod sent;
mod undo;

use polypath_wire::{Duration, Instant, PathId, Rate};
use serde::{Deserialize, Serialize};

use super::controller::{Controller, Phase, Snapshot};
use super::law::{Env, Law};
use super::per_path::{Algorithm, PerPath};
use super::window::no_window;
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, LossCause, LossEvent, LostSegment, Pace};
use model::{Aggregation, Latest, LongTerm, Round, ShortTerm};
use pipe::FullPipe;
use probe_bw::ProbeBw;
use probe_rtt::MinRtt;
use sent::{Sent, SentLog};
use undo::Undo;

/// LossThresh: most losses in a round trip while bandwidth is probed (§2.5).
const LOSS_THRESH: f64 = 0.02;
/// Beta: what a round with losses leaves at least.
const BETA: f64 = 0.7;
/// BBRStartupFullLossCnt: ranges lost in a round that end Startup (§5.3.1.3).
const STARTUP_LOSSES: u32 = 6;
/// Rounds after which Drain ends anyway (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// Parameters of BBR.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BbrConfig {
    /// Initial window, segments (RFC 6928: 10).
    pub initial_window: u32,
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self { initial_window: 10 }
    }
}

/// What BBR does at present (§5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// RS: what an acknowledgment says.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    rate: Option<f64>,
    rtt: Option<Duration>,
    newly_acked: f64,
    /// Bytes delivered since the newest segment left, and before.
    delivered: f64,
    prior_delivered: f64,
    /// Bytes in flight when it left, and lost since.
    tx_in_flight: f64,
    lost: f64,
    app_limited: bool,
    in_recovery: bool,
}

/// BBR on one path.
#[derive(Debug)]
pub(crate) struct Bbr {
    mss: f64,
    initial_cwnd: f64,
    state: State,
    /// C.delivered, C.lost and C.inflight.
    delivered: f64,
    lost: f64,
    inflight: f64,
    sent: SentLog,
    round: Round,
    pipe: FullPipe,
    drain_began: u64,
    /// BBR.bw: what the bandwidth is taken to be.
    bw: f64,
    long: LongTerm,
    short: ShortTerm,
    latest: Latest,
    aggregation: Aggregation,
    probe: ProbeBw,
    rtt: MinRtt,
    idle_restart: bool,
    pacing_rate: Option<f64>,
    cwnd: f64,
    prior_cwnd: f64,
    recovering: bool,
    /// A timeout is being recovered from since then.
    timed_out: Option<Instant>,
    undo: Undo,
}

impl Law for Bbr {
    type Config = BbrConfig;
    const ABOUT: About =
        About { name: "bbr", help: "BBR version 3 per path: a model of the path instead of losses, paced" };

    fn check(config: &BbrConfig) -> Result<(), ConfigError> {
        ConfigError::first(&[(config.initial_window == 0, no_window())])
    }

    fn build(config: BbrConfig, env: &Env) -> Box<dyn Controller> {
        let seed = env.seed;
        let paths = PerPath::new(move |now, path: PathId, mss| {
            Self::new(config, now, mss, seed.wrapping_add(u64::from(path.0)))
        });
        Box::new(paths.ignoring_marks())
    }
}

impl Bbr {
    /// OnInit.
    pub(crate) fn new(config: BbrConfig, now: Instant, mss: u32, seed: u64) -> Self {
        let mss = f64::from(mss);
        let initial_cwnd = f64::from(config.initial_window.max(1)) * mss;
        Self {
            mss,
            initial_cwnd,
            state: State::Startup,
            delivered: 0.0,
            lost: 0.0,
            inflight: 0.0,
            sent: SentLog::default(),
            round: Round::default(),
            pipe: FullPipe::default(),
            drain_began: 0,
            bw: 0.0,
            long: LongTerm::default(),
            short: ShortTerm::default(),
            latest: Latest::default(),
            aggregation: Aggregation::new(now),
            probe: ProbeBw::new(now, seed),
            rtt: MinRtt::new(now),
            idle_restart: false,
            pacing_rate: None,
            cwnd: initial_cwnd,
            prior_cwnd: 0.0,
            recovering: false,
            timed_out: None,
            undo: Undo::default(),
        }
    }

    /// GenerateRateSample.
    fn sample(&mut self, ack: &AckSample) -> Sample {
        let newly_acked = ack.newly_acked as f64;
        self.delivered += newly_acked;
        self.inflight = (ack.prior_in_flight as f64 - newly_acked).max(0.0);
        let sent = ack.sent_at.map(|at| self.sent.find(at)).unwrap_or_default();
        ack.sent_at.into_iter().for_each(|at| self.sent.forget_before(at, ack.srtt));
        Sample {
            rate: ack.delivery_rate.map(|rate| rate.0 as f64 / 8.0),
            rtt: ack.rtt,
            newly_acked,
            delivered: self.delivered - sent.delivered,
            prior_delivered: sent.delivered,
            tx_in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
            app_limited: ack.app_limited || sent.app_limited,
            in_recovery: ack.in_recovery,
        }
    }

    /// UpdateCongestionSignals: the long-term bandwidth, and once a round the short-term bounds.
    fn update_signals(&mut self, rs: &Sample, cwnd_limited: bool) {
        self.latest.update(rs, self.delivered);
        self.round.update(rs, self.delivered, cwnd_limited);
        self.probe.rounds_since_up += u64::from(self.round.started);
        self.long.update_bw(rs);
        if !self.latest.round_started {
            return;
        }
        let probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        if self.latest.lost_in_round && !probing {
            self.short.adapt(&self.latest, self.long.max_bw(), self.cwnd);
        }
        self.latest.lost_in_round = false;
    }

    /// CheckStartupDone and CheckDrainDone.
    fn leave_startup(&mut self, now: Instant, rs: &Sample) {
        if self.state == State::Startup && !self.pipe.reached {
            self.check_startup_losses(rs);
        }
        if self.latest.round_started {
            self.latest.ranges_lost = 0;
        }
        if self.state == State::Startup && self.pipe.reached {
            self.state = State::Drain;
            self.drain_began = self.round.count;
        }
        let late = self.round.count > self.drain_began + DRAIN_ROUNDS;
        if self.state == State::Drain && (self.inflight <= self.inflight_at(self.bw, 1.0) || late) {
            self.start_down(now);
        }
    }

    /// CheckStartupHighLoss (§5.3.1.3).
    fn check_startup_losses(&mut self, rs: &Sample) {
        let many = self.latest.ranges_lost >= STARTUP_LOSSES && is_too_high(rs);
        if self.latest.round_started && rs.in_recovery && many {
            self.undo.state = Some(State::Startup);
            self.pipe.reached = true;
            self.long.inflight = self.bdp(self.bw).max(self.latest.inflight);
        }
    }
}

/// IsInflightTooHigh.
fn is_too_high(rs: &Sample) -> bool {
    rs.lost > rs.tx_in_flight * LOSS_THRESH
}

impl Algorithm for Bbr {
    fn on_mss(&mut self, mss: u32) {
        self.mss = f64::from(mss);
        self.cwnd = self.cwnd.max(self.mss);
    }

    fn limit_window(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.min(bytes as f64);
    }

    /// OnTransmit.
    fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.inflight == 0.0 && self.delivered > 0.0 && self.timed_out.is_none() {
            self.restart_from_idle(now);
        }
        self.inflight += bytes as f64;
        let (delivered, in_flight, lost) = (self.delivered, self.inflight, self.lost);
        let app_limited = self.delivered < self.rtt.app_limited_until;
        self.sent.add(Sent { at: now, delivered, in_flight, lost, app_limited });
    }

    /// UpdateOnACK.
    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        let rs = self.sample(ack);
        self.end_recovery(ack);
        self.update_signals(&rs, ack.window_limited);
        self.aggregation.update(now, &rs, self.bw, self.cwnd, &self.round, self.pipe.reached);
        self.pipe.check(&rs, self.round.started);
        self.leave_startup(now, &rs);
        self.update_probe_bw(now, &rs);
        self.rtt.update(now, rs.rtt);
        self.check_probe_rtt(now);
        self.latest.advance(&rs);
        self.bw = self.long.max_bw().min(self.short.bw);
        self.set_pacing_rate(ack.srtt);
        self.set_cwnd(&rs);
    }

    /// HandleLostPacket.
    fn on_lost(&mut self, now: Instant, segment: &LostSegment) {
        let bytes = segment.bytes as f64;
        (self.lost, self.inflight) = (self.lost + bytes, (self.inflight - bytes).max(0.0));
        if self.latest.note_loss(segment, self.delivered) {
            self.save_for_undo(now);
        }
        let sent = self.sent.find(segment.sent_at);
        let rs = Sample {
            tx_in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
            app_limited: sent.app_limited,
            ..Sample::default()
        };
        if self.probe.is_sample && is_too_high(&rs) {
            self.inflight_too_high(now, &probe_bw::before_loss(&rs, bytes));
        }
    }

    /// OnEnterRTO and OnEnterFastRecovery.
    fn on_loss(&mut self, now: Instant, loss: &LossEvent) {
        self.save_for_undo(now);
        self.undo.episode = Some(loss.episode);
        if loss.cause == LossCause::Timeout {
            self.timed_out = Some(now);
            self.cwnd = self.inflight + self.mss;
        }
    }

    fn on_undo(&mut self, _: Instant, episode: Episode) {
        if self.undo.episode.take_if(|of| *of == episode).is_some() {
            self.undo();
        }
    }

    fn window(&self) -> u64 {
        self.cwnd as u64
    }

    fn pace(&self) -> Option<Pace> {
        self.pacing()
    }

    fn snapshot(&self) -> Snapshot {
        let phase = if self.state == State::Startup { Phase::SlowStart } else { Phase::CongestionAvoidance };
        let rate = (self.bw > 0.0).then_some(Rate((self.bw * 8.0) as u64));
        Snapshot { window: self.window(), ssthresh: None, rate, phase }
    }
}

#[cfg(test)]
mod tests;
