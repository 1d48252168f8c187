//! A sweep in parts: some seeds of one cell, whose values are a file of their own.

use sha2::{Digest, Sha256};

use crate::columns::write_parquet;
use crate::run::{Keep, RunError, run};
use crate::seeds::SeedRange;
use crate::shelf::VERSION;
use crate::spec::{Cell, Experiment};
use crate::values::{shape, values};

/// What a part carries at most, bits: about two seconds of one core.
const WORK: u128 = 20_000_000_000;

/// Name of all that decides the values of `cell` but their seeds: the resolved spec, the version, what is asked. Equal
/// keys and seeds are equal files.
pub fn key(experiment: &Experiment, cell: &Cell) -> String {
    let silent = (String::new(), String::new(), SeedRange::default(), Vec::new());
    let mut spec = cell.spec.clone();
    (spec.title, spec.description, spec.seeds, spec.figure) = silent;
    let resolved = serde_json::to_vec(&spec).expect("a spec has only strings for keys");
    let hash = Sha256::new().chain_update(VERSION).chain_update(&cell.label).chain_update(shape(experiment));
    let hash = hash.chain_update(resolved).finalize();
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// `seeds` in parts that take seconds each. Where a part begins depends on the cell alone, so that more seeds make more parts and
/// no others.
pub fn parts(cell: &Cell, seeds: SeedRange) -> Vec<SeedRange> {
    let count = u64::try_from(WORK / cell.spec.work().max(1)).unwrap_or(u64::MAX).clamp(1, 1000);
    let mut parts = Vec::new();
    let mut first = seeds.first;
    while first <= seeds.last {
        let last = (first / count).saturating_mul(count).saturating_add(count - 1).min(seeds.last);
        parts.push(SeedRange { first, last });
        let Some(next) = last.checked_add(1) else { break };
        first = next;
    }
    parts
}

/// Runs `seeds` of the cell labelled `label`, in this thread: all values as a Parquet file.
pub fn run_part(experiment: &Experiment, label: &str, seeds: SeedRange) -> Result<Vec<u8>, RunError> {
    let cells = experiment.cells.iter().filter(|c| c.label == label);
    let jobs = cells.flat_map(|cell| seeds.iter().map(move |seed| (cell, seed)));
    let runs: Vec<_> =
        jobs.map(|(cell, seed)| run(cell, seed, &Keep::default())).collect::<Result<_, _>>()?;
    let mut file = Vec::new();
    write_parquet(&values((experiment, &runs)), &mut file).expect("memory takes what is written");
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse;

    fn experiment(rate: &str) -> Experiment {
        let text = format!(
            "version = 1\ntitle = \"x\"\nduration = \"20s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}\"\n\
             delay = \"9ms\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
        );
        parse(&text, "x").unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn parts_are_of_seconds_and_more_seeds_make_more_of_them() {
        let cell = &experiment("100Mbit/s").cells[0];
        let of = |first, last| parts(cell, SeedRange { first, last });
        let seeds = |parts: Vec<SeedRange>| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(seeds(of(1, 25)), ["1..9", "10..19", "20..25"]);
        assert_eq!(seeds(of(1, 40)), ["1..9", "10..19", "20..29", "30..39", "40..40"]);
        assert_eq!(seeds(of(7, 7)), ["7..7"]);
        let slow = &experiment("90Gbit/s").cells[0];
        assert_eq!(parts(slow, SeedRange { first: 3, last: 4 }).len(), 2);
        let end = SeedRange { first: u64::MAX - 1, last: u64::MAX };
        assert!(!parts(cell, end).is_empty());
    }

    #[test]
    fn a_part_has_the_same_bytes_again_and_a_key_of_what_decides_it() {
        let (experiment, other) = (experiment("1Mbit/s"), experiment("2Mbit/s"));
        let bytes = || run_part(&experiment, "", SeedRange { first: 1, last: 2 }).unwrap();
        assert_eq!(bytes(), bytes());
        let key = |e: &Experiment| key(e, &e.cells[0]);
        let mut more = experiment.clone();
        more.cells[0].spec.seeds = SeedRange { first: 1, last: 9 };
        assert_eq!(key(&experiment), key(&more), "other seeds are other files below the same key");
        assert_ne!(key(&experiment), key(&other));
    }
}
