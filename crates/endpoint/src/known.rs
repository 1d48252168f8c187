//! Path measurements that connections leave to later ones (RFC 9040), and to the next process if the owner stores them.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use polypath_transport::KnownPath;
use polypath_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// What was measured longer ago is not used.
const LIFE: Duration = KnownPath::LIFE;
/// Most paths that are remembered; the oldest are forgotten.
const MOST: usize = 1024;
/// The maximum number of recent starts kept per path.
const STARTS: usize = 64;

/// Names a path by the peer and both addresses. Behind a NAT, ours is the one on its inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct PathName {
    /// The peer: its HIT, or its address.
    pub peer: IpAddr,
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
}

/// What is known of the paths of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct KnownPaths {
    /// Each until when it counts.
    paths: BTreeMap<PathName, (Instant, Known)>,
    /// The bottlenecks that paths share, each until when it counts.
    bottlenecks: BTreeMap<PathName, (Instant, u32)>,
    /// The number of the next one.
    next: u32,
}

/// What is known of a path.
#[derive(Debug)]
struct Known {
    path: KnownPath,
    /// When connections started there of late.
    starts: VecDeque<Instant>,
}

impl KnownPaths {
    /// A connection measured `path` `age` ago. A lower rate than the known one counts only when that is old, or when the
    /// round trip has doubled: the connection may just have sent less.
    pub fn measured(&mut self, now: Instant, name: PathName, path: KnownPath, age: Duration) {
        let known = self.at(now, &name);
        if known.is_none_or(|known| path.rate >= known.rate || path.rtt > known.rtt.times(2)) {
            self.insert(now, name, path, age);
        }
    }

    /// `path` was measured `age` ago.
    pub fn insert(&mut self, now: Instant, name: PathName, path: KnownPath, age: Duration) {
        let starts = self.paths.remove(&name).map(|(_, known)| known.starts).unwrap_or_default();
        insert(&mut self.paths, name, (now + (LIFE - age), Known { path, starts }));
    }

    /// What is known of `name`, for a connection that starts there now, and how many others started in the last two round trips, whose
    /// first flights may not be acknowledged yet. `None` too if these are [`STARTS`] or more.
    pub fn start(&mut self, now: Instant, name: &PathName) -> Option<(KnownPath, u32)> {
        let (_, Known { path, starts }) = self.paths.get_mut(name).filter(|(until, _)| *until > now)?;
        while starts.front().is_some_and(|start| now.since(*start) >= path.rtt.times(2)) {
            starts.pop_front();
        }
        let others = starts.len();
        if others == STARTS {
            starts.pop_front();
        }
        starts.push_back(now);
        (others < STARTS).then_some((*path, others as u32))
    }

    /// A connection found two paths to share a bottleneck, or not to, as it measured `age` ago.
    pub fn found(&mut self, now: Instant, names: [PathName; 2], share: bool, age: Duration) {
        if age >= LIFE {
            return;
        }
        let [a, b] = names.map(|name| self.bottleneck(now, &name));
        if share {
            let bottleneck = a.or(b).unwrap_or_else(|| {
                self.next += 1;
                self.next
            });
            for name in names {
                let until = self.bottlenecks.get(&name).map_or(Instant::ZERO, |(until, _)| *until);
                insert(&mut self.bottlenecks, name, (until.max(now + (LIFE - age)), bottleneck));
            }
        } else if a == b {
            self.bottlenecks.remove(&names[1]);
        }
    }

    /// The bottleneck that connections found on `name`, if that is not too long ago.
    pub fn bottleneck(&self, now: Instant, name: &PathName) -> Option<u32> {
        let (until, bottleneck) = self.bottlenecks.get(name)?;
        (*until > now).then_some(*bottleneck)
    }

    /// What is known of `name`, if it is not too old.
    pub fn at(&self, now: Instant, name: &PathName) -> Option<KnownPath> {
        let (until, known) = self.paths.get(name)?;
        (*until > now).then_some(known.path)
    }

    /// All that is not too old, with its age.
    pub fn iter(&self, now: Instant) -> impl Iterator<Item = (PathName, KnownPath, Duration)> {
        let all =
            self.paths.iter().map(move |(name, (until, known))| (*name, known.path, LIFE - until.since(now)));
        all.filter(|(_, _, age)| *age < LIFE)
    }
}

