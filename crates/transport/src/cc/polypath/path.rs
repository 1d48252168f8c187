//! What the controller knows of one path.

use polypath_wire::{Duration, Instant, PathId, Rate};

use super::blame::Losses;
use super::random_loss::RandomLoss;
use crate::facts::AckSample;
use crate::path_map::OfPath;

/// Share of what is delivered in a smallest round trip that a loss leaves which chance or a queue made.
pub(super) const KEPT: f64 = 0.9;

/// What is known of a path.
#[derive(Debug)]
pub(super) struct Path {
    pub id: PathId,
    pub mss: u32,
    pub active: bool,
    /// Bytes, when something was acknowledged last.
    pub in_flight: u64,
    pub srtt: Option<Duration>,
    pub rate: Option<Rate>,
    /// When something was delivered on it last.
    pub delivered: Instant,
    pub random: RandomLoss,
    /// Counted since the first loss at its bottleneck with these paths.
    pub losses: Losses,
    /// The present loss episode is not of congestion.
    pub excused: bool,
}

impl OfPath for Path {
    #[inline]
    fn path(&self) -> PathId {
        self.id
    }
}

impl Path {
    /// Nothing is known of it at `now`.
    pub(super) fn new(now: Instant, id: PathId, mss: u32) -> Self {
        Self {
            id,
            mss,
            active: true,
            in_flight: 0,
            srtt: None,
            rate: None,
            delivered: now,
            random: RandomLoss::default(),
            losses: Losses::new(now),
            excused: false,
        }
    }

    /// Whether something was delivered on it lately.
    pub(super) fn works(&self, now: Instant) -> bool {
        self.srtt.is_some_and(|srtt| now.since(self.delivered) <= srtt.times(2))
    }

    /// What of a window of `before` a loss leaves at least that chance may have made, bytes.
    pub(super) fn kept(&self, before: u64) -> u64 {
        let delivers = self.rate.map_or(0, |rate| rate.bytes_in(self.random.least()));
        (delivers.min(before) as f64 * KEPT) as u64
    }
}

/// Round trip of the packet that an acknowledgment answers, what of that it waited in queues on the way there, and the smallest
/// round trip. Round trips are exact, one-way delays in steps of a timestamp: where they agree the first counts.
pub(super) fn queueing(sample: &AckSample) -> Option<(Duration, Duration, Duration)> {
    const TICK: Duration = Duration::from_millis(1);
    let (rtt, least) = sample.rtt.zip(sample.min_rtt)?;
    let both_ways = rtt - least;
    let there = sample.one_way_queueing.filter(|q| *q + TICK < both_ways);
    Some((rtt, there.unwrap_or(both_ways), least))
}
