use super::kind::jain;
use super::*;

#[test]
fn jains_index_is_one_for_equals_and_a_share_for_one_who_has_all() {
    assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
    assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert_eq!(jain(&[0.0, 0.0]), None);
}

#[test]
fn every_metric_can_be_read_and_what_is_drawn_or_counted_over_a_time_has_counters() {
    for metric in Metric::ALL {
        let def = metric.def();
        let from_counters = !matches!(def.read, Read::Elsewhere | Read::Alone(..));
        let alone = matches!(def.read, Read::Alone(..));
        assert_eq!(alone, def.scope == Scope::Alone, "{}", metric.name());
        assert!(from_counters || alone || def.result.is_some(), "nobody reads {}", metric.name());
        assert!(from_counters || def.drawable.is_none(), "{} has no course", metric.name());
        assert_eq!(matches!(def.read, Read::Link(_)), metric.is_of_link(), "{}", metric.name());
        assert!(def.windowed || !from_counters, "{} is of the whole run", metric.name());
        assert!(!def.of_each_path || def.scope == Scope::Path, "{} is of no path", metric.name());
    }
}

/// The row of the docs, and of what figures draw over time the list there.
#[test]
fn the_docs_have_every_metric() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiments.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, rows) = docs.split_once("## What is measured").unwrap();
    let (_, drawn) = docs.split_once("`kind = \"time\"` draws").unwrap();
    let drawn = drawn.split_once(';').unwrap().0;
    for metric in Metric::ALL {
        let name = format!("`{}`", metric.name());
        let is_row = |line: &str| line.starts_with('|') && line.split(" | ").next().unwrap().contains(&name);
        assert!(rows.lines().any(is_row), "the table of metrics in docs/experiments.md lacks {name}");
        assert_eq!(drawn.contains(&name), metric.def().drawable.is_some(), "{name}, drawn over time");
    }
}
