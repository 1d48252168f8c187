//! Spec files: those we ship are good, and each bad one is answered with place, reason and remedy.

use std::path::Path;

use polypath_lab::shelf::Shelf;
use polypath_lab::spec::{self, Metric, Number};

#[test]
fn every_experiment_we_ship_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut seen = 0;
    for group in std::fs::read_dir(root).expect("there are experiments") {
        for file in std::fs::read_dir(group.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|e| e == "toml") {
                spec::load(&file).unwrap_or_else(|e| panic!("{e}"));
                seen += 1;
            }
        }
    }
    assert!(seen >= 3, "only {seen} experiments seen");
}

#[test]
fn a_figure_of_a_paper_has_its_published_points_or_says_that_there_are_none() {
    let mut seen = 0;
    for group in ["mhip", "rmtcp", "fast"] {
        for name in Shelf::BuiltIn.group(group).unwrap() {
            let experiment = Shelf::BuiltIn.load(&name).unwrap_or_else(|e| panic!("{e}"));
            let is_papers = |title: &str| title.starts_with("Fig. ") || title.starts_with("Workshop Fig. ");
            for figure in experiment.spec.figure.iter().filter(|f| is_papers(&f.title)) {
                let says = figure.caption.contains(" gives no number");
                assert!(figure.published.is_some() != says, "{name}: {}", figure.title);
                seen += 1;
            }
        }
    }
    assert!(seen >= 40, "only {seen} figures seen");
}

#[test]
fn the_example_of_the_documentation_loads() {
    let page = include_str!("../../../docs/experiments.md");
    let example =
        page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).expect("there is one");
    let experiment = spec::parse(example, "docs/experiments.md").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((experiment.cells.len(), experiment.spec.flow.len()), (3, 2));
}

#[test]
fn bad_specs_are_told_where_why_and_what_to_do() {
    insta::glob!("bad_specs/*.toml", |file| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).unwrap();
        let error = spec::parse(&text, &name).expect_err("the spec is bad");
        assert!(error.help.is_some() || name == "syntax.toml", "{error}\nwithout a remedy");
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(error.to_string()) });
    });
}

#[test]
fn a_flow_has_the_connection_of_the_experiment_and_its_own_keys() {
    let text = r#"
        version = 1
        title = "x"
        duration = "1s"
        [connection]
        sack = false
        cc = { algorithm = "newreno", initial_window = 2 }
        [[link]]
        from = "a"
        to = "b"
        rate = "1Mbit/s"
        delay = "1ms"
        [[flow]]
        name = "f"
        from = "a"
        to = "b"
        connection = { timestamps = false, cc = { initial_ssthresh = 9 } }
    "#;
    let experiment = spec::parse(text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let spec = &experiment.cells[0].spec;
    let connection = spec.connection_of(&spec.flow[0]);
    assert!(!connection.sack && !connection.timestamps);
    let cc = serde_json::to_value(&connection.cc).unwrap();
    assert_eq!(cc["initial_window"], 2);
    assert_eq!(cc["initial_ssthresh"], 9);
}

#[test]
fn the_grid_is_the_product_of_its_axes() {
    let text = std::fs::read_to_string("tests/specs_grid.toml").unwrap();
    let experiment = spec::parse(&text, "specs_grid.toml").unwrap_or_else(|e| panic!("{e}"));
    let labels: Vec<_> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["min_rtt,small", "min_rtt,large", "round_robin,small", "round_robin,large"]);
    let queues: Vec<_> = experiment.cells.iter().map(|c| c.spec.link[0].queue.to_string()).collect();
    assert_eq!(queues, ["10p", "100p", "10p", "100p"]);
    assert!(experiment.cells.iter().all(|c| c.spec.grid.is_empty()));
}

