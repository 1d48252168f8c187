//! A congestion window, and what the laws have in common that grow and shrink one (RFC 5681 §3.1): slow start, pacing,
//! what a loss leaves, undo. How the window grows in congestion avoidance, and by how much a loss reduces it, is the law's.
//!
//! | symbol | here |
//! |---|---|
//! | SMSS | `mss` |
//! | cwnd, ssthresh | `cwnd`, `ssthresh` |
//! | FlightSize | `LossEvent::flight_size` |
//! | N, L | `AckSample::newly_acked`, `abc_limit` (RFC 3465) |
//!
//! Deviations: the window keeps its fraction of a byte, also when it is reduced: room for one more segment often opens
//! within a byte of an acknowledgment, and a byte less means one acknowledgment later. The inflation of fast
//! recovery is not here: the sender takes what duplicate acknowledgments report out of what is in flight,
//! which is the same arithmetic on the other side. After an idle time the window stays as it was, where §4.1 would
//! shrink it to the initial one: a path may be idle because the scheduler found others better, and as a window
//! grows only while it is filled, this one was filled once. A loss that meets a paced window mostly unused, as the sender had no more to
//! send, tells nothing of what the path holds: the window becomes as small as (4) says, and the threshold stays. A mark
//! does not reduce a window of one segment any further, where RFC 3168 §6.1.2 would send nothing until the timer expires.

mod config;
mod pacing;

use polypath_wire::Instant;

use super::controller::{Phase, Snapshot};
use super::hystart::{self, HyStart};
use super::paced::{self, Paced};
use crate::facts::{AckSample, Episode, FirstFlight, LossCause, LossEvent, Pace};
pub use config::SlowStart;
pub(crate) use config::WindowConfig;
pub(super) use config::no_window;
use pacing::Known;

/// A window of one path.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Window {
    /// Bytes.
    cwnd: f64,
    /// Bytes; infinite until it is known.
    ssthresh: f64,
    mss: u64,
    abc_limit: u64,
    /// Nothing more waited when the segment left that was acknowledged last.
    app_limited: bool,
    /// What pacing needs to know; none if the path is not paced.
    paced: Option<Known>,
    start: Start,
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

/// What was before the last reduction, for undo.
#[derive(Clone, Debug)]
struct Saved {
    episode: Episode,
    cwnd: f64,
    ssthresh: f64,
    start: Start,
}

