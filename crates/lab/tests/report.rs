//! A group from its files to its page.

use std::path::Path;

use polypath_lab::group::{Done, Group, GroupError, Seeds};
use polypath_lab::judge::Finding;
use polypath_lab::report::{Line, charts, page};
use polypath_lab::shelf::Shelf;
use polypath_lab::stop::Stop;

const SPEC: &str = r#"
version = 1
title = "Two flows & a <link>"
description = "One paragraph.\n\nAnother."
duration = "20s"
measure_from = "10s"
seeds = "1..6"

[[link]]
from = "a"
to = "b"
rate = "8Mbit/s"
delay = "10ms"
queue = "40p"

[[flow]]
name = "one"
from = "a"
to = "b"
start = ["0s", "1s"]

[[flow]]
name = "other"
from = "a"
to = "b"
start = ["0s", "1s"]

[[grid]]
name = "window"
values = [
    { label = "8", set = { "flow.one.connection.receive_buffer" = 11680 } },
    { label = "64", set = {} },
    { label = "9", set = { "flow.one.connection" = { receive_buffer = 11680, scheduler = { policy = "round_robin" } } } },
]

[[expect]]
claim = "a small window takes little"
metric = "goodput"
flow = "one"
over = "other"
statistic = "geometric_mean"
cell = "8"
null = "9"
published = 1.5
margin = 0.1
max = 0.9

[[expect]]
claim = "impossible"
metric = "utilisation"
flow = "one"
cell = "8"
min = 1.1

[[figure]]
kind = "time"
title = "Throughput"
cell = "64"
series = [{ flow = "one" }, { flow = "other" }]

[[figure]]
kind = "sweep"
title = "FF over the window"
axis = "window"
metric = "goodput"
series = [{ flow = "one", over = "other", label = "FF" }]
published = "ff.csv"
line = 1
"#;

fn group(dir: &Path, seeds: Seeds) -> Vec<Done> {
    std::fs::create_dir_all(dir.join("g")).expect("the directory is ours");
    std::fs::write(dir.join("g/small.toml"), SPEC).expect("the directory is ours");
    std::fs::write(dir.join("g/ff.csv"), "series,x,y\nFF,8,0.7\nFF,64,1\nlower bound,8,0.1\n")
        .expect("the directory is ours");
    let shelf = Shelf::Dir(dir.to_owned());
    let group = Group::load(&shelf, "g", seeds).expect("the spec is good");
    group.run(&Stop::default(), || ()).expect("it runs")
}

#[test]
fn a_page_shows_every_figure_and_claim_and_needs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let done = group(dir.path(), Seeds::Spec);
    let text = page("g", &done).unwrap();
    assert_eq!(text.matches("<figure>").count(), 2);
    assert_eq!(text.matches("<svg").count(), 2);
    assert_eq!(text.matches("role=\"img\" aria-label=\"").count(), 2, "every drawing has a text");
    assert!(text.contains("Two flows &amp; a &lt;link&gt;"), "titles are escaped");
    assert!(text.contains("<p>One paragraph.</p><p>Another.</p>"));
    for shown in
        ["a small window takes little", "refuted", "UNMET", "lower bound (paper only)", "--seeds 1..6"]
    {
        assert!(text.contains(shown), "{shown} is missing");
    }
    assert!(!text.contains("NaN") && !text.contains("http://") && !text.contains("https://"));
    for tag in ["svg", "g", "text", "table", "figure", "section", "ul", "p", "td"] {
        let opened = text.matches(&format!("<{tag} ")).count() + text.matches(&format!("<{tag}>")).count();
        assert_eq!(opened, text.matches(&format!("</{tag}>")).count(), "{tag} is closed as often as opened");
    }
}

#[test]
fn a_claim_is_judged_by_its_ensemble_and_its_band_apart_from_that() {
    let dir = tempfile::tempdir().unwrap();
    let done = group(dir.path(), Seeds::Spec);
    let [ff, impossible] = &done[0].verdicts[..] else { panic!("{:#?}", done[0].verdicts) };
    assert_eq!((ff.met, ff.finding, ff.n), (true, Some(Finding::Refuted), 6));
    let null = ff.null.as_ref().unwrap();
    assert!(null.single.high < 0.9, "the same window, the same FF: {null:?}");
    assert_eq!((impossible.met, impossible.finding), (false, None));
}

