//! Random worlds: two ends, one to four paths, everything that can go wrong on the way. Whatever the
//! world, every byte arrives exactly once and in order, nothing stalls (nobody is silent for longer than the
//! largest timeout while anything is left to do), nothing is sent beyond a window, each hop accounts for its packets, and the same seed gives the same run.
//! `packets.rs` says what holds of packets of somebody else's transport in each of them.
//!
//! `POLYPATH_WORLDS=100000 cargo test -p polypath-sim --test worlds` plays more of them (`make soak`),
//! from `POLYPATH_FIRST_WORLD` on. `POLYPATH_WORLD=seed` plays one, `POLYPATH_WITHOUT=loss,flapping`
//! without some of its features, `POLYPATH_TRACE=1` tells what happens in it.

mod dice;
mod end;
mod features;
mod happenings;
mod hops;
mod packets;
mod play;
mod segments;
mod spec;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use features::{Features, NAMES};
use play::{Look, Outcome, play};
use polypath_wire::Seed;

/// Worlds of an ordinary test run.
const WORLDS: u64 = 1000;
/// Worlds whose hash is committed.
const KNOWN: u64 = 48;
/// One world in this many is played twice and compared.
const TWICE: u64 = 8;
/// How often a long run says how far it is, worlds.
const TELL: u64 = 5000;
/// Failures after which no further world is played.
const ENOUGH: usize = 5;

#[test]
fn random_worlds() {
    if let Some(seed) = number("POLYPATH_WORLD") {
        let off = std::env::var("POLYPATH_WITHOUT").map_or(Features::NONE, |names| Features::parse(&names));
        let look = if std::env::var_os("POLYPATH_TRACE").is_some() { Look::Trace } else { Look::Close };
        println!("{:#?}", spec::Spec::generate(Seed(seed), off));
        let run = play(&spec::Spec::generate(Seed(seed), off), look);
        println!("{run:#?}");
        let packets = packets::play(&spec::Spec::generate(Seed(seed), off), look);
        println!("{packets:#?}");
        return assert!(run.is_ok() && packets.is_ok());
    }
    let (first, count) =
        (number("POLYPATH_FIRST_WORLD").unwrap_or(0), number("POLYPATH_WORLDS").unwrap_or(WORLDS));
    let (next, failures) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || {
        let mut sum = Outcome::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || lock(&failures).len() >= ENOUGH {
                return sum;
            }
            if (seed - first) % TELL == TELL - 1 {
                eprintln!("{} of {count} worlds", seed - first + 1);
            }
            match check(seed, Features::NONE) {
                Ok(outcome) => sum += outcome,
                Err(why) => lock(&failures).push(report(seed, &why)),
            }
        }
    };
    let mut sum = Outcome::default();
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|w| sum += w.join().expect("a worker catches the panics of its worlds"));
    });
    println!("{count} worlds: {sum:?}");
    let failures = lock(&failures);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let Outcome { dropped, duplicated, reordered, corrupted, timeouts, .. } = sum;
    let trouble = [dropped, duplicated, reordered, corrupted, timeouts];
    assert!(count < WORLDS || trouble.iter().all(|n| *n > count), "too quiet worlds: {trouble:?}");
}

/// Like `tests/traces.rs`, with what no flow of the simulator does: paths join and leave, applications are slow.
#[test]
fn the_first_worlds_are_what_they_were() {
    let line = |seed| {
        let spec = spec::Spec::generate(Seed(seed), Features::NONE);
        let Outcome { packets, hash, .. } = play(&spec, Look::Close).expect("random_worlds says why not");
        let of_others = packets::play(&spec, Look::Close).expect("random_worlds says why not");
        format!("{seed:>2} {packets:>6} packets {hash:016x}, of others {of_others:016x}")
    };
    let table: Vec<_> = (0..KNOWN).map(line).collect();
    insta::assert_snapshot!(table.join("\n"));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Plays the world of `seed` without the features in `off`; a panic is a failure like any other.
fn check(seed: u64, off: Features) -> Result<Outcome, String> {
    let run = || {
        let spec = spec::Spec::generate(Seed(seed), off);
        let twice = seed.is_multiple_of(TWICE);
        let look = if twice { Look::Close } else { Look::Quick };
        let outcome = play(&spec, look)?;
        if twice && play(&spec, look)? != outcome {
            return Err("the same seed gave another run".to_owned());
        }
        let packets = packets::play(&spec, look)?;
        if twice && packets::play(&spec, look)? != packets {
            return Err("the same seed gave another run of packets".to_owned());
        }
        if twice && whole::play(&spec)? != whole::play(&spec)? {
            return Err("the same seed gave another run in the simulator".to_owned());
        }
        Ok(outcome)
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
