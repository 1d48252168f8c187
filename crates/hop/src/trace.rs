//! A link whose capacity follows a recording, in the format of mahimahi (R. Netravali et al., Mahimahi: Accurate
//! Record-and-Replay for HTTP, 2015): one line per delivery opportunity, the millisecond at which 1500 bytes may
//! leave. After the last line the file repeats, that time later. Packets share an opportunity and span several;
//! what nobody waits for is lost.

use std::fmt;
use std::sync::Arc;

use polypath_wire::{Duration, Instant, Rate, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

/// Bytes that may leave at an opportunity.
pub const OPPORTUNITY: u32 = 1500;
const NANOS_PER_MS: u64 = 1_000_000;

/// When packets may leave a link.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct LinkTrace {
    /// Milliseconds, none earlier than the one before, the last above zero.
    opportunities: Arc<[u32]>,
}

/// What is wrong with a trace, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl LinkTrace {
    /// Reads the text of a trace.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let number = |(n, line): (usize, &str)| {
            line.trim().parse().map_err(|_| TraceError {
                line: n + 1,
                reason: format!("{:?} is no whole number of milliseconds up to {}", excerpt(line), u32::MAX),
            })
        };
        text.lines().enumerate().map(number).collect::<Result<Vec<u32>, _>>()?.try_into()
    }

    /// A trace without a recording: opportunities for `length`, at a rate that wanders between a tenth of `mean` and 1.9 times
    /// it, a step every 100 ms.
    pub fn sample(seed: Seed, mean: Rate, length: Duration) -> Result<Self, TraceError> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed.0);
        let (mut percent, mut bits, mut opportunities) = (100i64, 0, Vec::new());
        for ms in 1..=length.0 / NANOS_PER_MS {
            if ms % 100 == 0 {
                percent = (percent + (rng.next_u64() % 61) as i64 - 30).clamp(10, 190);
            }
            bits += mean.0 / 1000 * percent as u64 / 100;
            while bits >= u64::from(OPPORTUNITY) * 8 {
                bits -= u64::from(OPPORTUNITY) * 8;
                opportunities.push(ms as u32);
            }
        }
        opportunities.try_into()
    }

    /// Bits of all opportunities over the time until they repeat.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.opportunities.len() as u64 * u64::from(OPPORTUNITY) * 8;
        Rate(bits.saturating_mul(1000) / u64::from(self.last()))
    }

    /// Time until it repeats.
    pub fn period(&self) -> Duration {
        Duration(u64::from(self.last()) * NANOS_PER_MS)
    }

    fn last(&self) -> u32 {
        self.opportunities[self.opportunities.len() - 1]
    }

    fn number(&self) -> u64 {
        self.opportunities.len() as u64
    }

    /// The time of the opportunity with the index `index`, counted over all repetitions.
    fn at(&self, index: u64) -> Instant {
        let (cycle, nth) = (index / self.number(), index % self.number());
        Instant::ZERO
            + Duration(
                (cycle * u64::from(self.last()) + u64::from(self.opportunities[nth as usize])) * NANOS_PER_MS,
            )
    }

    /// Index of the first opportunity after `now`.
    fn after(&self, now: Instant) -> u64 {
        let cycle = now.0 / self.period().0;
        let ms = (now.0 % self.period().0 / NANOS_PER_MS) as u32;
        // An opportunity at the end of a cycle is its last, one at its beginning, if there is one, of the next.
        cycle * self.number() + self.opportunities.partition_point(|at| *at <= ms) as u64
    }
}

/// The beginning of a line, for an error.
fn excerpt(line: &str) -> String {
    line.trim().chars().take(20).collect()
}

impl TryFrom<Vec<u32>> for LinkTrace {
    type Error = TraceError;

    fn try_from(opportunities: Vec<u32>) -> Result<Self, TraceError> {
        let wrong = |line, reason: String| Err(TraceError { line, reason });
        for (n, pair) in opportunities.windows(2).enumerate() {
            if pair[1] < pair[0] {
                return wrong(
                    n + 2,
                    format!("{} ms is earlier than the line above, {} ms", pair[1], pair[0]),
                );
            }
        }
        match opportunities.last() {
            None => wrong(1, "no line: a trace has one opportunity at least".into()),
            Some(0) => wrong(opportunities.len(), "the trace ends at 0 ms: it must take some time".into()),
            Some(_) => Ok(Self { opportunities: opportunities.into() }),
        }
    }
}

impl From<LinkTrace> for Vec<u32> {
    fn from(trace: LinkTrace) -> Self {
        trace.opportunities.to_vec()
    }
}

impl fmt::Display for LinkTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.opportunities.iter().try_for_each(|ms| writeln!(f, "{ms}"))
    }
}

