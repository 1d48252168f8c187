//! What the commands print, and how they end.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// The program, run from the top of the repository.
fn polypath(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polypath"));
    command.current_dir(root()).args(args);
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Standard error of a run that ends with `code`.
fn error_of(args: &[&str], code: i32) -> String {
    let output = polypath(args).assert().code(code).get_output().clone();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("messages are UTF-8")
}

fn json_of(args: &[&str]) -> Value {
    let output = polypath(args).assert().success().get_output().clone();
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

#[test]
fn bad_arguments_are_told_what_to_write() {
    insta::assert_snapshot!("path_without_delay", error_of(&["demo", "--path", "80mbit"], 2));
    insta::assert_snapshot!("size_without_unit", error_of(&["demo", "--size", "64"], 2));
    insta::assert_snapshot!("unknown_scheduler", error_of(&["demo", "--scheduler", "erliest_arrival"], 2));
    for (args, what) in [
        (&["lab", "run", "x.toml", "--seed", "x"][..], "not a seed: write for example 7"),
        (&["lab", "run", "x.toml", "--jobs", "0"], "write a whole number, at least 1"),
        (&["lab", "speed", "dumbbell", "0"], "write seconds, above 0"),
        (&["lab", "frontier", "--scenarios", "5..1"], "\"5..1\" is no range: it ends before it begins"),
        (&["lab", "record"], "or --listen, on the other host"),
        (&["lab", "trace", "lte", "--seconds", "0"], "--seconds 0: a trace lasts 1 s to 3600 s"),
        (&["send", "x", "--wait", "-1", "y"], "it needs seconds, 1 or more"),
    ] {
        let text = error_of(args, 2);
        assert!(text.contains(what), "{args:?}: {text}");
    }
    insta::assert_snapshot!("seeds_backwards", error_of(&["lab", "run", "x.toml", "--seeds", "9..2"], 2));
}

#[test]
fn files_that_are_not_there_are_named() {
    insta::assert_snapshot!("no_such_file", error_of(&["demo", "--file", "no/such.file", "--sim"], 3));
    insta::assert_snapshot!("no_such_spec", error_of(&["lab", "run", "no/such.toml"], 3));
    insta::assert_snapshot!("directory_as_file", error_of(&["demo", "--file", "crates", "--sim"], 2));
}

#[test]
fn a_bad_spec_is_told_where_why_and_what_to_do() {
    let spec = "crates/lab/tests/bad_specs/unknown_key.toml";
    insta::assert_snapshot!("bad_spec", error_of(&["lab", "run", spec], 2));
}

#[test]
fn more_runs_than_anybody_waits_for_are_refused() {
    let many = ["--seeds", "1..1000000"];
    for (command, of) in [("run", "foundation/two_paths"), ("check", "foundation"), ("report", "foundation")]
    {
        let text = error_of(&[&["lab", command, of], &many[..]].concat(), 2);
        assert!(text.contains("cells with 1000000 seeds each are"), "{text}");
        assert!(text.contains("help: give fewer seeds, as in --seeds 1..20"), "{text}");
    }
}

#[test]
fn a_cell_that_is_not_there() {
    let text = error_of(&["lab", "run", "foundation/two_paths", "--cell", "best"], 2);
    insta::assert_snapshot!("no_such_cell", text);
}

#[test]
fn a_simulated_demo_prints_the_keys_that_are_promised() {
    let report = json_of(&["demo", "--sim", "--size", "2MiB", "--json"]);
    assert_eq!(report["bytes"], 2 << 20);
    assert_eq!(report["sha256_match"], true);
    assert_eq!(report["capacity_bps"], 120_000_000);
    for key in ["seconds", "goodput_bps", "utilisation", "best_path_alone", "sha256", "mode"] {
        assert!(!report[key].is_null(), "{key} is missing");
    }
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2);
    for path in paths {
        for key in ["id", "goodput_bps", "srtt_ms", "retransmitted"] {
            assert!(path[key].is_number(), "{key} is missing");
        }
    }
    let delivered: f64 = paths.iter().map(|p| p["goodput_bps"].as_f64().unwrap()).sum();
    assert!((delivered / report["goodput_bps"].as_f64().unwrap() - 1.0).abs() < 0.01);
}

#[test]
fn the_same_command_gives_the_same_simulated_result() {
    let args = ["demo", "--sim", "--size", "300kB", "--path", "3mbit/5ms", "--path", "9mbit/50ms", "--json"];
    let bytes = || polypath(&args).assert().success().get_output().stdout.clone();
    assert_eq!(bytes(), bytes());
}

#[test]
fn an_empty_file_arrives_too() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let path = empty.path().to_str().unwrap();
    for more in [&["--sim"][..], &[]] {
        let report = json_of(&[&["demo", "--file", path, "--json"], more].concat());
        assert_eq!((&report["bytes"], &report["sha256_match"]), (&0.into(), &true.into()));
    }
}

