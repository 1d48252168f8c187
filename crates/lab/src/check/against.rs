//! Answers beside those that were kept: the same claims from other seeds, or from a few of the same.

use polypath_judge::{Answer, Finding};
use serde_json::{Value, json};
use statrs::distribution::{ContinuousCDF, DiscreteCDF, Hypergeometric, StudentsT};

use super::kept::row;
use super::{Verdict, asked};
use crate::spec::Experiment;

/// With this many runs or more a finding is expected to be the same.
const MANY: usize = 20;
/// Accepted rate of false alarms for each compared mean.
const CHANCE: f64 = 1e-4;
/// What counts as equal where nothing scatters, as a share of the value.
const EQUAL: f64 = 0.01;

/// Verdicts beside those that were kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// What differs, a line each.
    pub differ: Vec<String>,
    /// How many values have a test.
    pub tested: usize,
    /// The expectations whose values have none.
    pub untested: Vec<String>,
}

/// `verdicts` of `experiment` beside `kept`, outputs of `lab check --json` on disjoint blocks of seeds, say. Where a block or these runs leave a
/// claim undecided, or the blocks contradict each other, no finding is an error. Values are compared with the first block that has them: means,
/// and shares by Fisher's exact test.
pub fn compare(experiment: &Experiment, verdicts: &[Verdict], kept: &[Value]) -> Compared {
    let shares: Vec<Verdict> = asked(experiment)
        .into_iter()
        .filter(|(_, question)| question.expect.of.statistic.is_share())
        .map(|(verdict, _)| verdict)
        .collect();
    let is_share = |v: &Verdict| shares.iter().any(|s| s.expectation == v.expectation && s.cell == v.cell);
    let mut compared = Compared::default();
    for v in verdicts {
        let blocks: Vec<&Value> = kept.iter().filter_map(|block| row(block, &experiment.name, v)).collect();
        let value = if is_share(v) { share(v, &blocks) } else { mean(v, &blocks) };
        match value {
            Some(_) => compared.tested += 1,
            None => compared.untested.push(format!("{}: {}", experiment.name, v.expectation)),
        }
        let why = finding(v, &blocks).or_else(|| as_tcp(v, &blocks)).or(value.flatten());
        compared.differ.extend(why.map(|why| format!("{}: {} {why}", experiment.name, v.expectation)));
    }
    compared
}

/// Why the finding is another than that which all blocks with enough runs share.
fn finding(v: &Verdict, blocks: &[&Value]) -> Option<String> {
    let finding = json!(v.finding);
    let other = other(v, blocks, ("finding", &finding), &[json!(Finding::Undecided)]);
    other.map(|shared| format!("is {finding}, and was {shared}"))
}

/// The same of whether ours is as plain TCP. Older blocks do not say.
fn as_tcp(v: &Verdict, blocks: &[&Value]) -> Option<String> {
    let answer = json!(v.as_tcp);
    let other = other(v, blocks, ("as_tcp", &answer), &[json!(Answer::Open), Value::Null]);
    other.map(|shared| format!("is as plain TCP: {answer}, and was: {shared}"))
}

/// What all blocks with enough runs share, but those with an `open` answer, if it is not what `v` has as `key`.
fn other<'a>(
    v: &Verdict,
    blocks: &[&'a Value],
    (key, now): (&str, &Value),
    open: &[Value],
) -> Option<&'a Value> {
    let many = blocks.iter().filter(|k| k["n"].as_u64().is_some_and(|n| n >= MANY as u64));
    let found: Vec<&Value> = many.map(|k| &k[key]).filter(|answer| !open.contains(answer)).collect();
    let shared = found.first().filter(|first| found.iter().all(|other| other == *first))?;
    (v.n >= MANY && !open.contains(now) && *shared != now).then_some(*shared)
}

/// Why the share is another; `None` without a test.
fn share(v: &Verdict, blocks: &[&Value]) -> Option<Option<String>> {
    let kept = *blocks.first()?;
    let (n, m) = (v.n as u64, kept["n"].as_u64()?);
    let (value, was) = (v.value?, kept["value"].as_f64()?);
    let hits = |share: f64, n: u64| (share * n as f64).round() as u64;
    let (ours, all) = (hits(value, n), hits(value, n) + hits(was, m));
    let drawn = Hypergeometric::new(n + m, all, n).ok()?;
    let below = drawn.cdf(ours);
    let above = if ours == 0 { 1.0 } else { drawn.sf(ours - 1) };
    let differs = below.min(above) < CHANCE / 2.0;
    Some(differs.then(|| format!("is {} of {n} runs, and was {} of {m}", ours, all - ours)))
}