/// Keeps `value`, and forgets the oldest if there are too many.
fn insert<T>(all: &mut BTreeMap<PathName, (Instant, T)>, name: PathName, value: (Instant, T)) {
    all.insert(name, value);
    if all.len() > MOST {
        let oldest = all.iter().min_by_key(|(_, (until, _))| *until).map(|(name, _)| *name);
        oldest.iter().for_each(|name| _ = all.remove(name));
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Rate;

    use super::*;

    fn name(last: u8) -> PathName {
        let ip = |n| IpAddr::from([10, 0, n, last]);
        PathName { peer: ip(1), local: ip(2), remote: ip(3) }
    }

    fn path(mbps: u64) -> KnownPath {
        KnownPath { rate: Rate::from_mbps(mbps), rtt: Duration::from_millis(40) }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn the_best_of_the_last_ten_minutes_counts() {
        let mut known = KnownPaths::default();
        known.measured(at(0), name(1), path(80), Duration::ZERO);
        known.measured(at(10), name(1), path(5), Duration::ZERO);
        assert_eq!(known.at(at(599), &name(1)), Some(path(80)));
        assert_eq!((known.at(at(600), &name(1)), known.iter(at(600)).count()), (None, 0));
        known.measured(at(601), name(1), path(5), Duration::ZERO);
        assert_eq!(known.at(at(602), &name(1)), Some(path(5)));
        assert_eq!(known.at(at(602), &name(2)), None);
    }

    #[test]
    fn starts_count_for_two_round_trips() {
        let mut known = KnownPaths::default();
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        let start = |known: &mut KnownPaths, at| known.start(ms(at), &name(1));
        assert_eq!(start(&mut known, 0), None);
        known.insert(ms(0), name(1), path(80), Duration::ZERO);
        assert_eq!(
            [1, 2, 40].map(|at| start(&mut known, at)),
            [0, 1, 2].map(|others| Some((path(80), others)))
        );
        known.measured(ms(41), name(1), path(90), Duration::ZERO);
        assert_eq!(start(&mut known, 81), Some((path(90), 2)), "a new measurement ends no start");
        assert_eq!(start(&mut known, 200), Some((path(90), 0)));
    }

    #[test]
    fn nothing_is_known_while_more_start_than_are_counted() {
        let mut known = KnownPaths::default();
        known.insert(at(0), name(1), path(80), Duration::ZERO);
        let told = (0..1000).filter_map(|_| known.start(at(1), &name(1))).count();
        assert_eq!((told, known.paths[&name(1)].1.starts.len()), (STARTS, STARTS));
        assert_eq!(known.start(at(2), &name(1)), Some((path(80), 0)));
    }

    #[test]
    fn what_another_process_measured_is_as_old_as_it_is() {
        let mut known = KnownPaths::default();
        known.insert(at(1), name(1), path(80), Duration::from_secs(590));
        known.insert(at(1), name(2), path(80), Duration::from_secs(700));
        let all: Vec<_> = known.iter(at(2)).collect();
        assert_eq!(all, [(name(1), path(80), Duration::from_secs(591))]);
        assert_eq!((known.at(at(10), &name(1)), known.at(at(11), &name(1))), (Some(path(80)), None));
    }

    #[test]
    fn a_bottleneck_is_known_for_ten_minutes_unless_paths_turn_out_to_have_one_each() {
        let mut known = KnownPaths::default();
        let bottlenecks = |known: &KnownPaths, secs| [1, 2, 3].map(|n| known.bottleneck(at(secs), &name(n)));
        known.found(at(0), [name(1), name(2)], false, Duration::ZERO);
        assert_eq!(bottlenecks(&known, 0), [None; 3]);
        known.found(at(0), [name(1), name(2)], true, Duration::ZERO);
        known.found(at(9), [name(2), name(3)], true, Duration::ZERO);
        let [a, b, c] = bottlenecks(&known, 10);
        assert!(a.is_some() && a == b && b == c);
        assert_eq!(bottlenecks(&known, 600), [None, b, c]);
        known.found(at(11), [name(1), name(3)], false, Duration::ZERO);
        assert_eq!(bottlenecks(&known, 12), [a, b, None]);
        known.found(at(700), [name(1), name(2)], true, Duration::from_secs(590));
        known.found(at(700), [name(1), name(2)], false, Duration::from_secs(600));
        assert_ne!(known.bottleneck(at(709), &name(1)), None);
        assert_eq!(bottlenecks(&known, 710), [None; 3], "it was measured 600 s ago");
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let mut known = KnownPaths::default();
        for n in 0..2 * MOST as u64 {
            let peer = IpAddr::from((n as u128).to_be_bytes());
            known.measured(at(n), PathName { peer, ..name(1) }, path(1), Duration::ZERO);
        }
        assert_eq!(known.paths.len(), MOST);
        assert!(known.at(at(2 * MOST as u64), &PathName { peer: [0; 16].into(), ..name(1) }).is_none());
    }
}
