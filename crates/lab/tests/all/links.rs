//! Queues with a discipline, links that follow a trace, and links that change.
#![allow(clippy::unwrap_used)]

use polypath_hop::{CodelConfig, Discipline, FqCodelConfig, QueueLimit, RedConfig};
use polypath_lab::run::{Keep, id, run};
use polypath_lab::spec::{self, Experiment, Link};
use polypath_wire::{Duration, Rate};

const BULK: &str = "[[flow]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";

/// A link of 20 ms with these keys, in a file of `dir`.
fn with(dir: &std::path::Path, keys: &str) -> Experiment {
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"10s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"20ms\"\n{keys}\n{BULK}"
    );
    let file = dir.join("x.toml").display().to_string();
    spec::parse(&text, &file).unwrap_or_else(|e| panic!("{e}"))
}

fn queue(text: &str) -> (Discipline, QueueLimit) {
    let experiment = with(std::path::Path::new(""), &format!("rate = \"8Mbit/s\"\nqueue = {text}"));
    let link: &Link = &experiment.cells[0].spec.link[0];
    (link.queue_of(true).discipline(link.bdp(true)), link.queue_of(true).limit(link.bdp(true)))
}

#[test]
fn a_queue_may_name_its_discipline_and_what_differs_from_its_rfc() {
    let codel = CodelConfig::default();
    assert_eq!(queue("\"90p\""), (Discipline::DropTail, QueueLimit::Packets(90)));
    assert_eq!(queue("{ discipline = \"drop_tail\" }"), (Discipline::DropTail, QueueLimit::Packets(100)));
    assert_eq!(queue("{ discipline = \"codel\" }"), (Discipline::Codel(codel), QueueLimit::Packets(1_000)));
    let slow =
        CodelConfig { target: Duration::from_millis(15), interval: Duration::from_millis(300), ..codel };
    let text = "{ discipline = \"codel\", target = \"15ms\", interval = \"300ms\", limit = \"2bdp\" }";
    assert_eq!(queue(text), (Discipline::Codel(slow), QueueLimit::Bytes(80_000)));
    let fq = FqCodelConfig { flows: 16, quantum: 300, codel };
    let text = "{ discipline = \"fq_codel\", flows = 16, quantum = \"300B\" }";
    assert_eq!(queue(text), (Discipline::FqCodel(fq), QueueLimit::Packets(10_240)));
    let (min, max) = (QueueLimit::Bytes(10_000), QueueLimit::Bytes(40_000));
    let red = RedConfig { min, max, probability: 0.02, weight: 0.01, gentle: false, ..RedConfig::default() };
    let text = "{ discipline = \"red\", min = \"10kB\", max = \"1bdp\", probability = 0.02, weight = 0.01, gentle = false }";
    assert_eq!(queue(text), (Discipline::Red(red), QueueLimit::Packets(1_000)));
}

#[test]
fn a_discipline_is_part_of_a_runs_id_and_a_plain_limit_has_the_id_it_had() {
    let of = |queue: &str| {
        let experiment = with(std::path::Path::new(""), &format!("rate = \"8Mbit/s\"\nqueue = {queue}"));
        id(&experiment.cells[0].spec, 1)
    };
    assert_eq!(of("\"90p\""), of("\"90 p\""));
    assert_ne!(of("\"1000p\""), of("{ discipline = \"codel\" }"));
    assert_ne!(of("{ discipline = \"codel\" }"), of("{ discipline = \"codel\", target = \"6ms\" }"));
}

#[test]
fn a_link_may_follow_a_trace_of_its_own_each_way() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("down.trace"), "1\n2\n").unwrap();
    std::fs::write(dir.path().join("up.trace"), "12\n").unwrap();
    let keys = "rate = { trace = \"down.trace\" }\nback = { rate = { trace = \"up.trace\" } }";
    let experiment = with(dir.path(), keys);
    let link = &experiment.cells[0].spec.link[0];
    assert_eq!((link.rate(true), link.rate(false)), (Rate::from_mbps(12), Rate::from_mbps(1)));
    let run = run(&experiment.cells[0], 1, &Keep::default()).unwrap();
    // All but headers of 12 Mbit/s, less the start.
    assert!((10.0e6..11.6e6).contains(&run.flows[0].goodput_bps), "{}", run.flows[0].goodput_bps);
}

