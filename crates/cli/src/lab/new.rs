//! A spec file of one's own, from a template.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use polypath_lab::shelf::{template, templates};
use polypath_lab::spec;

use super::unknown;
use crate::args::NewArgs;
use crate::failure::{Failure, printed};
use crate::table;

/// Writes the template into a new file, or lists the templates.
pub fn new(args: &NewArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else { return list() };
    let text = template(&args.template).map_err(unknown)?;
    keep(&name.with_extension("toml"), text)
}

/// Writes an experiment into a new file, and says how it is run.
pub fn keep(file: &Path, text: &str) -> Result<(), Failure> {
    write(file, text).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!("{} is there already", file.display()))
            .help("give another name, or remove it first"),
        _ => Failure::system(format!("cannot write {}", file.display()), e),
    })?;
    printed(writeln!(io::stdout(), "{0}\nrun it with: polypath lab run {0}", file.display()))
}

/// A file that was there stays as it is.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir)?;
    }
    OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())
}

fn list() -> Result<(), Failure> {
    let mut table = table::wrapped(["template", "shows"], 2);
    for (name, text) in templates() {
        let title = spec::parse(text, name).map(|e| e.spec.title).unwrap_or_default();
        table.add_row([name.to_owned(), title]);
    }
    printed(writeln!(io::stdout(), "{}", table.trim_fmt()))
}
