//! Path measurements that connections leave to later ones (RFC 9040), and to the next process if the owner stores them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_transport::{FirstFlight, KnownPath};
use polypath_wire::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

/// What was measured longer ago is not used.
const LIFE: Duration = KnownPath::LIFE;
/// A path whose round trip no connection has had for this long is another one: a queue of others does not last that long.
const UNSEEN: Duration = Duration::from_secs(60);
/// Most paths that are remembered; the oldest are forgotten.
const MOST: usize = 1024;

/// Fewer bytes of more have no turn: as many as a window begins with without one (RFC 6928).
const WORTH_A_TURN: u64 = 14_600;

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
    /// When a connection last had a round trip like it; none if that was more than a minute before it was stored here.
    seen: Option<Instant>,
    /// Since when first flights follow one another there, or lost something last, and until when they leave.
    busy_since: Instant,
    busy_until: Instant,
}

impl Known {
    /// Whether `path`, measured `at`, is another one than the known path. Either its round trip is less than half as long, its rate is lower
    /// and the measurement is newer; or its round trip is long, and none like the known one was seen for a minute.
    fn is_another(&self, at: Instant, path: &KnownPath) -> bool {
        let is_newer = self.seen.is_none_or(|seen| at >= seen);
        let is_quicker = path.rtt.times(2) < self.path.rtt && path.rate < self.path.rate;
        is_newer && is_quicker
            || self.is_long(path.rtt) && self.seen.is_none_or(|seen| at.since(seen) >= UNSEEN)
    }

    /// Whether `rtt` is more than twice the known round trip.
    fn is_long(&self, rtt: Duration) -> bool {
        rtt > self.path.rtt.times(2)
    }

    /// A connection measured `path` at that time. The highest rate and the shortest round trip count: connections may have sent less than
    /// the path carries, and waited for what others sent. Returns whether that is a rate to go by.
    fn hear(&mut self, at: Instant, path: KnownPath) -> bool {
        self.hear_trip(at, path.rtt);
        let counts = path.rate >= self.path.rate;
        self.path.rate = self.path.rate.max(path.rate);
        counts
    }

    /// A connection had a round trip of `rtt` at that time.
    fn hear_trip(&mut self, at: Instant, rtt: Duration) {
        if !self.is_long(rtt) {
            self.seen = self.seen.max(Some(at));
        }
        self.path.rtt = self.path.rtt.min(rtt);
    }
}

impl KnownPaths {
    /// A connection measured `path` `age` ago. If what is known is old, or the path has become another one, only that counts.
    pub fn measured(&mut self, now: Instant, name: PathName, path: KnownPath, age: Duration) {
        let at = now - age;
        match self.paths.get_mut(&name) {
            Some((until, on)) if *until > now && !on.is_another(at, &path) => {
                if on.hear(at, path) {
                    *until = (*until).max(now + (LIFE - age));
                }
            }
            _ => self.insert(now, name, path, age),
        }
    }

    /// Several connections [measured](crate::meter) `path` together, which is less exact: it counts if its rate is clearly higher than the
    /// known one; else only a shorter round trip does. Returns what is known then, if it counted.
    pub fn measured_together(&mut self, now: Instant, name: PathName, path: KnownPath) -> Option<KnownPath> {
        if let Some((_, on)) = self.paths.get_mut(&name).filter(|(until, _)| *until > now)
            && path.rate.0 <= on.path.rate.0 + on.path.rate.0 / 8
        {
            on.hear_trip(now, path.rtt);
            return None;
        }
        self.measured(now, name, path, Duration::ZERO);
        self.at(now, &name)
    }

    /// `path` was measured `age` ago.
    pub fn insert(&mut self, now: Instant, name: PathName, path: KnownPath, age: Duration) {
        let busy = self.paths.get(&name).map(|(_, known)| (known.busy_since, known.busy_until));
        let (busy_since, busy_until) = busy.unwrap_or_default();
        let seen = (age < UNSEEN).then(|| now - age);
        let known = Known { path, seen, busy_since, busy_until };
        insert(&mut self.paths, name, (now + (LIFE - age), known));
    }

    /// When those arrive that have the next turn on `name`, if something is known of it.
    pub fn next_turn(&self, now: Instant, name: &PathName) -> Option<Instant> {
        let (_, on) = self.paths.get(name).filter(|(until, _)| *until > now)?;
        Some(on.busy_until.max(now) + on.path.rtt.over(2))
    }

