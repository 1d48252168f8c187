//! Queues with a discipline, and links that follow a trace.

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
