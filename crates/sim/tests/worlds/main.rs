//! Random worlds: two ends, one to four paths, everything that can go wrong on the way. Whatever the
//! world, every byte arrives exactly once and in order, nothing stalls, nothing is sent beyond a
//! window, each hop accounts for its packets, and the same seed gives the same run.
//!
//! `POLYPATH_WORLDS=100000 cargo test -p polypath-sim --test worlds` plays more of them (`make soak`),
//! from `POLYPATH_FIRST_WORLD` on. `POLYPATH_WORLD=seed` plays one, `POLYPATH_WITHOUT=loss,flapping`
//! without some of its features, `POLYPATH_TRACE=1` tells what happens in it.

mod dice;
mod end;
mod features;
mod play;
mod spec;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use features::{Features, NAMES};
use polypath_wire::Seed;

/// Worlds of an ordinary test run.
const WORLDS: u64 = 500;
/// One world in so many is played twice and compared.
const TWICE: u64 = 8;
/// Failures after which no further world is played.
const ENOUGH: usize = 5;

#[test]
fn random_worlds() {
    if let Some(seed) = number("POLYPATH_WORLD") {
        let off = std::env::var("POLYPATH_WITHOUT").map_or(Features::NONE, |names| Features::parse(&names));
        let trace = std::env::var_os("POLYPATH_TRACE").is_some();
        println!("{:#?}", spec::Spec::generate(Seed(seed), off));
        let run = play::play(&spec::Spec::generate(Seed(seed), off), trace);
        println!("{run:#?}");
        return assert!(run.is_ok());
    }
    let (first, count) =
        (number("POLYPATH_FIRST_WORLD").unwrap_or(0), number("POLYPATH_WORLDS").unwrap_or(WORLDS));
    let (next, failures) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let enough = failures.lock().unwrap_or_else(PoisonError::into_inner).len() >= ENOUGH;
                    if seed >= first + count || enough {
                        break;
                    }
                    if let Err(why) = check(seed, Features::NONE) {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(report(seed, &why));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Plays the world of `seed` without the features in `off`; a panic is a failure like any other.
fn check(seed: u64, off: Features) -> Result<(), String> {
    let run = || {
        let spec = spec::Spec::generate(Seed(seed), off);
        let hash = play::play(&spec, false)?;
        if seed.is_multiple_of(TWICE) && play::play(&spec, false)? != hash {
            return Err("the same seed gave another run".to_owned());
        }
        Ok(())
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!(
            "panic: {}",
            text.or(panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
        ))
    })
}

/// Takes features away as long as the failure stays: those left are what it needs.
fn report(seed: u64, why: &str) -> String {
    let mut off = Features::NONE;
    for feature in Features::all() {
        if check(seed, off.with(feature)).is_err() {
            off = off.with(feature);
        }
    }
    let left: Vec<_> =
        NAMES.iter().enumerate().filter(|(i, _)| !off.has(*i)).map(|(_, name)| *name).collect();
    format!(
        "world {seed}: {why}\n  needs: {}\n  repeat: POLYPATH_WORLD={seed} POLYPATH_WITHOUT={off} POLYPATH_TRACE=1 cargo test -p polypath-sim --test worlds -- --nocapture\n",
        if left.is_empty() { "nothing".to_owned() } else { left.join(", ") },
    )
}
