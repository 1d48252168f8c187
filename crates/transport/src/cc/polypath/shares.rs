//! How paths divide the window of their bottleneck, and how load is shifted between them.
//!
//! Shares are as the inverse squares of the round trips: the quickest path has most of it, and the bundle behaves as a TCP on about that
//! path. One that loses more than the others has less (`blame.rs`). On trial, and always where they share, the windows of paths are
//! larger and smaller in turn, each in a pattern of its own: between any two there are times when one is up and the other is down.

use polypath_wire::{Duration, Instant, PathId};

use crate::bottleneck::Verdict;
use crate::path_map::{OfPath, PathMap};

/// By how much of its window the load of a path is shifted that shares one, and of one on trial.
const SHIFT: f64 = 1.0 / 16.0;
const ON_TRIAL: f64 = 1.0 / 16.0;
/// Up and down: the first two are opposite, as are the last two, and any others are strangers.
const PATTERNS: [[f64; 4]; 4] =
    [[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0], [-1.0, -1.0, 1.0, 1.0]];
/// Half a period is this part of the longest round trip, within limits.
const HALF: (u64, u64) = (3, 2);
const LIMITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Of paths that do not have all of a window as it is.
    shares: PathMap<Share>,
    /// How often load was shifted, and when it is next.
    shifts: usize,
    next: Instant,
}

/// What one path has of a window.
#[derive(Clone, Copy, Debug)]
struct Share {
    path: PathId,
    share: f64,
    /// What its losses leave of that.
    weight: f64,
}

impl OfPath for Share {
    fn path(&self) -> PathId {
        self.path
    }
}

impl Share {
    /// Whether it gives up nothing.
    fn is_whole(&self) -> bool {
        self.weight >= 1.0
    }
}

fn sum(shares: &[Share], of: impl Fn(&Share) -> bool) -> f64 {
    shares.iter().filter(|share| of(share)).map(|share| share.share).sum()
}

/// Makes those shares add up to `to`, if there are any.
fn scale(shares: &mut [Share], of: impl Fn(&Share) -> bool, to: f64) {
    let sum = sum(shares, &of);
    if sum > 0.0 {
        shares.iter_mut().filter(|share| of(share)).for_each(|share| share.share = share.share * to / sum);
    }
}

impl Shares {
    /// Shifts load if it is time to; half a period, if the longest round trip is `slowest`.
    pub(super) fn advance(&mut self, now: Instant, slowest: Duration) -> Duration {
        let [least, most] = LIMITS;
        let half = slowest.times(HALF.0).over(HALF.1).clamp(least, most);
        if now >= self.next {
            (self.shifts, self.next) = (self.shifts + 1, now + half);
        }
        half
    }

    /// Divides the windows, between some of which load `shifts`. What a path `carries`: its round trip, and its weight for
    /// what it loses.
    pub(super) fn divide(
        &mut self,
        verdict: &Verdict,
        shifts: impl Fn(PathId) -> bool,
        carries: impl Fn(PathId) -> Option<(Duration, f64)>,
    ) {
        self.shares.clear();
        let place = |path: PathId| verdict.iter().take_while(|(other, _)| *other != path).count();
        for first in verdict.bottlenecks() {
            let members = verdict.sharing(first);
            if members.clone().nth(1).is_some() {
                self.share(members, place, &carries);
            } else if shifts(first) {
                let share = self.shifted(place(first), ON_TRIAL);
                self.shares.insert(Share { path: first, share, weight: 1.0 });
            }
        }
    }

    /// Divides one window among `members`.
    fn share(
        &mut self,
        members: impl Iterator<Item = PathId> + Clone,
        place: impl Fn(PathId) -> usize,
        carries: impl Fn(PathId) -> Option<(Duration, f64)>,
    ) {
        let known = |srtt: &Duration| *srtt > Duration::ZERO;
        let least = members.clone().filter_map(&carries).map(|(srtt, _)| srtt).filter(known).min();
        let quick = |srtt: Duration| match least.filter(|_| known(&srtt)) {
            Some(least) => (least.0 as f64 / srtt.0 as f64).powi(2),
            None => 1.0,
        };
        let first = self.shares.len();
        for path in members {
            let (share, weight) = carries(path).map_or((0.0, 1.0), |(srtt, weight)| (quick(srtt), weight));
            self.shares.insert(Share { path, share: share * self.shifted(place(path), SHIFT), weight });
        }
        let shares = &mut self.shares.as_mut_slice()[first..];
        scale(shares, |_| true, 1.0);
        if shares.iter().all(Share::is_whole) {
            return;
        }
        shares.iter_mut().for_each(|share| share.share *= share.weight);
        // What a path gives up for its losses is for those that give up nothing.
        let kept = sum(shares, |share| !share.is_whole());
        match sum(shares, Share::is_whole) > 0.0 {
            true => scale(shares, Share::is_whole, 1.0 - kept),
            false => scale(shares, |_| true, 1.0),
        }
    }

    /// What load is now to what it is on average on the path with this place among all that there are, if it is shifted by `by`.
    fn shifted(&self, place: usize, by: f64) -> f64 {
        1.0 + by * PATTERNS[place % 4][self.shifts % 4]
    }

    /// The share of `path`; none if it has all.
    pub(super) fn of(&self, path: PathId) -> Option<f64> {
        self.shares.get(path).map(|share| share.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths came and went between them.
    #[test]
    fn load_is_shifted_between_paths_whatever_their_numbers() {
        let paths = [PathId(0), PathId(4)];
        let mut shares = Shares::default();
        shares.divide(&Verdict::of(paths.into_iter(), |_, _| false), |_| true, |_| None);
        assert_eq!(paths.map(|path| shares.of(path)), [Some(1.0 + ON_TRIAL), Some(1.0 - ON_TRIAL)]);
    }
}