#[test]
fn a_value_of_the_grid_may_set_several_keys() {
    let text = r#"
        version = 1
        title = "x"
        duration = "20s"
        [[link]]
        from = "a"
        to = "b"
        rate = "8Mbit/s"
        delay = "30ms"
        [[flow]]
        name = "bulk"
        from = "a"
        to = "b"
        connection = { sack = false }
        [[grid]]
        name = "variant"
        values = [
            { label = "plain", set = {} },
            { label = "told", set = { "link.a->b.queue" = "9p", flow.bulk = { configured = true, connection.timestamps = false } } },
        ]
        [[grid]]
        key = "duration"
        values = ["20s", { label = "long", value = "120s" }]
        [[expect]]
        metric = "goodput"
        flow = "bulk"
        cell = "told"
        over_cell = "plain"
        min = 0.5
    "#;
    let experiment = spec::parse(text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let labels: Vec<_> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["plain,20s", "plain,long", "told,20s", "told,long"]);
    let told = &experiment.cells[3].spec;
    assert_eq!((told.link[0].queue.to_string(), told.flow[0].configured), ("9p".into(), true));
    assert_eq!(told.duration.to_string(), "2min");
    let connection = told.connection_of(&told.flow[0]);
    assert!(!connection.sack && !connection.timestamps);
    let of = |cells: Vec<&spec::Cell>| cells.iter().map(|c| c.label.clone()).collect::<Vec<_>>();
    assert_eq!(of(spec::chosen(&experiment.cells, Some("told"))), ["told,20s", "told,long"]);
    assert_eq!(of(spec::chosen(&experiment.cells, Some("long,told"))), ["told,long"]);
    let null = spec::beside(&experiment.cells, &experiment.cells[3], "plain");
    assert_eq!(null.map(|c| c.label.as_str()), Some("plain,long"));
}

/// What is said of a spec of one link and one flow with these keys more, and `rest` after them.
fn refused(top: &str, link: &str, flow: &str, rest: &str) -> spec::SpecError {
    let text = format!(
        "version = 1\ntitle = \"x\"\n{top}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\ndelay = \"30ms\"\n{link}\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n{rest}\n"
    );
    let error = spec::parse(&text, "x.toml").map(|_| ()).expect_err(&text);
    assert!(error.help.is_some(), "no remedy: {error}");
    let rust = ["struct", "enum", "Config", "f64", "u32"];
    assert!(!rust.iter().any(|word| error.message.contains(word)), "{error}");
    *error
}

const SECONDS: &str = "duration = \"9s\"\nseeds = \"1..3\"";

#[track_caller]
fn told(error: spec::SpecError, key: &str, message: &str, help: &str) {
    assert_eq!(error.key, key, "{error}");
    assert!(
        error.message.contains(message) && error.help.as_deref().is_some_and(|said| said.contains(help)),
        "{error}"
    );
}

#[test]
fn what_means_nothing_is_refused() {
    let link = |keys: &str| refused(SECONDS, keys, "", "");
    told(
        link("change = [{ at = \"3s\" }]"),
        "link[0].change[0]",
        "changes nothing",
        "rate, delay, loss, up or back",
    );
    told(link("change = [{ at = \"9s\", up = false }]"), "link[0].change[0].at", "after the end", "9s");
    let flow = |keys: &str| refused(SECONDS, "", keys, "");
    let udp = "traffic = { cbr = { rate = \"1Mbit/s\", packet = \"1000B\" } }";
    told(flow(&format!("{udp}\nsize = \"1MB\"")), "flow[0].size", "for TCP", "stop");
    told(flow(&format!("{udp}\nmss = 900")), "flow[0].mss", "for TCP", "1kB");
    told(flow(&format!("{udp}\nstart = \"9s\"")), "flow[0].start", "end of the run", "9s");
    told(flow("start = [\"0s\", \"20s\"]"), "flow[0].start", "end of the run", "9s");
    told(flow("start = \"3s\"\nstop = \"2s\""), "flow[0].stop", "not after the start", "3s");
    let rest = |text: &str| refused(SECONDS, "", "", text);
    let again = "[[link]]\nfrom = \"b\"\nto = \"a\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"";
    told(rest(again), "link[1]", "a second link", "back");
    told(
        rest("[[host]]\nname = \"a\"\n[[host]]\nname = \"a\""),
        "host[1].name",
        "a second host",
        "one [[host]]",
    );
    let band = |keys: &str| rest(&format!("[[expect]]\nmetric = \"goodput\"\nflow = \"f\"\n{keys}"));
    told(band("min = 2\nmax = 1"), "expect[0].min", "above max", "exchange");
    told(band("max = nan"), "expect[0].max", "finite", "leave it out");
    told(band("max = 1\ncell = \"z\""), "expect[0].cell", "no grid", "leave out cell");
    let sd = "[[expect]]\nmetric = \"goodput\"\nflow = \"f\"\nstatistic = \"sd\"\nmax = 1";
    told(refused("duration = \"9s\"", "", "", sd), "expect[0].statistic", "one run", "seeds");
}

