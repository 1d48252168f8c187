//! Prints a link trace whose rate wanders: `sample_trace SEED MBITS SECONDS > wandering.trace`.

use std::error::Error;

use polypath_hop::LinkTrace;
use polypath_wire::{Duration, Rate, Seed};

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [seed, mbits, seconds] = numbers[..] else {
        return Err("usage: sample_trace SEED MBITS SECONDS".into());
    };
    let trace = LinkTrace::sample(Seed(seed), Rate::from_mbps(mbits), Duration::from_secs(seconds))?;
    print!("{trace}");
    Ok(())
}
