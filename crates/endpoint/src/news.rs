//! What was measured on paths while connections were quiet: they hear of it when they next send or receive.

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::{Duration, Instant};

use crate::cover::Change;
use crate::paths::Locators;

/// Round trips kept for each path. The last 32 make up 98.6 % of a smoothed round trip (RFC 6298).
const KEPT: usize = 32;

/// News are numbered, over all paths. A connection knows those up to some number.
#[derive(Debug, Default)]
pub(crate) struct News {
    number: u64,
    paths: BTreeMap<Locators, OfPath>,
}

/// News of one path.
#[derive(Debug, Default)]
struct OfPath {
    round_trips: VecDeque<(u64, Instant, Duration)>,
    /// Number of the latest that said that packets are lost or late.
    skipped: u64,
}

impl News {
    /// The number of the latest.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Takes a change of a path, if quiet connections may hear of it later; whether it did.
    pub fn take(&mut self, now: Instant, change: Change) -> bool {
        match change {
            Change::Sample(path, rtt) => self.answered(now, path, rtt),
            Change::Skipped(path) => self.skipped(path),
            Change::Moved(_) => {} // who was quiet has lost no acknowledgment
            Change::Down(path) => {
                self.paths.remove(&path);
                return false;
            }
            _ => return false,
        }
        true
    }

    /// A heartbeat on `path` was answered at `now` after `rtt`.
    pub fn answered(&mut self, now: Instant, path: Locators, rtt: Duration) {
        self.number += 1;
        let round_trips = &mut self.paths.entry(path).or_default().round_trips;
        if round_trips.len() == KEPT {
            round_trips.pop_front();
        }
        round_trips.push_back((self.number, now, rtt));
    }

    /// Packets on `path` are lost or late.
    fn skipped(&mut self, path: Locators) {
        self.number += 1;
        self.paths.entry(path).or_default().skipped = self.number;
    }

    /// Whether there are any of `path` after number `known`.
    pub fn are_there(&self, known: u64, path: &Locators) -> bool {
        let (mut round_trips, skipped) = self.since(known, path);
        skipped || round_trips.next().is_some()
    }

    /// The round trips on `path` after number `known`, each with its instant, and whether packets were lost or late.
    pub fn since(&self, known: u64, path: &Locators) -> (impl Iterator<Item = (Instant, Duration)>, bool) {
        let of_path = self.paths.get(path);
        let round_trips = of_path.into_iter().flat_map(|path| &path.round_trips);
        let new = round_trips.filter(move |(number, ..)| *number > known).map(|(_, at, rtt)| (*at, *rtt));
        (new, of_path.is_some_and(|path| path.skipped > known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_missed_much_hears_the_latest_and_who_missed_nothing_hears_nothing() {
        let end = |last| ([127, 0, 0, last], 7).into();
        let path = |n| Locators { local: end(n), remote: end(9) };
        let mut news = News::default();
        let since = |news: &News, known, n| {
            let path = path(n);
            let (round_trips, skipped) = news.since(known, &path);
            (round_trips.map(|(at, rtt)| (at.0, rtt.0)).collect::<Vec<_>>(), skipped)
        };
        for n in 1..=100 {
            news.answered(Instant(n), path(1), Duration(n));
        }
        let latest: Vec<_> = (69..=100).map(|n| (n, n)).collect();
        assert_eq!(since(&news, 0, 1), (latest, false));
        assert_eq!(since(&news, 98, 1), (vec![(99, 99), (100, 100)], false));
        news.skipped(path(2));
        assert_eq!((since(&news, 100, 1), since(&news, 100, 2)), ((vec![], false), (vec![], true)));
        assert_eq!(since(&news, news.number(), 2), (vec![], false));
        assert!(!news.take(Instant(101), Change::Down(path(1))));
        assert_eq!(since(&news, 0, 1), (vec![], false));
    }
}
