//! How fast the simulator is, on the scenarios that other simulators were timed with:
//! `speed link T`, `speed secure T`, `speed dumbbell N T`, `speed mhip T` (T in simulated seconds). Prints one JSON
//! object; time it from outside.

mod scenarios;

use polypath_wire::Instant;
use scenarios::{PACKET, Result, Scenario, dumbbell, link, mhip, secure};

fn main() -> Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let (scenario, t) = match args[..] {
        ["link", t] => (link()?, t),
        ["secure", t] => (secure()?, t),
        ["dumbbell", n, t] => (dumbbell(n.parse()?)?, t),
        ["mhip", t] => (mhip()?, t),
        _ => return Err("usage: speed link T | secure T | dumbbell N T | mhip T".into()),
    };
    run(scenario, t.parse()?);
    Ok(())
}

fn run(Scenario { mut world, flows }: Scenario, t: f64) {
    world.run(Instant::from_secs_f64(t));
    let reports: Vec<_> = flows.iter().map(|f| world.flow_report(*f)).collect();
    let bytes: u64 = reports.iter().map(|r| r.bytes).sum();
    let retransmissions: u64 = reports.iter().map(|r| r.retransmissions()).sum();
    let timeouts: u64 = reports.iter().map(|r| r.sender.timeouts).sum();
    let delivered = bytes / u64::from(PACKET);
    let mbps: Vec<_> = reports.iter().take(10).map(|r| r.bytes as f64 * 8e-6 / t).collect();
    println!(
        "{{\"T\":{t},\"flows\":{},\"delivered\":{delivered},\"rx\":{retransmissions},\"to\":{timeouts},\"Mbps\":{mbps:?}}}",
        flows.len()
    );
}
