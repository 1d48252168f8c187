//! What tests of all crates share.

use std::io::Write;

/// Says past the capture of test output, which `println!` is subject to, that the running test did not
/// test what it is there for, and why. `.ci/run` lists these lines.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // In one piece and on a line of its own: tests run side by side.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED {test}: {why}\n").as_bytes());
}
