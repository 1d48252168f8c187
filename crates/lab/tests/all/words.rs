//! What numbers are called: their metric, their unit, and whether the seeds are an ensemble.
#![allow(clippy::unwrap_used)]

use polypath_lab::check::check;
use polypath_lab::group::Done;
use polypath_lab::report::charts;
use polypath_lab::run::Keep;
use polypath_lab::spec;
use polypath_lab::stop::Stop;
use polypath_lab::sweep::sweep;

/// One link and one flow with these keys, run with all of its seeds.
fn done(flow: &str, rest: &str) -> Done {
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"2s\"\nseeds = \"1..3\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"5ms\"\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n{rest}"
    );
    let experiment = spec::parse(&text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let seeds = experiment.spec.seeds;
    let runs = sweep(&experiment.cells, seeds, &Keep::default(), &Stop::default(), |_| ()).unwrap();
    let verdicts = check((&experiment, &runs), &[]);
    Done { experiment, seeds, runs, verdicts, own: true }
}

#[test]
fn axes_are_labelled_with_the_metrics_of_the_series() {
    let figure = |series: &str| format!("[[figure]]\nkind = \"cdf\"\ntitle = \"t\"\nseries = [{series}]\n");
    let srtt = "{ metric = \"srtt\", flow = \"f\" }";
    let two = "{ flow = \"f\" }, { metric = \"goodput\", flow = \"f\" }";
    let done = done("", &[figure(srtt), figure(two)].concat());
    let drawn = charts(done.ensemble()).unwrap();
    let labels: Vec<&str> = drawn.iter().map(|chart| chart.x_label.as_str()).collect();
    assert_eq!(labels, ["srtt, ms", "throughput and goodput, Mbit/s"]);
}

#[test]
fn a_rank_correlation_has_no_unit() {
    let rest = "[[grid]]\nkey = \"flow.f.mss\"\nvalues = [400, 800, 1200]\n\
                [[expect]]\nmetric = \"goodput\"\nflow = \"f\"\nstatistic = \"spearman\"\n\
                ascending = [\"400\", \"800\", \"1200\"]\nmin = 0.5\n";
    let verdict = &done("", rest).verdicts[0];
    assert!(verdict.met && verdict.unit.0.is_empty(), "{verdict:?}");
    assert!(verdict.expectation.ends_with("at least 0.5"), "{}", verdict.expectation);
}

#[test]
fn seeds_that_all_give_the_same_numbers_are_known_as_no_ensemble() {
    assert!(done("", "").is_fixed());
    assert!(!done("start = [\"0s\", \"1s\"]", "").is_fixed());
    assert!(!done("", "[[host]]\nname = \"a\"\njitter = \"2ms\"\n").is_fixed());
}
