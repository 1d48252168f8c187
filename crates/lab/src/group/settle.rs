//! Published claims settled: looked at with more and more runs, until a look decides them.

use std::collections::BTreeMap;
use std::iter;

use polypath_judge::{Finding, LOOKS};
use polypath_wire::Duration;

use super::{Done, Group, GroupError, Part, needed};
use crate::check::{Ensemble, Verdict, answers, faults};
use crate::results::Run;
use crate::run::Keep;
use crate::seeds::SeedRange;
use crate::spec::{Experiment, Selector};
use crate::stop::Stop;
use crate::sweep::{Job, run_all};
use crate::units::Human;

/// Runs that each look has. The last is not taken where they simulate more than [`SECONDS`].
const RUNS: [u64; LOOKS] = [50, 100, 200, 400];
/// Most seconds of simulated time that one claim gets after the first look.
const SECONDS: u64 = 30_000;

/// An expectation of an experiment and what was found.
struct Claim {
    part: usize,
    expect: usize,
    verdicts: Vec<Verdict>,
    /// How much of a run it needs.
    needs: Duration,
}

impl Group {
    /// Settles the published claims with seeds from `first` on; no figures. If it was stopped, what was found so far.
    pub fn settle(
        mut self,
        first: u64,
        stop: &Stop,
        done: impl Fn() + Sync,
    ) -> Result<Vec<Done>, GroupError> {
        let all: Vec<Experiment> = self.parts.iter().map(|part| part.experiment.clone()).collect();
        let mut claims = claims(&self.parts);
        let mut runs: Vec<Vec<Run>> = all.iter().map(|_| Vec::new()).collect();
        let mut last = first;
        for (look, n) in iter::zip(0.., RUNS) {
            let open: Vec<&Claim> = claims.iter().filter(|claim| claim.is_open(look)).collect();
            if open.is_empty() || stop.is_asked() {
                break;
            }
            let seeds = SeedRange { first: if look == 0 { first } else { last + 1 }, last: first + n - 1 };
            last = seeds.last;
            let needed = reduced(&all, &open);
            for (runs, more) in iter::zip(&mut runs, run(&needed, &self.parts, seeds, stop, &done)?) {
                runs.extend(more);
            }
            let ensembles: Vec<Ensemble<'_>> =
                iter::zip(&all, &runs).map(|(e, runs)| (e, &runs[..])).collect();
            claims.iter_mut().filter(|claim| claim.is_open(look)).for_each(|claim| claim.look(&ensembles));
        }
        for part in &mut self.parts {
            part.seeds = SeedRange { first, last: last.max(first) };
            part.experiment.spec.figure.clear(); // the runs have no data for them
        }
        Ok(self.into_done(runs, claims))
    }

    fn into_done(self, runs: Vec<Vec<Run>>, claims: Vec<Claim>) -> Vec<Done> {
        let mut verdicts: BTreeMap<usize, Vec<Verdict>> = BTreeMap::new();
        for (n, runs) in runs.iter().enumerate() {
            verdicts.entry(n).or_default().extend(runs.iter().flat_map(faults));
        }
        for claim in claims {
            verdicts.entry(claim.part).or_default().extend(claim.verdicts);
        }
        let done = |(n, (Part { experiment, seeds, own, .. }, runs))| Done {
            experiment,
            seeds,
            runs,
            verdicts: verdicts.remove(&n).unwrap_or_default(),
            own,
        };
        iter::zip(self.parts, runs).enumerate().map(done).collect()
    }
}

impl Claim {
    /// Whether it is time for look number `look`, from 0.
    fn is_open(&self, look: usize) -> bool {
        let undecided = |v: &Verdict| v.finding == Some(Finding::Undecided);
        let affordable = RUNS[look] * (self.needs.0 / 1_000_000_000) <= SECONDS;
        look == 0 || (affordable && self.verdicts.iter().any(undecided))
    }

