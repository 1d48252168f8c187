//! From likeness to a verdict, with hysteresis, and with a trial before paths are held to share.
//!
//! Two queues may rise and fall together for a while, each filled by a window that grows: above all two equal links. So
//! paths that look alike are put on *trial*: who asks for the verdict shifts load between them, a little to and fro.
//! Where they share a queue that changes nothing in it; where they do not, one queue grows as the other shrinks. The shorter the
//! trial, the more it takes to decide it, either way.
//!
//! A verdict ages: where paths carry too little to be compared for `LIFE`, they are held to be again what is presumed of them.

use polypath_wire::{Duration, Instant, PathId};

use super::detector::Detector;
use super::verdict::Verdict;
use crate::facts::KnownPath;
use crate::path_map::{OfPath, PathMap};

/// How often the facts are judged.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long paths are watched before the first verdict about them.
const LEAST: Duration = Duration::from_millis(1500);
/// What trials leave alone at first, for windows and queues to follow: this many half periods.
const SETTLE: u64 = 1;
/// Half periods of a trial after that, at least and at most, and how long it may last in any case: on slow paths few packets tell.
const TRIAL: [u64; 2] = [7, 21];
const LONG: Duration = Duration::from_secs(10);
/// What was compared for `t` seconds must be alike by this over `t` more than a threshold, or less: in a short time more is chance.
const CAUTION: f64 = 0.6;
/// A trial that failed is repeated after this long, then twice as long, and so on up to the second.
const PAUSES: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(64)];

/// Facts that are older count no more.
const LIFE: Duration = KnownPath::LIFE;

/// What a method calls alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Thresholds {
    /// Whether a trial decides whether paths that are alike share.
    pub trials: bool,
    /// At least so alike are paths that share. A short trial asks for more to find that they do, and for less to find that they do not.
    pub join: f64,
    /// At most so alike are paths that shared and no longer do.
    pub leave: f64,
}

impl Thresholds {
    /// Who looks alike shares.
    pub(crate) fn without_trial(join: f64, leave: f64) -> Self {
        Self { trials: false, join, leave }
    }
}

/// How far beyond a threshold the likeness must be that is known for this long.
fn caution(compared: Duration) -> f64 {
    CAUTION / compared.as_secs_f64()
}

/// How long a trial lasts at most.
fn longest(half: Duration) -> Duration {
    half.times(SETTLE + TRIAL[1]).max(LONG)
}

/// What is held of two paths.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Held {
    /// They do not share; they are put on trial from this instant on, if they look alike.
    Separate { retry: Instant, failures: u32 },
    /// On trial since.
    Trial { since: Instant, failures: u32 },
    /// They share, as facts since this instant say, or nothing does; whether it was measured here, and not only presumed.
    Shared { since: Instant, measured: bool },
}

#[derive(Debug)]
struct Pair {
    paths: (PathId, PathId),
    held: Held,
    /// This connection measured that they do not share. A trial that ended undecided does not set it.
    refuted: bool,
    /// When they were last compared, or presumed.
    told: Instant,
}

/// A path, and what is known of it before anything was measured.
#[derive(Clone, Copy, Debug)]
struct Member {
    path: PathId,
    /// The link of ours that it leaves by.
    link: Option<u32>,
    /// The bottleneck that another connection found on it, and when.
    bottleneck: Option<(u32, Instant)>,
}

impl OfPath for Member {
    fn path(&self) -> PathId {
        self.path
    }
}

impl Member {
    /// What is held of both until facts tell.
    fn presumed(&self, now: Instant, other: &Self) -> Held {
        let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
        let share = same(self.link, other.link) || same(self.found(now), other.found(now));
        match share {
            true => Held::Shared { since: now, measured: false },
            false => Held::Separate { retry: now + LEAST, failures: 0 },
        }
    }

    /// The bottleneck that another connection found, if that is not too long ago.
    fn found(&self, now: Instant) -> Option<u32> {
        self.bottleneck.filter(|(_, told)| now.since(*told) < LIFE).map(|(bottleneck, _)| bottleneck)
    }
}

impl Pair {
    /// From when on facts count now; none if none are asked for.
    fn asks_from(&self, now: Instant, half: Duration) -> Option<Instant> {
        match self.held {
            Held::Separate { retry, .. } => (now >= retry).then_some(Instant::ZERO),
            Held::Trial { since, .. } => {
                (now >= since + half.times(SETTLE + TRIAL[0])).then(|| since + half.times(SETTLE))
            }
            Held::Shared { since, .. } => Some(since),
        }
    }