#[test]
fn a_real_demo_delivers_a_real_file() {
    let dir = tempfile::tempdir().unwrap();
    let (source, copy) = (dir.path().join("source"), dir.path().join("copy"));
    let bytes: Vec<u8> = (0..1_000_003u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&source, &bytes).unwrap();
    let (source, copy) = (source.to_str().unwrap(), copy.to_str().unwrap());
    let report = json_of(&["demo", "--file", source, "--output", copy, "--json"]);
    assert_eq!(report["sha256_match"], true);
    assert_eq!(report["mode"], "loopback");
    assert!(std::fs::read(copy).unwrap() == bytes, "the copy differs");
}

#[test]
fn a_demo_between_namespaces_delivers_too() {
    if !polypath_testbed::netns::may_create() {
        polypath_testing::skip("network namespaces need root");
        return;
    }
    let report = json_of(&["demo", "--netns", "--size", "1MiB", "--json"]);
    assert_eq!((&report["mode"], &report["sha256_match"]), (&"netns".into(), &true.into()), "{report:#}");
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{report:#}");
    for path in paths {
        assert_eq!(path["esp_suite"], "AES-128-GCM-16, implicit IV", "{report:#}");
        assert_eq!(path["spi_out"].as_str().map(str::len), Some(8), "{report:#}");
    }
    assert_ne!(paths[0]["spi_out"], paths[1]["spi_out"], "an SA for each path");
}

#[test]
fn without_a_terminal_there_are_no_bars_and_no_colours() {
    let output = polypath(&["demo", "--size", "200kB"]).assert().success().get_output().clone();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn the_lab_lists_runs_and_keeps() {
    let names: Vec<_> = json_of(&["lab", "list", "--json"]).as_array().unwrap().to_vec();
    assert!(names.iter().any(|e| e["name"] == "foundation/one_link"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let args =
        ["lab", "run", "foundation/one_link", "--seed", "3", "--out", out, "--pcap", "--trace", "--json"];
    let report = json_of(&args);
    let id = report["runs"][0]["id"].as_str().unwrap();
    assert!(report["verdicts"].as_array().unwrap().iter().all(|v| v["met"] == true));
    for name in ["values.parquet", "values.csv", "results.csv", "results.arrow", "results.json"]
        .map(str::to_owned)
        .iter()
        .chain(&[format!("{id}.pcapng"), format!("{id}.arrow")])
    {
        let size = std::fs::metadata(dir.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}")).len();
        assert!(size > 0, "{name} is empty");
    }
}

#[test]
fn the_lab_draws_a_trace_by_seed() {
    let drawn = |seed: &str| {
        let args = ["lab", "trace", "lte", "--seed", seed, "--seconds", "5", "--mean", "8Mbit/s"];
        polypath(&args).assert().success().get_output().stdout.clone()
    };
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
    assert!(drawn("1").ends_with(b"\n5000\n"));
    assert!(error_of(&["lab", "trace", "wifi", "--seconds", "0"], 2).contains("a trace lasts 1 s to 3600 s"));
}

#[test]
fn the_lab_times_the_simulator() {
    for (scenario, flows) in [("link", 1), ("secure", 1), ("dumbbell", 3), ("mhip", 2)] {
        let report = json_of(&["lab", "speed", scenario, "1", "--flows", "3", "--json"]);
        assert_eq!(report["flows"], flows, "{report:#}");
        assert!(report["delivered"].as_u64().unwrap() > 100, "{report:#}");
        assert!(report["nanoseconds_a_packet"].as_f64().unwrap() > 0.0, "{report:#}");
    }
    assert!(error_of(&["lab", "speed", "link", "-1"], 2).contains("unexpected argument"));
    assert!(error_of(&["lab", "speed", "link", "nan"], 2).contains("above 0 and up to 1000000"));
}

#[test]
fn a_capture_of_a_link_that_is_not_there_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let args = ["lab", "run", "foundation/one_link", "--out", out, "--pcap", "--pcap-links", "a->z"];
    assert!(error_of(&args, 2).contains("no link is named \"a->z\""));
}

#[test]
fn a_trace_of_some_events_is_smaller_and_names_that_nothing_has_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let set = ["--set", "duration=21s", "--set", "expect.0.max=1"];
    let run =
        [&["lab", "run", "foundation/one_link", "--seed", "1", "--trace", "--out", out], &set[..]].concat();
    let size = |some: &[&str]| {
        let report = json_of(&[&run[..], &["--json"], some].concat());
        let file = format!("{}.arrow", report["runs"][0]["id"].as_str().unwrap());
        std::fs::metadata(dir.path().join(file)).unwrap().len()
    };
    let all = size(&[]);
    let lost = size(&["--trace-flows", "bulk", "--trace-paths", "0", "--trace-events", "lost,undone"]);
    let early = size(&["--trace-from", "1s", "--trace-to", "2s"]);
    assert!(lost < early && early < all / 4, "{lost}, {early} of {all} bytes");
    let paths = error_of(&[&run[..], &["--trace-paths", "0,7"]].concat(), 2);
    assert!(paths.contains("no path is named \"7\"") && paths.contains("the paths are: 0"), "{paths}");
    let times = error_of(&[&run[..], &["--trace-from", "2s", "--trace-to", "1s"]].concat(), 2);
    assert!(times.contains("--trace-to 1s is not after --trace-from 2s"), "{times}");
    let events = error_of(&[&run[..], &["--trace-events", "lots"]].concat(), 2);
    assert!(
        events.contains("no event is named \"lots\"") && events.contains("did you mean \"lost\"?"),
        "{events}"
    );
    assert!(error_of(&[&run[..], &["--trace-flows", "bluk"]].concat(), 2).contains("did you mean \"bulk\"?"));
}

#[test]
fn a_list_with_a_bad_spec_shows_the_others_and_is_no_success() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("g")).unwrap();
    let spec = root().join("experiments/foundation/one_link.toml");
    std::fs::copy(&spec, dir.path().join("g/good.toml")).unwrap();
    std::fs::write(dir.path().join("g/broken.toml"), "title = 7").unwrap();
    let list = ["lab", "list", "--dir", dir.path().to_str().unwrap()];
    let output = polypath(&list).assert().code(2).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stdout).contains("good"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("broken.toml") && said.contains("1 of the files"), "{said}");
}

