//! ProbeBW (§5.3.3): slower, level, refill, faster; and what losses during a probe say of the volume in flight.

use polypath_wire::{Duration, Instant, Seed};

use super::{BETA, Bbr, LOSS_THRESH, Sample, State, is_too_high};

/// Headroom: share of inflight_longterm left to others.
const HEADROOM: f64 = 0.15;
/// Most rounds between probes, for the sake of Reno and CUBIC (§5.3.3.5).
const RENO_ROUNDS: f64 = 63.0;
/// Most doublings of the growth of inflight_longterm.
const MOST_DOUBLINGS: u32 = 30;

/// ack_phase: what acknowledgments answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Feedback {
    None,
    Refilling,
    Starting,
    Probing,
    Stopping,
}

/// State of the probes.
#[derive(Debug)]
pub(super) struct ProbeBw {
    pub feedback: Feedback,
    /// is_bw_probe_sample.
    pub is_sample: bool,
    pub rounds_since_up: u64,
    pub too_high: bool,
    precautionary: bool,
    up_acked: f64,
    acked_per_segment: f64,
    doublings: u32,
    pub wait: Duration,
    began: Instant,
    dice: Seed,
    throws: u64,
}

impl ProbeBw {
    pub(super) fn new(now: Instant, seed: u64) -> Self {
        Self {
            feedback: Feedback::None,
            is_sample: false,
            rounds_since_up: 0,
            too_high: false,
            precautionary: false,
            up_acked: 0.0,
            acked_per_segment: f64::INFINITY,
            doublings: 0,
            wait: Duration::ZERO,
            began: now,
            dice: Seed(seed),
            throws: 0,
        }
    }

    /// PickProbeWait: none or one round, and 2 to 3 s.
    pub(super) fn pick_wait(&mut self) {
        self.throws += 1;
        let thrown = self.dice.child(&format!("probe/{}", self.throws)).0;
        self.rounds_since_up = thrown & 1;
        self.wait = Duration::from_secs_f64(2.0 + (thrown >> 11) as f64 / (1u64 << 53) as f64);
    }
}

/// InflightAtLoss: the volume at which the loss rate was exceeded, within the `size` bytes lost last.
pub(super) fn before_loss(rs: &Sample, size: f64) -> Sample {
    let (in_flight, lost) = (rs.tx_in_flight - size, rs.lost - size);
    let prefix = (LOSS_THRESH * in_flight - lost) / (1.0 - LOSS_THRESH);
    Sample { tx_in_flight: in_flight + prefix, ..*rs }
}

impl Bbr {
    pub(super) fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// EnterProbeBW and StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.latest.reset();
        self.probe.acked_per_segment = f64::INFINITY;
        self.probe.pick_wait();
        self.probe.began = now;
        self.probe.feedback = Feedback::Stopping;
        self.round.start(self.delivered);
        self.state = State::Down;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.short = Default::default();
        (self.probe.doublings, self.probe.up_acked) = (0, 0.0);
        self.probe.precautionary = false;
        self.probe.feedback = Feedback::Refilling;
        self.round.start(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, rs: &Sample) {
        self.probe.is_sample = true;
        self.probe.feedback = Feedback::Starting;
        self.round.start(self.delivered);
        self.pipe.reset(rs.rate.unwrap_or(0.0));
        self.state = State::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw(&mut self, now: Instant, rs: &Sample) {
        if !self.pipe.reached || self.adapt_long_term(rs) {
            return;
        }
        let state = self.state;
        match state {
            State::Down if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Refill if self.round.started => self.start_up(rs),
            State::Up if self.is_time_to_go_down(rs) => {
                self.probe.too_high = false;
                self.start_down(now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let target = (self.target_inflight() / self.mss).min(RENO_ROUNDS);
        now > self.probe.began + self.probe.wait || self.probe.rounds_since_up as f64 >= target
    }

    fn is_time_to_cruise(&self) -> bool {
        self.inflight <= self.inflight_with_headroom()
            && self.inflight <= self.inflight_at(self.long.max_bw(), 1.0)
    }

    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        if self.probe.too_high && self.inflight >= self.long.inflight {
            self.probe.precautionary = true;
            return true;
        }
        if self.round.is_cwnd_limited() && self.cwnd >= self.long.inflight {
            self.pipe.reset(rs.rate.unwrap_or(0.0));
            return false;
        }
        self.pipe.now
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let safe = self.long.inflight;
        (safe - self.mss.max(HEADROOM * safe)).max(self.min_cwnd()).max(if safe.is_finite() {
            0.0
        } else {
            safe
        })
    }

    /// TargetInflight.
    fn target_inflight(&self) -> f64 {
        self.bdp(self.bw).min(self.cwnd)
    }

    /// RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = f64::from(1u32 << self.probe.doublings);
        self.probe.doublings = (self.probe.doublings + 1).min(MOST_DOUBLINGS);
        self.probe.acked_per_segment = (self.cwnd / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    fn raise_long_term(&mut self, rs: &Sample) {
        if !self.round.is_cwnd_limited() || self.cwnd < self.long.inflight {
            return;
        }
        self.probe.up_acked += rs.newly_acked;
        if self.probe.up_acked >= self.probe.acked_per_segment {
            let segments = (self.probe.up_acked / self.probe.acked_per_segment).floor();
            self.probe.up_acked -= segments * self.probe.acked_per_segment;
            self.long.inflight += segments * self.mss;
        }
        if self.round.started {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel; whether it decided what comes next.
    fn adapt_long_term(&mut self, rs: &Sample) -> bool {
        if self.round.started && self.probe.feedback == Feedback::Starting {
            self.probe.feedback = Feedback::Probing;
        }
        if self.round.started && self.probe.feedback == Feedback::Stopping {
            (self.probe.is_sample, self.probe.feedback) = (false, Feedback::None);
            if self.is_in_probe_bw() && !rs.app_limited {
                self.long.next_cycle();
            }
            if self.is_in_probe_bw() && self.probe.precautionary && !self.probe.too_high {
                self.start_refill();
                return true;
            }
        }
        if !is_too_high(rs) && self.long.inflight.is_finite() {
            self.long.inflight = self.long.inflight.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.raise_long_term(rs);
            }
        }
        false
    }

    /// HandleInflightTooHigh.
    pub(super) fn inflight_too_high(&mut self, now: Instant, rs: &Sample) {
        (self.probe.too_high, self.probe.is_sample) = (true, false);
        if !rs.app_limited {
            self.long.inflight = rs.tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            (self.undo.at, self.undo.state) = (Some(now), Some(State::Up));
            self.start_down(now);
        }
    }
}