impl Window {
    /// A fresh window.
    pub(crate) fn new(config: WindowConfig, mss: u32) -> Self {
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
            app_limited: false,
            saved: None,
        }
    }

    /// An acknowledgment: slow start takes its course. In congestion avoidance the law may let the window
    /// [`grow`](Self::grow) for the bytes returned.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, sample: &AckSample) -> Option<u64> {
        if let Some(known) = &mut self.paced {
            known.learn(sample);
        }
        self.app_limited = sample.app_limited;
        if sample.in_recovery {
            return None;
        }
        let acked = self.counted(sample.newly_acked);
        match self.phase() {
            Phase::SlowStart => {
                self.slow_start(now, sample, acked);
                None
            }
            Phase::CongestionAvoidance if self.is_limiting(sample) => match self.grown_again(now, sample) {
                Some(more) => {
                    self.cwnd += more;
                    None
                }
                None => Some(acked),
            },
            Phase::CongestionAvoidance => None,
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
            paced::Advice::Leave(window) => {
                self.cwnd = window.max((2 * self.mss) as f64);
                self.ssthresh = self.cwnd;
            }
        }
    }

    /// What a paced slow start that left too early makes up for.
    fn grown_again(&mut self, now: Instant, sample: &AckSample) -> Option<f64> {
        match &mut self.start {
            Start::Paced(paced) => paced.on_ack_later(now, sample),
            _ => None,
        }
    }

    /// Whether the window limited what was sent. Pacing may hold back the last two quanta that it had room for.
    fn is_limiting(&self, sample: &AckSample) -> bool {
        let held = self.pace().map_or(0, |pace| 2 * pace.quantum);
        sample.window_limited || sample.prior_in_flight + held > self.bytes()
    }

    /// Bytes that an acknowledgment counts for: all that it acknowledges if what follows is paced.
    fn counted(&self, acked: u64) -> u64 {
        match self.paced {
            Some(_) => acked,
            None => acked.min(self.abc_limit * self.mss),
        }
    }

    /// Congestion avoidance adds `bytes`.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: f64) {
        self.cwnd += bytes;
    }

    /// A loss leaves `flight` bytes, at least two segments, or what the path holds if slow start lost it; a mark at least one
    /// segment, and a timeout one. The threshold of a window that was mostly unused stays, or is the window.
    pub(crate) fn reduce(&mut self, loss: &LossEvent, flight: f64) {
        let Self { cwnd, ssthresh, .. } = *self;
        self.saved = Some(Saved { episode: loss.episode, cwnd, ssthresh, start: self.start.clone() });
        let flight = flight.max(self.pipe_at_start(loss));
        let least = |segments: u64| flight.max((segments * self.mss) as f64);
        let left = least(2); // (4)
        self.ssthresh = if self.is_unused(loss) { ssthresh.max(cwnd) } else { left };
        if self.ssthresh.is_finite() {
            self.start = Start::Standard;
        }
        self.cwnd = match loss.cause {
            LossCause::Timeout => self.mss as f64, // loss window, §3.1
            _ if loss.is_mark() => least(1),       // RFC 3168 §6.1.2, RFC 9438 §4.6
            _ => left,                             // §3.2, step 6 brought forward
        };
    }

    /// Whether `loss` met less than half of what the window holds, or may double to, as the sender had no more to send.
    fn is_unused(&self, loss: &LossEvent) -> bool {
        let holds = if self.ssthresh.is_finite() { self.cwnd.max(self.ssthresh) } else { self.cwnd };
        self.paced.is_some() && self.app_limited && 2.0 * (loss.flight_size as f64) < holds
    }

    /// The window becomes smaller by `bytes`, at least two segments, and grows from there as after a loss.
    pub(crate) fn give_up(&mut self, bytes: f64) {
        self.cwnd = (self.cwnd - bytes).max((2 * self.mss) as f64);
        (self.ssthresh, self.start) = (self.cwnd, Start::Standard);
    }

    /// What the path holds, bytes, if slow start caused this loss, else 0: a better threshold than a share of what was
    /// in flight.
    fn pipe_at_start(&self, loss: &LossEvent) -> f64 {
        let lives = !matches!(loss.cause, LossCause::Timeout | LossCause::Silence);
        match (&self.start, self.paced) {
            (Start::Paced(paced), Some(known)) if lives && paced.is_to_blame(loss.oldest_sent) => {
                (known.pipe as f64).min(self.cwnd)
            }
            _ => 0.0,
        }
    }

    /// The last reduction was for nothing, if it was of `episode`; whether it was. A window that is larger by now goes on from
    /// there (RFC 9438 §4.9.2).
    pub(crate) fn undo(&mut self, episode: Episode) -> bool {
        let Some(saved) = self.saved.take_if(|s| s.episode == episode) else { return false };
        if self.cwnd > saved.cwnd {
            return false;
        }
        (self.cwnd, self.ssthresh, self.start) = (saved.cwnd, saved.ssthresh, saved.start);
        true
    }

    /// The largest payload of the path changed.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss);
        self.cwnd = self.cwnd.max(self.mss as f64);
    }

    /// At most `bytes`.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.cwnd = self.cwnd.min(bytes as f64);
    }

    /// Whether it may begin with what is known of the path: slow start that paces, and is not over.
    pub(crate) fn starts(&self) -> bool {
        matches!(self.start, Start::Paced(_)) && self.ssthresh.is_infinite()
    }

    /// The window is at least what `first` needs, and leaves at its rate, or at what trains told before, until the next acknowledgment;
    /// it leaps to what the path held as trains confirm that. A loss leaves what was delivered, or a share of what was in flight
    /// (draft-ietf-tsvwg-careful-resume, "Safe Retreat").
    pub(crate) fn on_first_flight(&mut self, first: &FirstFlight) {
        let (Start::Paced(start), Some(paced)) = (&mut self.start, &mut self.paced) else { return };
        let known = first.known;
        start.expect(known.rate.bytes_in(known.rtt) as f64);
        self.cwnd = self.cwnd.max(first.bytes as f64);
        let rate = paced.train_rate.map_or(first.rate, |own| own.min(first.rate));
        *paced = Known { srtt: Some(known.rtt), train_rate: Some(rate), ..*paced };
    }

    /// How the path sends, if it is paced and its round trip is known.
    pub(crate) fn pace(&self) -> Option<Pace> {
        self.paced?.pace(self.phase(), self.bytes(), self.mss)
    }

    /// Largest payload of a segment, bytes.
    pub(crate) fn mss(&self) -> u64 {
        self.mss
    }

    /// The window, bytes with their fraction.
    pub(crate) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The window, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.cwnd as u64
    }

    /// Slow start below the threshold.
    pub(crate) fn phase(&self) -> Phase {
        if self.cwnd < self.ssthresh { Phase::SlowStart } else { Phase::CongestionAvoidance }
    }

    /// State, for records.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let ssthresh = self.ssthresh.is_finite().then_some(self.ssthresh as u64);
        Snapshot { window: self.bytes(), ssthresh, rate: None, phase: self.phase() }
    }
}

#[cfg(test)]
mod tests;
