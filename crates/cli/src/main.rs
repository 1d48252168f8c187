//! The one binary `polypath`: read the arguments, do what they ask, answer with an exit status.

#[cfg_attr(not(feature = "lab"), expect(dead_code, reason = "only `lab` reads its arguments"))]
mod args;
mod demo;
mod failure;
mod files;
#[cfg(feature = "curl")]
mod hosts;
mod interrupt;
mod keys;
#[cfg_attr(not(feature = "lab"), path = "without_lab.rs")]
mod lab;
mod made;
mod pages;
#[cfg(feature = "lab")]
mod record;
#[cfg(feature = "daemon")]
mod scenarios;
mod table;
mod target;
#[cfg(feature = "curl")]
mod template;
#[cfg(feature = "daemon")]
mod tunnel;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message().is_empty() {
                // The terminal may be gone.
                let _ = writeln!(std::io::stderr(), "{}", shown(&failure));
            }
            failure.status.into()
        }
    }
}

fn shown(failure: &Failure) -> String {
    #[cfg(feature = "daemon")]
    if tunnel::journal::listens() {
        return tunnel::journal::error(failure);
    }
    failure.to_string()
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Lab { command } => lab::run(&command),
        Command::Send(args) => files::send(&args),
        Command::Receive(args) => files::receive(&args),
        #[cfg(feature = "daemon")]
        Command::Tunnel(command) => tunnel::run(&command),
        Command::Keygen(args) => keys::keygen(&args),
        Command::Pubkey(args) => keys::pubkey(&args),
        Command::Hit(args) => keys::hit(&args),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { out } => pages::manual(out.as_deref()),
    }
}
