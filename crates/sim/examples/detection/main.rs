//! How well paths are found that share a bottleneck, over random topologies:
//!
//! `cargo run --release -p polypath-sim --example detection -- METHOD FIRST LAST [worst]`
//!
//! with METHOD `concordance` or `statistics`, and the seeds of the scenarios. Pairs of paths are counted 10 s after the
//! start, and over the time from then to 30 s.

mod scenario;

use std::error::Error;

use polypath_transport::DetectionConfig;
use polypath_wire::{Duration, Instant, PathId};
use scenario::Scenario;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const STEP: Duration = Duration::from_millis(250);
const STEPS: u64 = 120;
const DECIDED: u64 = 40;

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
    at_10_s: Counts,
    later: Counts,
    /// When pairs that share were first held to, s.
    times: Vec<f64>,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [method, first, last, rest @ ..] = &args[..] else { return Err("METHOD FIRST LAST [worst]".into()) };
    let method: DetectionConfig = serde_json::from_value(serde_json::json!(method))?;
    let worst = !rest.is_empty();
    let (mut all, mut deep) = (Outcome::default(), Outcome::default());
    for seed in first.parse::<u64>()?..=last.parse()? {
        let scenario = Scenario::of(seed);
        let outcome = run(&scenario, method)?;
        if worst && outcome.at_10_s.wrong + outcome.at_10_s.missed > 0 {
            println!("{seed}: {} | {}", outcome.at_10_s.shown(), scenario.shown());
        }
        for sum in [Some(&mut all), scenario.is_deep().then_some(&mut deep)].into_iter().flatten() {
            sum.take(&outcome);
        }
    }
    for (name, mut outcome) in [("all scenarios", all), ("queues of 0.5 BDP or more", deep)] {
        println!("{name}");
        println!("  after 10 s     {}", outcome.at_10_s.shown());
        println!("  10 to 30 s     {}", outcome.later.shown());
        outcome.times.sort_by(f64::total_cmp);
        let at = |share: f64| outcome.times.get((outcome.times.len() as f64 * share) as usize);
        println!("  time to decide, s: median {:?}, p90 {:?}", at(0.5), at(0.9));
    }
    Ok(())
}

fn run(scenario: &Scenario, method: DetectionConfig) -> Result<Outcome> {
    let (mut world, flow) = scenario.world(method)?;
    let mut outcome = Outcome::default();
    let pairs: Vec<(usize, usize)> =
        (0..scenario.paths.len()).flat_map(|b| (0..b).map(move |a| (a, b))).collect();
    let mut found = vec![None; pairs.len()];
    for step in 1..=STEPS {
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
            if step == DECIDED {
                outcome.at_10_s.add(shares, held);
            } else if step > DECIDED {
                outcome.later.add(shares, held);
            }
        }
    }
    outcome.times.extend(found.into_iter().flatten());
    Ok(outcome)
}

impl Outcome {
    fn take(&mut self, other: &Self) {
        for (sum, counts) in [(&mut self.at_10_s, &other.at_10_s), (&mut self.later, &other.later)] {
            sum.right += counts.right;
            sum.wrong += counts.wrong;
            sum.missed += counts.missed;
            sum.apart += counts.apart;
        }
        self.times.extend(&other.times);
    }
}
