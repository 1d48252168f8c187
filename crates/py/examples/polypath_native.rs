//! The same library once more: `cargo test --workspace` builds examples, so that the tests in Python need no build of their own.

#[path = "../src/lib.rs"]
mod native;
