//! The experiments there are.

use std::io::{self, Write};
use std::path::Path;

use polypath_lab::shelf::Shelf;
use polypath_lab::spec::Experiment;
use serde_json::json;

use crate::failure::{Failure, printed};
use crate::table;

/// Prints the experiments below `dir`, or else those there are; a file that is no good spec is named on standard error.
pub fn list(dir: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let shelf = Shelf::at(dir);
    let names = shelf.names().map_err(|e| {
        Failure::system(format!("cannot list {shelf}"), e)
            .help("give the directory of the experiments with --dir")
    })?;
    let (mut experiments, mut bad) = (Vec::new(), 0);
    for name in names {
        match shelf.load(&name) {
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
        n => Err(Failure::usage(format!("{n} of the files are not experiments: see above"))),
    }
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
