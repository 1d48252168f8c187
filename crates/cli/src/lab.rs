//! `polypath lab`: list experiments, run one or a group, print the schema of their files.

mod group;
mod list;
mod output;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use polypath_lab::check::{self, Verdict};
use polypath_lab::results::Run;
use polypath_lab::run::Keep;
use polypath_lab::seeds::SeedRange;
use polypath_lab::spec::{self, Cell, Experiment, LoadError};
use polypath_lab::sweep::sweep;

use crate::args::{LabCommand, RunArgs};
use crate::failure::{Failure, printed};

/// Where experiments are looked for by name.
const DIR: &str = "experiments";

/// What to do about too many runs.
const FEWER_SEEDS: &str =
    "give fewer seeds, as in --seeds 1..20, or one cell of the grid, as `lab run --cell` does";

/// Does what `command` says.
pub fn run(command: &LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::List { dir, json } => list::list(dir, *json),
        LabCommand::Run(args) => run_experiment(args),
        LabCommand::Check(args) => group::check(args),
        LabCommand::Report(args) => group::page(args),
        LabCommand::Schema => {
            let schema = serde_json::to_string_pretty(&spec::schema()).expect("a schema is JSON");
            printed(writeln!(io::stdout(), "{schema}"))
        }
    }
}

/// An experiment that was run, and what came out.
pub struct Done<'a> {
    pub experiment: &'a Experiment,
    pub seeds: SeedRange,
    pub runs: Vec<Run>,
    pub verdicts: Vec<Verdict>,
}

fn run_experiment(args: &RunArgs) -> Result<(), Failure> {
    let experiment = load(&args.spec)?;
    let cells = cells(&experiment, args.cell.as_deref())?;
    let seeds = args.seed.map(SeedRange::one).or(args.seeds).unwrap_or(experiment.spec.seeds);
    let all = seeds
        .runs(cells.len())
        .map_err(|e| Failure::usage(format!("{}: {e}", experiment.name)))
        .map_err(|e| e.help(FEWER_SEEDS))?;
    let keep = Keep {
        dir: args.out.clone().unwrap_or_default(),
        capture: args.pcap,
        trace: args.trace,
        also: vec![],
    };
    let bar = bar(all, args.json);
    let runs = sweep(&cells, seeds, &keep, |_| bar.inc(1));
    bar.finish_and_clear();
    let runs = runs.map_err(|e| Failure::system(format!("{} failed", experiment.name), e))?;
    let verdicts = check::check((&experiment, &runs), &[]);
    let done = Done { experiment: &experiment, seeds, runs, verdicts };
    if let Some(dir) = &args.out {
        output::write(&done, dir)?;
    }
    if args.json { output::print_json(&done) } else { output::print_table(&done) }?;
    match done.verdicts.iter().filter(|v| !v.met).count() {
        0 => Ok(()),
        n => Err(Failure::unmet(format!("{n} of {} expectations unmet", done.verdicts.len()))
            .help(format!("repeat it with: polypath lab run {} --seeds {seeds}", args.spec.display()))),
    }
}

/// A file, or a name below `experiments/`.
fn load(spec: &Path) -> Result<Experiment, Failure> {
    let named = PathBuf::from(DIR).join(spec).with_extension("toml");
    let file = if !spec.exists() && named.exists() { &named } else { spec };
    spec::load(file).map_err(|e| match e {
        LoadError::Spec(e) => Failure::usage(e.to_string()),
        LoadError::Read { .. } => {
            Failure::usage(e.to_string()).help("see `polypath lab list` for what there is")
        }
    })
}

fn cells(experiment: &Experiment, only: Option<&str>) -> Result<Vec<Cell>, Failure> {
    let Some(only) = only else { return Ok(experiment.cells.clone()) };
    let found: Vec<Cell> = experiment.cells.iter().filter(|c| c.label == only).cloned().collect();
    if found.is_empty() {
        let labels: Vec<_> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
        let help = format!("the cells of {} are: {}", experiment.name, labels.join("  "));
        return Err(Failure::usage(format!("no cell is labelled {only:?}")).help(help));
    }
    Ok(found)
}

/// A bar over the runs; indicatif hides it where standard error is no terminal.
fn bar(runs: u64, hidden: bool) -> ProgressBar {
    if hidden {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {eta} left");
    ProgressBar::new(runs).with_style(style.expect("the template is well-formed").progress_chars("━╸─"))
}