/// Why the mean is another; `None` without a test.
fn mean(v: &Verdict, blocks: &[&Value]) -> Option<Option<String>> {
    let kept = *blocks.first()?;
    let n = kept["n"].as_u64()? as usize;
    let (value, was, ci95) = (v.value?, kept["value"].as_f64()?, kept["ci95"].as_f64()?);
    let t = |level: f64| Some(StudentsT::new(0.0, 1.0, n as f64 - 1.0).ok()?.inverse_cdf(level));
    let scatter = ci95 * (n as f64).sqrt() / t(0.975)?;
    let half = t(1.0 - CHANCE / 2.0)? * scatter * (1.0 / v.n as f64 + 1.0 / n as f64).sqrt();
    let allowed = half.max(EQUAL * was.abs());
    Some(((value - was).abs() > allowed).then(|| {
        format!("is {} in {} runs, and was {} ± {} in {n}", v.shown(value), v.n, v.shown(was), v.shown(ci95))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    /// An experiment that expects a mean and a share.
    fn experiment() -> Experiment {
        let text = "version = 1\ntitle = \"t\"\nduration = \"9s\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\n\
             [[flow]]\nname = \"a\"\nfrom = \"a\"\nto = \"b\"\n\
             [[expect]]\nflow = \"a\"\nmetric = \"timeouts\"\nmin = 0\n\
             [[expect]]\nflow = \"a\"\nmetric = \"timeouts\"\nstatistic = \"share_within\"\nwithin = [0, 1]\nmin = 0\n\
             [[expect]]\nflow = \"a\"\nmetric = \"timeouts\"\nstatistic = \"max\"\nmin = 0\n";
        let experiment = spec::parse(text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
        Experiment { name: "g/x".into(), ..experiment }
    }

    fn verdict(nth: usize, value: f64, n: usize, finding: Finding) -> Verdict {
        let asked = asked(&experiment()).swap_remove(nth).0;
        Verdict { value: Some(value), n, finding: Some(finding), ..asked }
    }

    fn block(nth: usize, rest: &Value) -> Value {
        let v = verdict(nth, 0.0, 0, Finding::Undecided);
        let mut row = json!({ "claim": "", "expectation": v.expectation, "cell": "", "n": 50 });
        row.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({ "experiments": [{ "experiment": "g/x", "verdicts": [row] }] })
    }

    #[test]
    fn a_few_runs_lie_where_the_many_say_and_many_find_the_same() {
        // 50 runs that scatter by 0.1: their mean is known to 0.0284, means of four lie within 0.22 of it.
        let kept = block(0, &json!({ "value": 1.0, "ci95": 0.0284, "finding": "reproduced" }));
        let of = |value, n, finding| {
            compare(&experiment(), &[verdict(0, value, n, finding)], std::slice::from_ref(&kept)).differ
        };
        assert!(of(1.2, 4, Finding::NotIdentifiable).is_empty());
        assert!(of(1.3, 4, Finding::Reproduced)[0].contains("is 1.3 in 4 runs, and was 1 ± 0.0284 in 50"));
        assert!(of(1.0, 50, Finding::Reproduced).is_empty());
        assert!(of(1.0, 50, Finding::Refuted)[0].contains("is \"refuted\", and was \"reproduced\""));
        assert!(of(1.0, 50, Finding::Undecided).is_empty(), "an undecided claim contradicts nothing");
    }

    #[test]
    fn shares_are_counted_and_what_has_no_test_is_named() {
        let of = |value: f64, was: f64| {
            let kept = [block(1, &json!({ "value": was, "ci95": null, "finding": null }))];
            compare(&experiment(), &[verdict(1, value, 4, Finding::Undecided)], &kept)
        };
        assert_eq!((of(0.25, 0.0).differ.len(), of(0.25, 0.0).tested), (0, 1));
        assert!(of(1.0, 0.0).differ[0].ends_with("is 4 of 4 runs, and was 0 of 50"), "{:?}", of(1.0, 0.0));
        let kept = [block(2, &json!({ "value": 1.0, "ci95": null, "finding": null }))];
        let most = compare(&experiment(), &[verdict(2, 9.0, 4, Finding::Undecided)], &kept);
        assert_eq!((most.tested, most.untested.len()), (0, 1), "{most:?}");
    }

    #[test]
    fn an_answer_about_plain_tcp_is_compared_where_it_is_kept() {
        let of = |now: Answer, kept: Value| {
            let v = Verdict { as_tcp: Some(now), ..verdict(0, 1.0, 50, Finding::Refuted) };
            let block = block(0, &json!({ "value": 1.0, "ci95": 0.1, "finding": "refuted", "as_tcp": kept }));
            compare(&experiment(), &[v], &[block]).differ
        };
        assert!(of(Answer::No, json!("yes"))[0].ends_with("is as plain TCP: \"no\", and was: \"yes\""));
        for same in [json!("yes"), json!("open"), Value::Null] {
            assert!(of(Answer::Yes, same).is_empty());
        }
        assert!(of(Answer::Open, json!("no")).is_empty());
    }

    #[test]
    fn a_finding_that_the_kept_blocks_do_not_share_may_be_any() {
        let block = |finding: &str| block(0, &json!({ "value": 1.0, "ci95": 0.0284, "finding": finding }));
        let of =
            |kept: &[Value]| compare(&experiment(), &[verdict(0, 1.0, 50, Finding::Refuted)], kept).differ;
        assert!(of(&[block("reproduced"), block("not_identifiable")]).is_empty());
        assert_eq!(of(&[block("reproduced"), block("undecided")]).len(), 1);
        assert_eq!(of(&[block("reproduced"), block("reproduced")]).len(), 1);
        assert!(of(&[block("refuted"), block("refuted")]).is_empty());
    }
}
