//! From likeness to a verdict, with hysteresis, and with a trial before paths are held to share.
//!
//! Two queues may rise and fall together for a while, each filled by a window that grows: above all two equal links. So
//! paths that look alike are put on *trial*: who asks for the verdict shifts load between them, a little to and fro.
//! Where they share a queue that changes nothing in it; where they do not, one queue grows as the other shrinks.

use polypath_wire::{Duration, Instant, PathId};

use super::detector::Detector;
use super::verdict::Verdict;

/// How often the facts are judged.
const INTERVAL: Duration = Duration::from_millis(250);
/// Paths are watched for so long before anything is held of them.
const LEAST: Duration = Duration::from_secs(2);
/// What trials leave alone at first, for windows and queues to follow: this many half periods.
const SETTLE: u64 = 1;
/// Half periods of a trial after that, at least and at most.
const TRIAL: [u64; 2] = [7, 21];
/// A trial that failed is repeated after this long, then twice as long, and so on up to the second.
const PAUSES: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(64)];

/// What a method calls alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Thresholds {
    /// At least so alike are paths that go on trial; none if there are no trials.
    pub trial: Option<f64>,
    /// At least so alike are paths that share.
    pub join: f64,
    /// At most so alike are paths that shared and no longer do.
    pub leave: f64,
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
}

/// A path, and what is known of it before anything was measured.
#[derive(Clone, Copy, Debug)]
struct Member {
    path: PathId,
    /// The link of ours that it leaves by.
    link: Option<u32>,
    /// The bottleneck that another connection found on it.
    bottleneck: Option<u32>,
}

impl Member {
    /// Whether both are held to share until facts tell.
    fn may_share(&self, other: &Self) -> bool {
        let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
        same(self.link, other.link) || same(self.bottleneck, other.bottleneck)
    }
}

/// What is held of the paths of one connection.
#[derive(Debug)]
pub(crate) struct Judge {
    thresholds: Thresholds,
    paths: Vec<Member>,
    pairs: Vec<Pair>,
    next: Instant,
    verdict: Verdict,
}

impl Judge {
    /// Holds nothing yet.
    pub(crate) fn new(thresholds: Thresholds) -> Self {
        let (paths, pairs, verdict) = (Vec::new(), Vec::new(), Verdict::default());
        Self { thresholds, paths, pairs, next: Instant::ZERO, verdict }
    }

    /// A path joins that leaves by `link`: until facts tell, it shares with those that leave by the same, and with no others.
    pub(crate) fn add(&mut self, now: Instant, path: PathId, link: Option<u32>) {
        self.join(now, Member { path, link, bottleneck: None });
        self.sum_up();
    }

    fn join(&mut self, now: Instant, new: Member) {
        for other in &self.paths {
            let held = match new.may_share(other) {
                true => Held::Shared { since: now, measured: false },
                false => Held::Separate { retry: now + LEAST, failures: 0 },
            };
            self.pairs.push(Pair { paths: (other.path, new.path), held, refuted: false });
        }
        self.paths.push(new);
    }

    /// `path` turns out to leave by `link`. Whether that changed the verdict.
    pub(crate) fn set_link(&mut self, now: Instant, path: PathId, link: u32) -> bool {
        let bottleneck = self.paths.iter().find(|member| member.path == path).and_then(|m| m.bottleneck);
        self.part(path);
        self.join(now, Member { path, link: Some(link), bottleneck });
        self.sum_up()
    }

    /// Another connection found `path` to lead through `bottleneck`: it shares with those that do, unless facts of our own were against
    /// it. Whether that changed the verdict.
    pub(crate) fn set_bottleneck(&mut self, now: Instant, path: PathId, bottleneck: u32) -> bool {
        let Some(member) = self.paths.iter_mut().find(|member| member.path == path) else { return false };
        member.bottleneck = Some(bottleneck);
        let same = |p: &PathId| self.paths.iter().any(|m| m.path == *p && m.bottleneck == Some(bottleneck));
        let alike = |pair: &&mut Pair| same(&pair.paths.0) && same(&pair.paths.1);
        for pair in self.pairs.iter_mut().filter(alike) {
            if !pair.refuted && !matches!(pair.held, Held::Shared { .. }) {
                pair.held = Held::Shared { since: now, measured: false };
            }
        }
        self.sum_up()
    }

    /// The pairs of which facts of this connection have told, and whether they share.
    pub(crate) fn found(&self) -> Vec<([PathId; 2], bool)> {
        let told = |pair: &Pair| match pair.held {
            Held::Shared { measured: true, .. } => Some(([pair.paths.0, pair.paths.1], true)),
            Held::Separate { .. } if pair.refuted => Some(([pair.paths.0, pair.paths.1], false)),
            Held::Shared { .. } | Held::Separate { .. } | Held::Trial { .. } => None,
        };
        self.pairs.iter().filter_map(told).collect()
    }

    /// A path is gone.
    pub(crate) fn remove(&mut self, path: PathId) {
        self.part(path);
        self.sum_up();
    }

    fn part(&mut self, path: PathId) {
        self.paths.retain(|member| member.path != path);
        self.pairs.retain(|pair| pair.paths.0 != path && pair.paths.1 != path);
    }

