//! How well paths are found that share a bottleneck, over random topologies:
//!
//! `cargo run --release -p polypath-sim --example detection -- METHOD ACKS FIRST LAST [worst]`
//!
//! with METHOD `concordance` or `statistics`, ACKS `thinned`, as `send` and the daemon have them, or `standard`, and the seeds of the scenarios. Pairs of paths are counted 10, 30 and 60 s after the
//! start, and over the time from 10 to 30 s.

mod scenario;

use std::error::Error;

use polypath_transport::{AckConfig, DetectionConfig};
use polypath_wire::{Duration, Instant, PathId};
use scenario::Scenario;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const STEP: Duration = Duration::from_millis(250);
/// When pairs are counted.
const AT: [u64; 3] = [40, 120, 240];

/// Pairs that share or do not, and are held to or not.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    right: u64,
    wrong: u64,
    missed: u64,
    apart: u64,
}

impl Counts {
    fn add(&mut self, shares: bool, held: bool) {
        match (shares, held) {
            (true, true) => self.right += 1,
            (false, true) => self.wrong += 1,
            (true, false) => self.missed += 1,
            (false, false) => self.apart += 1,
        }
    }

    fn shown(&self) -> String {
        let share = |of: u64, other: u64| of as f64 / (of + other) as f64;
        let (precision, recall) = (share(self.right, self.wrong), share(self.right, self.missed));
        let Self { right, wrong, missed, apart } = self;
        format!(
            "precision {precision:.3} recall {recall:.3}   ({right} right, {wrong} wrong, {missed} missed, {apart} apart)"
        )
    }
}

/// What one scenario gave.
#[derive(Default)]
struct Outcome {
    /// As held at each of [`AT`].
    at: [Counts; AT.len()],
    /// Over the time from the first of them to the second.
    between: Counts,
    /// Pairs that share.
    sharing: usize,
    /// When pairs that share were first held to, s.
    times: Vec<f64>,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [method, acks, first, last, rest @ ..] = &args[..] else {
        return Err("METHOD ACKS FIRST LAST [worst]".into());
    };
    let method: DetectionConfig = serde_json::from_value(serde_json::json!(method))?;
    let acks = match acks.as_str() {
        "thinned" => AckConfig::thinned(),
        "standard" => AckConfig::Standard,
        _ => return Err("ACKS is thinned or standard".into()),
    };
    let worst = !rest.is_empty();
    let (mut all, mut deep) = (Outcome::default(), Outcome::default());
    for seed in first.parse::<u64>()?..=last.parse()? {
        let scenario = Scenario::of(seed);
        let outcome = run(&scenario, method, acks)?;
        if worst && outcome.at[0].wrong + outcome.at[0].missed > 0 {
            println!("{seed}: {} | {}", outcome.at[0].shown(), scenario.shown());
        }
        for sum in [Some(&mut all), scenario.is_deep().then_some(&mut deep)].into_iter().flatten() {
            sum.take(&outcome);
        }
    }
    for (name, mut outcome) in [("all scenarios", all), ("queues of 0.5 BDP or more", deep)] {
        println!("{name}");
        for (step, counts) in AT.iter().zip(&outcome.at) {
            println!("  after {} s     {}", STEP.times(*step).as_secs_f64(), counts.shown());
        }
        println!("  10 to 30 s     {}", outcome.between.shown());
        outcome.times.sort_by(f64::total_cmp);
        let at = |share: f64| outcome.times.get((outcome.times.len() as f64 * share) as usize);
        let (found, sharing) = (outcome.times.len(), outcome.sharing);
        println!("  ever found {found} of {sharing}; after, s: median {:?}, p90 {:?}", at(0.5), at(0.9));
    }
    Ok(())
}

fn run(scenario: &Scenario, method: DetectionConfig, acks: AckConfig) -> Result<Outcome> {
    let (mut world, flow) = scenario.world(method, acks)?;
    let mut outcome = Outcome::default();
    let pairs: Vec<(usize, usize)> =
        (0..scenario.paths.len()).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
    let mut found = vec![None; pairs.len()];
    for step in 1..=AT[2] {
        world.run(Instant::ZERO + STEP.times(step));
        let of: Vec<Option<PathId>> =
            world.flow_report(flow).sender_paths.iter().map(|path| path.bottleneck).collect();
        let bottleneck = |n: usize| of.get(n).copied().flatten();
        for (found, &(a, b)) in found.iter_mut().zip(&pairs) {
            let shares = scenario.paths[a].bottleneck == scenario.paths[b].bottleneck;
            let held = bottleneck(a).is_some() && bottleneck(a) == bottleneck(b);
            if shares && held {
                found.get_or_insert(STEP.times(step).as_secs_f64());
            }
            if let Some(n) = AT.iter().position(|at| *at == step) {
                outcome.at[n].add(shares, held);
                outcome.sharing += usize::from(shares && n == 0);
            }
            if (AT[0] + 1..=AT[1]).contains(&step) {
                outcome.between.add(shares, held);
            }
        }
    }
    outcome.times.extend(found.into_iter().flatten());
    Ok(outcome)
}

impl Outcome {
    fn take(&mut self, other: &Self) {
        let ours = self.at.iter_mut().chain([&mut self.between]);
        for (sum, counts) in ours.zip(other.at.iter().chain([&other.between])) {
            sum.right += counts.right;
            sum.wrong += counts.wrong;
            sum.missed += counts.missed;
            sum.apart += counts.apart;
        }
        self.sharing += other.sharing;
        self.times.extend(&other.times);
    }
}
