//! Specs become worlds and worlds become numbers: the same ones every time, and the right ones where
//! they can be worked out.

use polypath_lab::check::check;
use polypath_lab::report::charts;
use polypath_lab::results::Run;
use polypath_lab::run::{Capture, Keep, Wanted, id, run};
use polypath_lab::seeds::SeedRange;
use polypath_lab::spec::{self, Experiment};
use polypath_lab::stop::Stop;
use polypath_lab::sweep::sweep;

/// A link of 8 Mbit/s and 30 ms, and `more` in the end.
pub fn one_link(more: &str) -> Experiment {
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"20s\"\nmeasure_from = \"5s\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"30ms\"\nqueue = \"2bdp\"\n{more}"
    );
    spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn first(experiment: &Experiment, seed: u64) -> Run {
    run(&experiment.cells[0], seed, &Keep::default()).expect("the experiment runs")
}

pub const BULK: &str = "[[flow]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";

#[test]
fn the_same_seed_gives_the_same_run_on_any_core() {
    let experiment = one_link(&format!("{BULK}start = [\"0s\", \"1s\"]\n"));
    let seeds: SeedRange = "1..6".parse().unwrap();
    let all = |_| sweep(&experiment.cells, seeds, &Keep::default(), &Stop::default(), |_| ()).unwrap();
    let (runs, again) = (all(0), all(1));
    assert_eq!(runs, again);
    assert_eq!(runs.iter().map(|r| r.seed).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(runs[2], first(&experiment, 3));
    assert_ne!(runs[0].flows[0].bytes, runs[1].flows[0].bytes, "seeds draw different start times");
}

#[test]
fn paths_apart_carry_as_many_connections() {
    let of = |flows: &str| {
        let text = format!(
            "version = 1\ntitle = \"x\"\nduration = \"20s\"\n\
             [[link]]\nfrom = \"a\"\nto = \"m\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
             [[link]]\nfrom = \"a\"\nto = \"r\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
             [[link]]\nfrom = \"r\"\nto = \"m\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
             [[link]]\nfrom = \"m\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"20ms\"\nqueue = \"40p\"\n{flows}"
        );
        let experiment = spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        first(&experiment, 1)
    };
    let flow =
        |name: &str, more: &str| format!("[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\n{more}\n");
    let (one, other) = ("paths = [[\"m\"]]", "paths = [[\"r\", \"m\"]]");
    let apart = of(&flow("both", "paths = [[\"m\"], [\"r\", \"m\"]]\napart = true"));
    let alone = of(&(flow("one", one) + &flow("other", other)));
    let [both] = &apart.flows[..] else { panic!("{apart:?}") };
    let bytes: u64 = alone.flows.iter().map(|flow| flow.bytes).sum();
    let paths: Vec<_> = alone.flows.iter().flat_map(|flow| flow.paths.clone()).collect();
    assert!(paths.iter().all(|path| path.bytes > 50_000 && path.retransmissions > 0), "{paths:?}");
    assert_eq!((both.bytes, &both.paths), (bytes, &paths));
    assert_eq!(both.timeouts, alone.flows.iter().map(|flow| flow.timeouts).sum::<u64>());
}

#[test]
fn the_id_is_of_what_decides_the_run() {
    let spec = one_link(BULK).cells[0].spec.clone();
    let other = one_link(&format!("{BULK}mss = 1000\n")).cells[0].spec.clone();
    let (title, description) = ("another".to_owned(), "Other words.".to_owned());
    assert_eq!(id(&spec, 1), id(&spec::Spec { title, description, ..spec.clone() }, 1));
    assert_ne!(id(&spec, 1), id(&spec, 2));
    assert_ne!(id(&spec, 1), id(&other, 1));
}

#[test]
fn a_constant_rate_below_the_links_arrives_whole() {
    let flow = "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\n\
                traffic = { cbr = { rate = \"4Mbit/s\", packet = \"1000B\" } }\n";
    let result = &first(&one_link(flow), 1).flows[0];
    assert!((result.goodput_bps / 4e6 - 1.0).abs() < 0.001, "{result:?}");
    assert_eq!(result.loss_rate, Some(0.0), "what is under way at the end is not lost: {result:?}");
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
fn of_each_datagram_it_counts_whether_a_copy_arrived() {
    let flow = "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\n\
                traffic = { cbr = { rate = \"4Mbit/s\", packet = \"500B\" } }\n";
    let sent = "[[measure]]\nmetric = \"sent\"\nflow = \"udp\"\nfrom = \"0s\"\n";
    let of = |keys: &str| {
        let experiment = one_link(&format!("{keys}\n{flow}{sent}"));
        let run = first(&experiment, 1);
        let sent = run.timeline.value(&experiment.spec.measure[0].selector().what).unwrap();
        (run.flows[0].loss_rate.unwrap(), sent)
    };
    let (twice, sent) = of("duplication = 0.5");
    assert_eq!((twice, sent), (0.0, 20_000.0), "the first leaves at 0 s, the last 1 ms before 20 s");
    let (lost, _) = of("duplication = 0.5\nloss = 0.1");
    assert!((lost - 0.1).abs() < 0.01, "{lost}");
}

#[test]
fn the_mean_window_is_of_the_time_in_which_the_flow_is_under_way() {
    let bulk = |keys: &str| {
        format!(
            "{BULK}connection = {{ cc = {{ algorithm = \"newreno\", initial_ssthresh = 10 }} }}\n{keys}\n"
        )
    };
    let asked = |from: &str, to: &str| {
        format!("[[measure]]\nmetric = \"window\"\nflow = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
    };
    let of = |keys: &str| {
        let times = [("0s", "20s"), ("9s", "13s"), ("15s", "20s")];
        let asked: String = times.iter().map(|(from, to)| asked(from, to)).collect();
        let experiment = one_link(&(bulk(keys) + &asked));
        let run = first(&experiment, 1);
        [0, 1, 2].map(|n| run.timeline.value(&experiment.spec.measure[n].selector().what))
    };
    let late = of("start = \"10s\"\nstop = \"12s\"");
    assert_eq!((late[0], late[2]), (late[1], None), "neither before its start nor after its stop");
    let short = of("start = \"10s\"\nsize = \"500kB\"");
    assert_eq!((short[0], short[2]), (short[1], None), "nor after its last byte");
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
        let runs =
            sweep(&experiment.cells, SeedRange::one(1), &Keep::default(), &Stop::default(), |_| ()).unwrap();
        let verdicts = check((&experiment, &runs), &[]);
        assert!(!verdicts.is_empty() && verdicts.iter().all(|v| v.met), "{name}: {verdicts:#?}");
    }
}

/// The whole value of a number that the spec's expectations make the run watch.
fn value(experiment: &Experiment, run: &Run, n: usize) -> f64 {
    let selector = experiment.spec.expect[n].selector();
    let top = run.value(&selector.what).expect("it was watched");
    selector.over.map_or(top, |over| top / run.value(&over).expect("it was watched"))
}

#[test]
fn numbers_of_a_path_and_of_a_part_of_the_run() {
    let text = "version = 1\ntitle = \"x\"\nduration = \"20s\"\n\
        [[link]]\nfrom = \"a\"\nto = \"x\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
        [[link]]\nfrom = \"x\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
        [[link]]\nfrom = \"a\"\nto = \"y\"\nrate = \"4Mbit/s\"\ndelay = \"10ms\"\n\
        change = [{ at = \"10s\", rate = \"2Mbit/s\" }]\n\
        [[link]]\nfrom = \"y\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
        [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\npaths = [[\"x\"], [\"y\"]]\n\
        connection = { timestamps = false }\n";
    let expect = |key: &str, from: u32, to: u32| {
        let flow = if key.contains("link = ") { "" } else { "flow = \"f\"\n" };
        format!("[[expect]]\n{flow}min = 0\nfrom = \"{from}s\"\nto = \"{to}s\"\n{key}\n")
    };
    let throughput = |path: u32| format!("metric = \"throughput\"\npath = {path}");
    let text = [
        text.to_owned(),
        expect(&throughput(0), 5, 10),
        expect(&throughput(1), 5, 10),
        expect(&throughput(1), 12, 20),
        expect("metric = \"throughput\"", 5, 10),
        expect("metric = \"goodput\"\nover_metric = \"throughput\"", 5, 10),
        expect("metric = \"drops\"\nlink = \"a->y\"", 0, 20),
        expect("metric = \"queue\"\nlink = \"a->y\"", 5, 10),
        expect("metric = \"window\"\npath = 1", 5, 10),
        expect(&format!("{}\nover_from = \"5s\"\nover_to = \"10s\"", throughput(1)), 12, 20),
    ]
    .concat();
    let experiment = spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let run = first(&experiment, 1);
    let of = |n| value(&experiment, &run, n);
    // 1460 of 1500 bytes are payload.
    let payload = |mbit: f64| mbit * 1e6 * 1460.0 / 1500.0;
    assert!((of(0) / payload(8.0) - 1.0).abs() < 0.01, "path 0: {}", of(0));
    assert!((of(1) / payload(4.0) - 1.0).abs() < 0.01, "path 1: {}", of(1));
    assert!((of(2) / payload(2.0) - 1.0).abs() < 0.01, "path 1 after its change: {}", of(2));
    assert!((of(3) - of(0) - of(1)).abs() < 1.0);
    assert!(of(4) > 0.97 && of(4) <= 1.03, "goodput of throughput: {}", of(4));
    assert!(of(5) > 0.0, "a full queue drops");
    // What is in flight waits, is on the wire or is being served: the window less the pipe.
    let pipe = 4e6 * 0.022 / 8.0 / 1500.0;
    assert!(of(6) > 10.0 && of(6) < 100.0, "queue {}", of(6));
    assert!((of(8) - 0.5).abs() < 0.01, "half the rate: {}", of(8));
    assert!((of(7) - of(6) - pipe).abs() < 4.0, "window {} queue {} pipe {pipe}", of(7), of(6));
}

#[test]
fn receiver_and_sender_agree_on_which_path_is_which() {
    // Three paths whose first packets arrive in another order than they are numbered.
    let link = |node: &str, delay: u32, rate: u32| {
        format!(
            "[[link]]\nfrom = \"a\"\nto = \"{node}\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\n\
             [[link]]\nfrom = \"{node}\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n"
        )
    };
    let expect = |p| format!("[[expect]]\nmetric = \"throughput\"\nflow = \"f\"\npath = {p}\nmin = 0\n");
    let text = [
        "version = 1\ntitle = \"x\"\nduration = \"10s\"\nmeasure_from = \"5s\"\n".to_owned(),
        link("x", 5, 2),
        link("y", 80, 4),
        link("z", 10, 8),
        "[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\npaths = [[\"x\"], [\"y\"], [\"z\"]]\n".to_owned(),
        (0..3).map(expect).collect::<String>(),
    ]
    .concat();
    let experiment = spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let run = first(&experiment, 1);
    for (path, capacity) in [2e6, 4e6, 8e6].into_iter().enumerate() {
        let share = value(&experiment, &run, path) / capacity;
        assert!(share > 0.5 && share < 1.0, "path {path} carries {share} of its rate");
    }
}

#[test]
fn no_more_arrives_than_the_links_carry_and_every_number_is_of_the_measured_time() {
    // The slow path is 100 ms late: what overtook it waits when the measured time begins, or has lost segments.
    let link = |from: &str, to: &str, delay: u32| {
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"8Mbit/s\"\ndelay = \"{delay}ms\"\nqueue = \"90kB\"\n"
        )
    };
    let links = [("a", "x", 5), ("x", "b", 5), ("a", "y", 50), ("y", "b", 50)]
        .map(|(a, b, d)| link(a, b, d))
        .concat();
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"2.5s\"\nmeasure_from = \"2s\"\n{links}{BULK}paths = [[\"x\"], [\"y\"]]\n"
    );
    let experiment = spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut fullest: f64 = 0.0;
    for seed in 1..=3 {
        let run = first(&experiment, seed);
        let flow = &run.flows[0];
        // Half a second is 333 packets on each path; one more may end in it.
        assert!(flow.utilisation <= 1448.0 / 1500.0 * (1.0 + 2.0 / 666.0), "{flow:?}");
        fullest = fullest.max(flow.utilisation);
        use polypath_lab::spec::Metric;
        let of = |metric| {
            run.timeline.value(&spec::What {
                metric,
                flows: vec!["bulk".into()],
                path: None,
                link: None,
                solo: None,
                from: None,
                to: None,
            })
        };
        assert_eq!(of(Metric::Retransmissions), Some(flow.retransmissions as f64));
        assert_eq!(of(Metric::OutOfOrder), Some(flow.out_of_order as f64));
        assert_eq!(of(Metric::Utilisation), Some(flow.utilisation));
        assert!((flow.bytes as f64) > flow.goodput_bps / 8.0, "the whole run has more than its last fifth");
    }
    assert!(fullest > 0.9, "{fullest}");
}

#[test]
fn one_path_does_not_reorder_and_two_do() {
    let expect = "[[expect]]\nmetric = \"reordering_extent_max\"\nflow = \"bulk\"\nmin = 0\n\
                  [[expect]]\nmetric = \"reordered_ratio\"\nflow = \"bulk\"\nmin = 0\n";
    let plain = one_link(&format!("{BULK}{expect}"));
    let run = first(&plain, 1);
    assert!(
        run.flows[0].retransmissions > 0,
        "slow start overshoots, and what is sent again is no reordering"
    );
    assert_eq!((value(&plain, &run, 0), value(&plain, &run, 1)), (0.0, 0.0));
    let late = "reordering = { probability = 0.1, delay = \"20ms\" }\n";
    let held = one_link(&format!("{late}{BULK}connection = {{ receive_buffer = 29200 }}\n{expect}"));
    let run = first(&held, 1);
    // A fifth of a window of 20 packets passes in 20 ms of 61.5, at most all of them.
    assert!(value(&held, &run, 0) >= 1.0 && value(&held, &run, 0) <= 20.0, "{}", value(&held, &run, 0));
    assert!((value(&held, &run, 1) - 0.1).abs() < 0.05, "{}", value(&held, &run, 1));
}

#[test]
fn a_figure_over_time_has_a_value_for_every_bin() {
    let figure = "[[figure]]\nkind = \"time\"\ntitle = \"x\"\nbin = \"500ms\"\n\
                  series = [{ flow = \"bulk\" }, { flow = \"bulk\", metric = \"window\" }, \
                  { link = \"a->b\", metric = \"queue\" }, { flow = \"bulk\", metric = \"sequence\" }]\n";
    let run = first(&one_link(&format!("{BULK}{figure}")), 1);
    let [course] = &run.timeline.courses[..] else { panic!("{:?}", run.timeline.courses) };
    assert!(course.series.iter().all(|line| line.len() == 40));
    let arrived: f64 = course.series[0].iter().map(|rate| rate * 0.5 / 8.0).sum();
    let last = course.series[3].last().unwrap() * 1448.0;
    assert!((arrived - last).abs() < 1.0, "{arrived} bytes in bins, {last} in sequence");
    assert!(course.series[1][20] > 30.0 && course.series[2][20] > 0.0);
}

#[test]
fn a_line_over_time_begins_where_its_flow_does() {
    let late = "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\nstart = [\"5s\", \"7s\"]\n\
                traffic = { cbr = { rate = \"1Mbit/s\", packet = \"1000B\" } }\n";
    let figure = "[[figure]]\nkind = \"time\"\ntitle = \"x\"\nbin = \"500ms\"\nseries = [{ flow = \"udp\" }, \
                  { flows = [\"bulk\", \"udp\"] }, { link = \"a->b\", metric = \"drops\" }]\n";
    let experiment = one_link(&format!("{BULK}{late}{figure}"));
    let seeds: SeedRange = "1..4".parse().unwrap();
    let runs = sweep(&experiment.cells, seeds, &Keep::default(), &Stop::default(), |_| ()).unwrap();
    let known =
        |run: &Run, series: usize| run.timeline.courses[0].series[series].iter().position(|v| !v.is_nan());
    let begins: Vec<usize> = runs.iter().filter_map(|run| known(run, 0)).collect();
    assert!(
        begins.iter().all(|bin| (10..14).contains(bin)) && begins.iter().any(|bin| *bin > 10),
        "{begins:?}"
    );
    assert!(runs.iter().all(|run| (known(run, 1), known(run, 2)) == (Some(0), Some(0))));
    let lines = charts((&experiment, &runs)).unwrap().remove(0).lines;
    let first = *begins.iter().min().unwrap() as f64 * 0.5 + 0.25;
    assert_eq!(lines.iter().map(|line| line.points[0].0).collect::<Vec<_>>(), [first, 0.25, 0.25]);
}

#[test]
fn what_is_watched_does_not_change_the_run() {
    let figure = "[[figure]]\nkind = \"time\"\ntitle = \"x\"\nbin = \"5ms\"\nmetric = \"window\"\n\
                  series = [{ flow = \"bulk\" }]\n[[expect]]\nmetric = \"reordering_extent\"\nflow = \"bulk\"\nmax = 9\n";
    let (plain, watched) = (one_link(BULK), one_link(&format!("{BULK}{figure}")));
    let (a, b) = (first(&plain, 1), first(&watched, 1));
    assert_eq!((&a.id, &a.flows), (&b.id, &b.flows));
}

#[test]
fn an_oracle_sees_the_queues_of_others() {
    // Two equal paths; something else takes nine tenths of the first one's second link.
    let spec = |oracle| {
        let link = |from, to| {
            format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n")
        };
        let links =
            [("a", "x"), ("x", "b"), ("a", "y"), ("y", "b"), ("u", "x")].map(|(a, b)| link(a, b)).concat();
        let text = format!(
            "version = 1\ntitle = \"x\"\nduration = \"10s\"\n{links}{BULK}paths = [[\"x\"], [\"y\"]]\nconfigured = true\n\
             oracle = {oracle}\nconnection = {{ receive_buffer = 60000, scheduler = {{ policy = \"earliest_arrival\" }} }}\n\
             [[flow]]\nname = \"udp\"\nfrom = \"u\"\nto = \"b\"\npaths = [[\"x\"]]\n\
             traffic = {{ cbr = {{ rate = \"7.2Mbit/s\", packet = \"1500B\" }} }}\n"
        );
        first(&spec::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}")), 1).flows.swap_remove(0)
    };
    let (seeing, blind) = (spec(true), spec(false));
    assert!(seeing.goodput_bps > 1.2 * blind.goodput_bps, "{seeing:?} {blind:?}");
}

#[test]
fn a_capture_has_its_name_once_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep {
        dir: dir.path().to_owned(),
        capture: Some(Capture::default()),
        trace: Some(Wanted::default()),
        ..Keep::default()
    };
    let experiment = one_link(BULK);
    let run = run(&experiment.cells[0], 1, &keep).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [format!("{}.arrow", run.id), format!("{}.pcapng", run.id)]);
}

/// A disk that is full from the first byte on.
#[test]
#[cfg(target_os = "linux")]
fn a_capture_that_cannot_be_written_leaves_nothing_that_looks_like_one() {
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { dir: dir.path().to_owned(), capture: Some(Capture::default()), ..Keep::default() };
    let experiment = one_link(BULK);
    let name = id(&experiment.cells[0].spec, 1);
    std::os::unix::fs::symlink("/dev/full", dir.path().join(format!("{name}.pcapng.part"))).unwrap();
    let error = run(&experiment.cells[0], 1, &keep).unwrap_err().to_string();
    assert!(error.contains(&format!("{name}.pcapng")), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A connection of 40 segments and two of 20 each, all limited by their windows, through one link; the first has a second
/// path that avoids it.
#[test]
fn ff_at_a_bottleneck_is_what_the_paths_through_it_take_over_what_another_tcp_has_there() {
    let link = |from, to| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"50Mbit/s\"\ndelay = \"20ms\"\n")
    };
    let links = [("a", "x"), ("a", "y"), ("a", "z"), ("c", "x"), ("x", "b"), ("y", "x"), ("z", "b")];
    let flow = |name: &str, from: &str, paths: &str, window: u32| {
        format!(
            "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"b\"\npaths = {paths}\n\
             connection = {{ receive_buffer = {window}, scheduler = {{ policy = \"round_robin\" }} }}\n"
        )
    };
    let text = [
        "version = 1\ntitle = \"x\"\nduration = \"20s\"\nmeasure_from = \"5s\"\n".to_owned(),
        links.map(|(from, to)| link(from, to)).concat(),
        flow("bundle", "a", "[[\"x\"]]", 58_400),
        flow("one", "c", "[[\"x\"]]", 29_200),
        flow("other", "c", "[[\"x\"]]", 29_200),
        flow("idle", "c", "[[\"x\"]]", 29_200) + "size = \"0B\"\n",
        "[[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\npaths = [[\"x\"]]\n\
         traffic = { cbr = { rate = \"1Mbit/s\", packet = \"1000B\" } }\n"
            .to_owned(),
        "[[expect]]\nmetric = \"ff_bottleneck\"\nflow = \"bundle\"\nlink = \"x->b\"\nmin = 1.95\nmax = 2.05\n".to_owned(),
    ]
    .concat();
    let of = |text: &str| {
        let experiment = spec::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        value(&experiment, &first(&experiment, 1), 0)
    };
    let one_path = of(&text);
    assert!((one_path - 2.0).abs() < 0.02, "{one_path}");
    let avoiding = of(&text.replace(
        "[[\"x\"]]\nconnection = { receive_buffer = 58400",
        "[[\"x\"], [\"z\"]]\nconnection = { receive_buffer = 58400",
    ));
    assert!((avoiding - 1.0).abs() < 0.1, "half of it goes by z: {avoiding}");
}
