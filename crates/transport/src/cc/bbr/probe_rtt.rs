//! The smallest round trip, and the state that empties the queue to see it (§5.3.4, §5.5.7).

use polypath_wire::{Duration, Instant};

use super::probe_bw::Feedback;
use super::{Bbr, State};

/// MinRTTFilterLen.
const FILTER: Duration = Duration::from_secs(10);
/// ProbeRTTInterval.
const INTERVAL: Duration = Duration::from_secs(5);
/// ProbeRTTDuration.
const STAY: Duration = Duration::from_millis(200);

/// min_rtt and when it was seen; the same of the last probe interval.
#[derive(Debug)]
pub(super) struct MinRtt {
    pub min: Option<Duration>,
    seen: Instant,
    probed: Option<Duration>,
    probed_at: Instant,
    expired: bool,
    /// When ProbeRTT may end, once little is in flight; and whether a round passed since.
    done_at: Option<Instant>,
    round_done: bool,
    /// Packets that leave before this many bytes are delivered do not show the path's rate: little was sent on purpose.
    pub app_limited_until: f64,
}

impl MinRtt {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            min: None,
            seen: now,
            probed: None,
            probed_at: now,
            expired: false,
            done_at: None,
            round_done: false,
            app_limited_until: 0.0,
        }
    }

    /// UpdateMinRTT.
    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>) {
        self.expired = now > self.probed_at + INTERVAL;
        if let Some(rtt) = rtt.filter(|rtt| self.expired || self.probed.is_none_or(|probed| *rtt < probed)) {
            (self.probed, self.probed_at) = (Some(rtt), now);
        }
        let Some(probed) = self.probed else { return };
        if self.min.is_none_or(|min| probed < min) || now > self.seen + FILTER {
            (self.min, self.seen) = (Some(probed), self.probed_at);
        }
    }
}

impl Bbr {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Instant) {
        if self.state != State::ProbeRtt && self.rtt.expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.rtt.done_at = None;
            self.probe.feedback = Feedback::Stopping;
            self.round.start(self.delivered);
        }
        if self.state == State::ProbeRtt {
            self.hold_probe_rtt(now);
        }
        self.idle_restart = false;
    }

    /// HandleProbeRTT.
    fn hold_probe_rtt(&mut self, now: Instant) {
        self.rtt.app_limited_until = self.delivered + self.inflight.max(1.0);
        match self.rtt.done_at {
            None if self.inflight <= self.probe_rtt_cwnd() => {
                self.rtt.done_at = Some(now + STAY);
                self.rtt.round_done = false;
                self.round.start(self.delivered);
            }
            None => {}
            Some(_) => {
                self.rtt.round_done |= self.round.started;
                if self.rtt.round_done {
                    self.check_probe_rtt_done(now);
                }
            }
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.rtt.done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.rtt.probed_at = now;
        self.restore_cwnd();
        self.short = Default::default();
        if self.pipe.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// HandleRestartFromIdle.
    pub(super) fn restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.is_in_probe_bw() {
            self.pace_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
