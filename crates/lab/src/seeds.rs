//! The seeds of an ensemble: `1..20` is twenty of them, the last included; `7` is one.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// First and last seed of an ensemble.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeedRange {
    /// The first.
    pub first: u64,
    /// The last, itself included.
    pub last: u64,
}

impl SeedRange {
    /// Most seeds of one ensemble, and most runs of one experiment.
    pub const LIMIT: u64 = 1_000_000;

    /// Only this one.
    pub fn one(seed: u64) -> Self {
        Self { first: seed, last: seed }
    }

    /// How many runs there are of `cells` cells with each of them, if that is not senselessly many.
    pub fn runs(self, cells: usize) -> Result<u64, TooManyRuns> {
        let seeds = (self.last - self.first).saturating_add(1);
        let runs = seeds.saturating_mul(cells as u64);
        if runs > Self::LIMIT { Err(TooManyRuns { cells, seeds, runs }) } else { Ok(runs) }
    }

    /// All of them in order.
    pub fn iter(self) -> RangeInclusive<u64> {
        self.first..=self.last
    }
}

impl Default for SeedRange {
    fn default() -> Self {
        Self::one(1)
    }
}

/// More runs than anybody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{cells} cells with {seeds} seeds each are {runs} runs; at most {} are made", SeedRange::LIMIT)]
pub struct TooManyRuns {
    cells: usize,
    seeds: u64,
    runs: u64,
}

/// Not a range of seeds, or of scenarios.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no range: {1}; write for example \"1..20\", the last included")]
pub struct SeedError(String, &'static str);

impl FromStr for SeedRange {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, SeedError> {
        let wrong = |why| SeedError(text.to_owned(), why);
        let number = |t: &str| t.trim().parse().map_err(|_| wrong("not a whole number"));
        let range = match text.split_once("..") {
            Some((first, last)) => {
                Self { first: number(first)?, last: number(last.trim_start_matches('='))? }
            }
            None => Self::one(number(text)?),
        };
        if range.last < range.first {
            return Err(wrong("it ends before it begins"));
        }
        if range.last - range.first >= Self::LIMIT {
            return Err(wrong("it has more than a million numbers"));
        }
        Ok(range)
    }
}

impl fmt::Display for SeedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

impl Serialize for SeedRange {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SeedRange {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_runs_are_enough() {
        let all = SeedRange { first: 1, last: SeedRange::LIMIT };
        assert_eq!((all.runs(1), SeedRange::one(3).runs(9)), (Ok(SeedRange::LIMIT), Ok(9)));
        let text = "2 cells with 1000000 seeds each are 2000000 runs; at most 1000000 are made";
        assert_eq!(all.runs(2).unwrap_err().to_string(), text);
        assert!(SeedRange { first: 0, last: u64::MAX }.runs(usize::MAX).is_err());
    }

    #[test]
    fn ranges_include_their_last() {
        assert_eq!("1..3".parse::<SeedRange>().unwrap().iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!("7".parse::<SeedRange>(), Ok(SeedRange::one(7)));
        assert_eq!(SeedRange { first: 2, last: 9 }.to_string().parse(), Ok(SeedRange { first: 2, last: 9 }));
    }

    #[test]
    fn bad_ranges_say_why() {
        let error = |t: &str| t.parse::<SeedRange>().unwrap_err().to_string();
        assert!(error("9..2").contains("ends before it begins"));
        assert!(error("a..2").contains("whole number"));
        assert!(error("0..99999999").contains("million"));
        assert!(error("0..18446744073709551615").contains("million"));
    }
}