#[test]
fn grids_that_are_too_large_or_undo_themselves_are_refused() {
    let rest = |text: &str| refused(SECONDS, "", "", text);
    let many: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    let axis = |key: &str| format!("[[grid]]\nkey = \"{key}\"\nvalues = [{}]\n", many.join(", "));
    let cells = ["flow.f.mss", "link.0.mtu", "connection.max_burst"].map(axis).concat();
    told(rest(&cells), "grid", "8000000 cells; at most 10000", "fewer values");
    let runs = refused("duration = \"9s\"\nseeds = \"1..6000\"", "", "", &axis("flow.f.mss"));
    told(runs, "grid", "200 cells with 6000 seeds each are 1200000 runs", "fewer seeds");
    let twice = "[[grid]]\nkey = \"flow.f.mss\"\nvalues = [100, 200]\n".repeat(2);
    told(rest(&twice), "grid[1].key", "a second axis sets flow.f.mss", "one axis");
}

#[test]
fn a_buffer_is_a_size_in_bytes_or_packets() {
    let text = |buffer: &str| {
        format!(
            "version = 1\ntitle = \"x\"\nduration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\n\
             delay = \"1ms\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nmss = 1000\n\
             connection = {{ receive_buffer = {buffer} }}\n"
        )
    };
    for (buffer, bytes) in [("4096", 4096), ("\"64KiB\"", 65_536), ("\"2 MB\"", 2_000_000), ("\"7p\"", 7000)]
    {
        let experiment = spec::parse(&text(buffer), "x").unwrap_or_else(|e| panic!("{e}"));
        let spec = &experiment.cells[0].spec;
        assert_eq!(spec.connection_of(&spec.flow[0]).receive_buffer, bytes, "{buffer}");
    }
    for wrong in ["\"64\"", "\"64Mbit/s\"", "\"9999999999GiB\"", "\"\""] {
        let error = spec::parse(&text(wrong), "x").expect_err("it is no buffer");
        assert_eq!(error.key, "flow[0].connection.receive_buffer", "{error}");
    }
}

#[test]
fn parameters_of_a_connection_that_mean_nothing_are_refused_where_they_stand() {
    let connection = |keys: &str| refused(SECONDS, "", "", &format!("[connection]\n{keys}"));
    let buffers = ["receive_buffer", "send_buffer", "unread_window", "reorder_store"];
    for key in buffers.into_iter().chain(["min_rto", "initial_rto", "max_timeouts"]) {
        let error = connection(&format!("{key} = 0"));
        assert!(error.key == format!("connection.{key}") && error.place.line == 17, "{error}");
        assert!(error.help.is_some_and(|help| !help.contains("round trip")));
    }
    for (key, value) in [
        ("min_rto", "1e300"),
        ("clock_granularity", "1e18"),
        ("delayed_ack", "501"),
        ("max_rto", "100"),
        ("receive_buffer", "9223372036854775807"),
    ] {
        assert_eq!(connection(&format!("{key} = {value}")).key, format!("connection.{key}"));
    }
    told(
        connection("loss = { policy = \"sack\", threshold = 0 }"),
        "connection.loss.threshold",
        "1 sign",
        "3",
    );
    for algorithm in ["newreno", "fast", "fast_one_window", "mhip_simple", "mhip_two_level", "rm_tcp"] {
        let cc = format!("cc = {{ algorithm = \"{algorithm}\", initial_window = 0 }}");
        assert_eq!(connection(&cc).key, "connection.cc.initial_window");
    }
    for (algorithm, key, value) in [
        ("newreno", "abc_limit", "0"),
        ("fast", "alpha", "0"),
        ("fast_one_window", "gamma", "1.5"),
        ("fast", "gamma", "0"),
        ("fast", "rounds_per_update", "0"),
        ("fast", "pacing", "0.5"),
        ("rm_tcp", "queue", "nan"),
        ("rm_tcp", "weights", "[1, 0]"),
    ] {
        let cc = format!("cc = {{ algorithm = \"{algorithm}\", {key} = {value} }}");
        assert_eq!(connection(&cc).key, format!("connection.cc.{key}"));
    }
    for (key, value) in [("every", "0"), ("most", "1"), ("per_round_trip", "1"), ("longest", "501")] {
        let acks = format!("acks = {{ policy = \"thinned\", {key} = {value} }}");
        assert_eq!(connection(&acks).key, format!("connection.acks.{key}"));
    }
    let own = refused(SECONDS, "", "connection = { receive_buffer = 0 }", "");
    assert_eq!(own.key, "flow[0].connection.receive_buffer");
}

