//! The table of error rates in `docs/experiments.md`: claims of equality, shares of runs, the side of the null, rank correlations, and what is
//! as plain TCP.

mod likeness;
mod ranks;

use rayon::prelude::*;

use super::*;
use Finding::{DirectionOnly, NotIdentifiable, Refuted, Reproduced};

/// How runs scatter.
#[derive(Clone, Copy)]
enum Law {
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// Geometric mean, and standard deviation of the logarithm.
    LogNormal(f64, f64),
    /// The same scatter, of a ratio with this arithmetic mean.
    Skewed(f64, f64),
    /// 1 in this share of the runs, else 0.
    Coin(f64),
}

impl Law {
    fn scale(self) -> Scale {
        match self {
            Self::Normal(..) => Scale::Linear,
            Self::LogNormal(..) => Scale::Geometric,
            Self::Skewed(..) => Scale::Ratio,
            Self::Coin(_) => Scale::Share,
        }
    }

    fn draw(self, chance: &mut Chance) -> f64 {
        match self {
            Self::Normal(mean, sd) => chance.normal(Normal(mean, sd)),
            Self::LogNormal(mean, sd) => chance.normal(Normal(mean.ln(), sd)).exp(),
            Self::Skewed(mean, sd) => mean * chance.normal(Normal(-sd * sd / 2.0, sd)).exp(),
            Self::Coin(share) => f64::from(u8::from(chance.uniform() < share)),
        }
    }
}

/// A claim of which the truth is known.
struct Case {
    claim: Claim,
    ours: Law,
    null: Option<Law>,
}

impl Case {
    /// The finding of the look that decides, or of the last.
    fn settle(&self, chance: &mut Chance) -> Finding {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for runs in RUNS {
            a.extend((a.len()..runs).map(|_| self.ours.draw(chance)));
            let ours = Ensemble::of(self.ours.scale(), &a).expect("there are runs");
            let null = self.null.and_then(|law| {
                b.extend((b.len()..runs).map(|_| law.draw(chance)));
                Ensemble::of(law.scale(), &b)
            });
            let asked = Asked::of(&self.claim, &ours, null.as_ref());
            let finding = judge(&self.claim, ours.confidence(LEVEL), asked).finding;
            if finding != Finding::Undecided {
                return finding;
            }
        }
        Finding::Undecided
    }

    fn rate_of(&self, findings: &[Finding]) -> f64 {
        rate(|chance| findings.contains(&self.settle(chance)))
    }
}

/// A line of the table: what is true, what is said of it, and how often in each of its settings.
struct Row {
    truth: &'static str,
    said: String,
    rates: Vec<f64>,
}

fn row(truth: &'static str, said: String, rates: Vec<f64>) -> Row {
    Row { truth, said, rates }
}

/// Findings, one or the other.
fn named(findings: &[Finding]) -> String {
    findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("* or *")
}

fn found(truth: &'static str, said: &[Finding], cases: &[Case]) -> Row {
    row(truth, named(said), cases.par_iter().map(|case| case.rate_of(said)).collect())
}

fn equal(means: &[f64], null_sd: f64) -> Vec<Case> {
    let claim = Claim { published: 1.0, equal: true, ..CLAIM };
    let of = |sd: f64| {
        means.iter().map(move |mean| Case {
            claim,
            ours: Law::Normal(*mean, sd),
            null: Some(Law::Normal(1.0, null_sd)),
        })
    };
    [0.02, 0.1, 0.3].into_iter().flat_map(of).collect()
}

fn skewed(means: &[f64]) -> Vec<Case> {
    let null = Some(Law::Skewed(1.0, 0.01));
    let claim = Claim { published: 1.0, equal: true, ..CLAIM };
    let of = |sd: f64| means.iter().map(move |mean| Case { claim, ours: Law::Skewed(*mean, sd), null });
    [0.1, 0.3, 0.5].into_iter().flat_map(of).collect()
}

