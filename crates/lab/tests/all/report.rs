//! A group from its files to its page.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use polypath_judge::Finding;
use polypath_lab::check::{Ensemble, check};
use polypath_lab::group::{Done, Group, GroupError, Nulls, Seeds};
use polypath_lab::report::{About, Again, Chart, FigureError, charts, files};
use polypath_lab::shelf::Shelf;
use polypath_lab::stop::Stop;

const SPEC: &str = r#"
version = 1
title = "Two flows & a <link>"
description = "One paragraph.\n\n- One item,\n  two lines.\n- Another."
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
    { label = "9", set = { "flow.one.connection.receive_buffer" = 11680, "flow.one.configured" = true } },
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
    std::fs::write(dir.join("g/ff.csv"), "series,x,y\nFF,8,0.7\nFF,64,1\nFF,8,0.1\n")
        .expect("the directory is ours");
    let shelf = Shelf::Dir(dir.to_owned());
    let group = Group::load(&shelf, "g", seeds).expect("the spec is good");
    group.run(&Stop::default(), || ()).expect("it runs")
}

fn page(seeds: Seeds, done: &[Done]) -> Result<String, FigureError> {
    polypath_lab::report::page(&About { name: "g", seeds, again: Again::Command(None) }, done)
}

#[test]
fn a_page_shows_every_figure_and_claim_and_needs_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let done = group(dir.path(), Seeds::Spec);
    let text = page(Seeds::Spec, &done).unwrap();
    let text = text.split("<script>").next().expect("it has a beginning");
    assert_eq!(text.matches("<figure>").count(), 2);
    assert_eq!(text.matches("<svg").count(), 4, "two figures, the small one of the claim, the topology");
    assert_eq!(text.matches("role=\"img\" aria-label=\"").count(), 4, "every drawing has a text");
    assert!(text.contains("Two flows &amp; a &lt;link&gt;"), "titles are escaped");
    assert!(text.contains("<p>One paragraph.</p><ul><li>One item,\n  two lines.</li><li>Another.</li></ul>"));
    let own = "polypath lab report g/small --seeds 1..6";
    for shown in ["a small window takes little", "undecided", "UNMET", own] {
        assert!(text.contains(shown), "{shown} is missing");
    }
    assert!(!text.contains("NaN") && !text.contains("http://") && !text.contains("https://"));
    for tag in ["svg", "g", "text", "table", "figure", "section", "ul", "p", "td", "details", "tr", "title"] {
        let opened = text.matches(&format!("<{tag} ")).count() + text.matches(&format!("<{tag}>")).count();
        assert_eq!(opened, text.matches(&format!("</{tag}>")).count(), "{tag} is closed as often as opened");
    }
}

/// `SPEC` with its first claim as often as that.
fn with_claims(n: usize) -> String {
    let begin = SPEC.find("[[expect]]").unwrap();
    let (claim, rest) =
        SPEC[begin..].split_at(SPEC[begin..].find("[[expect]]\nclaim = \"impossible\"").unwrap());
    [&SPEC[..begin], &claim.repeat(n), rest].concat()
}

/// The first screen of a group of two experiments with `claims` claims each.
fn first_screen(claims: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("g")).unwrap();
    std::fs::write(dir.path().join("g/ff.csv"), "series,x,y\nFF,8,0.7\n").unwrap();
    for name in ["one", "other"] {
        std::fs::write(dir.path().join(format!("g/{name}.toml")), with_claims(claims)).unwrap();
    }
    let group = Group::load(&Shelf::Dir(dir.path().to_owned()), "g", Seeds::Quick).unwrap();
    let done = group.run(&Stop::default(), || ()).unwrap();
    let text = page(Seeds::Quick, &done).unwrap();
    text.split("</header>").next().unwrap().to_owned()
}

#[test]
fn claims_that_exceed_the_first_screen_are_marks_that_open_into_rows() {
    let few = first_screen(3);
    assert_eq!((few.matches("<tr><td class=\"claim\"").count(), few.matches("class=\"mark").count()), (6, 0));
    let many = first_screen(12);
    assert_eq!(many.matches("<details class=\"claims\"><summary>").count(), 2, "a line for each experiment");
    assert_eq!(
        many.matches(
            "class=\"mark undecided\" title=\"a small window takes little (8): undecided; paper 1.5"
        )
        .count(),
        24
    );
    assert_eq!(many.matches("<tr><td class=\"claim\"").count(), 24);
}

