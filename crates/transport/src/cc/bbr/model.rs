//! The model of the path (§5.5): bandwidth and volume, in the long and in the short term.

use polypath_wire::Instant;

use super::{BETA, Sample};
use crate::facts::LostSegment;

/// ExtraAckedFilterLen: round trips.
const AGGREGATION_ROUNDS: u64 = 10;

/// Packet-timed round trips (§5.5.1).
#[derive(Debug, Default)]
pub(super) struct Round {
    pub count: u64,
    /// The acknowledgment at hand begins a round.
    pub started: bool,
    next_delivered: f64,
    /// The window was full in the last round, or in this one.
    limited: (bool, bool),
}

impl Round {
    /// StartRound.
    pub(super) fn start(&mut self, delivered: f64) {
        self.next_delivered = delivered;
    }

    /// UpdateRound.
    pub(super) fn update(&mut self, rs: &Sample, delivered: f64, cwnd_limited: bool) {
        self.started = rs.prior_delivered >= self.next_delivered;
        if self.started {
            self.start(delivered);
            self.count += 1;
            self.limited = (self.limited.1, false);
        }
        self.limited.1 |= cwnd_limited;
    }

    /// C.is_cwnd_limited.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.limited.0 || self.limited.1
    }
}

/// The long-term model: the largest bandwidth of this and of the last cycle, and the volume that is known to be safe.
#[derive(Debug)]
pub(super) struct LongTerm {
    max_bw: [f64; 2],
    /// inflight_longterm.
    pub inflight: f64,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self { max_bw: [0.0; 2], inflight: f64::INFINITY }
    }
}

impl LongTerm {
    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// UpdateMaxBw.
    pub(super) fn update_bw(&mut self, rs: &Sample) {
        let Some(rate) = rs.rate.filter(|rate| *rate >= self.max_bw() || !rs.app_limited) else { return };
        self.max_bw[1] = self.max_bw[1].max(rate);
    }

    /// AdvanceMaxBwFilter; a cycle without samples forgets nothing.
    pub(super) fn next_cycle(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }
}

/// The short-term model: bounds by losses since bandwidth was probed last.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    pub bw: f64,
    pub inflight: f64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self { bw: f64::INFINITY, inflight: f64::INFINITY }
    }
}

impl ShortTerm {
    /// InitLowerBounds and LossLowerBounds, at the end of a round with losses.
    pub(super) fn adapt(&mut self, latest: &Latest, max_bw: f64, cwnd: f64) {
        let bw = if self.bw.is_finite() { self.bw } else { max_bw };
        let inflight = if self.inflight.is_finite() { self.inflight } else { cwnd };
        self.bw = latest.bw.max(BETA * bw);
        self.inflight = latest.inflight.max(BETA * inflight);
    }
}

/// What the last round trip delivered, and whether it lost anything.
#[derive(Debug, Default)]
pub(super) struct Latest {
    pub bw: f64,
    pub inflight: f64,
    pub round_started: bool,
    pub lost_in_round: bool,
    /// Ranges lost in the round, and where the last one ended.
    pub ranges_lost: u32,
    range_end: u64,
    round_delivered: f64,
}

impl Latest {
    /// UpdateLatestDeliverySignals.
    pub(super) fn update(&mut self, rs: &Sample, delivered: f64) {
        self.bw = self.bw.max(rs.rate.unwrap_or(0.0));
        self.inflight = self.inflight.max(rs.delivered);
        self.round_started = rs.prior_delivered >= self.round_delivered;
        if self.round_started {
            self.round_delivered = delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance(&mut self, rs: &Sample) {
        if self.round_started {
            (self.bw, self.inflight) = (rs.rate.unwrap_or(0.0), rs.delivered);
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset(&mut self) {
        (self.lost_in_round, self.bw, self.inflight) = (false, 0.0, 0.0);
    }

    /// NoteLoss; whether it is the first of its round.
    pub(super) fn note_loss(&mut self, segment: &LostSegment, delivered: f64) -> bool {
        self.ranges_lost += u32::from(segment.offset != self.range_end || self.ranges_lost == 0);
        self.range_end = segment.offset + segment.bytes;
        let first = !std::mem::replace(&mut self.lost_in_round, true);
        if first {
            self.round_delivered = delivered;
        }
        first
    }
}

/// extra_acked: what arrives beyond the bandwidth, as acknowledgments come together (§5.5.9).
#[derive(Debug)]
pub(super) struct Aggregation {
    began: Instant,
    delivered: f64,
    /// Largest of the last and of the present half of the filter, and the round in which that began.
    most: [f64; 2],
    half_began: u64,
}

impl Aggregation {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, delivered: 0.0, most: [0.0; 2], half_began: 0 }
    }

    /// The interval begins again.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.began, self.delivered) = (now, 0.0);
    }

    pub(super) fn extra(&self) -> f64 {
        self.most[0].max(self.most[1])
    }

    /// UpdateACKAggregation.
    pub(super) fn update(
        &mut self,
        now: Instant,
        rs: &Sample,
        bw: f64,
        cwnd: f64,
        round: &Round,
        full: bool,
    ) {
        if self.delivered <= bw * now.since(self.began).as_secs_f64() {
            self.restart(now);
        }
        self.delivered += rs.newly_acked;
        let expected = bw * now.since(self.began).as_secs_f64();
        let half = if full { AGGREGATION_ROUNDS / 2 } else { 1 };
        if round.count >= self.half_began + half {
            self.most = [self.most[1], 0.0];
            self.half_began = round.count;
        }
        self.most[1] = self.most[1].max((self.delivered - expected).min(cwnd));
    }
}
