//! Our simulator against the committed figures of ns-2 2.35; docs/validation.md explains them, and
//! `make validate-ns2` runs both and prints all.

#[path = "../../examples/validate/scenario.rs"]
mod scenario;

use scenario::{Case, Mark, OneFlow, Red, RedRun, Topology, TwoFlows, Variant};

const ONE_FLOW: &str = include_str!("../../../../validate/reference/one_flow.json");
const TWO_FLOWS: &str = include_str!("../../../../validate/reference/two_flows.json");
const RED: &str = include_str!("../../../../validate/reference/red.json");

#[test]
fn one_flow_agrees_with_ns2() {
    let reference: Vec<OneFlow> = serde_json::from_str(ONE_FLOW).expect("the file is ours");
    assert!(reference.len() >= 18);
    let differing: Vec<_> = reference.iter().flat_map(differences).collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn two_flows_share_as_in_ns2() {
    let reference: TwoFlows = serde_json::from_str(TWO_FLOWS).expect("the file is ours");
    assert!(reference.starts.len() >= 200);
    for (topology, queue, ssthresh) in
        [(Topology::Same, 144, 0), (Topology::Cross, 144, 0), (Topology::Same, 36, 48)]
    {
        let wanted = |c: &&Case| {
            (c.variant, c.topology, c.queue, c.ssthresh) == (Variant::Newreno, topology, queue, ssthresh)
                && c.jitter > 0.0
        };
        let theirs = reference.cases.iter().find(wanted).expect("the case is in the file");
        let ours = theirs.simulate(reference.duration, &reference.starts).expect("the world is valid");
        let p = kolmogorov_smirnov(fairness(&ours), fairness(theirs));
        assert!(p > 0.05, "{topology:?}, queue {queue}: p = {p:.4}");
    }
}

/// Means over 20 seeds, which each side draws for itself: goodput within 1 %, drops and the queue within 5 % or three
/// standard errors of the difference.
#[test]
fn flows_under_red_do_as_in_ns2() {
    let reference: Vec<Red> = serde_json::from_str(RED).expect("the file is ours");
    assert!(reference.len() >= 5);
    for theirs in reference {
        let ours = theirs.simulate().expect("the world is valid");
        let pair = |value: fn(&RedRun) -> f64| [&ours, &theirs].map(|side| mean(side.runs.iter().map(value)));
        let setting = (theirs.flows, theirs.min, theirs.max, theirs.weight);
        for (what, value, share) in [
            ("bytes", (|run| run.bytes as f64) as fn(&RedRun) -> f64, 0.01),
            ("drops", |run| run.drops as f64, 0.05),
            ("waiting", |run| run.waiting, 0.05),
        ] {
            let [(a, error_a), (b, error_b)] = pair(value);
            let allowed = (share * b).max(3.0 * error_a.hypot(error_b));
            assert!(
                (a - b).abs() <= allowed,
                "{setting:?}, {what}: ours {a:.2}, ns-2 {b:.2}, allowed {allowed:.2}"
            );
        }
    }
}

/// The mean and its standard error.
fn mean(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let all: Vec<f64> = values.collect();
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// What we do otherwise at one of the marks of a setting. ns-2's runs differ by the phase of its
/// clock; the nearest counts.
fn differences(theirs: &OneFlow) -> Vec<String> {
    let ours = theirs.simulate().expect("the world is valid");
    let name = format!("{:?} queue {} window {}", theirs.variant, theirs.queue, theirs.window);
    let mut found = Vec::new();
    for (i, mark) in ours.runs[0].iter().enumerate() {
        let nearest = |value: fn(&Mark) -> f64| {
            let values = theirs.runs.iter().map(|run| value(&run[i]));
            values.min_by(|a, b| (a - value(mark)).abs().total_cmp(&(b - value(mark)).abs()))
        };
        let bytes = nearest(|m| m.bytes as f64).expect("ns-2 ran");
        let again = nearest(|m| m.retransmissions as f64).expect("ns-2 ran");
        if (mark.bytes as f64 / bytes - 1.0).abs() > 0.01 {
            found.push(format!("{name}, {} s: {} bytes, ns-2 {bytes}", mark.t, mark.bytes));
        }
        if (mark.retransmissions as f64 - again).abs() > (0.05 * again).max(5.0) {
            found.push(format!("{name}, {} s: {} again, ns-2 {again}", mark.t, mark.retransmissions));
        }
    }
    found
}

/// FF of each run: bytes of flow 1 over bytes of flow 2.
fn fairness(case: &Case) -> Vec<f64> {
    case.bytes.iter().map(|[one, two]| *one as f64 / *two as f64).collect()
}

/// p-value of the two-sample test, asymptotic with Stephens' correction.
fn kolmogorov_smirnov(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let below = |sample: &[f64], x: f64| sample.partition_point(|v| *v <= x) as f64 / sample.len() as f64;
    let d = a.iter().chain(&b).map(|x| (below(&a, *x) - below(&b, *x)).abs()).fold(0.0, f64::max);
    let n = ((a.len() * b.len()) as f64 / (a.len() + b.len()) as f64).sqrt();
    let x = (n + 0.12 + 0.11 / n) * d;
    let term = |k: i32| (-1f64).powi(k - 1) * (-2.0 * (f64::from(k) * x).powi(2)).exp();
    if x < 0.2 { 1.0 } else { (2.0 * (1..=100).map(term).sum::<f64>()).clamp(0.0, 1.0) }
}