#[test]
fn the_first_screen_has_claims_with_verdicts_and_bands_stand_apart() {
    let dir = tempfile::tempdir().unwrap();
    let text = page(Seeds::Spec, &group(dir.path(), Seeds::Spec)).unwrap();
    let (first, below) = text.split_once("<main>").expect("it has a first screen");
    assert_eq!(first.matches("<td class=\"claim\">").count(), 1, "one claim of a published value");
    assert!(first.contains("<span class=\"finding undecided\"") && !first.contains("UNMET"), "{first}");
    assert!(first.contains("1 as expected, <b class=\"unmet\">1 not</b>"), "bands are counted only");
    let (_, bands) = below.split_once("<details class=\"bands\" open>").expect("one is unmet");
    assert!(bands.contains("UNMET") && !bands.contains("finding undecided"));
    for folded in ["What it is about, and its set-up", "Readings: what the verdicts follow from"] {
        assert!(below.contains(&format!("<details><summary>{folded}</summary>")), "{folded}");
    }
}

#[test]
fn a_page_says_its_seeds_and_the_command_that_makes_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let quick = page(Seeds::Quick, &group(dir.path(), Seeds::Quick)).unwrap();
    assert!(
        quick.contains(
            "A quick look (--quick): the first seeds of each experiment only. 12 runs, seeds 1..4."
        )
    );
    assert!(quick.contains("<code>polypath lab report g --quick</code>"));
    assert!(quick.contains("3 cells with seeds 1..4 (its own are 1..6)."));
    let only = Seeds::Only("11..12".parse().unwrap());
    let some = page(only, &group(dir.path(), only)).unwrap();
    assert!(some.contains("<code>polypath lab report g --seeds 11..12</code>"));
    let about = About { name: "g/small", seeds: only, again: Again::Command(Some(dir.path())) };
    let one = polypath_lab::report::page(&about, &group(dir.path(), only)).unwrap();
    let command =
        format!("<code>polypath lab report g/small --dir {} --seeds 11..12</code>", dir.path().display());
    assert_eq!(one.matches(&command).count(), 1, "the page is the experiment's");
}

#[test]
fn a_group_that_no_paper_is_compared_with_opens_with_its_bands() {
    let dir = tempfile::tempdir().unwrap();
    let mut done = group(dir.path(), Seeds::Quick);
    done[0].verdicts.retain(|v| v.finding.is_none());
    let text = page(Seeds::Quick, &done).unwrap();
    let (first, _) = text.split_once("<main>").expect("it has a first screen");
    assert!(first.contains("impossible") && first.contains("UNMET"), "{first}");
}

/// The group with these figures, and no others.
fn drawn(dir: &Path, figures: &str) -> Vec<Chart> {
    std::fs::create_dir_all(dir.join("g")).expect("the spec is good and the directory ours");
    let two = "[[grid]]\nname = \"mss\"\nkey = \"flow.other.mss\"\nvalues = [700, 1460]\n\n[[expect]]";
    let spec = SPEC.replacen("[[expect]]", two, 1);
    let spec = spec.split("[[expect]]").next().expect("the spec is good and the directory ours");
    std::fs::write(dir.join("g/small.toml"), format!("{spec}{figures}"))
        .expect("the spec is good and the directory ours");
    let done = Group::load(&Shelf::Dir(dir.to_owned()), "g", Seeds::Spec).unwrap_or_else(|e| panic!("{e}"));
    let done = done.run(&Stop::default(), || ()).expect("the spec is good and the directory ours");
    charts((&done[0].experiment, &done[0].runs)).expect("the spec is good and the directory ours")
}