    /// What is held now.
    pub(crate) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether load is to be shifted between `path` and others.
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
        let thresholds = self.thresholds;
        for pair in &mut self.pairs {
            pair.held = match pair.held {
                Held::Separate { retry, failures } if now >= retry => {
                    look(now, pair.paths, failures, thresholds, detector)
                        .unwrap_or(Held::Separate { retry, failures })
                }
                Held::Trial { since, failures } => {
                    let times = [SETTLE, SETTLE + TRIAL[0], SETTLE + TRIAL[1]].map(|n| since + half.times(n));
                    try_on(now, times, pair, failures, thresholds, detector)
                        .unwrap_or(Held::Trial { since, failures })
                }
                Held::Shared { since, measured } => match detector.likeness(now, since, pair.paths) {
                    Some(likeness) if likeness <= thresholds.leave && now >= since + LEAST => {
                        pair.refuted = true;
                        Held::Separate { retry: now + PAUSES[0], failures: 1 }
                    }
                    _ => Held::Shared { since, measured },
                },
                held => held,
            };
        }
        self.sum_up()
    }

    fn sum_up(&mut self) -> bool {
        let shares = |a: PathId, b: PathId| {
            let held = self.pairs.iter().find(|pair| pair.paths == (a, b)).map(|pair| pair.held);
            matches!(held, Some(Held::Shared { .. }))
        };
        let paths: Vec<PathId> = self.paths.iter().map(|member| member.path).collect();
        let verdict = Verdict::of(&paths, shares);
        std::mem::replace(&mut self.verdict, verdict) != self.verdict
    }
}

/// Separate paths that look alike go on trial, or are held to share at once.
fn look(
    now: Instant,
    paths: (PathId, PathId),
    failures: u32,
    thresholds: Thresholds,
    detector: &mut dyn Detector,
) -> Option<Held> {
    let likeness = detector.likeness(now, Instant::ZERO, paths)?;
    let held = match thresholds.trial {
        Some(_) => Held::Trial { since: now, failures },
        None => Held::Shared { since: now, measured: true },
    };
    (likeness >= thresholds.trial.unwrap_or(thresholds.join)).then_some(held)
}

/// A trial counts from the first of `times` on, may end from the second on and ends at the third.
fn try_on(
    now: Instant,
    [from, least, most]: [Instant; 3],
    pair: &mut Pair,
    failures: u32,
    thresholds: Thresholds,
    detector: &mut dyn Detector,
) -> Option<Held> {
    if now < least {
        return None;
    }
    let [first, last] = PAUSES;
    let separate =
        Held::Separate { retry: now + first.times(1 << failures.min(8)).min(last), failures: failures + 1 };
    let likeness = detector.likeness(now, from, pair.paths);
    if likeness.is_some_and(|likeness| likeness >= thresholds.join) {
        pair.refuted = false;
        return Some(Held::Shared { since: now, measured: true });
    }
    let unlike = likeness.is_some_and(|likeness| likeness <= thresholds.leave);
    pair.refuted |= unlike;
    (unlike || now >= most).then_some(separate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Duration = Duration::from_millis(100);

    /// Says of all pairs what it is told to.
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
        let mut judge = Judge::new(Thresholds { trial: Some(0.4), join: 0.6, leave: 0.3 });
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
        assert!(course(&mut judge, 0, 2000, Some(0.9)).iter().all(|shares| !shares), "too soon");
        course(&mut judge, 2000, 2250, Some(0.9));
        assert!([0, 1].iter().all(|path| judge.is_on_trial(PathId(*path))));
        assert!(!course(&mut judge, 2250, 2750, Some(0.9))[1], "still on trial");
        assert!(course(&mut judge, 2750, 3250, Some(0.9))[1]);
        assert!(!judge.is_on_trial(PathId(0)));
        assert_eq!(judge.found(), [([PathId(0), PathId(1)], true)]);
    }

    #[test]
    fn what_fails_its_trial_stays_separate_and_rests() {
        let mut judge = judge([None, None]);
        course(&mut judge, 2000, 2250, Some(0.9));
        assert!(course(&mut judge, 2250, 3250, Some(0.1)).iter().all(|shares| !shares));
        course(&mut judge, 3250, 6500, Some(0.9));
        assert!(!judge.is_on_trial(PathId(0)));
        course(&mut judge, 6500, 8250, Some(0.9));
        assert_eq!(judge.verdict().bottlenecks().count(), 1);
    }

    #[test]
    fn a_trial_that_ends_undecided_is_no_fact_against() {
        let mut judge = judge([Some(1), Some(2)]);
        let [a, b] = [PathId(0), PathId(1)];
        course(&mut judge, 2000, 2250, Some(0.5));
        assert!(judge.is_on_trial(a), "alike enough for a trial");
        assert!(course(&mut judge, 2250, 4500, Some(0.5)).iter().all(|shares| !shares), "and not to share");
        assert!(!judge.is_on_trial(a), "it is over");
        assert_eq!(judge.found(), []);
        assert!(!judge.set_bottleneck(at(4500), a, 5) && judge.set_bottleneck(at(4500), b, 5));
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
        assert_eq!(judge.found(), [([a, b], false)]);
        assert!(!judge.set_bottleneck(at(9250), b, 5), "what was measured here counts");
    }

    #[test]
    fn one_link_is_shared_until_facts_are_against_it() {
        let mut judge = judge([Some(1), Some(1)]);
        assert!(course(&mut judge, 0, 9000, None).iter().all(|shares| *shares), "nothing is known");
        assert!(course(&mut judge, 9000, 9500, Some(0.4)).iter().all(|shares| *shares), "not clearly");
        assert!(!course(&mut judge, 9500, 9750, Some(0.2))[0]);
    }
}
