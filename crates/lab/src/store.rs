//! The results of an ensemble as files that data tools open.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use serde::Serialize;

use crate::check::Ensemble;
use crate::columns::{runs, write_arrow, write_csv, write_parquet};
use crate::group::Done;
use crate::report::{Chart, files, points};
use crate::values::values;

/// The system refused to write results.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {source}")]
pub struct StoreError {
    /// The file.
    pub file: String,
    /// Why.
    source: io::Error,
}

/// Writes `results.json` and the tables of `done` into `dir`.
pub fn results(done: &Done, dir: &Path) -> Result<(), StoreError> {
    tables(done.ensemble(), dir)?;
    json("results.json", &done.json(), dir)
}

/// Writes `verdicts.json` and the tables of `done` into `dir`.
pub fn verdicts(done: &Done, dir: &Path) -> Result<(), StoreError> {
    tables(done.ensemble(), dir)?;
    json("verdicts.json", &done.verdicts, dir)
}

/// Writes into `dir`: `values.parquet` and `values.csv` (a row a number of a run), `results.csv` and `results.arrow` (a row
/// a run and flow).
pub fn tables(ensemble: Ensemble<'_>, dir: &Path) -> Result<(), StoreError> {
    std::fs::create_dir_all(dir).map_err(|source| StoreError { file: dir.display().to_string(), source })?;
    let runs = runs(ensemble.1);
    file(dir, "results.csv", |out| write_csv(&runs, out))?;
    file(dir, "results.arrow", |out| write_arrow(&runs, out))?;
    both(dir, "values", &values(ensemble))
}

/// Writes `charts` into `dir`, which is there: `figures.parquet` and `figures.csv` (a row a point), and each drawn: `figure-1.svg`,
/// `figure-1.pdf`, with its points in `figure-1.csv`.
pub fn figures(charts: &[Chart], dir: &Path) -> Result<(), StoreError> {
    if charts.is_empty() {
        return Ok(());
    }
    both(dir, "figures", &points(charts))?;
    files(charts, "figure", dir).map_err(|source| StoreError { file: dir.display().to_string(), source })
}

/// `table` as Parquet and as CSV.
fn both(dir: &Path, name: &str, table: &RecordBatch) -> Result<(), StoreError> {
    file(dir, &format!("{name}.parquet"), |out| write_parquet(table, out))?;
    file(dir, &format!("{name}.csv"), |out| write_csv(table, out))
}

fn json(name: &str, value: &impl Serialize, dir: &Path) -> Result<(), StoreError> {
    file(dir, name, |mut out| {
        serde_json::to_writer_pretty(&mut out, value)?;
        out.flush()
    })
}

/// A file with this name once it is whole.
fn file(
    dir: &Path,
    name: &str,
    write: impl FnOnce(BufWriter<File>) -> io::Result<()>,
) -> Result<(), StoreError> {
    let (part, path) = (dir.join(format!("{name}.part")), dir.join(name));
    let written = File::create(&part).and_then(|file| write(BufWriter::new(file)));
    written.and_then(|()| std::fs::rename(&part, &path)).map_err(|source| {
        let _ = std::fs::remove_file(&part); // the error that counts is the first
        StoreError { file: path.display().to_string(), source }
    })
}