    /// A turn on `name` for `bytes` of the first flight of a connection that has `in_flight` there and a round trip of `rtt`, or for as many
    /// of them as have room, if these are worth it. Turns follow one another, over a round trip at most; what continues a flight waits
    /// for half of one. They go at half the known rate until none was heard to have lost something for two round trips (where
    /// draft-ietf-tsvwg-careful-resume waits for the first acknowledgment), then at all of it. A first flight is at most half of what the
    /// path holds.
    pub fn start(
        &mut self,
        now: Instant,
        name: &PathName,
        bytes: u64,
        (in_flight, rtt): (u64, Duration),
    ) -> Option<FirstFlight> {
        let (_, on) = self.paths.get_mut(name).filter(|(until, _)| *until > now)?;
        let (known, at) = (on.path.at(rtt)?, on.busy_until.max(now));
        on.seen = Some(now);
        if now.since(on.busy_until) >= known.rtt {
            on.busy_since = now;
        }
        let half = Rate(known.rate.0 / 2);
        let rate = if now.since(on.busy_since) >= known.rtt.times(2) { known.rate } else { half };
        let ahead = if in_flight == 0 { known.rtt } else { known.rtt.over(2) };
        let most = half.bytes_in(known.rtt).saturating_sub(in_flight);
        let room = rate.bytes_in(ahead - at.since(now)).min(most);
        let turn = bytes.min(room);
        if turn == 0 || turn < bytes.min(WORTH_A_TURN) {
            return None;
        }
        on.busy_until = at + rate.transmission_time(turn).max(Duration(1));
        Some(FirstFlight { known, at, bytes: turn, rate })
    }

