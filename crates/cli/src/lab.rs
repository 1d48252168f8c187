//! `polypath lab`: list experiments, begin one, run one or a group, print the schema of their files.

mod frontier;
mod group;
mod list;
mod new;
mod output;
mod replay;
mod speed;
mod trace;

use std::io::{self, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use polypath_lab::check::{self, Ensemble};
use polypath_lab::group::{Done, Nulls};
use polypath_lab::run::{Capture, Keep, RunError, Wanted};
use polypath_lab::seeds::SeedRange;
use polypath_lab::shelf::{self, Shelf, Unknown, find};
use polypath_lab::spec::{self, Assignment, Experiment, LoadError};
use polypath_lab::sweep::{on_cores, sweep};

use crate::args::{LabCommand, RunArgs};
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;

/// What to do about too many runs.
const FEWER_SEEDS: &str =
    "give fewer seeds, as in --seeds 1..20, or one cell of the grid, as `lab run --cell` does";

/// Does what `command` says.
pub fn run(command: &LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::List { dir, json } => list::list(dir.as_deref(), *json),
        LabCommand::Run(args) => run_experiment(args),
        LabCommand::Check(args) => group::check(args),
        LabCommand::Report(args) if args.group.group == "frontier" => frontier::page(args),
        LabCommand::Report(args) => group::page(args),
        LabCommand::New(args) => new::new(args),
        LabCommand::Frontier(args) => frontier::run(args),
        LabCommand::Trace(args) => trace::draw(args),
        LabCommand::Record(args) => crate::record::record(args),
        LabCommand::Replay(args) => replay::replay(args),
        LabCommand::Speed(args) => speed::speed(args),
        LabCommand::Schema => printed(write!(io::stdout(), "{}", spec::schema())),
    }
}

fn run_experiment(args: &RunArgs) -> Result<(), Failure> {
    let shelf = Shelf::at(None);
    let experiment = loaded(args, &shelf).map_err(not_loaded)?;
    let cells = match &args.cell {
        Some(label) => vec![shelf::cell(&experiment, label).map_err(unknown)?.clone()],
        None => experiment.cells.clone(),
    };
    let nulls = match args.cell.is_none() && args.set.is_empty() {
        true => Nulls::of(&experiment, &shelf).map_err(not_loaded)?,
        false => Nulls::default(), // what is compared with them is another experiment than theirs
    };
    let seeds = args.seed.map(SeedRange::one).or(args.seeds).unwrap_or(experiment.spec.seeds);
    let all = seeds
        .runs(cells.len() + nulls.cells())
        .map_err(|e| Failure::usage(format!("{}: {e}", experiment.name)))
        .map_err(|e| e.help(FEWER_SEEDS))?;
    let capture = Capture { links: args.pcap_links.clone(), snap: args.pcap_bytes };
    let trace = wanted(args);
    if let (Some(from), Some(to)) = (args.trace_from, args.trace_to)
        && to.0 <= from.0
    {
        return Err(Failure::usage(format!("--trace-to {to} is not after --trace-from {from}"))
            .help("nothing would be kept: give a later time, or leave one of them out"));
    }
    let check = |spec| capture.check(spec).and_then(|()| trace.check(spec));
    cells.iter().try_for_each(|cell| check(&cell.spec)).map_err(unknown)?;
    let keep = Keep {
        dir: args.out.clone().unwrap_or_default(),
        capture: args.pcap.then_some(capture),
        trace: args.trace.then_some(trace),
        also: vec![],
    };
    let interrupt = Interrupt::listen()?;
    let (bar, stop) = (bar(all, args.json), interrupt.stop());
    let runs = on_cores(args.jobs, || {
        let own = sweep(&cells, seeds, &keep, &stop, |_| bar.inc(1))?;
        Ok::<_, RunError>((own, nulls.run(seeds, &stop, |_| bar.inc(1))?))
    });
    bar.finish_and_clear();
    let failed = |e: RunError| Failure::system(format!("{} failed", experiment.name), e);
    let (runs, of_nulls) = runs.map_err(failed)?;
    let others: Vec<Ensemble<'_>> = of_nulls.iter().map(|(e, runs)| (*e, &runs[..])).collect();
    let verdicts =
        if interrupt.check().is_ok() { check::check((&experiment, &runs), &others) } else { vec![] };
    let done = Done { experiment, seeds, runs, verdicts, own: true };
    if let Some(dir) = &args.out {
        output::write(&done, dir)?;
    }
    let whole = args.cell.is_none() && interrupt.check().is_ok();
    let drawn = output::draw(done.ensemble(), whole, args.out.as_deref());
    if args.json { output::print_json(&done) } else { output::print_table(&done) }?;
    interrupt.check().map_err(|e| e.help(ended(done.runs.len(), all, args.out.as_deref())))?;
    drawn?;
    match done.verdicts.iter().filter(|v| !v.is_expected()).count() {
        0 => Ok(()),
        n => Err(Failure::unmet(format!("{n} of {} expectations unmet", done.verdicts.len()))
            .help(format!("repeat it with: {}", again(args, seeds)))),
    }
}

/// The experiment that the arguments name, with the values that they set.
fn loaded(args: &RunArgs, shelf: &Shelf) -> Result<Experiment, LoadError> {
    let set = args.set.iter().map(|text| Assignment::parse(text)).collect::<Result<Vec<_>, _>>()?;
    Ok(find(&args.spec, shelf)?.with(&set)?)
}

/// The observations that the arguments ask for.
fn wanted(args: &RunArgs) -> Wanted {
    Wanted {
        flows: args.trace_flows.clone(),
        paths: args.trace_paths.clone(),
        events: args.trace_events.clone(),
        from: args.trace_from.map(|time| time.0),
        to: args.trace_to.map(|time| time.0),
    }
}

/// The arguments with which a run of `seeds` is what it was.
fn again(args: &RunArgs, seeds: SeedRange) -> String {
    let set = args.set.iter().map(|text| format!(" --set {}", shlex::try_quote(text).unwrap_or(text.into())));
    format!("polypath lab run {}{} --seeds {seeds}", args.spec.display(), set.collect::<String>())
}

/// What is left of an interrupted experiment or group.
fn ended(runs: usize, all: u64, out: Option<&Path>) -> String {
    let kept = match out {
        Some(dir) => format!("their results are in {}", dir.display()),
        None => "with --out their results are kept".to_owned(),
    };
    format!("{runs} of {all} runs had ended; {kept}")
}

/// Why an experiment was not loaded.
fn not_loaded(error: LoadError) -> Failure {
    match error {
        LoadError::Spec(e) => Failure::usage(e.to_string()),
        LoadError::Unknown(e) => unknown(e),
        LoadError::Read { .. } => Failure::refused(error).help("`polypath lab list` lists the experiments"),
    }
}

/// A name that nothing has.
fn unknown(error: Unknown) -> Failure {
    Failure::usage(error.to_string()).help(error.help)
}

/// A bar over the runs; indicatif hides it where standard error is no terminal.
fn bar(runs: u64, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left");
    ProgressBar::new(runs).with_style(style.expect("the template is well-formed").progress_chars("━╸─"))
}

/// A count of runs, of which nobody knows how many there will be.
fn counter(hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} runs");
    ProgressBar::new_spinner().with_style(style.expect("the template is well-formed"))
}
