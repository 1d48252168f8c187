//! The table of every number of an ensemble.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use polypath_lab::results::Run;
use polypath_lab::run::Keep;
use polypath_lab::spec::{self, Experiment};
use polypath_lab::stop::Stop;
use polypath_lab::sweep::sweep;
use polypath_lab::values::values;

fn experiment() -> Experiment {
    let text = "version = 1\ntitle = \"x\"\nduration = \"3s\"\nmeasure_from = \"1s\"\nseeds = \"1..2\"\n\
        [[link]]\nfrom = \"a\"\nto = \"x\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\n\
        [[link]]\nfrom = \"x\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
        [[link]]\nfrom = \"a\"\nto = \"y\"\nrate = \"4Mbit/s\"\ndelay = \"10ms\"\n\
        [[link]]\nfrom = \"y\"\nto = \"b\"\nrate = \"100Mbit/s\"\ndelay = \"1ms\"\n\
        [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\npaths = [[\"x\"], [\"y\"]]\nstart = [\"0s\", \"1s\"]\n\
        [[grid]]\nkey = \"flow.f.mss\"\nname = \"mss\"\nvalues = [500, 1000]\n\
        [[grid]]\nname = \"seed\"\nkey = \"connection.scheduler.policy\"\nvalues = [\"min_rtt\", \"round_robin\"]\n\
        [[expect]]\nclaim = \"late\"\nmetric = \"throughput\"\nflow = \"f\"\npath = 1\nfrom = \"2s\"\nmin = 0\n\
        [[expect]]\nclaim = \"cost\"\nmetric = \"sent\"\nflow = \"f\"\ncell = \"500\"\nover_cell = \"1000\"\nmin = 1\n\
        [[measure]]\nclaim = \"part\"\nmetric = \"sent\"\nflow = \"f\"\ncell = \"500\"\n";
    spec::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn runs(experiment: &Experiment) -> Vec<Run> {
    sweep(&experiment.cells, experiment.spec.seeds, &Keep::default(), &Stop::default(), |_| ())
        .expect("the experiment runs")
}

/// The numbers in the rows whose `claim` and `metric` are these, with their seeds.
fn of(table: &RecordBatch, claim: Option<&str>, metric: &str) -> Vec<(u64, f64)> {
    let column = |name: &str| table.column_by_name(name).expect("the table has this column").clone();
    let (claims, metrics) = (column("claim"), column("metric"));
    let (claims, metrics) = (claims.as_string::<i32>(), metrics.as_string::<i32>());
    let (seeds, numbers) = (column("seed"), column("value"));
    let (seeds, numbers) = (seeds.as_primitive::<UInt64Type>(), numbers.as_primitive::<Float64Type>());
    let is_meant =
        |n: &usize| claims.is_valid(*n).then(|| claims.value(*n)) == claim && metrics.value(*n) == metric;
    (0..table.num_rows()).filter(is_meant).map(|n| (seeds.value(n), numbers.value(n))).collect()
}

#[test]
fn every_expectation_has_its_number_in_every_run() {
    let experiment = experiment();
    let runs = runs(&experiment);
    let table = values((&experiment, &runs));
    let late = of(&table, Some("late"), "throughput");
    let expected: Vec<(u64, f64)> =
        runs.iter().map(|r| (r.seed, r.value(&experiment.spec.expect[0].selector().what).unwrap())).collect();
    assert_eq!(late, expected);
    assert_eq!(of(&table, None, "goodput").len(), runs.len() * 3, "the flow and both of its paths");
    let cell = table.column_by_name("from_s").unwrap().as_primitive::<Float64Type>();
    assert!(cell.iter().flatten().any(|from| from == 2.0) && cell.null_count() == 0);
}

#[test]
fn what_is_measured_in_one_cell_has_no_rows_in_others() {
    let experiment = experiment();
    let runs = runs(&experiment);
    let there = runs.iter().filter(|run| run.cell.starts_with("500,")).count();
    assert_eq!((of(&values((&experiment, &runs)), Some("part"), "sent").len(), there), (4, 4));
}

#[test]
fn a_ratio_to_another_cell_is_there_beside_what_it_divides() {
    let experiment = experiment();
    let runs = runs(&experiment);
    let table = values((&experiment, &runs));
    let sent = |cell: &str, seed| {
        let run = runs.iter().find(|r| r.cell == cell && r.seed == seed).unwrap();
        run.value(&experiment.spec.expect[1].selector().what).unwrap()
    };
    let ratio = of(&table, Some("cost"), "sent")[0];
    assert_eq!(ratio, (1, sent("500,min_rtt", 1) / sent("1000,min_rtt", 1)));
    let plain: Vec<f64> = of(&table, None, "sent").into_iter().map(|(_, n)| n).collect();
    assert!(plain.contains(&sent("500,min_rtt", 1)) && plain.contains(&sent("1000,min_rtt", 1)));
    // Runs of one cell alone have what they are divided by later, and no ratio.
    let alone: Vec<Run> = runs.iter().filter(|r| r.cell == "500,min_rtt").cloned().collect();
    let table_alone = values((&experiment, &alone));
    assert_eq!(of(&table_alone, Some("cost"), "sent"), []);
    assert_eq!(table_alone.schema(), table.schema(), "parts of an ensemble join");
}

#[test]
fn axes_are_columns_of_their_own() {
    let experiment = experiment();
    let table = values((&experiment, &runs(&experiment)));
    let mss = table.column_by_name("mss").unwrap().as_primitive::<Int64Type>();
    assert!(mss.values().contains(&500) && mss.values().contains(&1000));
    // The column of seeds has the name of the other axis.
    let policy = table.column_by_name("grid.seed").unwrap().as_string::<i32>();
    assert_eq!(policy.value(0), "min_rtt");
}
