//! `lab frontier`: controllers over random scenarios, by what they take, leave to others and leave unused.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use polypath_lab::columns;
use polypath_lab::frontier::{self, Outcome, Plan, Score, Spread};
use polypath_lab::report::{self, Frontier};
use polypath_lab::scenarios::{self, CONTROLLERS, NULL, Scenario, VARIANTS};
use polypath_lab::sweep::on_cores;
use serde_json::json;

use super::bar;
use super::output::write_page;
use crate::args::{FrontierArgs, ReportArgs};
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;
use crate::table;

/// Runs the scenarios and prints a row for each controller.
pub fn run(args: &FrontierArgs) -> Result<(), Failure> {
    if let Some(number) = args.spec {
        return printed(write!(io::stdout(), "{}", scenarios::experiment(number).text));
    }
    let interrupt = Interrupt::listen()?;
    let outcomes = outcomes(args, &interrupt)?;
    let scores = frontier::scores(&outcomes, args.pipe);
    let text = if args.json { json_of(args, &scores, &outcomes) } else { text_of(args, &scores, &outcomes) };
    printed(writeln!(io::stdout(), "{text}"))?;
    interrupt.check()
}

/// Runs the scenarios whose numbers are the seeds, and writes the page.
pub fn page(args: &ReportArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    outcomes(&FrontierArgs::of_page(args), &interrupt)?;
    interrupt.check()?;
    printed(writeln!(io::stdout(), "{}", args.out.display()))
}

/// What came out, kept where the arguments say.
fn outcomes(args: &FrontierArgs, interrupt: &Interrupt) -> Result<Vec<Outcome>, Failure> {
    let controllers: Vec<&str> = match &args.controllers[..] {
        [] => CONTROLLERS.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let variants = VARIANTS.map(|(name, ..)| name);
    let all = [&CONTROLLERS[..], &variants].concat();
    if let Some(name) = controllers.iter().find(|name| !all.contains(name)) {
        let known = format!("there are {}", all.join(", "));
        return Err(Failure::usage(format!("the frontier has no controller \"{name}\"")).help(known));
    }
    let stop = interrupt.stop();
    let rivals = |number: &u64| {
        let rival = Scenario::draw(*number).rival.law();
        args.rivals.is_empty() || args.rivals.iter().any(|law| law == rival)
    };
    let plan = Plan::new(args.scenarios.iter().filter(rivals), &controllers, args.runs);
    let bar = bar(plan.runs(), args.json);
    let outcomes = on_cores(args.jobs, || plan.run(&stop, || bar.inc(1)));
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|e| Failure::system("the frontier failed", e))?;
    if let Some(file) = &args.out {
        keep(&outcomes, file)?;
    }
    if let Some(file) = &args.report {
        draw(args, &outcomes, file)?;
    }
    Ok(outcomes)
}

fn draw(args: &FrontierArgs, outcomes: &[Outcome], file: &Path) -> Result<(), Failure> {
    let FrontierArgs { scenarios, runs, pipe, worst, .. } = *args;
    let about = Frontier { scenarios, runs, pipe, worst, again: &again(args, file) };
    write_page(&report::frontier(&about, outcomes), file)
}

/// The command that writes the page into `file` again.
fn again(args: &FrontierArgs, file: &Path) -> String {
    let only = |option, some: &[String]| match some {
        [] => String::new(),
        some => format!(" --{option} {}", some.join(",")),
    };
    let number = |option, value: u64, usual: u64| match value == usual {
        true => String::new(),
        false => format!(" --{option} {value}"),
    };
    let options = [
        only("controllers", &args.controllers),
        only("rivals", &args.rivals),
        number("runs", args.runs, 1),
        number("pipe", args.pipe, FrontierArgs::PIPE),
        number("worst", args.worst as u64, FrontierArgs::WORST as u64),
    ];
    let (scenarios, options) = (args.scenarios, options.concat());
    format!("polypath lab frontier --scenarios {scenarios}{options} --report {}", file.display())
}

