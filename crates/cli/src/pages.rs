//! Completions and manual pages, from the same definition as the help.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::{Failure, printed};

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "polypath", &mut script);
    printed(io::stdout().write_all(&script))
}

/// Prints the manual page of the program, or writes one page per command into `dir`.
pub fn manual(dir: Option<&Path>) -> Result<(), Failure> {
    let Some(dir) = dir else {
        return printed(
            page(&Man::new(Cli::command())).and_then(|page| io::stdout().write_all(page.as_bytes())),
        );
    };
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    fs::create_dir_all(dir)
        .and_then(|()| pages(program, dir))
        .map_err(|e| Failure::system(format!("cannot write manual pages to {}", dir.display()), e))
}

/// Writes the manual page of `command`, and of each of its subcommands, into `dir`.
fn pages(command: clap::Command, dir: &Path) -> io::Result<()> {
    command
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
        .cloned()
        .try_for_each(|one| pages(one, dir))?;
    let man = Man::new(command);
    fs::write(dir.join(man.get_filename()), page(&man)?)
}

/// The text of a page. clap names the section after the help EXTRA; it contains the examples.
fn page(man: &Man) -> io::Result<String> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n"))
}
