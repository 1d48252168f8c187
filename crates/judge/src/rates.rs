//! The error rates of the rule, by simulation: thousands of papers and ensembles of which the truth is known, looked at as
//! often as they need.

mod table;

use super::*;

/// Ensembles of one setting.
const TRIALS: usize = 2_000;
/// Runs that a look has.
const RUNS: [usize; LOOKS] = [50, 100, 200, 400];

/// Numbers of a normal distribution: splitmix64 and the sum of twelve uniform ones.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self, of: Normal) -> f64 {
        of.0 + of.1 * ((0..12).map(|_| self.uniform()).sum::<f64>() - 6.0)
    }

    fn values(&mut self, n: usize, of: Normal) -> Vec<f64> {
        (0..n).map(|_| self.normal(of)).collect()
    }

    /// The finding of the look that decides, or of the last.
    fn settle(&mut self, claim: &Claim, ours: Normal, null: Normal) -> Finding {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for runs in RUNS {
            a.extend(self.values(runs - a.len(), ours));
            b.extend(self.values(runs - b.len(), null));
            let of = |values| Ensemble::of(Scale::Linear, values).expect("there are runs");
            let (a, b) = (of(&a), of(&b));
            let finding = judge(claim, a.confidence(LEVEL), Asked::of(claim, &a, Some(&b))).finding;
            if finding != Finding::Undecided {
                return finding;
            }
        }
        Finding::Undecided
    }
}

/// `n` numbers of a normal distribution.
pub(super) fn drawn(seed: u64, n: usize, mean: f64, sd: f64) -> Vec<f64> {
    Chance(seed).values(n, Normal(mean, sd))
}

/// Mean and standard deviation.
#[derive(Clone, Copy)]
struct Normal(f64, f64);

const CLAIM: Claim = Claim { published: 1.11, margin: 0.05, runs: 1, equal: false };
/// A null that a paper's run can be told from.
const FAR: Normal = Normal(0.5, 0.01);

/// Share of trials in which `one` holds.
fn rate(one: impl FnMut(&mut Chance) -> bool) -> f64 {
    rate_in(TRIALS, one)
}

fn rate_in(trials: usize, mut one: impl FnMut(&mut Chance) -> bool) -> f64 {
    let mut chance = Chance(7);
    (0..trials).filter(|_| one(&mut chance)).count() as f64 / trials as f64
}

fn found(findings: &[Finding], ours: Normal) -> f64 {
    rate(|c| findings.contains(&c.settle(&CLAIM, ours, FAR)))
}

#[test]
fn a_system_off_by_the_margin_is_rarely_called_reproduced() {
    for sd in [0.02, 0.1, 0.3, 0.6] {
        for off in [-0.05, 0.05, 0.1] {
            let wrong = found(&[Finding::Reproduced], Normal(1.11 + off, sd));
            assert!(wrong <= 0.05, "sd {sd}, off by {off}: {wrong}");
        }
    }
}

#[test]
fn a_system_within_the_margin_is_rarely_called_something_else() {
    for sd in [0.02, 0.1, 0.3, 0.6] {
        for off in [-0.05, 0.0, 0.049] {
            let wrong = found(&[Finding::Refuted, Finding::DirectionOnly], Normal(1.11 + off, sd));
            assert!(wrong <= 0.05, "sd {sd}, off by {off}: {wrong}");
        }
    }
}

#[test]
fn four_hundred_runs_decide_where_the_truth_is_a_fifth_of_the_scatter_away_from_the_margins_end() {
    let reproduced = |sd| found(&[Finding::Reproduced], Normal(1.11, sd));
    assert!(reproduced(0.05) > 0.99 && reproduced(0.2) > 0.95, "{} {}", reproduced(0.05), reproduced(0.2));
    for sd in [0.1, 0.3, 0.6] {
        let other = found(&[Finding::DirectionOnly], Normal(1.16 + 0.2 * sd, sd));
        assert!(other > 0.9, "sd {sd}: {other}");
    }
}

#[test]
fn two_ensembles_of_other_seeds_rarely_contradict_each_other_wherever_the_truth_lies() {
    for sd in [0.05, 0.2, 0.4] {
        for off in [0.0, 0.03, 0.04, 0.045, 0.05, 0.055, 0.06, 0.08] {
            let contradict = rate(|c| {
                let mut one = || c.settle(&CLAIM, Normal(1.11 + off, sd), FAR);
                let (a, b) = (one(), one());
                a != b && a != Finding::Undecided && b != Finding::Undecided
            });
            assert!(contradict <= 0.02, "sd {sd}, off by {off}: {contradict}");
        }
    }
}

#[test]
fn a_paper_that_measured_plain_tcp_rarely_shows_an_effect() {
    let mut published = Chance(11);
    let shown = [Finding::Reproduced, Finding::DirectionOnly, Finding::Refuted];
    for (null_sd, runs) in [(0.01, 1), (0.1, 1), (0.3, 1), (0.3, 5)] {
        let wrong = rate(|c| {
            let of_runs = published.values(runs, Normal(1.0, null_sd)).iter().sum::<f64>() / runs as f64;
            let claim = Claim { published: of_runs, runs: runs as u32, ..CLAIM };
            shown.contains(&c.settle(&claim, Normal(1.3, 0.1), Normal(1.0, null_sd)))
        });
        assert!(wrong <= 0.06, "null sd {null_sd}, {runs} runs: {wrong}");
    }
}

#[test]
fn the_power_that_is_stated_is_the_rate_at_which_such_papers_can_tell() {
    let (mut papers, mut chance) = (Chance(13), Chance(17));
    for (null_sd, effect, runs) in [(0.1, 0.11, 1), (0.1, 0.11, 10), (0.3, 0.11, 1), (0.02, 0.11, 1)] {
        let claim = Claim { published: 1.0 + effect, runs, ..CLAIM };
        let mut ensemble =
            |mean| Ensemble::of(Scale::Linear, &chance.values(400, Normal(mean, null_sd))).expect("runs");
        let (null, ours) = (ensemble(1.0), ensemble(1.0 + effect));
        let told = rate(|_| {
            let runs_of = papers.values(runs as usize, Normal(1.0 + effect, null_sd));
            let published = runs_of.iter().sum::<f64>() / f64::from(runs);
            !null.means_of(runs).contains(published)
        });
        let stated = power(&claim, &null, &ours);
        assert!((told - stated).abs() < 0.08, "{null_sd} {runs}: {told}, stated {stated}");
    }
}

#[test]
fn the_power_that_is_stated_of_equality_is_the_rate_at_which_such_papers_show_it_also_of_fifty_runs() {
    let (mut papers, mut chance) = (Chance(19), Chance(23));
    for (sd, runs) in [(0.02, 1), (0.05, 1), (0.1, 1), (0.1, 5), (0.3, 1)] {
        let equal = Claim { published: 1.0, equal: true, runs, ..CLAIM };
        let told = rate(|_| {
            let mean = papers.values(runs as usize, Normal(1.0, sd)).iter().sum::<f64>() / f64::from(runs);
            (mean - 1.0).abs() <= equal.margin
        });
        for _ in 0..20 {
            let null = Ensemble::of(Scale::Linear, &chance.values(50, Normal(1.0, sd))).expect("runs");
            let stated = power(&equal, &null, &null);
            assert!((told - stated).abs() < 0.2, "{sd} {runs}: {told}, stated {stated}");
        }
    }
}
