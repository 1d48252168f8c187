//! `polypath lab` of a binary that was built without it.

use crate::args::LabCommand;
use crate::failure::Failure;

/// Says how to get it.
pub fn run(_: &LabCommand) -> Result<(), Failure> {
    let problem = Failure::usage("this binary was built without `lab`, as `make demo` does");
    Err(problem.help("build all of it with `make build`; it is target/release/polypath then"))
}