fn share(shares: &[f64]) -> Vec<Case> {
    let claim = Claim { published: 1.0, margin: 0.2, ..CLAIM };
    shares.iter().map(|share| Case { claim, ours: Law::Coin(*share), null: None }).collect()
}

/// Ours at `more` standard deviations of a run beyond the end of the margin about the null, of which the published value lies far.
fn beside(more: f64) -> Vec<Case> {
    let claim = Claim { published: 9.0, ..CLAIM };
    let (at, spread) = (1.0 + claim.margin, [0.05, 0.2, 0.4]);
    let normal = spread.map(|sd| (Law::Normal(at + more * sd, sd), Law::Normal(1.0, sd)));
    let skew = spread.map(|sd| (Law::LogNormal(at * (more * sd).exp(), sd), Law::LogNormal(1.0, sd)));
    normal.into_iter().chain(skew).map(|(ours, null)| Case { claim, ours, null: Some(null) }).collect()
}

/// Of the null's runs, 95 % are within this many margins to either side.
fn width(margins: f64) -> f64 {
    CLAIM.margin * margins / 1.96
}

fn errors() -> Vec<Row> {
    let (off, within) = ([0.95, 1.05], [0.951, 1.0, 1.049]);
    let either = [Reproduced, Refuted];
    let (wide, narrow) = (equal(&[1.0], width(1.2)), equal(&[1.0], width(0.8)));
    let of_findings = [
        found("equality: the mean is off by the margin", &[Reproduced], &equal(&off, 0.01)),
        found("the same, skewed runs", &[Reproduced], &skewed(&off)),
        found("equality: the mean lies within the margin", &[Refuted], &equal(&within, 0.01)),
        found("the same, skewed runs", &[Refuted], &skewed(&within)),
        found("equality: 95 % of the null are 1.2 margins wide", &either, &wide),
        found("equality: 95 % of the null are 0.8 margins wide", &[NotIdentifiable], &narrow),
        found("share: at the margin's end", &[Reproduced], &share(&[0.8])),
        found("share: at the margin's end or within", &[Refuted], &share(&[0.8, 0.85, 0.95])),
        found("direction: ours is the margin beyond the null", &[DirectionOnly], &beside(0.0)),
        found("direction: the same", &[Refuted], &beside(0.0)),
    ];
    of_findings.into_iter().chain(ranks::errors()).chain(likeness::errors()).collect()
}

fn powers() -> Vec<Row> {
    let of_findings = [
        found(
            "equality: the published value, runs' deviation up to 0.3",
            &[Reproduced],
            &equal(&[1.0], 0.01),
        ),
        found("equality: 0.15 off, deviation up to 0.3", &[Refuted], &equal(&[0.85, 1.15], 0.01)),
        found("share: 0.9 or more", &[Reproduced], &share(&[0.9, 0.98])),
        found("share: 0.7 or less", &[Refuted], &share(&[0.5, 0.7])),
        found("direction: 0.3 of a run's deviation farther", &[DirectionOnly], &beside(0.3)),
    ];
    of_findings.into_iter().chain(ranks::powers()).chain(likeness::powers()).collect()
}

/// `rows` as a table, of each the rate that `pick` leaves of its settings.
fn table(rates: &str, rows: &[Row], pick: fn(f64, f64) -> f64) -> String {
    let line = |row: &Row| {
        let rate = row.rates.iter().copied().reduce(pick).expect("there are settings");
        format!("| {} | *{}* | {:.1} % |\n", row.truth, row.said, 100.0 * rate)
    };
    let lines: String = rows.iter().map(line).collect();
    format!("| truth | said | {rates} |\n|---|---|---|\n{lines}")
}

#[test]
fn the_table_of_error_rates_in_the_docs_is_what_the_simulation_gives() {
    let errors = table("errors, at most", &errors(), f64::max);
    let both = format!("{errors}\n{}", table("power, at least", &powers(), f64::min));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let there = page.split("<!-- rates -->\n").nth(1).and_then(|rest| rest.split("<!-- end -->").next());
    assert_eq!(there, Some(both.as_str()), "docs/experiments.md has another table:\n{both}");
}
