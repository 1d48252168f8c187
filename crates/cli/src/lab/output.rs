//! Results on the terminal, as JSON, and in files.

use std::io::{self, Write};
use std::path::Path;

use comfy_table::Table;
use polypath_lab::check::Ensemble;
use polypath_lab::group::Done;
use polypath_lab::metric::{Metric, Printed};
use polypath_lab::report::{charts, charts_with_data};
use polypath_lab::store::{self, StoreError};

use crate::failure::{Failure, printed};
use crate::table;

/// Said of seeds that are no ensemble.
pub const NOTHING_RANDOM: &str = "the same numbers: nothing is random here (start range, jitter, loss)";

/// What the table shows, with its header and the factor it is shown in.
fn shown() -> Vec<(Metric, &'static str, f64)> {
    let column = |metric: &Metric| match metric.def().printed {
        Printed::Column(header) => Some((*metric, header, metric.def().unit.factor)),
        Printed::Json | Printed::No => None,
    };
    Metric::ALL.iter().filter_map(column).collect()
}

/// Prints means with their confidence intervals, and the verdicts.
pub fn print_table(done: &Done) -> Result<(), Failure> {
    let spec = &done.experiment.spec;
    let n = done.seeds.iter().count();
    let runs = counted(done.runs.len(), done.runs.chunk_by(|a, b| a.cell == b.cell).count(), n);
    let many = match n {
        1 => format!("seed {}{runs}", done.seeds.first),
        _ => format!("mean ± 95 % confidence over {n} seeds{runs}"),
    };
    let fixed =
        if done.is_fixed() { format!("\nall {n} seeds give {NOTHING_RANDOM}") } else { String::new() };
    let verdicts: String = done.verdicts.iter().map(|v| format!("\n{v}")).collect();
    let (table, hidden) = table_of(done);
    let hidden = match &hidden[..] {
        [] => String::new(),
        names => format!("too narrow for: {}; --json has all\n", names.join("; ")),
    };
    let title = format!("{}: {}", done.experiment.name, spec.title);
    let set: String = done.experiment.set.iter().map(|one| format!("\nwith {one}")).collect();
    printed(writeln!(io::stdout(), "{title}{set}\n{many}{fixed}\n\n{table}\n{hidden}{verdicts}"))
}

/// How many runs there are, if that is not the number of seeds; fewer after an interrupt.
fn counted(runs: usize, cells: usize, seeds: usize) -> String {
    let of = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let (all, cells_, seeds_) = (of(runs, "run"), of(cells, "cell"), of(seeds, "seed"));
    match runs == cells * seeds {
        true if cells == 1 => String::new(),
        true => format!(" ({all}: {cells_} × {seeds_})"),
        false => format!(" ({all} ended, in {cells_} with at most {seeds_} each)"),
    }
}

/// The table with as many of its columns as the terminal has room for, and the names of the others.
fn table_of(done: &Done) -> (String, Vec<String>) {
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
fn columns(done: &Done, mut table: Table, shown: usize) -> Table {
    for rows in done.rows() {
        let numbers = shown_first(shown).map(|(metric, _, factor)| match rows.summary(metric) {
            Some(s) => {
                let mean = with_interval(s.mean * factor, s.ci95.map(|ci| ci * factor));
                if s.n < rows.runs.len() { format!("{mean} ({} of {})", s.n, rows.runs.len()) } else { mean }
            }
            None => "–".to_owned(),
        });
        table.add_row([rows.cell.to_owned(), rows.flow.to_owned()].into_iter().chain(numbers));
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
pub fn print_json(done: &Done) -> Result<(), Failure> {
    crate::failure::print_json(&done.json())
}

/// Writes the tables and `results.json` into `dir`.
pub fn write(done: &Done, dir: &Path) -> Result<(), Failure> {
    store::results(done, dir).map_err(unwritten)
}

/// Writes the tables and `verdicts.json` into `dir`.
pub fn write_verdicts(done: &Done, dir: &Path) -> Result<(), Failure> {
    store::verdicts(done, dir).map_err(unwritten)
}

/// Draws the figures, into `dir` if there is one: all of them or an error if the ensemble is `whole`, otherwise those that have data.
pub fn draw(ensemble: Ensemble<'_>, whole: bool, dir: Option<&Path>) -> Result<(), Failure> {
    let charts = if whole { charts(ensemble) } else { charts_with_data(ensemble) };
    let charts = charts.map_err(|e| Failure::usage(e.to_string()))?;
    dir.map_or(Ok(()), |dir| store::figures(&charts, dir).map_err(unwritten))
}

fn unwritten(error: StoreError) -> Failure {
    Failure::refused(format!("cannot write {error}"))
}

/// Writes a page, and its directory if that is missing.
pub fn write_page(page: &str, file: &Path) -> Result<(), Failure> {
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)
            .map_err(|e| Failure::system(format!("cannot create {}", dir.display()), e))?;
    }
    std::fs::write(file, page).map_err(|e| Failure::system(format!("cannot write {}", file.display()), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_cells_and_seeds_and_without_them_where_some_are_missing() {
        assert_eq!(counted(20, 1, 20), "");
        assert_eq!(counted(45, 9, 5), " (45 runs: 9 cells × 5 seeds)");
        assert_eq!(counted(9, 9, 1), " (9 runs: 9 cells × 1 seed)");
        assert_eq!(counted(48, 10, 5), " (48 runs ended, in 10 cells with at most 5 seeds each)");
        assert_eq!(counted(1, 1, 5), " (1 run ended, in 1 cell with at most 5 seeds each)");
    }
}
