//! `polypath lab` outside a clone, its templates, names that nothing has, and Ctrl-C.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use polypath_lab::shelf::templates;

/// The program, run in `dir`.
fn polypath(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polypath"));
    command.current_dir(dir).args(args).output().expect("the binary runs")
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn outside_a_clone_there_are_the_built_in_experiments() {
    let dir = tempfile::tempdir().unwrap();
    let (code, list, _) = told(&polypath(dir.path(), &["lab", "list"]));
    assert!(code == Some(0) && list.contains("foundation/one_link"), "{list}");
    let (code, table, error) =
        told(&polypath(dir.path(), &["lab", "run", "foundation/one_link", "--seeds", "1..2"]));
    assert_eq!(code, Some(0), "{error}");
    assert!(table.contains("met "), "{table}");
    let (code, _, error) = told(&polypath(dir.path(), &["lab", "list", "--dir", "none"]));
    assert!(code == Some(3) && error.contains("--dir"), "{error}");
}

#[test]
fn every_template_runs_and_meets_what_it_expects() {
    let dir = tempfile::tempdir().unwrap();
    for (name, _) in templates() {
        let (code, said, error) = told(&polypath(dir.path(), &["lab", "new", name, "--template", name]));
        assert_eq!(code, Some(0), "{error}");
        let file = format!("{name}.toml");
        assert!(said.contains(&format!("polypath lab run {file}")), "{said}");
        let (code, _, error) =
            told(&polypath(dir.path(), &["lab", "run", &file, "--seeds", "1..2", "--jobs", "1"]));
        assert_eq!(code, Some(0), "{name}: {error}");
        let again = polypath(dir.path(), &["lab", "new", name, "--template", name]);
        assert_eq!(again.status.code(), Some(2), "what is there stays");
    }
    let (_, list, _) = told(&polypath(dir.path(), &["lab", "new"]));
    assert!(templates().all(|(name, _)| list.contains(name)), "{list}");
}

/// What a daemon tells each second that fills 16 and 8 Mbit/s from the fourth to the 13th second.
fn log() -> String {
    let mut text = String::new();
    for second in 0..=20u64 {
        let busy = second.clamp(3, 13) - 3;
        let paths = [(16u64, 10), (8, 30)].map(|(mbps, ms)| {
            let sent = busy * mbps * 125_000 / 1500;
            format!(
                r#"{{"local":"10.0.{ms}.1:9","remote":"10.0.{ms}.2:9","up":true,"answers":true,"delay_ms":{ms},"rate_mbps":{},
                "sent_packets":{sent},"sent_bytes":{},"load":{{"again":0,"rtt_ms":{}}}}}"#,
                mbps as f64 * 0.95, sent * 1472, 3 * ms,
            )
        });
        let peer = format!(
            r#"{{"name":"far","hit":"h","sent":{},"paths":[{}]}}"#,
            busy * 2_700_000,
            paths.join(",")
        );
        text += &format!(r#"{{"time":{second},"peers":[{peer}]}}"#).replace('\n', "");
        text.push('\n');
    }
    text
}

#[test]
fn what_a_daemon_did_takes_as_long_in_the_simulator_and_is_kept_as_an_experiment() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("run.log"), log()).unwrap();
    let (code, json, error) =
        told(&polypath(dir.path(), &["lab", "replay", "run.log", "--seeds", "1..2", "--json"]));
    assert_eq!(code, Some(0), "{error}");
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    let transfer = &all["transfers"][0];
    let [recorded, simulated] =
        [&transfer["recorded_s"], &transfer["simulated_s"]["mean"]].map(|time| time.as_f64().unwrap());
    assert!((recorded - 10.0).abs() < 0.1 && (0.85..1.15).contains(&(simulated / recorded)), "{json}");
    let (_, table, _) = told(&polypath(dir.path(), &["lab", "replay", "run.log", "--seeds", "1..2"]));
    assert!(table.contains("to far") && table.contains("16.0 Mbit/s, round trip 20.0 ms"), "{table}");
    assert_eq!(
        polypath(dir.path(), &["lab", "replay", "run.log", "--write", "mine.toml"]).status.code(),
        Some(0)
    );
    let (code, table, error) = told(&polypath(dir.path(), &["lab", "run", "mine.toml", "--seeds", "1..2"]));
    assert!(code == Some(0) && table.contains("transfer1"), "{table}{error}");
    std::fs::write(dir.path().join("run.log"), "hello\n").unwrap();
    let (code, _, error) = told(&polypath(dir.path(), &["lab", "replay", "run.log"]));
    assert!(
        code == Some(2)
            && error.contains("run.log: line 1 is not what")
            && error.contains("help: `polypath status"),
        "{error}"
    );
}