    /// Something of a first flight on `name` was lost.
    pub fn lost(&mut self, now: Instant, name: &PathName) {
        self.paths.get_mut(name).into_iter().for_each(|(_, on)| on.busy_since = now);
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
    fn what_several_measured_together_counts_if_it_is_clearly_more() {
        let mut known = KnownPaths::default();
        for (found, counts) in [(40, Some(40)), (45, None), (46, Some(46)), (5, None)] {
            assert_eq!(known.measured_together(at(1), name(1), path(found)), counts.map(path), "{found}");
        }
        let quick = |mbps| KnownPath { rtt: Duration::from_millis(20), ..path(mbps) };
        assert_eq!(known.measured_together(at(1), name(1), quick(5)), None);
        assert_eq!(known.at(at(1), &name(1)), Some(quick(46)), "a shorter round trip counts");
        known.measured(at(1), name(1), path(47), Duration::ZERO);
        assert_eq!(known.at(at(1), &name(1)), Some(quick(47)));
        assert_eq!(known.measured_together(at(601), name(1), path(5)), Some(path(5)));
    }

    #[test]
    fn a_round_trip_that_has_doubled_is_a_queue_for_a_minute_and_then_another_path() {
        let slow = KnownPath { rtt: Duration::from_millis(81), ..path(5) };
        let mut known = KnownPaths::default();
        known.measured(at(0), name(1), path(80), Duration::ZERO);
        known.measured(at(59), name(1), slow, Duration::ZERO);
        assert_eq!(known.at(at(59), &name(1)), Some(path(80)), "seen when it was measured");
        known.measured(at(59), name(1), path(5), Duration::ZERO);
        known.measured(at(118), name(1), slow, Duration::ZERO);
        assert_eq!(known.at(at(118), &name(1)), Some(path(80)), "seen by another connection");
        assert!(turn(&mut known, 118_000, 1000, 0).is_some());
        known.measured(at(177), name(1), slow, Duration::ZERO);
        assert_eq!(known.at(at(177), &name(1)), Some(path(80)), "seen at a turn");
        known.measured(at(178), name(1), slow, Duration::ZERO);
        assert_eq!(known.at(at(178), &name(1)), Some(slow));
    }

    #[test]
    fn what_was_stored_for_a_minute_gives_way_at_once() {
        let slow = KnownPath { rtt: Duration::from_millis(81), ..path(5) };
        for (age, counts) in [(59, path(80)), (60, slow)] {
            let mut known = KnownPaths::default();
            known.insert(at(0), name(1), path(80), Duration::from_secs(age));
            known.measured(at(0), name(1), slow, Duration::ZERO);
            assert_eq!(known.at(at(0), &name(1)), Some(counts), "{age} s");
        }
    }

    #[test]
    fn an_old_measurement_replaces_nothing() {
        let mut known = KnownPaths::default();
        known.measured(at(540), name(2), path(80), Duration::ZERO);
        let quick = KnownPath { rtt: Duration::from_millis(9), ..path(5) };
        known.measured(at(541), name(2), quick, Duration::from_secs(540));
        assert_eq!(known.at(at(541), &name(2)).map(|known| known.rate), Some(path(80).rate));
        known.measured(at(700), name(1), path(80), Duration::ZERO);
        known.measured(at(700), name(1), path(80), Duration::from_secs(650));
        assert_eq!(known.at(at(1299), &name(1)), Some(path(80)));
    }

    #[test]
    fn the_shortest_round_trip_counts_whoever_found_the_highest_rate() {
        let with = |mbps, rtt| KnownPath { rtt: Duration::from_millis(rtt), ..path(mbps) };
        let mut known = KnownPaths::default();
        let rows = [((80, 40), (80, 40)), ((81, 100), (81, 40)), ((5, 20), (81, 20)), ((5, 9), (5, 9))];
        for (found, counts) in rows {
            known.measured(at(1), name(1), with(found.0, found.1), Duration::ZERO);
            assert_eq!(known.at(at(1), &name(1)), Some(with(counts.0, counts.1)));
        }
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A connection with `in_flight` bytes under way asks at `at` ms for a turn of `bytes`. The turn: its start, ms; bytes; Mbit/s. The path
    /// holds 400,000 bytes.
    fn turn(known: &mut KnownPaths, at: u64, bytes: u64, in_flight: u64) -> Option<[u64; 3]> {
        let first = known.start(ms(at), &name(1), bytes, (in_flight, Duration::from_millis(40)))?;
        Some([first.at.0 / 1_000_000, first.bytes, first.rate.0 / 1_000_000])
    }

    #[test]
    fn first_flights_have_turns_at_half_the_rate_until_none_lost_anything_for_two_round_trips() {
        let mut known = KnownPaths::default();
        assert_eq!(turn(&mut known, 0, 50_000, 0), None, "nothing is known");
        known.insert(Instant::ZERO, name(1), path(80), Duration::ZERO);
        assert_eq!(turn(&mut known, 100, 50_000, 0), Some([100, 50_000, 40]));
        assert_eq!(turn(&mut known, 100, 100_000, 0), Some([110, 100_000, 40]));
        known.measured(ms(100), name(1), path(80), Duration::ZERO);
        assert_eq!(
            turn(&mut known, 100, 100_000, 0),
            Some([130, 50_000, 40]),
            "a round trip has room for no more"
        );
        assert_eq!(turn(&mut known, 101, 100_000, 0), None, "5,000 bytes");
        assert_eq!(turn(&mut known, 101, 4000, 0), Some([140, 4000, 40]), "all that there are");
        assert_eq!(turn(&mut known, 145, 50_000, 0), Some([145, 50_000, 40]));
        assert_eq!(turn(&mut known, 180, 150_000, 0), Some([180, 150_000, 80]));
        assert_eq!(
            turn(&mut known, 180, 1_000_000, 0),
            Some([195, 200_000, 80]),
            "half of what the path holds"
        );
        known.lost(ms(225), &name(1));
        assert_eq!(turn(&mut known, 225, 1000, 0), Some([225, 1000, 40]));
        assert_eq!(turn(&mut known, 300, 1000, 0), Some([300, 1000, 40]), "none for a round trip");
        assert_eq!(turn(&mut known, 600_101, 1000, 0), None, "too old");
    }

    #[test]
    fn what_continues_a_flight_waits_for_half_a_round_trip_and_has_half_of_the_path_with_it() {
        let mut known = KnownPaths::default();
        known.insert(Instant::ZERO, name(1), path(80), Duration::ZERO);
        assert_eq!(turn(&mut known, 100, 300_000, 120_000), Some([100, 80_000, 40]));
        assert_eq!(turn(&mut known, 100, 300_000, 120_000), Some([116, 20_000, 40]));
        assert_eq!(turn(&mut known, 100, 300_000, 120_000), None);
        assert_eq!(turn(&mut known, 100, 300_000, 0), Some([120, 100_000, 40]), "another one");
    }

    #[test]
    fn without_a_rate_or_with_another_round_trip_nobody_has_a_turn() {
        let mut known = KnownPaths::default();
        known.insert(Instant::ZERO, name(1), path(0), Duration::ZERO);
        assert_eq!(turn(&mut known, 100, 50_000, 0), None);
        known.insert(Instant::ZERO, name(1), path(80), Duration::ZERO);
        assert_eq!(known.start(ms(100), &name(1), 50_000, (0, Duration::from_millis(81))), None);
    }

    /// Each turn takes time, whatever the rate: who asks again and again comes to an end.
    #[test]
    fn turns_come_to_an_end_on_the_fastest_path() {
        let mut known = KnownPaths::default();
        known.insert(Instant::ZERO, name(1), path(100_000), Duration::ZERO);
        let turns = (0..).take_while(|_| turn(&mut known, 100, 1_000_000_000, 0).is_some()).count();
        assert_eq!(turns, 1);
        known.insert(Instant::ZERO, name(2), path(100_000), Duration::ZERO);
        let start =
            |known: &mut KnownPaths| known.start(ms(100), &name(2), 1, (0, Duration::from_millis(40)));
        let before = start(&mut known).unwrap().at;
        assert!(start(&mut known).unwrap().at > before);
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
