//! Results on the terminal, as JSON, and in files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use comfy_table::Table;
use polypath_lab::check::Ensemble;
use polypath_lab::metric::{Metric, Printed};
use polypath_lab::report::{charts, charts_with_data};
use polypath_lab::results::{Run, Summary};
use polypath_lab::store::{self, StoreError};
use serde::Serialize;
use serde_json::{Value, json};

use super::Done;
use crate::failure::{Failure, printed};
use crate::table;

/// What the table shows, with its header and the factor it is shown in.
fn shown() -> Vec<(Metric, &'static str, f64)> {
    let column = |metric: &Metric| match metric.def().printed {
        Printed::Column(header) => Some((*metric, header, metric.def().unit.factor)),
        Printed::Json | Printed::No => None,
    };
    Metric::ALL.iter().filter_map(column).collect()
}

/// Every cell and flow with the ensemble of their runs.
fn groups<'a>(done: &'a Done<'_>) -> Vec<(&'a str, &'a str, Vec<&'a Run>)> {
    let mut cells: Vec<&str> = done.runs.iter().map(|r| r.cell.as_str()).collect();
    cells.dedup();
    let flows = done.experiment.spec.flow.iter().map(|f| f.name.as_str());
    let pairs = cells.iter().flat_map(|cell| flows.clone().map(move |flow| (*cell, flow)));
    pairs.map(|(cell, flow)| (cell, flow, done.runs.iter().filter(|r| r.cell == cell).collect())).collect()
}

fn summary(runs: &[&Run], metric: Metric, flow: &str) -> Option<Summary> {
    Summary::of(&runs.iter().filter_map(|r| r.metric(metric, flow)).collect::<Vec<_>>())
}

/// Prints means with their confidence intervals, and the verdicts.
pub fn print_table(done: &Done<'_>) -> Result<(), Failure> {
    let spec = &done.experiment.spec;
    let n = done.seeds.iter().count();
    let runs = match done.runs.len() {
        all if all > n => format!(" ({all} runs: {} cells × {n} seeds)", all / n),
        _ => String::new(),
    };
    let many = if n > 1 {
        format!("mean ± 95 % confidence over {n} seeds{runs}")
    } else {
        format!("seed {}{runs}", done.seeds.first)
    };
    let verdicts: String = done.verdicts.iter().map(|v| format!("\n{v}")).collect();
    let (table, hidden) = table_of(done);
    let hidden = match &hidden[..] {
        [] => String::new(),
        names => format!("too narrow for: {}; --json has all\n", names.join("; ")),
    };
    let title = format!("{}: {}", done.experiment.name, spec.title);
    printed(writeln!(io::stdout(), "{title}\n{many}\n\n{table}\n{hidden}{verdicts}"))
}

/// The table with as many of its columns as the terminal has room for, and the names of the others.
fn table_of(done: &Done<'_>) -> (String, Vec<String>) {
    let fits = |table: &Table| {
        table::width().is_none_or(|most| table.trim_fmt().lines().all(|line| line.chars().count() <= most))
    };
    let all = shown();
    let most = (1..=all.len()).rev().find(|n| fits(&columns(done, table::plain(headers(*n), 2), *n)));
    let shown = most.unwrap_or(1);
    let table = match most {
        Some(_) => table::plain(headers(shown), 2),
        None => table::wrapped(headers(shown), 2),
    };
    let hidden = all[shown..].iter().map(|(_, name, _)| name.replace('\n', " "));
    (columns(done, table, shown).trim_fmt(), hidden.collect())
}

fn shown_first(n: usize) -> impl Iterator<Item = (Metric, &'static str, f64)> {
    shown().into_iter().take(n)
}

/// The headers of `cell`, `flow` and the first `shown` numbers.
fn headers(shown: usize) -> Vec<&'static str> {
    ["cell", "flow"].into_iter().chain(shown_first(shown).map(|(_, name, _)| name)).collect()
}

/// `table` with a row for each cell and flow.
fn columns(done: &Done<'_>, mut table: Table, shown: usize) -> Table {
    for (cell, flow, runs) in groups(done) {
        let numbers = shown_first(shown).map(|(metric, _, factor)| match summary(&runs, metric, flow) {
            Some(s) => {
                let mean = with_interval(s.mean * factor, s.ci95.map(|ci| ci * factor));
                if s.n < runs.len() { format!("{mean} ({} of {})", s.n, runs.len()) } else { mean }
            }
            None => "–".to_owned(),
        });
        table.add_row([cell.to_owned(), flow.to_owned()].into_iter().chain(numbers));
    }
    if done.experiment.cells.len() == 1
        && let Some(column) = table.column_mut(0)
    {
        column.set_constraint(comfy_table::ColumnConstraint::Hidden);
    }
    table
}

fn with_interval(mean: f64, ci: Option<f64>) -> String {
    let digits = if mean.abs() >= 100.0 { 1 } else { 3 };
    match ci {
        Some(ci) => format!("{mean:.digits$} ± {ci:.digits$}"),
        None => format!("{mean:.digits$}"),
    }
}

/// Prints one object.
pub fn print_json(done: &Done<'_>) -> Result<(), Failure> {
    crate::failure::print_json(&object(done))
}

fn object(done: &Done<'_>) -> Value {
    let group = |(cell, flow, runs): &(&str, &str, Vec<&Run>)| {
        let all = Metric::ALL.iter().filter(|metric| metric.def().printed != Printed::No);
        let metrics: serde_json::Map<String, Value> = all
            .filter_map(|m| Some((json!(m).as_str()?.to_owned(), json!(summary(runs, *m, flow)?))))
            .collect();
        json!({ "cell": cell, "flow": flow, "metrics": metrics })
    };
    json!({
        "experiment": done.experiment.name,
        "title": done.experiment.spec.title,
        "seeds": done.seeds,
        "summary": groups(done).iter().map(group).collect::<Vec<_>>(),
        "verdicts": done.verdicts,
        "runs": done.runs,
    })
}

/// Writes the tables and `results.json` into `dir`.
pub fn write(done: &Done<'_>, dir: &Path) -> Result<(), Failure> {
    write_tables((done.experiment, &done.runs), dir)?;
    write_json("results.json", &object(done), dir)
}

/// Writes results as tables into `dir`.
pub fn write_tables(ensemble: Ensemble<'_>, dir: &Path) -> Result<(), Failure> {
    store::tables(ensemble, dir).map_err(|e| unwritten(&e, dir))
}

/// Draws the figures, into `dir` if there is one: all of them or an error if the ensemble is `whole`, otherwise those that have data.
pub fn draw(ensemble: Ensemble<'_>, whole: bool, dir: Option<&Path>) -> Result<(), Failure> {
    let charts = if whole { charts(ensemble) } else { charts_with_data(ensemble) };
    let charts = charts.map_err(|e| Failure::usage(e.to_string()))?;
    dir.map_or(Ok(()), |dir| store::figures(&charts, dir).map_err(|e| unwritten(&e, dir)))
}

fn unwritten(error: &StoreError, dir: &Path) -> Failure {
    Failure::system(format!("cannot write results to {}", dir.display()), error)
}

/// Writes `value` into `dir`.
pub fn write_json(name: &str, value: &impl Serialize, dir: &Path) -> Result<(), Failure> {
    let file = dir.join(name);
    let write = || {
        let mut out = BufWriter::new(File::create(&file)?);
        serde_json::to_writer_pretty(&mut out, value)?;
        out.flush()
    };
    write().map_err(|e: io::Error| Failure::system(format!("cannot write {}", file.display()), e))
}
