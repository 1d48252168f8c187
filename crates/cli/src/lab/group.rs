//! `lab check` and `lab report`: a whole group of experiments.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polypath_lab::check::{self, Verdict};
use polypath_lab::group::{Done, Group, GroupError};
use polypath_lab::report;
use polypath_lab::shelf::{Shelf, find};
use serde_json::{Value, json};

use super::{FEWER_SEEDS, bar, counter, ended, not_loaded, output, unknown};
use crate::args::{CheckArgs, GroupArgs, ReportArgs};
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;
use crate::table;

/// What is left of published claims that were interrupted.
const UNSETTLED: &str =
    "what had ended is not kept: begin again with the same seed, and the runs are the same";

/// Runs a group, prints the table, and fails if a band is unmet.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let kept: Vec<Value> = args.against.iter().map(|file| earlier(file)).collect::<Result<_, _>>()?;
    let interrupt = Interrupt::listen()?;
    let group = load(&args.group)?;
    let (done, all) = match args.settle {
        Some(first) => (settle(group, first, &interrupt, args.json)?, None),
        None => {
            let group = if args.only_answers() { group.only_asked() } else { group };
            run(group, &interrupt, args.json).map(|(done, all)| (done, Some(all)))?
        }
    };
    if let Some(dir) = &args.out {
        with_runs(&done).try_for_each(|d| output::write_verdicts(d, &place(d, dir)))?;
    }
    let runs = done.iter().map(|d| d.runs.len()).sum();
    let left = || all.map_or(UNSETTLED.to_owned(), |all| ended(runs, all, args.out.as_deref()));
    interrupt.check().map_err(|e| e.help(left()))?;
    if let Some(dir) = &args.out {
        with_runs(&done).try_for_each(|d| output::draw(d.ensemble(), true, Some(&place(d, dir))))?;
    }
    if let Some(file) = &args.report {
        write_page(&args.group, &done, file)?;
    }
    done.iter().filter(|d| d.own).try_for_each(|d| draw(d, args.figures.as_deref()))?;
    let text = if args.json { json_of(&args.group.group, &done) } else { table_of(&done, args.group.quick) };
    printed(writeln!(io::stdout(), "{text}"))?;
    let fixed: Vec<&str> = done.iter().filter(|d| d.own && d.is_fixed()).map(Done::short_name).collect();
    if !fixed.is_empty() {
        let which = fixed.join(", ");
        printed(writeln!(io::stderr(), "all seeds of {which} give {}", output::NOTHING_RANDOM))?;
    }
    if !kept.is_empty() {
        return compare(&done, &kept, args.settle.is_some());
    }
    let all = verdicts(&done).count();
    let (open, unmet): (Vec<_>, Vec<_>) = verdicts(&done)
        .filter(|(_, v)| !v.is_expected())
        .partition(|(d, v)| args.group.quick && is_open(d, v));
    if !open.is_empty() {
        let why = "so few seeds do not decide; without --quick they are judged";
        printed(writeln!(io::stderr(), "{} of {all} bands are open: {why}", open.len()))?;
    }
    match unmet.len() {
        0 => Ok(()),
        n => Err(Failure::unmet(format!("{n} of {all} expectations unmet")).help(format!(
            "repeat it with: polypath lab check {}{}",
            args.group.group,
            args.group.seeds_text()
        ))),
    }
}

/// Whether there were too few seeds to judge a band; a fault of a run is one with any.
fn is_open(done: &Done, verdict: &Verdict) -> bool {
    done.seeds.iter().count() < done.experiment.spec.seeds.iter().count() && !verdict.claim.is_empty()
}

