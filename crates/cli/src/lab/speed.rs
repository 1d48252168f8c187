//! How fast the simulator is on this machine.

use std::io::{self, Write};
use std::time::Instant;

use polypath_sim::scenarios::{Scenario, dumbbell, link, mhip, secure};
use serde_json::json;

use crate::args::{SpeedArgs, SpeedScenario};
use crate::failure::{Failure, printed};

/// Simulates, and prints what a packet took.
pub fn speed(args: &SpeedArgs) -> Result<(), Failure> {
    let build = match args.scenario {
        SpeedScenario::Link => link(),
        SpeedScenario::Secure => secure(),
        SpeedScenario::Dumbbell => dumbbell(args.flows),
        SpeedScenario::Mhip => mhip(),
    };
    let mut scenario = build.map_err(|e| Failure::usage(e.to_string()))?;
    let began = Instant::now();
    scenario.world.run(polypath_wire::Instant::from_secs_f64(args.seconds));
    let took = began.elapsed().as_secs_f64();
    printed(report(&scenario, args, took))
}

fn report(scenario: &Scenario, args: &SpeedArgs, took: f64) -> io::Result<()> {
    let (flows, delivered) = (scenario.flows.len(), scenario.delivered());
    let each = (delivered > 0).then(|| took * 1e9 / delivered as f64);
    let mut out = io::stdout();
    if args.json {
        let report = json!({
            "seconds": args.seconds, "flows": flows, "delivered": delivered, "took": took, "nanoseconds_a_packet": each,
        });
        return writeln!(out, "{report}");
    }
    write!(out, "{delivered} packets in {took:.2} s")?;
    each.map_or(Ok(()), |each| write!(out, ": {each:.0} ns each, with its acknowledgment, on all hops"))?;
    writeln!(out)
}