    /// Looks at all runs so far. What an earlier look decided stays.
    fn look(&mut self, ensembles: &[Ensemble<'_>]) {
        let ensemble = ensembles[self.part];
        let now = answers(&ensemble.0.spec.expect[self.expect], ensemble, ensembles);
        if self.verdicts.is_empty() {
            self.verdicts = now;
            return;
        }
        let undecided = |v: &&mut Verdict| v.finding == Some(Finding::Undecided);
        for verdict in self.verdicts.iter_mut().filter(undecided) {
            if let Some(found) = now.iter().find(|v| v.cell == verdict.cell) {
                *verdict = found.clone();
            }
        }
    }
}

/// The published values of `parts`.
fn claims(parts: &[Part]) -> Vec<Claim> {
    let of = |(part, p): (usize, &Part)| {
        let published = p.experiment.spec.expect.iter().enumerate().filter(|(_, e)| e.published.is_some());
        let claim = |(expect, e): (usize, &crate::spec::Expect)| Claim {
            part,
            expect,
            verdicts: Vec::new(),
            needs: needs(&e.selector()).unwrap_or_else(|| longest(&p.experiment)),
        };
        published.map(claim).collect::<Vec<_>>()
    };
    parts.iter().enumerate().filter(|(_, p)| p.own).flat_map(of).collect()
}

/// Up to when a run counts for `selector`; all of it if it does not say.
fn needs(selector: &Selector) -> Option<Duration> {
    selector.whats().map(|what| what.to).collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn longest(experiment: &Experiment) -> Duration {
    experiment.cells.iter().map(|cell| cell.spec.duration.0).max().unwrap_or_default()
}

/// `all` with the `open` claims, the cells that these and their nulls need, and as much time as they need.
fn reduced(all: &[Experiment], open: &[&Claim]) -> Vec<Experiment> {
    let mut reduced: Vec<Experiment> = all.to_vec();
    for (part, experiment) in reduced.iter_mut().enumerate() {
        let is_open = |n: usize| open.iter().any(|claim| claim.part == part && claim.expect == n);
        let expects = std::mem::take(&mut experiment.spec.expect).into_iter().enumerate();
        experiment.spec.expect = expects.filter(|(n, _)| is_open(*n)).map(|(_, e)| e).collect();
    }
    needed::reduce(&mut reduced);
    let most = open.iter().map(|claim| claim.needs).max().unwrap_or_default();
    for (part, experiment) in reduced.iter_mut().enumerate() {
        let own = open.iter().filter(|claim| claim.part == part).map(|claim| claim.needs).max();
        let null_of = open.iter().filter(|claim| {
            let null = all[claim.part].spec.expect[claim.expect].null.as_deref().unwrap_or_default();
            null.split(':').next() == Some(&experiment.name)
        });
        let needs = null_of.map(|claim| claim.needs).chain(own).max().unwrap_or(most);
        for cell in &mut experiment.cells {
            let spec = &mut cell.spec;
            spec.duration = Human(spec.duration.0.min(needs));
            spec.measure_from = Human(spec.measure_from.0.min(needs));
        }
    }
    reduced
}

/// The runs of `needed` with `seeds`, of each experiment.
fn run(
    needed: &[Experiment],
    parts: &[Part],
    seeds: SeedRange,
    stop: &Stop,
    done: &(impl Fn() + Sync),
) -> Result<Vec<Vec<Run>>, GroupError> {
    let keeps: Vec<Keep> = parts.iter().map(Part::keep).collect();
    let jobs = iter::zip(needed, &keeps).flat_map(|(experiment, keep)| {
        let of = move |cell| seeds.iter().map(move |seed| Job { cell, seed, keep });
        experiment.cells.iter().flat_map(of)
    });
    let mut results = run_all(&jobs.collect::<Vec<_>>(), stop, |_| done())?.into_iter();
    let count = |e: &Experiment| e.cells.len() * seeds.iter().count();
    Ok(needed.iter().map(|e| results.by_ref().take(count(e)).flatten().collect()).collect())
}