/// Fails if an answer is not as it was `kept`, or what is kept is not what the specs ask. Says what has no test.
fn compare(done: &[Done], kept: &[Value], settled: bool) -> Result<(), Failure> {
    let own: Vec<&Done> = done.iter().filter(|d| d.own).collect();
    let specs: Vec<_> = own.iter().map(|d| &d.experiment).collect();
    let (mut found, mut tested) = (check::misfits(&specs, kept, settled), 0);
    let mut untested = check::unjudged(&specs);
    untested.iter_mut().for_each(|one| one.push_str(" (its finding from the kept numbers)"));
    for d in own {
        let compared = check::compare(&d.experiment, &d.verdicts, kept);
        tested += compared.tested;
        found.extend(compared.differ);
        untested.extend(compared.untested.into_iter().map(|one| one + " (its value)"));
    }
    let untested: String = untested.iter().map(|one| format!("\n  {one}")).collect();
    let no_test = if untested.is_empty() { String::new() } else { format!("; without a test:{untested}") };
    printed(writeln!(io::stderr(), "{tested} values compared with those kept{no_test}"))?;
    match found.len() {
        0 => Ok(()),
        n => Err(Failure::unmet(format!("{n} answers differ from those kept:\n{}", found.join("\n")))),
    }
}

/// What an earlier check printed into `file`.
fn earlier(file: &Path) -> Result<Value, Failure> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|e| Failure::system(format!("cannot read {name}"), e))?;
    let other = |why: &str| Failure::usage(format!("{name} is not what `lab check --json` prints: {why}"));
    let kept: Value = serde_json::from_str(&text).map_err(|e| other(&e.to_string()))?;
    match kept["experiments"].is_array() {
        true => Ok(kept),
        false => Err(other("it has no \"experiments\"")),
    }
}

/// Runs a group or one experiment, and writes the page.
pub fn page(args: &ReportArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    let name = &args.group.group;
    let is_one = name.contains('/') || Path::new(name).extension().is_some();
    let group = if is_one { load_one(&args.group)? } else { load_group(&args.group)? };
    let (done, _) = run(group, &interrupt, false)?;
    interrupt.check()?;
    write_page(&args.group, &done, &args.out)?;
    printed(writeln!(io::stdout(), "{}", args.out.display()))
}

/// The group of a page. One that is not there may have been meant for an experiment, or for the frontier.
fn load_group(args: &GroupArgs) -> Result<Group, Failure> {
    let shelf = Shelf::at(args.dir.as_deref());
    Group::load(&shelf, &args.group, args.chosen()).map_err(|e| match e {
        GroupError::Unknown(e) if e.what == "group" => unknown(shelf.nothing_to_report(&args.group)),
        e => explained(&args.group, e),
    })
}

fn load(args: &GroupArgs) -> Result<Group, Failure> {
    Group::load(&Shelf::at(args.dir.as_deref()), &args.group, args.chosen())
        .map_err(|e| explained(&args.group, e))
}

fn load_one(args: &GroupArgs) -> Result<Group, Failure> {
    let shelf = Shelf::at(args.dir.as_deref());
    let experiment = find(Path::new(&args.group), &shelf).map_err(not_loaded)?;
    Group::one(experiment, &shelf, args.chosen()).map_err(|e| explained(&args.group, e))
}

/// What came out, and how many runs there are if nobody interrupts.
fn run(group: Group, interrupt: &Interrupt, quiet: bool) -> Result<(Vec<Done>, u64), Failure> {
    let (name, all) = (group.name.clone(), group.runs());
    let bar = bar(all, quiet);
    let done = group.run(&interrupt.stop(), || bar.inc(1));
    bar.finish_and_clear();
    Ok((done.map_err(|e| explained(&name, e))?, all))
}

/// What was found of the published claims, with as many runs as they need.
fn settle(group: Group, first: u64, interrupt: &Interrupt, quiet: bool) -> Result<Vec<Done>, Failure> {
    let name = group.name.clone();
    let bar = counter(quiet);
    let done = group.settle(first, &interrupt.stop(), || bar.inc(1));
    bar.finish_and_clear();
    done.map_err(|e| explained(&name, e))
}