#[test]
fn an_unmet_expectation_is_status_1_and_says_how_to_repeat_it() {
    let dir = tempfile::tempdir().unwrap();
    let spec = std::fs::read_to_string(root().join("experiments/foundation/one_link.toml")).unwrap();
    let file = dir.path().join("impossible.toml");
    std::fs::write(&file, spec.replace("max = 0.9654", "max = 0.96")).unwrap();
    let file = file.to_str().unwrap();
    let output = polypath(&["lab", "run", file, "--seeds", "1..2"]).assert().code(1).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stdout).contains("UNMET"));
    let help = format!("repeat it with: polypath lab run {file} --seeds 1..2");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&help));
}

#[test]
fn a_value_set_on_the_command_line_is_kept_with_the_result_and_in_the_command_that_repeats_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let set = ["lab", "run", "foundation/one_link", "--seed", "1", "--set", "link.a->b.queue=2p"];
    let output = polypath(&[&set[..], &["--out", out]].concat()).assert().code(1).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stdout).contains("with link.a->b.queue=2p"));
    let help = "polypath lab run foundation/one_link --set 'link.a->b.queue=2p' --seeds 1..1";
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(help), "{said}");
    let text = std::fs::read_to_string(dir.path().join("results.json")).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["set"], serde_json::json!(["link.a->b.queue=2p"]));
    let plain = json_of(&["lab", "run", "foundation/one_link", "--seed", "1", "--json"]);
    assert_eq!(plain["set"], serde_json::json!([]));
    assert_ne!(plain["runs"][0]["id"], kept["runs"][0]["id"]);
    let wrong = ["lab", "run", "foundation/one_link", "--set", "link.a->c.queue=2p"];
    insta::assert_snapshot!("no_such_link_to_set", error_of(&wrong, 2));
}

#[test]
fn a_mean_over_some_runs_says_over_how_many() {
    let dir = tempfile::tempdir().unwrap();
    let spec = "version = 1\ntitle = \"x\"\nduration = \"3s\"\nseeds = \"1..3\"\n\
                [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
                [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"2MB\"\nstart = [\"0s\", \"1.5s\"]\n";
    let file = dir.path().join("some.toml");
    std::fs::write(&file, spec).unwrap();
    let output = polypath(&["lab", "run", file.to_str().unwrap()]).assert().success().get_output().clone();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains(" (1 of 3)") || table.contains(" (2 of 3)"), "{table}");
}

#[test]
fn the_columns_the_objects_and_the_table_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let report = json_of(&["lab", "run", "foundation/one_link", "--seeds", "1..2", "--out", out, "--json"]);
    let columns = std::fs::read_to_string(dir.path().join("results.csv")).unwrap();
    let rows: Vec<Vec<&str>> = columns.lines().map(|line| line.split(',').collect()).collect();
    for (name, metric) in ["retransmissions", "out_of_order", "timeouts", "utilisation"]
        .map(|n| (n, &report["summary"][0]["metrics"][n]))
    {
        let column = rows[0].iter().position(|n| *n == name).unwrap();
        let values: Vec<f64> = rows[1..].iter().map(|row| row[column].parse().unwrap()).collect();
        assert_eq!(values.len(), 2);
        let mean = metric["mean"].as_f64().unwrap();
        assert!((values.iter().sum::<f64>() / 2.0 - mean).abs() < 1e-9, "{name}: {values:?} and {mean}");
    }
}

