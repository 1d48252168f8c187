//! Duplicate acknowledgments: Reno (RFC 5681 §3.2) and NewReno (RFC 6582 §3.2).
//!
//! One recovery for the connection, charged to the path that the missing segment was sent on. On one
//! path this is RFC 6582 to the letter, with the "impatient" timer as an option.

use polypath_wire::{Duration, PathId};
use serde::{Deserialize, Serialize};

use super::policy::{Case, LossPolicy, Verdict};
use super::rule::{Rule, ThresholdConfig};
use crate::about::About;
use crate::facts::{ConfigError, Episode, LossCause};

/// Parameters; the defaults are NewReno's (RFC 6582). With `partial_acks = false` recovery ends at the first new
/// acknowledgment: Reno (RFC 5681).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DupackConfig {
    /// Duplicate acknowledgments that mean a loss, at least 1 (RFC 5681: 3).
    pub threshold: u32,
    /// Stay in recovery on partial acknowledgments.
    pub partial_acks: bool,
    /// Only the first partial acknowledgment restarts the retransmission timer (RFC 6582 §4).
    pub impatient: bool,
    /// Each duplicate below the threshold lets a packet go (RFC 3042, RFC 4653).
    pub limited_transmit: bool,
}

impl Default for DupackConfig {
    fn default() -> Self {
        Self { threshold: 3, partial_acks: true, impatient: true, limited_transmit: true }
    }
}

/// NewReno's with this threshold: what stands in where a policy needs SACK and the peer has none.
impl From<ThresholdConfig> for DupackConfig {
    fn from(ThresholdConfig { threshold }: ThresholdConfig) -> Self {
        Self { threshold, ..Self::default() }
    }
}

/// Reno or NewReno.
#[derive(Debug)]
pub(crate) struct Dupack {
    config: DupackConfig,
    episode: Episode,
    /// Nothing below was sent after the last reduction (RFC 6582's `recover`).
    recover: Option<u64>,
    recovering: Option<Recovery>,
}

#[derive(Debug)]
struct Recovery {
    path: PathId,
    /// Where the cumulative acknowledgment stood when we last looked.
    una: u64,
    partial_acks: u32,
}

impl Rule for Dupack {
    type Config = DupackConfig;
    const ABOUT: About = About {
        name: "dupack",
        help: "Duplicate acknowledgments: NewReno (RFC 6582), Reno with `partial_acks = false` (RFC 5681)",
    };

    fn check(config: &DupackConfig, _: Option<Duration>) -> Result<(), ConfigError> {
        ThresholdConfig { threshold: config.threshold }.check()
    }

    fn build(config: DupackConfig, _: bool) -> Box<dyn LossPolicy> {
        Box::new(Self::new(config))
    }
}

impl Dupack {
    /// Nothing lost yet.
    pub(crate) fn new(config: DupackConfig) -> Self {
        Self { config, episode: Episode::default(), recover: None, recovering: None }
    }

    fn enter(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>) {
        let (path, order) = (case.path(), case.order);
        if order.duplicates() < self.config.threshold.max(1) {
            return;
        }
        let Some(head) = order.head().filter(|head| head.path == path) else { return };
        // §3.2 step 1: not for duplicates that our own retransmissions after a timeout caused
        if self.recover.is_some_and(|recover| order.una() <= recover) {
            return;
        }
        self.episode.0 += 1;
        self.recover = Some(order.nxt());
        self.recovering = Some(Recovery { path, una: order.una(), partial_acks: 0 });
        out.push(Verdict::Lost { what: head, cause: LossCause::DupAck, episode: self.episode });
    }
}