fn explained(group: &str, error: GroupError) -> Failure {
    match error {
        GroupError::Load(e) => not_loaded(e),
        GroupError::Unknown(e) => unknown(e),
        GroupError::TooMany(..) => Failure::usage(error.to_string()).help(FEWER_SEEDS),
        GroupError::Run(e) => Failure::system(format!("{group} failed"), e),
    }
}

/// The group's own experiments of which runs ended.
fn with_runs(done: &[Done]) -> impl Iterator<Item = &Done> {
    done.iter().filter(|d| d.own && !d.runs.is_empty())
}

fn verdicts(done: &[Done]) -> impl Iterator<Item = (&Done, &Verdict)> {
    done.iter().flat_map(|d| d.verdicts.iter().map(move |v| (d, v)))
}

fn table_of(done: &[Done], quick: bool) -> String {
    let null = "null,\n95 % of runs";
    let headers = ["experiment", "claim", "finding", "as\nTCP", "band", "paper", "ours", "n", null, "power"];
    let mut table = table::wrapped(headers, 5);
    for (d, v) in verdicts(done) {
        table.add_row([
            d.short_name().to_owned(),
            claim(v),
            v.finding.map_or("–".into(), |f| f.to_string()),
            v.as_tcp.map_or("–".into(), |answer| answer.to_string()),
            if quick && !v.is_expected() && is_open(d, v) { "open" } else { v.band() }.to_owned(),
            v.published.map_or("–".into(), |p| v.shown(p)),
            ours(v),
            if v.n < v.of { format!("{} of {}", v.n, v.of) } else { v.n.to_string() },
            v.null.as_ref().map_or("–".into(), |n| {
                format!("{} [{}, {}]", v.shown(n.middle), v.shown(n.single.low), v.shown(n.single.high))
            }),
            v.power.map_or("–".into(), |power| format!("{power:.2}")),
        ]);
    }
    table.trim_fmt()
}

fn claim(v: &Verdict) -> String {
    match (v.claim.as_str(), v.cell.as_str()) {
        ("", _) => v.expectation.clone(),
        (claim, "") => claim.to_owned(),
        (claim, cell) => format!("{claim} ({cell})"),
    }
}

fn ours(v: &Verdict) -> String {
    let value = v.value.map_or("–".into(), |value| v.shown(value));
    let interval = v.ci95.map_or(String::new(), |ci| format!(" ± {}", v.shown(ci)));
    let unit = if v.unit.0.is_empty() { String::new() } else { format!(" {}", v.unit.0) };
    format!("{value}{interval}{unit}")
}

fn json_of(group: &str, done: &[Done]) -> String {
    let one = |d: &Done| json!({ "experiment": d.experiment.name, "seeds": d.seeds, "verdicts": d.verdicts });
    let own: Vec<Value> = done.iter().filter(|d| d.own).map(one).collect();
    let met = verdicts(done).all(|(_, v)| v.is_expected());
    let all = json!({ "group": group, "met": met, "experiments": own });
    serde_json::to_string_pretty(&all).expect("numbers and strings serialise")
}

/// Where in `dir` the results of an experiment stand.
fn place(done: &Done, dir: &Path) -> PathBuf {
    dir.join(done.short_name())
}

/// Every figure has data; each is drawn in `dir`.
fn draw(done: &Done, dir: Option<&Path>) -> Result<(), Failure> {
    let charts = report::charts(done.ensemble()).map_err(|e| Failure::usage(e.to_string()))?;
    let Some(dir) = dir else { return Ok(()) };
    report::files(&charts, done.short_name(), dir)
        .map_err(|e| Failure::system(format!("cannot write figures to {}", dir.display()), e))
}

fn write_page(args: &GroupArgs, done: &[Done], file: &Path) -> Result<(), Failure> {
    let again = report::Again::Command(args.dir.as_deref());
    let about = report::About { name: &args.group, seeds: args.chosen(), again };
    let page = report::page(&about, done).map_err(|e| Failure::usage(e.to_string()))?;
    output::write_page(&page, file)
}