#[test]
fn values_of_another_type_are_told_the_right_form() {
    let connection = |keys: &str| refused(SECONDS, "", "", &format!("[connection]\n{keys}"));
    told(connection("loss = { threshold = 4 }"), "connection.loss", "policy", "policy = \"sack\"");
    told(connection("acks = { every = 2 }"), "connection.acks", "policy", "policy = \"thinned\"");
    told(connection("scheduler = {}"), "connection.scheduler", "policy", "policy = \"earliest_arrival\"");
    told(connection("cc = \"newreno\""), "connection.cc", "a table", "cc = { algorithm = \"newreno\" }");
    told(connection("sack = 1"), "connection.sack", "a boolean", "a boolean");
    let link = |keys: &str| refused(SECONDS, keys, "", "");
    told(link("reordering = 0.01"), "link[0].reordering", "a table", "probability = 0.01");
    told(link("loss = \"1%\""), "link[0].loss", "a number", "loss = 0.01");
    told(link("mtu = 1.5"), "link[0].mtu", "a whole number", "a whole number");
    told(link("queue = \"99999999999p\""), "link[0].queue", "too large", "");
    told(
        connection("receive_buffer = \"99999999999p\""),
        "connection.receive_buffer",
        "too large",
        "at most",
    );
    told(refused("duration = \"9s\"\nseeds = 3", "", "", ""), "seeds", "a string", "\"1..20\"");
    told(refused("duration = \"0s\"", "", "", ""), "duration", "duration zero", "20s");
}

#[test]
fn a_long_line_is_shown_where_it_matters() {
    let long = "x".repeat(20_000);
    let error = refused(SECONDS, &format!("queue = \"{long}\""), "", "").to_string();
    assert!(error.len() < 5_000 && error.contains("queue = \"xxx"), "{} characters", error.len());
    let far = format!("back = {{ rate = \"1Mbit/s\",{} loss = 7 }}", " ".repeat(9_000));
    let error = refused(SECONDS, &far, "", "").to_string();
    assert!(error.contains("loss = 7") && error.contains(":10:9035\n") && error.len() < 900, "{error}");
}

#[test]
fn what_contradicts_itself_is_refused() {
    let flow = |keys: &str| refused(SECONDS, "", keys, "");
    let udp = "traffic = { cbr = { rate = \"1Mbit/s\", packet = \"1501B\" } }";
    told(flow(udp), "flow[0].traffic.cbr.packet", "1501 bytes do not fit", "\"1500B\"");
    let udp = udp.replace("1501B", "1500B");
    told(flow(&format!("{udp}\nconfigured = true")), "flow[0].configured", "no connection", "leave it out");
    told(
        flow(&format!("{udp}\nconnection = {{ sack = false }}")),
        "flow[0].connection",
        "UDP",
        "leave it out",
    );
    let nameless = "[[flow]]\nname = \"\"\nfrom = \"a\"\nto = \"b\"";
    told(refused(SECONDS, "", "", nameless), "flow[1].name", "without a name", "bulk");
}

