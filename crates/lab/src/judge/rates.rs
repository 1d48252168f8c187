//! The error rates of the rule, by simulation: thousands of papers and ensembles of which the truth is known.

use super::*;
use crate::results::Summary;

/// Ensembles of one setting.
const TRIALS: usize = 2_000;
/// Runs of an ensemble.
const RUNS: usize = 50;

/// Numbers of a normal distribution: splitmix64 and the sum of twelve uniform ones.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        mean + sd * ((0..12).map(|_| self.uniform()).sum::<f64>() - 6.0)
    }

    fn ensemble(&mut self, mean: f64, sd: f64) -> Ensemble {
        let values: Vec<f64> = (0..RUNS).map(|_| self.normal(mean, sd)).collect();
        Ensemble::Linear(Summary::of(&values).expect("there are runs"))
    }
}

/// Share of trials in which the finding of `one` is among `findings`.
fn rate(findings: &[Finding], mut one: impl FnMut(&mut Chance) -> Finding) -> f64 {
    let mut chance = Chance(7);
    (0..TRIALS).filter(|_| findings.contains(&one(&mut chance))).count() as f64 / TRIALS as f64
}

fn found(claim: &Claim, ours: &Ensemble, null: &Ensemble) -> Finding {
    let against = Against {
        neutral: null.middle(),
        runs: Some(null.means_of(claim.runs)),
        ours: ours.means_of(claim.runs),
        side: ours.side_of(null),
        claimed: Side::of(claim.published, null.middle(), claim.margin),
    };
    judge(claim, ours.confidence(0.9), Some(&against)).finding
}

const CLAIM: Claim = Claim { published: 1.11, margin: 0.05, runs: 1, equal: false };

#[test]
fn a_system_off_by_the_margin_is_rarely_called_reproduced() {
    for sd in [0.02, 0.05, 0.1, 0.3] {
        for off in [-0.05, 0.05, 0.1] {
            let wrong = rate(&[Finding::Reproduced], |c| {
                let null = c.ensemble(0.5, 0.01);
                found(&CLAIM, &c.ensemble(1.11 + off, sd), &null)
            });
            assert!(wrong <= 0.06, "sd {sd}, off by {off}: {wrong}");
        }
    }
}

#[test]
fn a_system_within_the_margin_is_rarely_called_something_else() {
    for sd in [0.02, 0.05, 0.1, 0.3] {
        for off in [-0.05, 0.0, 0.049] {
            let wrong = rate(&[Finding::Refuted, Finding::DirectionOnly], |c| {
                let null = c.ensemble(0.5, 0.01);
                found(&CLAIM, &c.ensemble(1.11 + off, sd), &null)
            });
            assert!(wrong <= 0.06, "sd {sd}, off by {off}: {wrong}");
        }
    }
}

#[test]
fn fifty_runs_show_the_published_value_if_a_run_scatters_by_twice_the_margin() {
    let right = |sd| {
        rate(&[Finding::Reproduced], |c| {
            let null = c.ensemble(0.5, 0.01);
            found(&CLAIM, &c.ensemble(1.11, sd), &null)
        })
    };
    assert!(right(0.05) > 0.99 && right(0.1) > 0.9, "{} {}", right(0.05), right(0.1));
    assert!(right(0.3) < 0.05, "six times the margin is too much: {}", right(0.3));
}

#[test]
fn a_paper_that_measured_plain_tcp_rarely_shows_an_effect() {
    let mut published = Chance(11);
    for (null_sd, runs) in [(0.01, 1), (0.1, 1), (0.3, 1), (0.3, 5)] {
        let wrong = rate(&[Finding::Reproduced, Finding::DirectionOnly, Finding::Refuted], |c| {
            let of_runs = (0..runs).map(|_| published.normal(1.0, null_sd)).sum::<f64>() / f64::from(runs);
            let claim = Claim { published: of_runs, runs, ..CLAIM };
            let null = c.ensemble(1.0, null_sd);
            found(&claim, &c.ensemble(1.3, 0.1), &null)
        });
        assert!(wrong <= 0.065, "null sd {null_sd}, {runs} runs: {wrong}");
    }
}

#[test]
fn the_power_that_is_stated_is_the_rate_at_which_such_papers_can_tell() {
    let (mut papers, mut chance) = (Chance(13), Chance(17));
    for (null_sd, effect, runs) in [(0.1, 0.11, 1), (0.1, 0.11, 10), (0.3, 0.11, 1), (0.02, 0.11, 1)] {
        let claim = Claim { published: 1.0 + effect, runs, ..CLAIM };
        let (null, ours) = (chance.ensemble(1.0, null_sd), chance.ensemble(1.0 + effect, null_sd));
        let told = rate(&[Finding::Reproduced, Finding::DirectionOnly, Finding::Refuted], |_| {
            let mean = (0..runs).map(|_| papers.normal(1.0 + effect, null_sd)).sum::<f64>() / f64::from(runs);
            let far = Interval { low: 9.0, high: 9.0 };
            let against = Against {
                neutral: 1.0,
                runs: Some(null.means_of(runs)),
                ours: far,
                side: None,
                claimed: None,
            };
            judge(&Claim { published: mean, ..claim }, far, Some(&against)).finding
        });
        let stated = power(&claim, &null, &ours);
        assert!((told - stated).abs() < 0.08, "{null_sd} {runs}: {told}, stated {stated}");
    }
}