    /// What is held of paths that are so `alike`, if that can be told.
    fn weigh(&mut self, now: Instant, half: Duration, alike: Option<f64>, thresholds: Thresholds) {
        let Thresholds { trials, join, leave } = thresholds;
        let at_least = |bound: f64| alike.is_some_and(|alike| alike >= bound);
        let at_most = |bound: f64| alike.is_some_and(|alike| alike <= bound);
        let caution = |since: Instant| if trials { caution(now.since(since)) } else { 0.0 };
        let margin = |since: Instant| caution(since + half.times(SETTLE));
        let shared = Held::Shared { since: now, measured: true };
        self.held = match self.held {
            Held::Separate { failures, .. } if at_least(join) => match trials {
                true => Held::Trial { since: now, failures },
                false => shared,
            },
            Held::Trial { since, .. } if at_least(join + margin(since)) => {
                self.refuted = false;
                shared
            }
            Held::Trial { since, failures }
                if at_most(join - margin(since)) || now >= since + longest(half) =>
            {
                self.refuted |= at_most(join - margin(since));
                let [first, last] = PAUSES;
                let pause = first.times(1 << failures.min(8)).min(last);
                Held::Separate { retry: now + pause, failures: failures + 1 }
            }
            Held::Shared { since, .. } if now >= since + LEAST && at_most(leave - caution(since)) => {
                self.refuted = true;
                Held::Separate { retry: now + PAUSES[0], failures: 1 }
            }
            held => held,
        };
    }
}

/// What is held of the paths of one connection.
#[derive(Debug)]
pub(crate) struct Judge {
    thresholds: Thresholds,
    paths: PathMap<Member>,
    pairs: Vec<Pair>,
    next: Instant,
    verdict: Verdict,
}

impl Judge {
    /// Holds nothing yet.
    pub(crate) fn new(thresholds: Thresholds) -> Self {
        let (paths, pairs, verdict) = Default::default();
        Self { thresholds, paths, pairs, next: Instant::ZERO, verdict }
    }

    /// A path joins that leaves by `link`: until facts tell, it shares with those that leave by the same, and with no others.
    pub(crate) fn add(&mut self, now: Instant, path: PathId, link: Option<u32>) {
        self.join(now, Member { path, link, bottleneck: None });
        self.sum_up();
    }

    fn join(&mut self, now: Instant, new: Member) {
        for other in self.paths.iter() {
            let held = new.presumed(now, other);
            self.pairs.push(Pair { paths: (other.path, new.path), held, refuted: false, told: now });
        }
        self.paths.insert(new);
    }

    /// `path` turns out to leave by `link`. Whether that changed the verdict.
    pub(crate) fn set_link(&mut self, now: Instant, path: PathId, link: u32) -> bool {
        let bottleneck = self.paths.get(path).and_then(|member| member.bottleneck);
        self.part(path);
        self.join(now, Member { path, link: Some(link), bottleneck });
        self.sum_up()
    }

    /// Another connection found `path` to lead through `bottleneck`: it shares with those that do, unless facts of our own were against
    /// it. Whether that changed the verdict.
    pub(crate) fn set_bottleneck(&mut self, now: Instant, path: PathId, bottleneck: u32) -> bool {
        let Some(member) = self.paths.get_mut(path) else { return false };
        member.bottleneck = Some((bottleneck, now));
        let same = |path| self.paths.get(path).is_some_and(|m| m.found(now) == Some(bottleneck));
        let alike = |pair: &&mut Pair| same(pair.paths.0) && same(pair.paths.1);
        for pair in self.pairs.iter_mut().filter(alike).filter(|pair| !pair.refuted) {
            match pair.held {
                Held::Shared { measured: true, .. } => {}
                Held::Shared { .. } => pair.told = now,
                Held::Separate { .. } | Held::Trial { .. } => {
                    (pair.held, pair.told) = (Held::Shared { since: now, measured: false }, now);
                }
            }
        }
        self.sum_up()
    }

