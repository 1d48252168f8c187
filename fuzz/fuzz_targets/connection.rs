//! Any bytes as a script of forged segments: no panic, no wrong byte, no endless answers.
#![no_main]

#[path = "../../crates/transport/tests/common/mod.rs"]
mod common;
#[path = "../../crates/transport/tests/all/hostile/script.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| script::play(bytes));
