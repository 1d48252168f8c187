//! `polypath demo`: a real file crosses several emulated paths at once.

mod content;
#[cfg(feature = "curl")]
mod curl;
#[cfg(feature = "curl")]
mod daemons;
#[cfg(feature = "curl")]
mod http;
mod output;
mod patience;
mod plan;
mod progress;
mod real;
mod report;
mod simulated;

use crate::args::DemoArgs;
use crate::failure::{Failure, print_json};
use crate::interrupt::Interrupt;
use content::Content;
use output::Output;
use plan::{Mode, Plan};
use progress::Progress;
use report::Report;
pub use report::suite_name;

/// Sends the file, tells how it went, and fails if it arrived changed.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    #[cfg(feature = "curl")]
    if args.curl {
        return curl::run(args);
    }
    let plan = Plan::new(args)?;
    Output::check(args)?;
    if plan.mode == Mode::Namespaces {
        real::gain_privileges("--netns")?;
    }
    let content = Content::open(args)?;
    let interrupt = Interrupt::listen()?;
    let mut output = Output::begin(args)?;
    let progress = Progress::new(&plan, &content, args.json);
    let run = match plan.mode {
        Mode::Simulated => simulated::run,
        Mode::Loopback | Mode::Namespaces => real::run,
    };
    let outcome = run(&plan, &content, output.as_mut(), &progress, &interrupt)?;
    let alone = simulated::best_single_path(&plan, content.len, &progress, &interrupt)?;
    progress.finish();
    let report = Report::new(&plan, &content, &outcome, alone);
    if report.sha256_match {
        output.map_or(Ok(()), Output::keep)?;
    }
    if args.json { print_json(&report) } else { report.print_table() }?;
    match report.sha256_match {
        true => Ok(()),
        false => Err(Failure::unmet("the file arrived changed")
            .help("this is a bug: please report it with the command")),
    }
}