#[test]
fn what_would_have_no_effect_is_refused() {
    let flow = |keys: &str| refused(SECONDS, "", keys, "");
    told(
        flow("start = [\"0s\", \"2s\"]\nstop = \"1s\""),
        "flow[0].stop",
        "not after the start",
        "2s at the latest",
    );
    told(flow("stop = \"10s\""), "flow[0].stop", "after the end of the run", "9s");
    let on_off =
        "traffic = { on_off = { rate = \"1Mbit/s\", packet = \"100B\", on = \"0s\", off = \"0s\" } }";
    told(flow(on_off), "flow[0].traffic.on_off.on", "never on", "above zero");
    let silent = "traffic = { cbr = { rate = \"0bit/s\", packet = \"100B\" } }";
    told(flow(silent), "flow[0].traffic.cbr.rate", "sends nothing", "leave the flow out");
    let rest = |text: &str| refused(SECONDS, "", "", text);
    for (keys, key, why) in [
        ("early_data = true", "early_data", "no host of the simulator"),
        ("receive_buffer = \"2GiB\"", "receive_buffer", "more than a window can tell"),
        ("send_ahead = 1000", "send_ahead", "takes no room"),
        ("send_buffer = 1000000", "send_buffer", "smaller than receive_buffer"),
        ("receive_buffer = \"32MiB\"", "send_buffer", "smaller than receive_buffer"),
        ("receive_buffer = 1000\nunread_window = 1001", "unread_window", "limits first"),
    ] {
        told(rest(&format!("[connection]\n{keys}")), &format!("connection.{key}"), why, "");
    }
    let router = "[[link]]\nfrom = \"b\"\nto = \"r\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n\
                  [[host]]\nname = \"r\"\njitter = \"1ms\"";
    told(rest(router), "host[0].name", "no TCP flow begins or ends at \"r\"", "leave");
    for (key, value) in [("seeds", "\"1..2\""), ("title", "\"x\""), ("expect.0.min", "1")] {
        let axis = format!("[[grid]]\nkey = \"{key}\"\nvalues = [{value}]");
        told(rest(&axis), "grid[0].key", "is the same in all cells", "duration");
    }
    let expect = |keys: &str| rest(&format!("[[expect]]\nmetric = \"goodput\"\nmin = 1\n{keys}"));
    told(expect("flows = [\"f\", \"f\"]"), "expect[0].flows", "twice", "once");
    told(expect("flow = \"f\"\nflows = [\"f\"]"), "expect[0].flows", "twice", "once");
    told(expect("flow = \"f\"\nlink = \"a->b\""), "expect[0].link", "is of a flow", "ff_bottleneck");
    told(expect("flow = \"f\"\nwithin = [0.9, 1.1]"), "expect[0].within", "which share", "share_within");
    told(expect("flow = \"f\"\nequal = true"), "expect[0].equal", "which value", "published");
    told(expect("flow = \"f\"\npath = 0\nover_path = 0"), "expect[0].over", "over itself", "another");
    for (kind, keys, key) in [
        ("time", "x = [1]", "x"),
        ("time", "rows = \"q\"", "rows"),
        ("time", "axis = \"q\"", "axis"),
        ("cdf", "bin = \"1s\"", "bin"),
        ("cdf", "one_run = true", "one_run"),
        ("cdf", "from = \"1s\"", "from"),
        ("cdf", "band = \"sd\"", "band"),
    ] {
        let figure =
            format!("[[figure]]\nkind = \"{kind}\"\ntitle = \"t\"\nseries = [{{ flow = \"f\" }}]\n{keys}");
        told(rest(&figure), &format!("figure[0].{key}"), &format!("kind \"{kind}\""), "leave it out");
    }
    let queue = |keys: &str| rest(&format!("[[measure]]\nmetric = \"queue\"\nlink = \"a->b\"\n{keys}"));
    told(queue("flow = \"f\""), "measure[0].flow", "is of a link", "leave it out");
    told(queue("path = 0"), "measure[0].path", "is of a link", "leave it out");
}

#[test]
fn a_path_over_another_of_the_same_flow_is_a_ratio() {
    let number = Number { path: Some(0), over_path: Some(1), flow: Some("f".into()), ..Number::default() };
    let selector = number.selector(Metric::Goodput);
    let over = selector.over.expect("a ratio");
    assert_eq!((selector.what.path, over.path, over.flows), (Some(0), Some(1), vec!["f".to_owned()]));
}

#[test]
fn what_is_nearly_right_is_told_the_right_way() {
    let rest = |text: &str| refused(SECONDS, "", "", text);
    told(
        rest("[[grid]]\nkey = \"link.b->a.loss\"\nvalues = [0.1]"),
        "grid[0].key",
        "b->a",
        "link.a->b.back.loss",
    );
    told(rest("[[grid]]\nkey = \"link.b->a.mtu\"\nvalues = [900]"), "grid[0].key", "b->a", "link.a->b.mtu");
    let expect = "[[expect]]\nmetric = \"goodput\"\nflow = \"f\"\n";
    told(rest(&format!("{expect}min = \"5Mbit/s\"")), "expect[0].min", "a number", "bit/s");
    told(
        rest(&format!("{expect}min = 1\nfrom = \"5s\"\nto = \"3s\"")),
        "expect[0].from",
        "no time",
        "ends at 3s",
    );
    told(rest(&format!("{expect}min = 1\nto = \"30s\"")), "expect[0].to", "after the end", "9s");
    let start = refused(SECONDS, "", "start = [\"0s\", \"1s\", \"2s\"]", "");
    told(start, "flow[0].start", "none of the forms", "[\"0s\", \"1s\"]");
    let figure = "[[figure]]\nkind = \"sweep\"\ntitle = \"t\"\nseries = [{ flow = \"f\" }]\n";
    told(rest(figure), "figure[0]", "`axis` is missing", "[[grid]]");
    let grid = "[[grid]]\nkey = \"flow.f.mss\"\nvalues = [400]\n";
    told(
        rest(&format!("{grid}{figure}")),
        "figure[0]",
        "`axis` is missing",
        "axis = \"…\"; axes of the grid are: flow.f.mss",
    );
    let red = "queue = { discipline = \"red\", min = \"50p\", max = \"10p\" }";
    told(refused(SECONDS, red, "", ""), "link[0].queue.max", "\"10p\" is not above min = \"50p\"", "15p");
}