impl LossPolicy for Dupack {
    fn judge(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>) {
        if self.recovers(case) {
            self.recovering = None;
            return out.push(Verdict::Recovered(self.episode));
        }
        let Some(recovery) = &mut self.recovering else { return self.enter(case, out) };
        let una = case.order.una();
        if recovery.path != case.path() || recovery.una == una {
            return;
        }
        recovery.una = una; // §3.2 step 3, partial acknowledgment
        recovery.partial_acks += 1;
        if let Some(head) = case.order.head() {
            out.push(Verdict::Lost { what: head, cause: LossCause::PartialAck, episode: self.episode });
        }
    }

    /// By a full acknowledgment (§3.2 step 3), or in Reno by any that is new (RFC 5681 §3.2 step 6).
    fn recovers(&self, case: &Case<'_>) -> bool {
        let una = case.order.una();
        let advanced = |r: &Recovery| r.path == case.path() && r.una < una;
        let full = || self.recover.is_none_or(|recover| una >= recover);
        self.recovering.as_ref().is_some_and(advanced) && (!self.config.partial_acks || full())
    }

    fn on_timeout(&mut self, case: &Case<'_>) -> Episode {
        self.episode.0 += 1;
        self.recover = Some(case.order.nxt()); // §3.2 step 4
        self.recovering = None;
        self.episode
    }

    fn on_undo(&mut self, _: PathId) {
        self.recovering = None;
        self.recover = None;
    }

    fn limited_transmit(&self) -> u32 {
        if self.config.limited_transmit { self.config.threshold.saturating_sub(1) } else { 0 }
    }

    fn holds_timer(&self, path: PathId) -> bool {
        let held = |r: &Recovery| r.path == path && r.partial_acks > 1;
        self.config.impatient && self.recovering.as_ref().is_some_and(held)
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Instant;

    use super::*;
    use crate::facts::PathView;
    use crate::loss::policy::bench::Stream;

    const A: PathId = PathId(0);

    fn judge(policy: &mut Dupack, stream: &Stream) -> Vec<Verdict> {
        stream.judge(policy, Instant::ZERO, A)
    }

    fn recovers(policy: &Dupack, stream: &Stream) -> bool {
        policy.recovers(&stream.case(A, &PathView::new(A, 10)))
    }

    fn lost(stream: &Stream, n: usize, cause: LossCause) -> Verdict {
        Verdict::Lost { what: stream.departure(n), cause, episode: Episode(1) }
    }

    /// Ten segments of 10 bytes, the first of which is lost.
    fn recovering(partial_acks: bool) -> (Dupack, Stream) {
        let mut stream = Stream::new(1, 10);
        stream.duplicates = 3;
        let mut policy = Dupack::new(DupackConfig { partial_acks, ..Default::default() });
        assert_eq!(judge(&mut policy, &stream), [lost(&stream, 0, LossCause::DupAck)]);
        stream.lose(0);
        assert!(!recovers(&policy, &stream));
        (policy, stream)
    }

    #[test]
    fn duplicates_let_packets_go_unless_they_may_not() {
        let of = |limited_transmit| DupackConfig { threshold: 10, limited_transmit, ..Default::default() };
        assert_eq!([true, false].map(|limited| Dupack::new(of(limited)).limited_transmit()), [9, 0]);
    }

    #[test]
    fn newreno_recovers_by_the_full_acknowledgment() {
        let (mut policy, mut stream) = recovering(true);
        stream.ack_up_to(40);
        assert!(!recovers(&policy, &stream), "it is partial");
        assert_eq!(judge(&mut policy, &stream), [lost(&stream, 4, LossCause::PartialAck)]);
        stream.ack_up_to(100);
        assert!(recovers(&policy, &stream));
        assert_eq!(judge(&mut policy, &stream), [Verdict::Recovered(Episode(1))]);
        assert!(!recovers(&policy, &stream), "it has recovered");
    }

    #[test]
    fn reno_recovers_by_any_new_acknowledgment() {
        let (mut policy, mut stream) = recovering(false);
        stream.ack_up_to(40);
        assert!(recovers(&policy, &stream));
        assert_eq!(judge(&mut policy, &stream), [Verdict::Recovered(Episode(1))]);
    }
}