#[test]
fn names_that_nothing_has_are_answered_with_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let asked = [
        (&["lab", "run", "foundation/two_path"][..], "did you mean \"foundation/two_paths\"?"),
        (&["lab", "check", "foundatoin"], "did you mean \"foundation\"?"),
        (
            &["lab", "run", "foundation/two_paths", "--cell", "min_rtt,scarce,configurd"],
            "did you mean \"min_rtt,scarce,configured\"?",
        ),
        (&["lab", "new", "x", "--template", "two_path"], "did you mean \"two_paths\"?"),
        (&["lab", "run", "frontier/abc"], "help: random scenarios have numbers: frontier/17"),
        (&["lab", "report", "nothing"], "no group or experiment is named \"nothing\""),
        (&["lab", "report", "nothing"], "help: the groups are: fast, foundation, mhip, rmtcp, frontier"),
        (&["lab", "report", "one_link"], "did you mean \"foundation/one_link\"?"),
    ];
    for (args, nearest) in asked {
        let (code, _, error) = told(&polypath(dir.path(), args));
        assert!(code == Some(2) && error.contains(nearest), "{args:?}: {error}");
    }
}

#[test]
fn ctrl_c_keeps_the_runs_that_have_ended() {
    let dir = tempfile::tempdir().unwrap();
    polypath(dir.path(), &["lab", "new", "long", "--template", "one_link"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_polypath"));
    let args = ["lab", "run", "long.toml", "--seeds", "1..20000", "--jobs", "1", "--trace", "--out", "out"];
    let pipes = command.current_dir(dir.path()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the binary runs");
    let traces = || {
        let files = std::fs::read_dir(dir.path().join("out")).into_iter().flatten().flatten();
        files.filter(|f| f.path().extension().is_some_and(|e| e == "arrow")).count()
    };
    while traces() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (mut table, mut error) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut table).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{error}");
    assert!(error.contains("of 20000 runs had ended; their results are in out"), "{error}");
    assert!(table.contains("bulk"), "what has ended is shown: {table}");
    let rows = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap().lines().count() - 1;
    assert!(
        rows >= 3 && rows == traces() - 1,
        "{rows} rows beside results.arrow and {} traces",
        traces() - 1
    );
}

#[test]
fn a_check_draws_its_figures_and_is_compared_with_earlier_ones() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("experiments/g")).unwrap();
    polypath(dir.path(), &["lab", "new", "experiments/g/x", "--template", "two_paths"]);
    let check = |rest: &[&str]| told(&polypath(dir.path(), &[&["lab", "check", "g"], rest].concat()));
    let (_, kept, error) = check(&["--seeds", "1..2", "--json", "--figures", "drawn"]);
    std::fs::write(dir.path().join("kept.json"), &kept).unwrap();
    let drawn =
        std::fs::read_to_string(dir.path().join("drawn/x-1.svg")).unwrap_or_else(|e| panic!("{e}: {error}"));
    assert!(drawn.starts_with("<svg xmlns="), "{drawn}");
    assert!(dir.path().join("drawn/x-1.pdf").exists() && dir.path().join("drawn/x-1.csv").exists());
    let (code, _, error) = check(&["--seeds", "11..12", "--against", "kept.json", "kept.json"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("values compared with those kept"), "{error}");
    for (file, status, why) in [
        ("missing.json", 3, "cannot read missing.json: No such file"),
        ("drawn/x-1.svg", 2, "drawn/x-1.svg is not what `lab check --json` prints"),
        ("null.json", 2, "null.json is not what `lab check --json` prints"),
    ] {
        std::fs::write(dir.path().join("null.json"), "null").unwrap();
        let (code, _, error) = check(&["--seeds", "1..1000", "--against", "kept.json", file]);
        assert!(code == Some(status) && error.contains(why), "before any run: {code:?} {error}");
    }
    let mut kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    kept["experiments"][0]["verdicts"].as_array_mut().unwrap().remove(0);
    std::fs::write(dir.path().join("less.json"), kept.to_string()).unwrap();
    let (code, _, error) = check(&["--seeds", "11..12", "--against", "less.json"]);
    assert!(code == Some(1) && error.contains("is not kept"), "{code:?} {error}");
}

/// Two flows over one link, of which `one` has this window, and what more is said.
fn two_flows(window: u32, rest: &str) -> String {
    let flow = |name: &str, keys: &str| {
        format!("[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nstart = [\"0s\", \"1s\"]\n{keys}\n")
    };
    format!(
        "version = 1\ntitle = \"t\"\nduration = \"5s\"\nmeasure_from = \"2s\"\nseeds = \"1..3\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"8Mbit/s\"\ndelay = \"10ms\"\nqueue = \"40p\"\n{}{}{rest}",
        flow("one", &format!("connection = {{ receive_buffer = {window} }}")),
        flow("tcp", ""),
    )
}

#[test]
fn a_check_in_which_a_figure_has_no_data_fails() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("experiments/g")).unwrap();
    let check = |metric: &str, size: &str| {
        let figure = format!(
            "[[figure]]\nkind = \"cdf\"\ntitle = \"F\"\nmetric = \"{metric}\"\nseries = [{{ flow = \"one\" }}]\n"
        );
        let spec = two_flows(11_680, &figure).replacen("connection", &format!("{size}connection"), 1);
        std::fs::write(dir.path().join("experiments/g/x.toml"), spec).unwrap();
        told(&polypath(dir.path(), &["lab", "check", "g"]))
    };
    let (code, _, error) = check("goodput", "");
    assert_eq!(code, Some(0), "{error}");
    let (code, _, error) = check("completion", "");
    assert!(code == Some(2) && error.contains("\"one\" never has completion"), "{code:?} {error}");
    let (code, _, error) = check("completion", "size = \"1GB\"\n"); // more than the run carries
    assert!(code == Some(2) && error.contains("g/x: figure \"F\" has no data for one"), "{code:?} {error}");
}