#[test]
fn runs_are_drawn_as_distributions_boxes_densities_and_squares() {
    let dir = tempfile::tempdir().unwrap();
    let kind = |kind: &str, more: &str| {
        format!(
            "[[figure]]\nkind = \"{kind}\"\ntitle = \"{kind}\"\nmetric = \"goodput\"\nseries = [{{ flow = \"one\" }}]\n{more}\n"
        )
    };
    let all = [
        kind("cdf", "cell = \"8\""),
        kind("box", "axis = \"window\""),
        kind("violin", "axis = \"window\""),
        kind("heat", "axis = \"window\"\nrows = \"mss\""),
    ];
    let [cdf, boxes, violin, heat] = &drawn(dir.path(), &all.concat())[..] else { panic!("four figures") };
    assert_eq!(cdf.lines.iter().map(|l| l.label.as_str()).collect::<Vec<_>>(), ["8,700", "8,1460"]);
    assert_eq!(cdf.lines[0].points.len(), 6);
    assert_eq!(
        (cdf.lines[0].points[5].1, cdf.y_label.as_str(), cdf.x_label.as_str()),
        (1.0, "share of runs", "goodput, Mbit/s")
    );
    for chart in [boxes, violin] {
        assert_eq!(
            (chart.places.len(), chart.lines.len()),
            (3, 2),
            "a line for each value of the other axis"
        );
        for ((_, median), runs) in chart.lines[0].points.iter().zip(&chart.lines[0].samples) {
            assert_eq!((runs.len(), runs.iter().filter(|v| *v <= median).count()), (6, 3));
        }
    }
    assert_eq!(
        heat.lines.iter().map(|l| (l.label.as_str(), l.points.len())).collect::<Vec<_>>(),
        [("700", 3), ("1460", 3)]
    );
    files(&[cdf.clone(), boxes.clone(), violin.clone(), heat.clone()], "f", dir.path()).unwrap();
    for n in 1..=4 {
        let read = |kind: &str| std::fs::read(dir.path().join(format!("f-{n}.{kind}"))).unwrap();
        assert!(read("svg").starts_with(b"<svg xmlns=") && read("pdf").starts_with(b"%PDF-"));
        assert!(String::from_utf8(read("csv")).unwrap().lines().count() > 5);
    }
}

#[test]
fn a_figure_of_squares_needs_two_axes_and_one_number() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |more: &str| {
        std::fs::create_dir_all(dir.path().join("g")).unwrap();
        let figure = format!("[[figure]]\nkind = \"heat\"\ntitle = \"t\"\naxis = \"window\"\n{more}\n");
        let spec = SPEC.split("[[expect]]").next().unwrap();
        std::fs::write(dir.path().join("g/small.toml"), format!("{spec}{figure}")).unwrap();
        Group::load(&Shelf::Dir(dir.path().to_owned()), "g", Seeds::Spec).unwrap_err().to_string()
    };
    let one = "series = [{ flow = \"one\" }]";
    assert!(refused(&format!("{one}\nrows = \"windw\"")).contains("did you mean \"window\""));
    assert!(
        refused(&format!("{one}\nrows = \"window\"")).contains("the rows are the axis that is drawn across")
    );
}

#[test]
fn a_claim_is_judged_by_its_ensemble_and_its_band_apart_from_that() {
    let dir = tempfile::tempdir().unwrap();
    let done = group(dir.path(), Seeds::Spec);
    let [ff, impossible] = &done[0].verdicts[..] else { panic!("{:#?}", done[0].verdicts) };
    assert_eq!((ff.met, ff.finding, ff.n), (true, Some(Finding::Undecided), 6), "six runs are few");
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
fn cells_that_nothing_is_expected_of_run_once_and_the_answers_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let whole = group(dir.path(), Seeds::Spec);
    let load = || Group::load(&Shelf::Dir(dir.path().to_owned()), "g", Seeds::Spec).unwrap().only_asked();
    assert_eq!(load().runs(), 6 + 1 + 6);
    let asked = load().run(&Stop::default(), || ()).unwrap();
    let seeds =
        |cell: &str| asked[0].runs.iter().filter(|r| r.cell == cell).map(|r| r.seed).collect::<Vec<_>>();
    assert_eq!(
        (seeds("64"), seeds("8"), seeds("9")),
        (vec![1], vec![1, 2, 3, 4, 5, 6], vec![1, 2, 3, 4, 5, 6])
    );
    assert_eq!(asked[0].verdicts, whole[0].verdicts);
    assert_eq!(charts(asked[0].ensemble()).unwrap().len(), 2, "every figure has data");
}

#[test]
fn other_seeds_draw_every_figure_too() {
    let dir = tempfile::tempdir().unwrap();
    let done = group(dir.path(), Seeds::Only("1001..1003".parse().unwrap()));
    let charts = charts((&done[0].experiment, &done[0].runs)).unwrap();
    assert!(charts.iter().flat_map(|c| &c.lines).all(|line| !line.band.is_empty()));
}

/// What is found of [`SPEC`] with its first claim of the first seconds and with `changes`, from seed 9 on.
fn settled(changes: &[(&str, &str)]) -> Done {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("g")).unwrap();
    let spec = SPEC.replace("cell = \"8\"", "cell = \"8\"\nfrom = \"1s\"\nto = \"3s\"");
    let spec =
        changes.iter().fold(spec, |spec, (from, to)| spec.replace(from, to)).replace("ff.csv", "none.csv");
    std::fs::write(dir.path().join("g/small.toml"), spec.split("[[figure]]").next().unwrap()).unwrap();
    let group = Group::load(&Shelf::Dir(dir.path().to_owned()), "g", Seeds::Spec).unwrap();
    group.settle(9, &Stop::default(), || ()).unwrap().remove(0)
}