impl fmt::Debug for LinkTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkTrace({} opportunities in {:?})", self.opportunities.len(), self.period())
    }
}

/// How far a link has come in its trace.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    trace: LinkTrace,
    /// Index of the next opportunity.
    next: u64,
    /// The one in use …
    at: Instant,
    /// … and its bytes that are left.
    left: u32,
}

impl Cursor {
    pub fn new(trace: LinkTrace) -> Self {
        Self { trace, next: 0, at: Instant::ZERO, left: 0 }
    }

    /// Where a packet begins that comes at `now` to an idle link: at the next opportunity. One at `now` itself
    /// served those that waited for it.
    pub fn start(&mut self, now: Instant) -> Instant {
        self.next = self.trace.after(now);
        self.advance();
        self.at
    }

    /// Where a packet begins that waits behind another.
    pub fn follow(&mut self) -> Instant {
        if self.left == 0 {
            self.advance();
        }
        self.at
    }

    /// Sends `size` bytes from where the packet begins; when the last of them leaves.
    pub fn send(&mut self, size: u32) -> Instant {
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.advance();
        }
        self.left -= rest;
        self.at
    }

    fn advance(&mut self) {
        (self.at, self.left) = (self.trace.at(self.next), OPPORTUNITY);
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(text: &str) -> Result<LinkTrace, String> {
        LinkTrace::parse(text).map_err(|e| e.to_string())
    }

    #[test]
    fn a_bad_line_is_named() {
        let refused = |text: &str| trace(text).unwrap_err();
        assert_eq!(
            refused("1\n2\nx\n"),
            format!("line 3: \"x\" is no whole number of milliseconds up to {}", u32::MAX)
        );
        assert_eq!(refused("5\n4\n"), "line 2: 4 ms is earlier than the line above, 5 ms");
        assert_eq!(refused("0\n0\n"), "line 2: the trace ends at 0 ms: it must take some time");
        assert_eq!(refused(""), "line 1: no line: a trace has one opportunity at least");
        assert!(refused("1\n\n2\n").starts_with("line 2: \"\""));
        assert!(refused("1\n-2\n").starts_with("line 2: \"-2\""));
        assert!(refused(&"9".repeat(1000)).len() < 120);
        assert!(trace("1\r\n2\r\n").is_ok());
    }

    #[test]
    fn the_mean_rate_counts_1500_bytes_an_opportunity() {
        assert_eq!(trace("1\n2\n3\n3\n").unwrap().mean_rate(), Rate(16_000_000));
    }

    #[test]
    fn the_file_repeats_after_its_last_line() {
        let trace = trace("0\n3\n3\n5\n").unwrap();
        let times: Vec<_> = (0..9).map(|n| trace.at(n).0 / NANOS_PER_MS).collect();
        assert_eq!(times, [0, 3, 3, 5, 5, 8, 8, 10, 10]);
        for (now, first) in [(0, 3), (2, 3), (3, 5), (4, 5), (5, 8), (9, 10), (10, 13)] {
            assert_eq!(
                trace.at(trace.after(Instant(now * NANOS_PER_MS))).0,
                first * NANOS_PER_MS,
                "after {now}"
            );
        }
    }

    #[test]
    fn a_sample_has_its_mean_and_reads_back() {
        let (rate, length) = (Rate::from_mbps(12), Duration::from_secs(60));
        let sample = LinkTrace::sample(Seed(1), rate, length).unwrap();
        assert_eq!(sample, LinkTrace::sample(Seed(1), rate, length).unwrap());
        assert_ne!(sample, LinkTrace::sample(Seed(2), rate, length).unwrap());
        assert!((0.3..1.7).contains(&(sample.mean_rate().0 as f64 / 12e6)));
        assert_eq!(LinkTrace::parse(&sample.to_string()), Ok(sample));
    }

    #[test]
    fn the_trace_of_the_experiment_is_what_its_seed_makes() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/foundation/wandering.trace");
        let committed = std::fs::read_to_string(file).unwrap();
        let sample = LinkTrace::sample(Seed(1), Rate::from_mbps(6), Duration::from_secs(10)).unwrap();
        assert!(committed == sample.to_string(), "cargo run -p polypath-hop --example sample_trace 1 6 10");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9\\n x-]{0,60}") {
            let _ = LinkTrace::parse(&text);
        }

        #[test]
        fn the_next_opportunity_is_the_first_that_is_later(
            mut times in prop::collection::vec(0u32..50, 1..20), now in 0u64..400_000_000,
        ) {
            times.sort_unstable();
            times.push(50);
            let trace = LinkTrace::try_from(times).unwrap();
            let index = trace.after(Instant(now));
            prop_assert!(trace.at(index).0 > now);
            prop_assert!(index == 0 || trace.at(index - 1).0 <= now);
        }
    }
}
