//! `polypath demo`: a real file crosses several emulated paths at once.

mod content;
mod plan;
mod progress;
mod real;
mod report;
mod simulated;

use crate::args::DemoArgs;
use crate::failure::Failure;
use content::Content;
use plan::{Mode, Plan};
use progress::Progress;
use report::Report;
pub use report::suite_name;

/// Sends the file, tells how it went, and fails if it arrived changed.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    let plan = Plan::new(args)?;
    if plan.mode == Mode::Namespaces {
        real::gain_privileges()?;
    }
    let content = Content::open(args)?;
    let progress = Progress::new(&plan, &content, args.json);
    let outcome = match plan.mode {
        Mode::Simulated => simulated::run(&plan, &content, &progress)?,
        Mode::Loopback | Mode::Namespaces => real::run(&plan, &content, args.output.as_deref(), &progress)?,
    };
    progress.finish();
    let report = Report::new(&plan, &content, &outcome, simulated::best_single_path(&plan, content.len)?);
    if args.json { report.print_json() } else { report.print_table() }?;
    match report.sha256_match {
        true => Ok(()),
        false => Err(Failure::unmet("the file arrived changed")
            .help("this is a bug: please report it with the command")),
    }
}