#[test]
fn a_published_value_is_settled_with_no_more_runs_cells_and_time_than_it_needs() {
    let done = settled(&[]);
    assert_eq!((done.verdicts.len(), done.verdicts[0].finding), (1, Some(Finding::Refuted)));
    assert_eq!(
        (done.seeds.to_string(), done.runs.len()),
        ("9..58".into(), 2 * 50),
        "of the cells 8 and 9, its null"
    );
    let mut whole =
        group(tempfile::tempdir().unwrap().path(), Seeds::Only("9..9".parse().unwrap())).remove(0);
    let bytes = |run: &polypath_lab::results::Run| run.flows[1].bytes;
    assert!(bytes(&done.runs[0]) < bytes(&whole.runs.remove(0)) / 4, "3 of 20 s");
}

#[test]
fn more_seeds_settle_what_fifty_leave_open() {
    let alone = ("over = \"other\"\n", "");
    let claim = "null = \"9\"\npublished = 1.5\nmargin = 0.1";
    let mean = settled(&[alone, (claim, "published = 1\nmargin = 0.1")]).verdicts[0].value.unwrap();
    let near = format!("published = {}\nmargin = {}", mean * 1.01, mean * 0.01);
    let done = settled(&[alone, (claim, &near)]);
    let verdict = &done.verdicts[0];
    assert!(verdict.n > 50 && done.runs.len() == verdict.n, "{verdict:?}");
    let mut seeds: Vec<u64> = done.runs.iter().filter(|r| r.cell == "8").map(|r| r.seed).collect();
    seeds.dedup();
    assert_eq!(seeds, (9..9 + verdict.n as u64).collect::<Vec<_>>(), "each seed once");
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
    assert!(page(Seeds::Quick, &done).unwrap().contains("nothing is beyond the link"));
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

    let asks = shelf.load("h/asks").unwrap();
    let nulls = Nulls::of(&asks, &shelf).unwrap();
    assert_eq!(nulls.cells(), 1, "only the cell that is named");
    let of_nulls = nulls.run(done[0].seeds, &Stop::default(), |_| ()).unwrap();
    let others: Vec<Ensemble<'_>> = of_nulls.iter().map(|(e, runs)| (*e, &runs[..])).collect();
    assert_eq!(check((&asks, &done[0].runs), &others), done[0].verdicts, "as the group has it");
    let alone = &check((&asks, &done[0].runs), &[])[0];
    assert_eq!(alone.finding, None);
    assert!(alone.to_string().contains("not judged: the null g/small:9 was not run"), "{alone}");
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
    let error = page(Seeds::Quick, &done).unwrap_err().to_string();
    assert!(error.contains("g/small: figure \"Throughput\" has no data for one"), "{error}");
}

#[test]
fn points_of_the_paper_stand_at_the_cell_that_they_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("g")).unwrap();
    let cell = |label: &str, size: u32| {
        format!("{{ label = \"{label}\", set = {{ \"flow.one.connection.receive_buffer\" = {size} }} }}")
    };
    let from = SPEC.find("[[grid]]").unwrap();
    let figures = SPEC.rfind("[[figure]]").unwrap();
    for (cells, at) in
        [(vec![cell("wide", 65_536)], 0.0), (vec![cell("narrow", 11_680), cell("wide", 65_536)], 1.0)]
    {
        let grid = format!("[[grid]]\nname = \"window\"\nvalues = [{}]\n\n", cells.join(", "));
        let spec = [&SPEC[..from], &grid, &SPEC[figures..]].concat();
        std::fs::write(dir.path().join("g/small.toml"), spec).unwrap();
        std::fs::write(dir.path().join("g/ff.csv"), "series,x,y\nFF,wide,1\n").unwrap();
        let shelf = Shelf::Dir(dir.path().to_owned());
        let group = Group::load(&shelf, "g", Seeds::Only("1..1".parse().unwrap())).unwrap();
        let done = group.run(&Stop::default(), || ()).unwrap();
        let charts = charts((&done[0].experiment, &done[0].runs)).unwrap();
        assert_eq!(charts[0].lines[0].published, [(at, 1.0)]);
    }
}
