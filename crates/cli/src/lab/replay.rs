//! A real run again, in the simulator.

use std::fs;
use std::io::{self, Write};

use polypath_lab::metric::Metric;
use polypath_lab::replay::{Replay, Transfer};
use polypath_lab::results::{Run, Summary};
use polypath_lab::run::{Keep, RunError};
use polypath_lab::seeds::SeedRange;
use polypath_lab::spec;
use polypath_lab::sweep::{on_cores, sweep};
use serde_json::json;

use super::{bar, new};
use crate::args::ReplayArgs;
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;
use crate::table;

/// Runs the log, or writes it as an experiment.
pub fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let name = args.log.display().to_string();
    let text = match name.as_str() {
        "-" => io::read_to_string(io::stdin()),
        _ => fs::read_to_string(&args.log),
    };
    let text = text.map_err(|e| Failure::system(format!("cannot read {name}"), e))?;
    let replay = Replay::of(&text, args.peer.as_deref()).map_err(|e| {
        Failure::usage(format!("{name}: {e}")).help(match args.log.extension() {
            Some(toml) if toml == "toml" => format!("`polypath lab run {name}` runs an experiment"),
            _ => "`polypath status --watch --json > LOG` writes one, on the host that sends".to_owned(),
        })
    })?;
    if let Some(file) = &args.write {
        return new::keep(file, &replay.spec);
    }
    let experiment = spec::parse(&replay.spec, &name).map_err(|e| Failure::usage(e.to_string()))?;
    let seeds = args.seeds.unwrap_or(experiment.spec.seeds);
    let interrupt = Interrupt::listen()?;
    let (bar, stop) = (bar(seeds.iter().count() as u64, args.json), interrupt.stop());
    let runs = on_cores(None, || sweep(&experiment.cells, seeds, &Keep::default(), &stop, |_| bar.inc(1)));
    bar.finish_and_clear();
    let runs = runs.map_err(|e: RunError| Failure::system("the simulation failed", e))?;
    interrupt.check()?;
    let took: Vec<Option<Summary>> = (1..=replay.transfers.len()).map(|n| completion(&runs, n)).collect();
    match args.json {
        true => print_json(&replay, &took),
        false => print(&replay, &took, seeds),
    }
}

/// How long a transfer took where it finished, seconds.
fn completion(runs: &[Run], transfer: usize) -> Option<Summary> {
    let flow = format!("transfer{transfer}");
    Summary::of(&runs.iter().filter_map(|run| run.metric(Metric::Completion, &flow)).collect::<Vec<_>>())
}

fn print(replay: &Replay, took: &[Option<Summary>], seeds: SeedRange) -> Result<(), Failure> {
    let mut table = table::plain(vec!["transfer", "at, s", "MB", "recorded, s", "simulated, s", "ratio"], 1);
    for ((transfer, simulated), n) in replay.transfers.iter().zip(took).zip(1..) {
        let Transfer { start, took, bytes } = transfer;
        let (time, ratio) = match simulated {
            Some(Summary { mean, ci95, .. }) => {
                let ci = ci95.map(|ci| format!(" ± {ci:.2}")).unwrap_or_default();
                (format!("{mean:.2}{ci}"), format!("{:.2}", mean / took))
            }
            None => ("unfinished".to_owned(), "–".to_owned()),
        };
        table.add_row([
            n.to_string(),
            format!("{start:.1}"),
            format!("{:.1}", *bytes as f64 / 1e6),
            format!("{took:.1}"),
            time,
            ratio,
        ]);
    }
    let paths: String = replay.paths.iter().map(|path| format!("  {path}\n")).collect();
    let seeds =
        format!("simulated: mean ± 95 % confidence over seeds {seeds}; --write FILE makes it an experiment");
    printed(writeln!(io::stdout(), "to {}\n{paths}\n{}\n\n{seeds}", replay.peer, table.trim_fmt()))
}

fn print_json(replay: &Replay, took: &[Option<Summary>]) -> Result<(), Failure> {
    let transfers: Vec<_> = (replay.transfers.iter().zip(took))
        .map(|(t, simulated)| {
            json!({ "start_s": t.start, "bytes": t.bytes, "recorded_s": t.took, "simulated_s": simulated })
        })
        .collect();
    let all = json!({ "peer": replay.peer, "paths": replay.paths, "transfers": transfers });
    printed(writeln!(io::stdout(), "{all:#}"))
}