#[test]
fn a_run_judges_beside_the_null_of_another_experiment_as_a_check_does_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("experiments/g")).unwrap();
    let claim = "[[grid]]\nkey = \"flow.one.connection.sack\"\nvalues = [true]\nlabels = [\"x\"]\n[[expect]]\nclaim = \"c\"\nmetric = \"goodput\"\n\
                 flow = \"one\"\nover = \"tcp\"\nnull = \"g/nulls\"\npublished = 0.1\nmargin = 0.01\n";
    std::fs::write(dir.path().join("experiments/g/asks.toml"), two_flows(11_680, claim)).unwrap();
    std::fs::write(dir.path().join("experiments/g/nulls.toml"), two_flows(11_680, "")).unwrap();
    let first = |args: &[&str]| {
        let (_, text, error) = told(&polypath(dir.path(), args));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {error}"));
        let of_check = &json["experiments"][0]["verdicts"][0];
        if of_check.is_null() { json["verdicts"][0].clone() } else { of_check.clone() }
    };
    let run = first(&["lab", "run", "g/asks", "--json"]);
    assert_eq!(run, first(&["lab", "check", "g", "--json"]));
    assert!(run["null"]["n"] == 3 && !run["finding"].is_null(), "{run}");
    let cell = first(&["lab", "run", "g/asks", "--json", "--cell", "x"]);
    assert!(cell["finding"].is_null(), "{cell}");
    assert_eq!(cell["reason"], "not judged: the null g/nulls was not run");
}

