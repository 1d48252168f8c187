//! Round trip time and retransmission timeout (RFC 6298).
//!
//! | symbol | here |
//! |---|---|
//! | SRTT, RTTVAR | `smoothed` |
//! | G | `granularity` |
//! | RTO | [`RttEstimator::rto`] |

use polypath_wire::Duration;

/// Limits of the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RtoLimits {
    /// Before the first sample.
    pub initial: Duration,
    /// At least.
    pub min: Duration,
    /// At most.
    pub max: Duration,
    /// Clock granularity G.
    pub granularity: Duration,
}

/// Smoothed round trip time of one path.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RttEstimator {
    limits: RtoLimits,
    smoothed: Option<(Duration, Duration)>,
    latest: Option<Duration>,
    min: Option<Duration>,
    backoff: u32,
}

impl RttEstimator {
    /// Knows nothing yet.
    pub(crate) fn new(limits: RtoLimits) -> Self {
        Self { limits, smoothed: None, latest: None, min: None, backoff: 0 }
    }

    /// Takes a sample that is not ambiguous (Karn) and ends the backoff (§5.7).
    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
        self.sample_again(rtt);
    }

    /// Takes the round trip of a segment that was sent again: for the timeout only.
    pub(crate) fn sample_again(&mut self, rtt: Duration) {
        let r = self.quantise(rtt);
        self.backoff = 0;
        self.smoothed = Some(match self.smoothed {
            None => (r, r.over(2)), // (2.2)
            Some((srtt, var)) => {
                let error = Duration(srtt.0.abs_diff(r.0));
                // (2.3) with beta = 1/4, alpha = 1/8; RTTVAR first, from the old SRTT
                (Duration((7 * srtt.0 + r.0) / 8), Duration((3 * var.0 + error.0) / 4))
            }
        });
    }

    /// The timeout now, backed off.
    pub(crate) fn rto(&self) -> Duration {
        let base = match self.smoothed {
            None => self.limits.initial,
            Some((srtt, var)) => {
                let margin = var.times(4).max(self.limits.granularity);
                (srtt + margin).max(self.limits.min)
            }
        };
        base.times(1 << self.backoff.min(16)).min(self.limits.max)
    }

    /// Others had this round trip: until the first sample the timeout is what it would be after it, if that is less.
    pub(crate) fn expect(&mut self, rtt: Duration) {
        let RtoLimits { initial, min, .. } = self.limits;
        self.limits.initial = initial.min(rtt.times(3).max(min)); // (2.2) and (2.3): SRTT is R, RTTVAR R/2
    }

    /// The timer of the SYN expired: until the first sample the timeout is 3 s at least (§5.7).
    pub(crate) fn after_lost_syn(&mut self) {
        self.limits.initial = self.limits.initial.max(Duration::from_secs(3));
    }

    /// The timer expired: the next one is twice as long (§5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// The timer expired although the answer was under way, which took `rtt` (RFC 4015 §3.1, step 11).
    pub(crate) fn was_late(&mut self, rtt: Duration) {
        let r = self.quantise(rtt);
        let (srtt, var) = self.smoothed.unwrap_or_default();
        self.smoothed = Some((srtt.max(r), var.max(r.over(2))));
        self.backoff = 0;
    }

    /// The path works again: its backoff is over.
    pub(crate) fn forgive(&mut self) {
        self.backoff = 0;
    }

    /// SRTT.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.0)
    }

    /// RTTVAR.
    pub(crate) fn rttvar(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.1)
    }

    /// The latest sample.
    pub(crate) fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The smallest sample.
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min
    }

    /// A clock of granularity G sees whole ticks: rounded to the nearest, at least one.
    fn quantise(&self, rtt: Duration) -> Duration {
        let g = self.limits.granularity.0;
        if g == 0 {
            return rtt;
        }
        Duration(((rtt.0 + g / 2) / g).max(1) * g)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn estimator(granularity: Duration) -> RttEstimator {
        RttEstimator::new(RtoLimits { initial: MS(1000), min: MS(200), max: MS(60_000), granularity })
    }

    #[test]
    fn what_others_had_makes_the_first_timeout() {
        let mut e = estimator(Duration::ZERO);
        e.expect(MS(400));
        assert_eq!(e.rto(), MS(1000), "no longer than without it");
        e.expect(MS(100));
        assert_eq!(e.rto(), MS(300));
        e.back_off();
        assert_eq!(e.rto(), MS(600));
        e.expect(MS(10));
        assert_eq!(e.rto(), MS(400));
        e.after_lost_syn();
        assert_eq!(e.rto(), MS(6000));
    }

    #[test]
    fn follows_rfc_6298_by_hand() {
        let mut e = estimator(Duration::ZERO);
        assert_eq!(e.rto(), MS(1000));
        e.sample(MS(100)); // SRTT 100, RTTVAR 50
        assert_eq!(e.rto(), MS(300));
        e.sample(MS(180)); // RTTVAR (3*50+80)/4 = 57.5, SRTT (700+180)/8 = 110
        assert_eq!((e.srtt(), e.rttvar()), (Some(MS(110)), Some(Duration::from_micros(57_500))));
        assert_eq!(e.rto(), MS(340));
        assert_eq!(e.min(), Some(MS(100)));
    }

    #[test]
    fn backs_off_and_recovers() {
        let mut e = estimator(Duration::ZERO);
        e.sample(MS(100));
        e.back_off();
        e.back_off();
        assert_eq!(e.rto(), MS(1200));
        (0..40).for_each(|_| e.back_off());
        assert_eq!(e.rto(), MS(60_000));
        e.sample(MS(100));
        assert_eq!(e.rto(), MS(250)); // RTTVAR 37.5
    }

    #[test]
    fn who_was_late_once_is_given_time() {
        let mut e = estimator(Duration::ZERO);
        e.sample(MS(100));
        e.back_off();
        e.was_late(MS(6000)); // SRTT 6 s, RTTVAR 3 s
        assert_eq!(e.rto(), MS(18_000));
    }

    #[test]
    fn a_coarse_clock_sees_ticks() {
        let mut e = estimator(MS(10));
        e.sample(MS(124));
        assert_eq!(e.srtt(), Some(MS(120)));
        e.sample(Duration::from_micros(3));
        assert_eq!(e.srtt(), Some(Duration((7 * MS(120).0 + MS(10).0) / 8)));
    }
}
