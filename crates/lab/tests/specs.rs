//! Spec files: those we ship are good, and each bad one is answered with place, reason and remedy.

use std::path::Path;

use polypath_lab::spec;

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
            { label = "told", set = { "link.a->b.queue" = "9p", flow.bulk = { told = true, connection.timestamps = false } } },
        ]
        [[grid]]
        key = "duration"
        values = ["20s", { label = "long", value = "120s" }]
        [[expect]]
        metric = "goodput"
        flow = "bulk"
        cell = "told"
        null = "plain"
        over_cell = "plain"
        min = 0.5
    "#;
    let experiment = spec::parse(text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let labels: Vec<_> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["plain,20s", "plain,long", "told,20s", "told,long"]);
    let told = &experiment.cells[3].spec;
    assert_eq!((told.link[0].queue.to_string(), told.flow[0].told), ("9p".into(), true));
    assert_eq!(told.duration.to_string(), "2min");
    let connection = told.connection_of(&told.flow[0]);
    assert!(!connection.sack && !connection.timestamps);
    let of = |cells: Vec<&spec::Cell>| cells.iter().map(|c| c.label.clone()).collect::<Vec<_>>();
    assert_eq!(of(spec::chosen(&experiment.cells, Some("told"))), ["told,20s", "told,long"]);
    assert_eq!(of(spec::chosen(&experiment.cells, Some("long,told"))), ["told,long"]);
    let null = spec::beside(&experiment.cells, &experiment.cells[3], "plain");
    assert_eq!(null.map(|c| c.label.as_str()), Some("plain,long"));
}
