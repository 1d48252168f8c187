//! Base exchanges between two hosts in memory, beside the bare public-key operations that one cannot
//! do without: three signatures checked, two made (R1's is prepared), one key generated, two agreed on.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::net::SocketAddr;
use std::time::Instant;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use polypath_hip::dh::{DhGroup, DhKey};
use polypath_hip::{HipConfig, Host, Identity, KeyKind, Random, Route, State};
use polypath_wire::Instant as Time;
use polypath_wire::hip::Signature;

fn config(group: DhGroup) -> HipConfig {
    HipConfig {
        dh_groups: vec![group],
        r1_rate: u32::MAX,
        calm_i1_rate: u32::MAX,
        max_associations: usize::MAX,
        i2_rate: u32::MAX,
        ..HipConfig::default()
    }
}

/// A host like no other: a solution counts once.
fn host(kind: KeyKind, group: DhGroup, number: u64) -> Host {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let identity = Identity::generate(kind, &mut Random::from_seed(seed)).unwrap();
    Host::new(identity, config(group), seed, 1, Time::ZERO)
}

/// From I1 to R2.
fn exchange(initiator: &mut Host, responder: &mut Host) {
    let [a, b] = [1, 2].map(|n| SocketAddr::from(([10, 0, 0, n], 10_500)));
    let there = Route { local: a, remote: b };
    let back = Route { local: b, remote: a };
    initiator.connect(Time::ZERO, responder.hit(), vec![there]).unwrap();
    for _ in 0..2 {
        let packet = initiator.poll_transmit().unwrap();
        responder.handle(Time::ZERO, back, &packet.payload);
        let packet = responder.poll_transmit().unwrap();
        initiator.handle(Time::ZERO, there, &packet.payload);
    }
    assert_eq!(initiator.association(responder.hit()).unwrap().state(), State::Established);
    while responder.poll_event().is_some() {}
}

/// What no exchange can do without.
struct Bare {
    identity: Identity,
    signature: Signature,
    group: DhGroup,
    peer: DhKey,
    random: Random,
}

impl Bare {
    fn new(kind: KeyKind, group: DhGroup) -> Self {
        let mut random = Random::from_seed([3; 32]);
        let identity = Identity::generate(kind, &mut random).unwrap();
        let signature = identity.sign(&[1; 400]).unwrap();
        let peer = DhKey::generate(group, &mut random);
        Self { identity, signature, group, peer, random }
    }

    fn run(&mut self) {
        for _ in 0..3 {
            self.identity.public().verify(&[1; 400], &self.signature).unwrap();
        }
        for _ in 0..2 {
            self.identity.sign(&[1; 400]).unwrap();
        }
        let key = DhKey::generate(self.group, &mut self.random);
        for _ in 0..2 {
            key.agree(self.peer.public()).unwrap();
        }
    }
}

fn benches(c: &mut Criterion) {
    for (name, kind, group) in
        [("p256", KeyKind::P256, DhGroup::P256), ("p384", KeyKind::P384, DhGroup::P384)]
    {
        let mut bench = c.benchmark_group(name);
        bench.throughput(Throughput::Elements(1));
        let mut number = 0;
        let mut responder = host(kind, group, number);
        let mut fresh = || {
            number += 1;
            host(kind, group, number)
        };
        let mut bare = Bare::new(kind, group);
        println!(
            "{name}: bare operations take {:.0} % of an exchange",
            100.0 * share(&mut fresh, &mut responder, &mut bare)
        );
        bench.bench_function("base exchange", |b| {
            b.iter_batched_ref(&mut fresh, |i| exchange(i, &mut responder), BatchSize::SmallInput);
        });
        bench.bench_function("bare operations", |b| b.iter(|| bare.run()));
    }
}

/// The time of the bare operations over the time of an exchange: the median of rounds in which one
/// follows the other, so that other work on the machine meets both.
fn share(fresh: &mut impl FnMut() -> Host, responder: &mut Host, bare: &mut Bare) -> f64 {
    let mut rounds: Vec<f64> = (0..301)
        .map(|_| {
            let mut initiator = fresh();
            let start = Instant::now();
            exchange(&mut initiator, responder);
            let middle = Instant::now();
            bare.run();
            middle.elapsed().as_secs_f64() / (middle - start).as_secs_f64()
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

criterion_group!(all, benches);
criterion_main!(all);
