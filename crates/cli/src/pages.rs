//! Completions and manual pages, from the same definition as the help.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

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
        let mut page = Vec::new();
        return printed(
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .and_then(|()| io::stdout().write_all(&page)),
        );
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .map_err(|e| Failure::system(format!("cannot write manual pages to {}", dir.display()), e))
}
