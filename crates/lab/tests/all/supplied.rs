//! Algorithms that a spec names and a program supplies.

use std::sync::Arc;

use polypath_lab::run::{Keep, run};
use polypath_lab::shelf::Place;
use polypath_lab::spec::{Supplied, from_document, parse};
use polypath_transport::CcConfig;
use polypath_transport::cc::ControllerMaker;

const SPEC: &str = "version = 1\ntitle = \"x\"\nduration = \"2s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit/s\"\n\
    delay = \"9ms\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n[flow.connection]\n\
    cc = { algorithm = \"external\", name = \"mine\", version = \"3\" }\n";

#[test]
fn an_algorithm_that_nobody_supplies_is_refused_where_it_is_named() {
    let error = parse(SPEC, "x").unwrap_err();
    assert_eq!(error.key, "flow[0].connection.cc.name");
    assert!(error.to_string().contains("no algorithm of this name"), "{error}");
    assert!(error.help.as_ref().is_some_and(|help| help.contains("Python")), "{error:?}");
}

#[test]
fn a_supplied_algorithm_runs_and_its_version_decides_the_run() {
    let maker: Arc<ControllerMaker> = Arc::new(|env| CcConfig::default().build(env));
    let supplied = Supplied { controllers: [("mine".to_owned(), maker)].into(), ..Supplied::default() };
    let of = |text: &str| {
        from_document(&text.parse().unwrap(), "x", &Place::Nowhere, &supplied)
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let ran = |text: &str| run(&of(text).cells[0], 1, &Keep::default()).unwrap();
    let (own, other) = (ran(SPEC), ran(&SPEC.replace('3', "4")));
    let newreno = ran(&SPEC.replace("\"external\", name = \"mine\", version = \"3\"", "\"newreno\""));
    assert!(own.flows[0].bytes > 500_000);
    assert_eq!((own.flows[0].bytes, other.flows[0].bytes), (newreno.flows[0].bytes, own.flows[0].bytes));
    assert_ne!(own.id, other.id);
}
