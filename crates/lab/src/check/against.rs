//! Answers beside those that were kept: the same claims from other seeds, or from a few of the same.

use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Verdict;

/// From so many runs on a finding is expected to be the same.
const MANY: usize = 20;
/// A mean may lie outside of where those of as many runs do by chance once in so many claims.
const CHANCE: f64 = 1e-4;
/// What counts as equal where nothing scatters, as a share of the value.
const EQUAL: f64 = 0.01;

/// What of `verdicts` of `experiment` is not what `kept`, the output of `lab check --json`, says; one line each. A
/// claim that is new, or that some runs do not have, is not compared.
pub fn differences(experiment: &str, verdicts: &[Verdict], kept: &Value) -> Vec<String> {
    let known = kept["experiments"].as_array().into_iter().flatten();
    let known: Vec<&Value> = known
        .filter(|e| e["experiment"] == experiment)
        .flat_map(|e| e["verdicts"].as_array().into_iter().flatten())
        .collect();
    let of = |v: &Verdict| {
        let same = |k: &&&Value| k["expectation"] == v.expectation.as_str() && k["cell"] == v.cell.as_str();
        known.iter().find(same).and_then(|kept| difference(v, kept))
    };
    verdicts.iter().filter_map(|v| Some(format!("{experiment}: {} {}", v.expectation, of(v)?))).collect()
}

fn difference(v: &Verdict, kept: &Value) -> Option<String> {
    let finding = serde_json::json!(v.finding);
    let n = kept["n"].as_u64()? as usize;
    if v.n >= MANY && n >= MANY && finding != kept["finding"] {
        return Some(format!("is {finding}, and was {}", kept["finding"]));
    }
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
    use serde_json::json;

    use super::*;
    use crate::judge::Finding;

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
        let of = |value, n, finding| differences("g/x", &[verdict(value, n, finding)], &kept);
        assert!(of(1.2, 4, Finding::NotIdentifiable).is_empty());
        assert!(of(1.3, 4, Finding::Reproduced)[0].contains("is 1.3 in 4 runs, and was 1 ± 0.0284 in 50"));
        assert!(of(1.0, 50, Finding::Reproduced).is_empty());
        assert!(of(1.0, 50, Finding::Refuted)[0].contains("is \"refuted\", and was \"reproduced\""));
        assert!(differences("g/y", &[verdict(9.0, 50, Finding::Refuted)], &kept).is_empty(), "not kept");
    }
}
