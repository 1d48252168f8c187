//! How fast to send and how much may be in flight (§5.6).

use polypath_wire::{Duration, Rate};

use super::{Bbr, Sample, State};
use crate::facts::{AckSample, Pace};

/// StartupPacingGain: 4 ln 2.
const STARTUP_GAIN: f64 = 2.77;
/// DefaultCwndGain, and those of ProbeBW_UP and of ProbeRTT.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// Paced one per cent below the bandwidth: PacingMarginPercent.
const MARGIN: f64 = 0.99;
/// MinPipeCwnd, segments.
const MIN_PIPE: f64 = 4.0;
/// A quantum is what leaves in `GRAIN` seconds: at least two segments, at most `MAX_QUANTUM` bytes.
const GRAIN: f64 = 0.001;
const MAX_QUANTUM: f64 = 65_536.0;
/// Quanta in flight that hosts may hold: the factor of offload_budget.
const QUANTA: f64 = 3.0;
/// How late a timer of a real host may be.
const LATENESS: Duration = Duration::from_millis(5);

impl State {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }

    fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => UP_CWND_GAIN,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }
}

impl Bbr {
    /// BDPMultiple(1): what the path holds at `bw`.
    pub(super) fn bdp(&self, bw: f64) -> f64 {
        self.rtt.min.map_or(self.initial_cwnd, |min| bw * min.as_secs_f64())
    }

    /// Inflight(bw, gain).
    pub(super) fn inflight_at(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(gain * self.bdp(bw))
    }

    /// QuantizationBudget.
    fn quantized(&self, inflight: f64) -> f64 {
        let more = if self.state == State::Up { 2.0 * self.mss } else { 0.0 };
        inflight.max(QUANTA * self.quantum()).max(self.min_cwnd()) + more
    }

    pub(super) fn min_cwnd(&self) -> f64 {
        MIN_PIPE * self.mss
    }

    /// SetSendQuantum.
    fn quantum(&self) -> f64 {
        let least = 2.0 * self.mss;
        (self.pacing_rate.unwrap_or(0.0) * GRAIN).clamp(least, MAX_QUANTUM.max(least))
    }

    /// InitPacingRate and SetPacingRate.
    pub(super) fn set_pacing_rate(&mut self, srtt: Option<Duration>) {
        if let Some(srtt) = srtt.filter(|srtt| *srtt > Duration::ZERO && self.pacing_rate.is_none()) {
            self.pacing_rate = Some(STARTUP_GAIN * self.initial_cwnd / srtt.as_secs_f64());
        }
        self.pace_with_gain(self.state.pacing_gain());
    }

    /// SetPacingRateWithGain.
    pub(super) fn pace_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * MARGIN;
        if rate > 0.0 && (self.pipe.reached || self.pacing_rate.is_some_and(|present| rate > present)) {
            self.pacing_rate = Some(rate);
        }
    }

    pub(super) fn pacing(&self) -> Option<Pace> {
        let (rate, quantum) = (Rate((self.pacing_rate? * 8.0) as u64), self.quantum() as u64);
        Some(Pace {
            rate,
            quantum,
            credit: rate.transmission_time(quantum).max(LATENESS),
            together: 0,
            spreads_window: false,
        })
    }

    /// SetCwnd.
    pub(super) fn set_cwnd(&mut self, rs: &Sample) {
        let most = self.bdp(self.bw) * self.state.cwnd_gain() + self.aggregation.extra();
        let max_inflight = self.quantized(most);
        if self.pipe.reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < self.initial_cwnd {
            self.cwnd += rs.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = self.cwnd.min(self.cwnd_cap());
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(self.bw)).max(self.min_cwnd())
    }

    /// BoundCwndForModel.
    fn cwnd_cap(&self) -> f64 {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.long.inflight,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        cap.min(self.short.inflight).max(self.min_cwnd())
    }

    pub(super) fn save_cwnd(&mut self) {
        let modulated = self.recovering || self.timed_out.is_some() || self.state == State::ProbeRtt;
        self.prior_cwnd = if modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// A timeout is over when what left after it is delivered, fast recovery when the policy says so.
    pub(super) fn end_recovery(&mut self, ack: &AckSample) {
        let answered = |since| ack.sent_at.is_some_and(|at| at >= since);
        let over = self.timed_out.take_if(|since| answered(*since)).is_some();
        if over || self.recovering && !ack.in_recovery {
            self.restore_cwnd();
        }
        self.recovering = ack.in_recovery;
    }
}