#[test]
fn a_report_of_one_experiment_is_repeated_by_the_command_that_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    polypath(dir.path(), &["lab", "new", "mine", "--template", "two_paths"]);
    let (code, shown, error) =
        told(&polypath(dir.path(), &["lab", "report", "mine.toml", "--seeds", "1..2"]));
    assert_eq!((code, shown.as_str()), (Some(0), "report.html\n"), "{error}");
    let page = || std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    let first = page();
    let command = first.split("Again: <code>").nth(1).and_then(|t| t.split("</code>").next()).unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(words, ["lab", "report", "mine.toml", "--seeds", "1..2"]);
    std::fs::remove_file(dir.path().join("report.html")).unwrap();
    polypath(dir.path(), &words);
    assert!(page() == first, "the same page, byte for byte");
    let (code, _, error) = told(&polypath(dir.path(), &["lab", "report", "foundation/one_lnk"]));
    assert!(code == Some(2) && error.contains("did you mean \"foundation/one_link\""), "{error}");
}

#[test]
fn a_run_draws_its_figures_beside_its_results_in_place_of_earlier_ones() {
    let dir = tempfile::tempdir().unwrap();
    polypath(dir.path(), &["lab", "new", "mine", "--template", "two_paths"]);
    let out = |name: &str| dir.path().join("out").join(name);
    std::fs::create_dir(out("")).unwrap();
    for old in ["values.csv", "figure-1.svg", "figure-9.svg"] {
        std::fs::write(out(old), "old").unwrap();
    }
    let (_, _, error) =
        told(&polypath(dir.path(), &["lab", "run", "mine.toml", "--seeds", "1..2", "--out", "out"]));
    assert_eq!(std::fs::read_to_string(out("figure-9.svg")).unwrap(), "old", "other files stay");
    assert_ne!(std::fs::read_to_string(out("values.csv")).unwrap(), "old");
    for kind in ["svg", "pdf", "csv"] {
        let file = dir.path().join(format!("out/figure-1.{kind}"));
        assert!(std::fs::metadata(&file).is_ok_and(|f| f.len() > 100), "{}: {error}", file.display());
    }
}

#[test]
fn one_cell_has_its_results_and_the_figures_that_it_has_data_for() {
    let dir = tempfile::tempdir().unwrap();
    let cell = ["lab", "run", "mhip/fig7_udp", "--cell", "8M,literal", "--seeds", "1..2", "--out", "out"];
    let (_, shown, error) = told(&polypath(dir.path(), &cell));
    assert!(!error.contains("no data") && shown.contains("8M,literal"), "{shown}{error}");
    let there = |name: &str| dir.path().join("out").join(name).exists();
    assert!(there("values.parquet") && there("results.json") && there("figure-1.svg"));
    assert!(!there("figure-2.svg"), "the figure of the other cell is left out");
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    if !polypath_testing::installed(&["script", "stty"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for columns in [60, 80, 200] {
        let run = format!(
            "stty rows 40 cols {columns}; {} lab run foundation/two_paths --seeds 1..2 --cell min_rtt,ample,configured 2> /dev/null",
            env!("CARGO_BIN_EXE_polypath")
        );
        let output = Command::new("script").current_dir(dir.path()).args(["-qc", &run, "/dev/null"]).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let (_, table) = text.split_once("flow").unwrap_or_else(|| panic!("{text}"));
        let wide = |line: &&str| !line.starts_with("too narrow") && line.trim_end().chars().count() > columns;
        let verdicts = table.find("\r\n\r\n").unwrap_or(table.len());
        assert_eq!(table[..verdicts].lines().find(wide), None, "in {columns} columns: {text}");
        assert_eq!(text.contains("too narrow for:"), columns < 100, "{text}");
    }
}
