//! Values that replace a file's, `lab run --set key=value`.

use polypath_lab::run;
use polypath_lab::spec::{self, Assignment, Experiment, SpecError};

const SPEC: &str = r#"
version = 1
title = "x"
duration = "2s"

[[link]]
from = "a"
to = "b"
rate = "8Mbit/s"
delay = "10ms"

[[flow]]
name = "bulk"
from = "a"
to = "b"

[[grid]]
key = "connection.cc.algorithm"
values = ["newreno", "cubic"]
"#;

fn with(set: &[&str]) -> Result<Experiment, Box<SpecError>> {
    let set: Vec<Assignment> = set.iter().map(|text| Assignment::parse(text)).collect::<Result<_, _>>()?;
    spec::parse(SPEC, "x.toml").unwrap_or_else(|e| panic!("{e}")).with(&set)
}

#[test]
fn a_value_that_is_set_is_as_if_the_file_had_it() {
    let set = ["duration=1s", "link.a->b.queue = 9p", "connection.delayed_ack=30", "flow.bulk.mss=500"];
    let experiment = with(&set).unwrap_or_else(|e| panic!("{e}"));
    let edited = SPEC
        .replace("duration = \"2s\"", "duration = \"1s\"")
        .replace("delay = \"10ms\"", "delay = \"10ms\"\nqueue = \"9p\"")
        .replace(
            "to = \"b\"\n\n[[grid]]",
            "to = \"b\"\nmss = 500\n\n[connection]\ndelayed_ack = 30\n\n[[grid]]",
        );
    let edited = spec::parse(&edited, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(experiment.cells, edited.cells);
    assert_eq!(run::id(&experiment.cells[0].spec, 1), run::id(&edited.cells[0].spec, 1));
    let again = spec::parse(&experiment.text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((again.cells, again.set.len()), (edited.cells, 0));
    assert_eq!(serde_json::json!(experiment.set), serde_json::json!(set));
}

#[test]
fn the_last_of_two_values_of_a_key_counts() {
    let experiment = with(&["flow.bulk.mss=500", "flow.0.mss=600"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(experiment.spec.flow[0].mss, Some(600));
}

#[test]
fn a_host_is_written_once_a_value_of_it_is_set() {
    let experiment = with(&["host.a.jitter=1ms"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((experiment.spec.host.len(), experiment.spec.host[0].name.as_str()), (1, "a"));
    let error = with(&["connection.delayed_ack=30", "host.z.jitter=1ms", "flow.bulk.mss=500"]).unwrap_err();
    assert!(error.file == "--set" && error.to_string().contains("host.z.jitter=1ms"), "{error}");
}

#[test]
fn what_cannot_be_set_is_told_with_its_key_and_a_remedy() {
    for (set, key, message, help) in [
        ("duration", "", "no value", "connection.cc.algorithm=cubic"),
        ("=1s", "", "names no key", "flow.bulk.mss"),
        ("flow..mss=1", "", "names no key", "flow.bulk.mss"),
        ("grid.0.values=[1", "", "not TOML", "[1, 2]"),
        ("duraton=1s", "duraton", "unknown key", "did you mean \"duration\"?"),
        ("duration=5 parsecs", "duration", "parsecs", "30ms"),
        ("flow.blk.mss=500", "", "no flow is named \"blk\"", "did you mean \"bulk\"?"),
        ("link.b->a.rate=1Mbit/s", "", "no link is named \"b->a\"", "link.a->b.back.rate"),
        ("flow.bulk=1", "", "a table, not a value", "one of its keys: flow.bulk.…"),
        ("title.x=1", "", "title is a value", "set title itself"),
        (
            "connection.scheduler.polcy=min_rtt",
            "connection.scheduler",
            "`policy` is missing",
            "earliest_arrival",
        ),
        (
            "connection.cc={algorithm=\"cubc\"}",
            "connection.cc.algorithm",
            "not a choice",
            "did you mean \"cubic\"?",
        ),
        ("connection.cc.algorithm=polypath", "connection.cc.algorithm", "in every cell", "--cell"),
    ] {
        let error = with(&[set]).expect_err(set);
        assert_eq!((error.file.as_str(), error.key.as_str()), ("--set", key), "{set}: {error}");
        assert!(error.message.contains(message), "{set}: {error}");
        assert!(error.help.as_deref().is_some_and(|said| said.contains(help)), "{set}: {error}");
        assert!(error.to_string().contains(set), "{error}");
    }
}

#[test]
fn an_error_that_the_file_has_is_shown_where_the_file_has_it() {
    let error = spec::parse(&SPEC.replace("2s\"", "2s\"\nmeasure_from = \"1s\""), "x.toml")
        .unwrap_or_else(|e| panic!("{e}"))
        .with(&[Assignment::parse("duration=1s").unwrap_or_else(|e| panic!("{e}"))])
        .expect_err("nothing is measured");
    assert!(error.help.is_some() && (error.file == "x.toml" || error.file == "--set"), "{error}");
}