#[test]
fn pages_come_from_the_definition() {
    let completions = polypath(&["completions", "bash"]).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8_lossy(&completions).contains("--scheduler"));
    let page = polypath(&["man"]).assert().success().get_output().stdout.clone();
    let page = String::from_utf8_lossy(&page);
    assert!(page.starts_with(".ie") && page.contains("over all their network links at once"), "{page}");
    let help = polypath(&["demo", "--help"]).assert().success().get_output().stdout.clone();
    let help = String::from_utf8_lossy(&help);
    assert!(
        help.contains("Reproduction of mHIP") && help.contains("Each path with a usable window in turn"),
        "{help}"
    );
    let dir = tempfile::tempdir().unwrap();
    polypath(&["man", "--out", dir.path().to_str().unwrap()]).assert().success();
    let page = std::fs::read_to_string(dir.path().join("polypath-lab-run.1")).unwrap();
    assert!(page.contains("\n.SH EXAMPLES\n") && !page.contains("EXTRA"), "{page}");
    let schema = json_of(&["lab", "schema"]);
    assert_eq!(schema["title"], "Polypath experiment");
}

#[test]
fn a_group_is_checked_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("pages/foundation.html");
    let out = dir.path().join("out");
    std::fs::create_dir_all(dir.path().join("e/g")).unwrap();
    let spec = root().join("experiments/foundation/one_link.toml");
    std::fs::copy(&spec, dir.path().join("e/g/one.toml")).unwrap();
    let (page, experiments) = (page.to_str().unwrap(), dir.path().join("e"));
    let place = ["--dir", experiments.to_str().unwrap(), "--seeds", "1..2"];
    let kept = ["--json", "--report", page, "--out", out.to_str().unwrap()];
    let report = json_of(&[&["lab", "check", "g"][..], &place, &kept].concat());
    assert_eq!((&report["group"], &report["met"]), (&"g".into(), &true.into()));
    let verdict = &report["experiments"][0]["verdicts"][0];
    assert_eq!((&verdict["claim"], &verdict["n"]), (&"one flow fills its link".into(), &2.into()));
    assert!(std::fs::metadata(out.join("one/results.csv")).unwrap().len() > 0);
    let checked = std::fs::read_to_string(page).unwrap();
    let again = dir.path().join("again.html");
    polypath(&[&["lab", "report", "g", "--out", again.to_str().unwrap()][..], &place].concat())
        .assert()
        .success();
    assert_eq!(std::fs::read_to_string(again).unwrap(), checked, "the same runs make the same page");
    browsers_draw(page);
}

/// Headless, a browser lays the page out and keeps its drawing.
fn browsers_draw(page: &str) {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| std::process::Command::new(name).arg("--version").output().is_ok();
    let Some(browser) = browsers.into_iter().find(is_there) else {
        polypath_testing::excuse(&format!("browsers draw: none of {browsers:?} is installed"));
        return;
    };
    let url = format!("file://{page}");
    let args = ["60", browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &url];
    let output = std::process::Command::new("timeout").args(args).output().expect("timeout(1) is there");
    if !output.status.success() {
        polypath_testing::excuse(&format!("browsers draw: {browser} does not run here"));
        return;
    }
    let dom = String::from_utf8_lossy(&output.stdout);
    let written = std::fs::read_to_string(page).expect("the page was written");
    let lines = written.matches("<polyline").count();
    assert!(lines > 2, "axes and lines");
    assert_eq!(dom.matches("<polyline").count(), lines);
    assert!(dom.contains("</section>"));
}

#[test]
fn a_group_that_is_not_there() {
    insta::assert_snapshot!("no_such_group", error_of(&["lab", "check", "mhop"], 2));
}

/// Standard output on a terminal of 80 columns.
fn on_a_terminal(arguments: &str) -> String {
    let line = format!("stty cols 80 rows 30; {} {arguments}", env!("CARGO_BIN_EXE_polypath"));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(root).stdin(std::process::Stdio::null());
    let output = command.output().expect("script, of util-linux");
    String::from_utf8(output.stdout).expect("it prints UTF-8").replace('\r', "")
}

#[test]
fn tables_are_wrapped_where_a_terminal_is_narrow_and_lose_nothing() {
    let (mut wide, narrow) = (polypath(&["lab", "list"]), on_a_terminal("lab list"));
    let wide = String::from_utf8(wide.assert().success().get_output().stdout.clone()).unwrap();
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(wide.lines().any(|line| line.chars().count() > 80), "{wide}");
    let letters = |text: &str| {
        let mut all: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(letters(&narrow), letters(&wide));
}
