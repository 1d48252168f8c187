//! What a packet costs in the steady state, with its acknowledgment, on all its hops.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use polypath_sim::scenarios::{Scenario, dumbbell, link};
use polypath_wire::{Duration, Instant};

const WARM_UP: f64 = 5.0;
const STEP: Duration = Duration::from_millis(10);
/// 1 Gbit/s for 10 ms.
const PACKETS: u64 = 1000;

fn benches(c: &mut Criterion) {
    let mut group = c.benchmark_group("packets");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(20);
    let scenarios = [
        ("one flow", link()),
        ("dumbbell, 10 flows", dumbbell(10)),
        ("dumbbell, 100 flows", dumbbell(100)),
        ("dumbbell, 1000 flows", dumbbell(1000)),
    ];
    for (name, scenario) in scenarios {
        let Scenario { mut world, .. } = scenario.unwrap();
        world.run(Instant::from_secs_f64(WARM_UP));
        group.bench_function(name, |b| b.iter(|| world.run(world.now() + STEP)));
    }
}

criterion_group!(all, benches);
criterion_main!(all);
