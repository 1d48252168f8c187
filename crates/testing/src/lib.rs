//! What tests of all crates share: two ends in virtual time ([`Bed`]); files made by code ([`assert_kept`]); to say what
//! they could not test, and why.

mod bed;
mod busy;
mod fate;
mod link;
mod wire;

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub use bed::{Bed, CLIENT, SERVER};
pub use busy::LatencyProbe;
pub use fate::Fate;
pub use link::{Link, Way};
pub use wire::Wire;

/// In the environment, and not 0, it makes [`skip`] fail: `.ci/run` sets it where everything can be tested.
pub const NO_SKIP: &str = "POLYPATH_NO_SKIP";

/// Says past the capture of test output, which `println!` is subject to, that the running test did not
/// test what it is there for, and why: a tool or a privilege is missing. `.ci/run` lists these lines.
/// Panics where `POLYPATH_NO_SKIP` promises that nothing is missing.
pub fn skip(why: &str) {
    excuse(why);
    assert!(!promised(env::var(NO_SKIP).ok().as_deref()), "{NO_SKIP} is set, and this was skipped: {why}");
}

/// The same where nothing that could be installed mends it: the machine is too busy, its kernel cannot do it.
/// Never fails.
pub fn excuse(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // In one piece and on a line of its own: tests run side by side.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED {test}: {why}\n").as_bytes());
}

/// Whether `tools` can all be run; skips if not.
pub fn installed(tools: &[&str]) -> bool {
    let missing: Vec<_> = tools.iter().filter(|tool| !is_installed(tool)).collect();
    if !missing.is_empty() {
        skip(&format!("not installed: {missing:?} (`tools/deps net` installs it)"));
    }
    missing.is_empty()
}

fn is_installed(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // Users' paths lack where the tools of administrators are.
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(more).any(|dir| dir.join(tool).exists())
}

/// Panics unless `file` holds `text`, which code makes. With `INSTA_UPDATE=always` in the environment it is written, as
/// snapshots are.
pub fn assert_kept(file: &Path, text: &str) {
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(file, text).expect("the sources can be written");
    }
    let same = fs::read_to_string(file).is_ok_and(|kept| kept == text);
    assert!(same, "{} is stale: renew it by this test with INSTA_UPDATE=always", file.display());
}

fn promised(no_skip: Option<&str>) -> bool {
    !matches!(no_skip, None | Some("" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_promise_makes_a_skip_fail() {
        assert_eq!([None, Some(""), Some("0"), Some("1")].map(promised), [false, false, false, true]);
    }

    #[test]
    #[should_panic(expected = "Cargo.toml is stale")]
    fn a_file_that_holds_something_else_is_stale() {
        assert_kept(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"), "");
    }

    #[test]
    fn what_is_there_is_found() {
        assert!(is_installed("sh") && !is_installed("no-such-tool"));
    }
}