#[test]
fn what_a_trace_says_decides_what_a_run_is() {
    let dir = tempfile::tempdir().unwrap();
    let of = |text: &str| {
        std::fs::write(dir.path().join("link.trace"), text).unwrap();
        id(&with(dir.path(), "rate = { trace = \"link.trace\" }").cells[0].spec, 1)
    };
    assert_eq!(of("1\n2\n"), of("1\r\n2\r\n"));
    assert_ne!(of("1\n2\n"), of("1\n3\n"));
}

/// What reaches `b` and what reaches `a` of UDP both ways in the last seconds, Mbit/s.
fn carried(keys: &str) -> [f64; 2] {
    let udp = |from, to| {
        format!(
            "[[flow]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             traffic = {{ cbr = {{ rate = \"40Mbit/s\", packet = \"1000B\" }} }}\n"
        )
    };
    let text = format!(
        "version = 1\ntitle = \"x\"\nduration = \"5s\"\nmeasure_from = \"3s\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"20ms\"\n{keys}\n{}{}",
        udp("a", "b"),
        udp("b", "a")
    );
    let experiment = spec::parse(&text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let run = run(&experiment.cells[0], 1, &Keep::default()).unwrap();
    [0, 1].map(|n: usize| (run.flows[n].goodput_bps / 1e5).round() / 10.0)
}

#[test]
fn a_change_leaves_what_back_names_and_may_name_it_itself() {
    let change = "change = [{ at = \"1s\", rate = \"20Mbit/s\" }]";
    assert_eq!(carried(change), [20.0, 20.0]);
    assert_eq!(carried(&format!("back = {{ rate = \"1Mbit/s\" }}\n{change}")), [20.0, 1.0]);
    let lossy = "change = [{ at = \"1s\", loss = 1.0 }]";
    assert_eq!(carried(&format!("back = {{ rate = \"1Mbit/s\", loss = 0.0 }}\n{lossy}")), [0.0, 1.0]);
    let both = "change = [{ at = \"1s\", rate = \"20Mbit/s\", back = { rate = \"8Mbit/s\" } }]";
    assert_eq!(carried(both), [20.0, 8.0]);
    let only_back = "change = [{ at = \"1s\", back = { rate = \"8Mbit/s\" } }]";
    assert_eq!(carried(&format!("back = {{ rate = \"1Mbit/s\" }}\n{only_back}")), [4.0, 8.0]);
}

#[test]
fn utilisation_is_of_the_mean_rate_in_the_measured_time() {
    let of = |measured: &str| {
        let text = format!(
            "version = 1\ntitle = \"x\"\nduration = \"20s\"\nmeasure_from = \"{measured}\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"4Mbit/s\"\ndelay = \"1ms\"\n\
             change = [{{ at = \"10s\", rate = \"16Mbit/s\" }}]\n\
             [[flow]]\nname = \"udp\"\nfrom = \"a\"\nto = \"b\"\n\
             traffic = {{ cbr = {{ rate = \"40Mbit/s\", packet = \"1000B\" }} }}\n\
             [[measure]]\nmetric = \"utilisation\"\nflow = \"udp\"\nfrom = \"5s\"\n"
        );
        let experiment = spec::parse(&text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
        let run = run(&experiment.cells[0], 1, &Keep::default()).unwrap();
        let own = run.value(&experiment.spec.measure[0].selector().what).unwrap();
        [run.flows[0].utilisation, own]
    };
    for value in [of("0s"), of("5s"), of("12s")].concat() {
        assert!((value - 1.0).abs() < 0.002, "{value}");
    }
}
