//! Answers beside those that were kept: the same claims from other seeds, or from a few of the same.

use serde_json::{Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Verdict;
use crate::judge::Finding;

/// From so many runs on a finding is expected to be the same.
const MANY: usize = 20;
/// A mean may lie outside of where those of as many runs do by chance once in so many claims.
const CHANCE: f64 = 1e-4;
/// What counts as equal where nothing scatters, as a share of the value.
const EQUAL: f64 = 0.01;

/// What of `verdicts` of `experiment` is not what `kept`, outputs of `lab check --json` on disjoint blocks of seeds, say;
/// one line each. Where a block or these runs leave a claim undecided, or the blocks contradict each other, no finding is an error. A claim that is
/// new, or that some runs do not have, is not compared.
pub fn differences(experiment: &str, verdicts: &[Verdict], kept: &[Value]) -> Vec<String> {
    let of = |v: &Verdict| {
        let same: Vec<&Value> = kept.iter().filter_map(|block| claim(block, experiment, v)).collect();
        difference(v, &same)
    };
    verdicts.iter().filter_map(|v| Some(format!("{experiment}: {} {}", v.expectation, of(v)?))).collect()
}

/// What `block` keeps of the claim of `v`.
fn claim<'a>(block: &'a Value, experiment: &str, v: &Verdict) -> Option<&'a Value> {
    let experiments = block["experiments"].as_array()?.iter().filter(|e| e["experiment"] == experiment);
    let mut known = experiments.flat_map(|e| e["verdicts"].as_array().into_iter().flatten());
    known.find(|k| k["expectation"] == v.expectation.as_str() && k["cell"] == v.cell.as_str())
}

fn difference(v: &Verdict, blocks: &[&Value]) -> Option<String> {
    let kept = *blocks.first()?;
    let decided = |finding: &Value| *finding != json!(Finding::Undecided);
    let many = blocks.iter().filter(|k| k["n"].as_u64().is_some_and(|n| n >= MANY as u64));
    let found: Vec<&Value> = many.map(|k| &k["finding"]).filter(|f| decided(f)).collect();
    let shared = found.first().filter(|first| found.iter().all(|other| other == *first));
    let finding = json!(v.finding);
    if let Some(shared) = shared.filter(|shared| v.n >= MANY && decided(&finding) && ***shared != finding) {
        return Some(format!("is {finding}, and was {shared}"));
    }
    let n = kept["n"].as_u64()? as usize;
    let (value, was, ci95) = (v.value?, kept["value"].as_f64()?, kept["ci95"].as_f64()?);
    let t = |level: f64| Some(StudentsT::new(0.0, 1.0, n as f64 - 1.0).ok()?.inverse_cdf(level));
    let scatter = ci95 * (n as f64).sqrt() / t(0.975)?;
    let half = t(1.0 - CHANCE / 2.0)? * scatter * (1.0 / v.n as f64 + 1.0 / n as f64).sqrt();
    let allowed = half.max(EQUAL * was.abs());
    ((value - was).abs() > allowed).then(|| {
        format!("is {} in {} runs, and was {} ± {} in {n}", v.shown(value), v.n, v.shown(was), v.shown(ci95))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(value: f64, n: usize, finding: Finding) -> Verdict {
        Verdict {
            expectation: "FF".into(),
            value: Some(value),
            n,
            finding: Some(finding),
            ..Verdict::empty()
        }
    }

    #[test]
    fn a_few_runs_lie_where_the_many_say_and_many_find_the_same() {
        // 50 runs that scatter by 0.1: their mean is known to 0.0284, means of four lie within 0.22 of it.
        let kept = json!({ "experiments": [{ "experiment": "g/x", "verdicts": [
            { "expectation": "FF", "cell": "", "value": 1.0, "ci95": 0.0284, "n": 50, "finding": "reproduced" },
        ] }] });
        let of = |value, n, finding| {
            differences("g/x", &[verdict(value, n, finding)], std::slice::from_ref(&kept))
        };
        assert!(of(1.2, 4, Finding::NotIdentifiable).is_empty());
        assert!(of(1.3, 4, Finding::Reproduced)[0].contains("is 1.3 in 4 runs, and was 1 ± 0.0284 in 50"));
        assert!(of(1.0, 50, Finding::Reproduced).is_empty());
        assert!(of(1.0, 50, Finding::Refuted)[0].contains("is \"refuted\", and was \"reproduced\""));
        assert!(of(1.0, 50, Finding::Undecided).is_empty(), "an undecided claim contradicts nothing");
        assert!(differences("g/y", &[verdict(9.0, 50, Finding::Refuted)], &[kept]).is_empty(), "not kept");
    }

    #[test]
    fn a_finding_that_the_kept_blocks_do_not_share_may_be_any() {
        let block = |finding: &str| {
            json!({ "experiments": [{ "experiment": "g/x", "verdicts": [
                { "expectation": "FF", "cell": "", "value": 1.0, "ci95": 0.0284, "n": 50, "finding": finding },
            ] }] })
        };
        let of = |blocks: &[Value]| differences("g/x", &[verdict(1.0, 50, Finding::Refuted)], blocks);
        assert!(of(&[block("reproduced"), block("not_identifiable")]).is_empty());
        assert_eq!(of(&[block("reproduced"), block("undecided")]).len(), 1);
        assert_eq!(of(&[block("reproduced"), block("reproduced")]).len(), 1);
        assert!(of(&[block("refuted"), block("refuted")]).is_empty());
    }
}