#[test]
fn seeds_may_be_fewer_and_a_group_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(group(dir.path(), Seeds::Quick)[0].runs.len(), 3 * 4);
    let seeds = Seeds::Only("3..4".parse().unwrap());
    assert_eq!(
        group(dir.path(), seeds)[0].runs.iter().map(|r| r.seed).collect::<Vec<_>>(),
        [3, 4, 3, 4, 3, 4]
    );
    let shelf = Shelf::Dir(dir.path().to_owned());
    assert!(matches!(Group::load(&shelf, "none", Seeds::Spec), Err(GroupError::Unknown(_))));
}

#[test]
fn other_seeds_draw_every_figure_too() {
    let dir = tempfile::tempdir().unwrap();
    let done = group(dir.path(), Seeds::Only("1001..1003".parse().unwrap()));
    let charts = charts((&done[0].experiment, &done[0].runs)).unwrap();
    let ours = |line: &&Line| !line.label.ends_with("(paper only)");
    assert!(charts.iter().flat_map(|c| c.lines.iter().filter(ours)).all(|line| !line.band.is_empty()));
}

#[test]
fn a_check_of_published_values_runs_no_more_than_these_and_their_nulls_need() {
    let dir = tempfile::tempdir().unwrap();
    let all = group(dir.path(), Seeds::Quick);
    let shelf = Shelf::Dir(dir.path().to_owned());
    let published = Group::load(&shelf, "g", Seeds::Quick).unwrap().only_published();
    assert_eq!(published.runs(), 2 * 4, "of the cells 8 and 9, its null");
    let done = published.run(&Stop::default(), || ()).unwrap();
    assert_eq!(done[0].verdicts, all[0].verdicts[..1]);
}

#[test]
fn a_band_that_is_known_to_be_unmet_says_why_and_is_an_error_once_it_is_met() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("g")).unwrap();
    let spec = SPEC.replace("max = 0.9", "max = 0.9\nunmet = \"no window is that small\"");
    let spec = spec.replace("min = 1.1", "min = 1.1\nunmet = \"nothing is beyond the link\"");
    std::fs::write(dir.path().join("g/small.toml"), spec.split("[[figure]]").next().unwrap()).unwrap();
    let group = Group::load(&Shelf::Dir(dir.path().to_owned()), "g", Seeds::Quick).unwrap();
    let done = group.run(&Stop::default(), || ()).unwrap();
    let bands: Vec<_> = done[0].verdicts.iter().map(|v| (v.met, v.is_expected(), v.band())).collect();
    assert_eq!(bands, [(true, false, "MET, stated unmet"), (false, true, "unmet, as stated")]);
    assert!(page("g", &done).unwrap().contains("nothing is beyond the link"));
}

#[test]
fn a_null_of_another_group_is_run_with_what_is_asked_of_it() {
    let dir = tempfile::tempdir().unwrap();
    group(dir.path(), Seeds::Quick);
    std::fs::create_dir_all(dir.path().join("h")).unwrap();
    let spec = SPEC.replace("null = \"9\"", "null = \"g/small:9\"\nfrom = \"12s\"\nto = \"19s\"");
    let spec = spec.split("[[figure]]").next().unwrap();
    std::fs::write(dir.path().join("h/asks.toml"), spec).unwrap();
    let shelf = Shelf::Dir(dir.path().to_owned());
    let group = Group::load(&shelf, "h", Seeds::Quick).unwrap();
    let done = group.run(&Stop::default(), || ()).unwrap();
    assert_eq!(done.iter().map(|d| d.own).collect::<Vec<_>>(), [true, false]);
    assert!(done[1].verdicts.is_empty());
    assert_eq!(done[0].verdicts[0].null.as_ref().map(|n| n.n), Some(4));
}

#[test]
fn a_null_of_another_group_that_differs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    group(dir.path(), Seeds::Quick);
    std::fs::create_dir_all(dir.path().join("h")).unwrap();
    let spec = SPEC.replace("null = \"9\"", "null = \"g/small:64\"");
    std::fs::write(dir.path().join("h/asks.toml"), spec.split("[[figure]]").next().unwrap()).unwrap();
    let shelf = Shelf::Dir(dir.path().to_owned());
    let error = Group::load(&shelf, "h", Seeds::Quick).unwrap_err().to_string();
    assert!(error.contains("flow.one.connection.receive_buffer"), "{error}");
    assert!(error.contains("null = \"g/small:64\"") && error.contains("= help: "), "{error}");
}

#[test]
fn a_figure_without_data_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut done = group(dir.path(), Seeds::Quick);
    done[0].runs.retain(|run| run.cell != "64");
    let error = page("g", &done).unwrap_err().to_string();
    assert!(error.contains("g/small: figure \"Throughput\" has no data for one"), "{error}");
}
