//! Completion times of the default demo, simulated and in real time, differ by less than 5 %. A machine that is busy with
//! something else can spoil a real run, so there are three tries; all are printed.

use std::process::Command;

use polypath_testing::{LatencyProbe, excuse};
use serde_json::Value;

#[test]
fn simulator_and_real_driver_agree() {
    let seconds = |args: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_polypath")).args(args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        serde_json::from_slice::<Value>(&done.stdout).unwrap()["seconds"].as_f64().unwrap()
    };
    let simulated = seconds(&["demo", "--sim", "--json"]);
    let (mut tries, mut always_busy) = (Vec::new(), true);
    for _ in 0..3 {
        let probe = LatencyProbe::start();
        let real = seconds(&["demo", "--json"]);
        let (lateness, busy) = probe.finish();
        tries.push(real);
        println!("simulated {simulated:.3} s, real {real:.3} s; one wake-up in twenty is {lateness:?} late");
        if (real / simulated - 1.0).abs() < 0.05 {
            return;
        }
        always_busy &= busy;
    }
    let apart =
        format!("simulated {simulated:.3} s, real {tries:.3?} s: over 5 % apart in each of three tries");
    assert!(always_busy, "{apart}");
    excuse(&format!("{apart}, but the machine was too busy in all"));
}