fn keep(outcomes: &[Outcome], file: &Path) -> Result<(), Failure> {
    let written = File::create(file)
        .and_then(|out| columns::write_csv(&frontier::table(outcomes), BufWriter::new(out)));
    written.map_err(|e| Failure::system(format!("cannot write {}", file.display()), e))
}

fn text_of(args: &FrontierArgs, scores: &[Score], outcomes: &[Outcome]) -> String {
    let headers = [
        "controller",
        "bottle-\nnecks",
        "FF",
        "FF,\np5",
        "FF,\np95",
        "starved,\n%",
        "of a\nTCP",
        "of a\nTCP, p5",
        "of a\nTCP, p95",
        "TCPs\nkeep",
        "keep,\np5",
        "harmless,\n%",
        "harmful,\n%",
        "and\nFF > 1",
        "their\nRTT",
        "RTT,\np95",
        "scenarios",
        "of fair\nshare",
        "share,\np5",
        "used",
        "used,\np5",
    ];
    let mut table = table::wrapped(headers, 1);
    let none = || "–".to_owned();
    let two =
        |of: Option<Spread>, value: fn(Spread) -> f64| of.map_or_else(none, |of| format!("{:.2}", value(of)));
    let percent = |share: Option<f64>| share.map_or_else(none, |share| format!("{:.0}", share * 100.0));
    for s in scores {
        let low = |of| [two(of, |of| of.median), two(of, |of| of.p5)];
        let spread = |of| [two(of, |of| of.median), two(of, |of| of.p5), two(of, |of| of.p95)];
        let mut row = vec![s.controller.clone(), s.bottlenecks.to_string()];
        row.extend(spread(s.ff));
        row.push(percent(s.starved));
        row.extend(spread(s.taken));
        row.extend(low(s.left));
        row.extend([percent(s.harmless), percent(s.harmful), percent(s.greedy)]);
        row.extend([two(s.rtt, |of| of.median), two(s.rtt, |of| of.p95), s.scenarios.to_string()]);
        row.extend(low(s.share));
        row.extend(low(s.used));
        table.add_row(row);
    }
    let mut text = table.trim_fmt();
    for s in scores.iter().filter(|s| s.controller != NULL) {
        let worst = frontier::worst(&s.controller, outcomes, args.pipe, args.worst);
        let shown = |w: &frontier::Worst| {
            let again = frontier::repeats(w.scenario, &s.controller, args.runs);
            let (left, taken) = (w.left, w.taken);
            format!(
                "  TCPs keep {left:.2}, {taken:.2} of a TCP, FF {:.2} (a TCP's {:.2}): {again}\n",
                w.ff, w.null_ff
            )
        };
        if !worst.is_empty() {
            text += &format!("\n\n{} leaves TCPs least in\n", s.controller);
            text += worst.iter().map(shown).collect::<String>().trim_end();
        }
    }
    text
}

fn json_of(args: &FrontierArgs, scores: &[Score], outcomes: &[Outcome]) -> String {
    let worst: serde_json::Map<_, _> = scores
        .iter()
        .map(|s| {
            (s.controller.clone(), json!(frontier::worst(&s.controller, outcomes, args.pipe, args.worst)))
        })
        .collect();
    let all = json!({ "scores": scores, "worst": worst });
    serde_json::to_string_pretty(&all).expect("numbers and strings serialise")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command, LabCommand};

    #[test]
    fn the_page_names_the_command_that_makes_it_again() {
        for options in ["", " --controllers cubic --rivals bbr --runs 4 --pipe 10 --worst 5"] {
            let line = format!("polypath lab frontier --scenarios 3..7{options} --report a.html");
            let Command::Lab { command: LabCommand::Frontier(args) } =
                Cli::parse_from(line.split(' ')).command
            else {
                panic!("{line}")
            };
            assert_eq!(again(&args, Path::new("a.html")), line);
        }
    }
}
