//! Specs become worlds and worlds become numbers: the same ones every time, and the right ones where
//! they can be worked out.

use polypath_lab::check::check;
use polypath_lab::results::Run;
use polypath_lab::run::{Keep, id, run};
use polypath_lab::seeds::SeedRange;
use polypath_lab::spec::{self, Experiment};
use polypath_lab::sweep::sweep;

/// A link of 8 Mbit/s and 30 ms, and `more` in the end.
fn one_link(more: &str) -> Experiment {
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"20s\"\nmeasure_from = \"5s\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"30ms\"\nqueue = \"2bdp\"\n{more}"
    );
    spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn first(experiment: &Experiment, seed: u64) -> Run {
    run(&experiment.cells[0].spec, "", seed, &Keep::default()).expect("the experiment runs")
}

const BULK: &str = "[[flow]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";

#[test]
fn the_same_seed_gives_the_same_run_on_any_core() {
    let experiment = one_link(&format!("{BULK}start = [\"0s\", \"1s\"]\n"));
    let seeds: SeedRange = "1..6".parse().unwrap();
    let all = |_| sweep(&experiment.cells, seeds, &Keep::default(), |_| ()).unwrap();
    let (runs, again) = (all(0), all(1));
    assert_eq!(runs, again);
    assert_eq!(runs.iter().map(|r| r.seed).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(runs[2], first(&experiment, 3));
    assert_ne!(runs[0].flows[0].bytes, runs[1].flows[0].bytes, "seeds draw different start times");
}

#[test]
fn the_id_is_of_what_decides_the_run() {
    let spec = one_link(BULK).cells[0].spec.clone();
    let other = one_link(&format!("{BULK}mss = 1000\n")).cells[0].spec.clone();
    assert_eq!(id(&spec, 1), id(&spec.clone(), 1));
    assert_ne!(id(&spec, 1), id(&spec, 2));
    assert_ne!(id(&spec, 1), id(&other, 1));
}

#[test]
fn a_constant_rate_below_the_links_arrives_whole() {
    let flow = "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\n\
                traffic = { cbr = { rate = \"4Mbit/s\", packet = \"1000B\" } }\n";
    let result = &first(&one_link(flow), 1).flows[0];
    assert!((result.goodput_bps / 4e6 - 1.0).abs() < 0.001, "{result:?}");
    // What is under way at the end has not arrived: 31 ms of 20 s.
    assert!(result.loss_rate.unwrap() < 0.002, "{result:?}");
}

#[test]
fn a_constant_rate_above_the_links_fills_it_and_loses_the_rest() {
    let flow = "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\n\
                traffic = { cbr = { rate = \"16Mbit/s\", packet = \"1000B\" } }\n";
    let result = &first(&one_link(flow), 1).flows[0];
    assert!((result.utilisation - 1.0).abs() < 0.001, "{result:?}");
    assert!((result.loss_rate.unwrap() - 0.5).abs() < 0.02, "{result:?}");
}

#[test]
fn a_window_limited_flow_has_a_window_per_round_trip() {
    // 20 segments of 1460 bytes each 60 ms and the time the first of them takes: far below 8 Mbit/s.
    let experiment = one_link(&format!("{BULK}connection = {{ receive_buffer = 29200, delayed_ack = 0 }}\n"));
    let result = &first(&experiment, 1).flows[0];
    let round_trip = 0.060 + 1512.0 * 8.0 / 8e6;
    let expected = 29_200.0 * 8.0 / round_trip;
    assert!((result.goodput_bps / expected - 1.0).abs() < 0.05, "{} against {expected}", result.goodput_bps);
    assert_eq!(result.retransmissions, 0);
}

#[test]
fn a_path_takes_its_own_links_though_another_is_shorter() {
    let text = "version = 1\ntitle = \"x\"\nduration = \"10s\"\n\
        [[link]]\nfrom = \"a\"\nto = \"x\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\n\
        [[link]]\nfrom = \"x\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
        [[link]]\nfrom = \"a\"\nto = \"y\"\nrate = \"4Mbit/s\"\ndelay = \"50ms\"\n\
        [[link]]\nfrom = \"y\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
        [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\npaths = [[\"y\"]]\n";
    let experiment = spec::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let result = &first(&experiment, 1).flows[0];
    assert!(result.paths[0].srtt_ms.unwrap() >= 102.0, "{result:?}");
}

#[test]
fn the_foundation_experiments_show_what_they_expect() {
    for name in ["one_link", "two_paths"] {
        let file = format!("{}/../../experiments/foundation/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let experiment = spec::load(file.as_ref()).unwrap_or_else(|e| panic!("{e}"));
        let runs = sweep(&experiment.cells, SeedRange::one(1), &Keep::default(), |_| ()).unwrap();
        let verdicts = check(&experiment.spec, &runs);
        assert!(!verdicts.is_empty() && verdicts.iter().all(|v| v.met), "{name}: {verdicts:#?}");
    }
}
