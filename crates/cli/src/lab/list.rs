//! The experiments there are.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polypath_lab::spec::{self, Experiment};
use serde_json::json;

use crate::failure::{Failure, printed};
use crate::table;

/// Prints the experiments below `dir`; a file that is no good spec is told on standard error.
pub fn list(dir: &Path, as_json: bool) -> Result<(), Failure> {
    let files = files(dir).map_err(|e| {
        Failure::system(format!("cannot list {}", dir.display()), e)
            .help("run it in a clone of Polypath, or say where the experiments are with --dir")
    })?;
    let (mut experiments, mut bad) = (Vec::new(), 0);
    for file in files {
        match spec::load(&file) {
            Ok(experiment) => experiments.push(experiment),
            Err(e) => {
                eprintln!("error: {e}");
                bad += 1;
            }
        }
    }
    let text = if as_json { json_of(&experiments) } else { table_of(&experiments) };
    printed(writeln!(io::stdout(), "{text}"))?;
    match bad {
        0 => Ok(()),
        n => Err(Failure::usage(format!("{n} of the files are no experiments: see above"))),
    }
}

/// All `<group>/<name>.toml` in order.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for group in std::fs::read_dir(dir)? {
        let group = group?.path();
        if !group.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(group)? {
            found.push(file?.path());
        }
    }
    found.retain(|file| file.extension().is_some_and(|e| e == "toml"));
    found.sort();
    Ok(found)
}

fn table_of(experiments: &[Experiment]) -> String {
    let mut table = table::wrapped(["experiment", "shows", "cells", "seeds"], 2);
    for e in experiments {
        let seeds = e.spec.seeds.iter().count();
        table.add_row([e.name.clone(), e.spec.title.clone(), e.cells.len().to_string(), seeds.to_string()]);
    }
    table.trim_fmt()
}

fn json_of(experiments: &[Experiment]) -> String {
    let one = |e: &Experiment| {
        let cells: Vec<_> = e.cells.iter().map(|c| c.label.as_str()).collect();
        json!({ "name": e.name, "title": e.spec.title, "cells": cells, "seeds": e.spec.seeds })
    };
    serde_json::to_string_pretty(&experiments.iter().map(one).collect::<Vec<_>>()).expect("strings serialise")
}