    /// The pairs that this connection has compared, whether they share, and when they were compared last.
    pub(crate) fn found(&self) -> Vec<([PathId; 2], bool, Instant)> {
        let told = |pair: &Pair| {
            let share = match pair.held {
                Held::Shared { measured: true, .. } => true,
                Held::Separate { .. } if pair.refuted => false,
                Held::Shared { .. } | Held::Separate { .. } | Held::Trial { .. } => return None,
            };
            Some(([pair.paths.0, pair.paths.1], share, pair.told))
        };
        self.pairs.iter().filter_map(told).collect()
    }

    /// A path is gone.
    pub(crate) fn remove(&mut self, path: PathId) {
        self.part(path);
        self.sum_up();
    }

    fn part(&mut self, path: PathId) {
        self.paths.remove(path);
        self.pairs.retain(|pair| pair.paths.0 != path && pair.paths.1 != path);
    }

    /// What is held now.
    pub(crate) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether to shift load between `path` and others.
    pub(crate) fn is_on_trial(&self, path: PathId) -> bool {
        let with = |pair: &&Pair| pair.paths.0 == path || pair.paths.1 == path;
        self.pairs.iter().filter(with).any(|pair| matches!(pair.held, Held::Trial { .. }))
    }

    /// Judges if it is time to: whether the verdict changed. `half` is half a period in which load is shifted.
    pub(crate) fn judge(&mut self, now: Instant, half: Duration, detector: &mut dyn Detector) -> bool {
        if now < self.next || self.pairs.is_empty() {
            return false;
        }
        self.next = now + INTERVAL;
        detector.advance(now);
        for pair in &mut self.pairs {
            let Some(from) = pair.asks_from(now, half) else { continue };
            let alike = detector.likeness(now, from, pair.paths);
            if alike.is_some() {
                pair.told = now;
            }
            pair.weigh(now, half, alike, self.thresholds);
        }
        self.forget(now);
        self.sum_up()
    }

    /// Pairs that were not compared for `LIFE` are held to be what is presumed.
    fn forget(&mut self, now: Instant) {
        let paths = &self.paths;
        for pair in self.pairs.iter_mut().filter(|pair| now.since(pair.told) >= LIFE) {
            let Some((a, b)) = paths.get(pair.paths.0).zip(paths.get(pair.paths.1)) else { continue };
            (pair.held, pair.refuted, pair.told) = (b.presumed(now, a), false, now);
        }
    }

    fn sum_up(&mut self) -> bool {
        let shares = |a: PathId, b: PathId| {
            let held = self.pairs.iter().find(|pair| pair.paths == (a, b)).map(|pair| pair.held);
            matches!(held, Some(Held::Shared { .. }))
        };
        let verdict = Verdict::of(self.paths.ids(), shares);
        std::mem::replace(&mut self.verdict, verdict) != self.verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Duration = Duration::from_millis(100);

    /// Finds all pairs equally alike.
    #[derive(Debug)]
    struct Told(Option<f64>);

    impl Detector for Told {
        fn on_delay(&mut self, _: PathId, _: Instant, _: Duration, _: Duration) {}
        fn forget(&mut self, _: PathId) {}
        fn likeness(&mut self, _: Instant, _: Instant, _: (PathId, PathId)) -> Option<f64> {
            self.0
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn judge(links: [Option<u32>; 2]) -> Judge {
        let mut judge = Judge::new(Thresholds { trials: true, join: 0.4, leave: 0.3 });
        [PathId(0), PathId(1)].iter().zip(links).for_each(|(path, link)| judge.add(at(0), *path, link));
        judge
    }

    /// The verdict every 250 ms from `from` to `to`: whether both share.
    fn course(judge: &mut Judge, from: u64, to: u64, likeness: Option<f64>) -> Vec<bool> {
        let step = |ms| {
            judge.judge(at(ms), HALF, &mut Told(likeness));
            judge.verdict().sharing(PathId(0)).count() == 2
        };
        (from..to).step_by(250).map(step).collect()
    }

    #[test]
    fn separate_paths_that_are_alike_share_after_a_trial() {
        let mut judge = judge([Some(1), Some(2)]);
        course(&mut judge, 0, 1500, Some(0.9));
        assert!(!judge.is_on_trial(PathId(0)), "too soon");
        course(&mut judge, 1500, 1750, Some(0.9));
        assert!([0, 1].iter().all(|path| judge.is_on_trial(PathId(*path))));
        assert!(course(&mut judge, 1750, 3000, Some(0.9)).iter().all(|shares| !shares), "too short a trial");
        assert!(course(&mut judge, 3000, 3250, Some(0.9))[0]);
        assert!(!judge.is_on_trial(PathId(0)));
        assert_eq!(judge.found(), [([PathId(0), PathId(1)], true, at(3000))]);
    }

    #[test]
    fn what_fails_its_trial_stays_separate_and_rests() {
        let mut judge = judge([None, None]);
        course(&mut judge, 2000, 2250, Some(0.9));
        course(&mut judge, 2250, 4250, Some(0.1));
        assert!(judge.is_on_trial(PathId(0)), "too short a trial");
        assert!(course(&mut judge, 4250, 4500, Some(0.1)).iter().all(|shares| !shares));
        course(&mut judge, 4500, 8250, Some(0.9));
        assert!(!judge.is_on_trial(PathId(0)));
        course(&mut judge, 8250, 11_000, Some(0.9));
        assert_eq!(judge.verdict().bottlenecks().count(), 1);
    }

    #[test]
    fn a_trial_that_ends_undecided_is_no_fact_against() {
        let mut judge = judge([Some(1), Some(2)]);
        let [a, b] = [PathId(0), PathId(1)];
        course(&mut judge, 2000, 12_000, Some(0.4));
        assert!(judge.is_on_trial(a), "alike enough for a trial");
        assert!(
            course(&mut judge, 12_000, 12_250, Some(0.4)).iter().all(|shares| !shares),
            "and not to share"
        );
        assert!(!judge.is_on_trial(a), "it is over");
        assert_eq!(judge.found(), []);
        assert!(!judge.set_bottleneck(at(12_250), a, 5) && judge.set_bottleneck(at(12_250), b, 5));
    }

    #[test]
    fn what_another_connection_found_holds_until_facts_are_against_it() {
        let mut judge = judge([Some(1), Some(2)]);
        let [a, b] = [PathId(0), PathId(1)];
        assert_eq!(judge.found(), []);
        assert!(!judge.set_bottleneck(at(0), a, 5) && judge.set_bottleneck(at(0), b, 5));
        assert!(judge.verdict().sharing(b).eq([a, b]));
        assert_eq!(judge.found(), [], "it was measured elsewhere");
        assert!(course(&mut judge, 0, 9000, None).iter().all(|shares| *shares), "nothing is known");
        assert!(!course(&mut judge, 9000, 9250, Some(0.2))[0]);
        assert_eq!(judge.found(), [([a, b], false, at(9000))]);
        assert!(!judge.set_bottleneck(at(9250), b, 5), "what was measured here counts");
    }

    #[test]
    fn a_verdict_lapses_ten_minutes_after_facts_told_last() {
        let mut judge = judge([Some(1), Some(2)]);
        course(&mut judge, 0, 8000, Some(0.9));
        assert!(course(&mut judge, 8000, 607_750, None).iter().all(|shares| *shares));
        assert!(!course(&mut judge, 607_750, 608_000, None)[0], "facts told at 7750 ms");
        assert_eq!(judge.found(), []);
        course(&mut judge, 608_000, 612_000, Some(0.9));
        assert_eq!(judge.found().len(), 1, "and may again");
    }

    #[test]
    fn what_was_told_or_refuted_lapses_too_and_one_link_is_shared_again() {
        let [a, b] = [PathId(0), PathId(1)];
        let mut told = judge([Some(1), Some(2)]);
        [a, b].iter().for_each(|path| _ = told.set_bottleneck(at(0), *path, 5));
        [a, b].iter().for_each(|path| _ = told.set_bottleneck(at(60_000), *path, 5));
        assert!(course(&mut told, 0, 660_000, None).iter().all(|shares| *shares));
        assert!(!course(&mut told, 660_000, 660_250, None)[0]);
        let mut refuted = judge([Some(1), Some(1)]);
        assert!(!course(&mut refuted, 0, 8000, Some(0.2))[31]);
        assert!(!course(&mut refuted, 8000, 600_000, None)[0]);
        assert!(course(&mut refuted, 600_000, 610_000, None)[39]);
    }

    #[test]
    fn one_link_is_shared_until_facts_are_against_it() {
        let mut judge = judge([Some(1), Some(1)]);
        assert!(course(&mut judge, 0, 9000, None).iter().all(|shares| *shares), "nothing is known");
        assert!(course(&mut judge, 9000, 9500, Some(0.4)).iter().all(|shares| *shares), "not clearly");
        assert!(!course(&mut judge, 9500, 9750, Some(0.2))[0]);
    }
}
