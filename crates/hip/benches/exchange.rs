//! Base exchanges between two hosts in memory, beside the bare public-key operations that one cannot
//! do without: three signatures checked, two made (R1's is prepared), one key generated, two agreed on.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::net::SocketAddr;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use polypath_hip::dh::{DhGroup, DhKey};
use polypath_hip::{HipConfig, Host, Identity, KeyKind, Random, Route, State};
use polypath_wire::Instant;

fn config(group: DhGroup) -> HipConfig {
    HipConfig {
        dh_groups: vec![group],
        r1_rate: u32::MAX,
        calm_i1_rate: u32::MAX,
        max_associations: usize::MAX,
        ..HipConfig::default()
    }
}

/// A host like no other: a solution counts once.
fn host(kind: KeyKind, group: DhGroup, number: u64) -> Host {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    let identity = Identity::generate(kind, &mut Random::from_seed(seed)).unwrap();
    Host::new(identity, config(group), seed, 1, Instant::ZERO)
}

/// From I1 to R2.
fn exchange(initiator: &mut Host, responder: &mut Host) {
    let [a, b] = [1, 2].map(|n| SocketAddr::from(([10, 0, 0, n], 10_500)));
    let there = Route { local: a, remote: b };
    let back = Route { local: b, remote: a };
    initiator.connect(Instant::ZERO, responder.hit(), vec![there]).unwrap();
    for _ in 0..2 {
        let packet = initiator.poll_transmit().unwrap();
        responder.handle(Instant::ZERO, back, &packet.payload);
        let packet = responder.poll_transmit().unwrap();
        initiator.handle(Instant::ZERO, there, &packet.payload);
    }
    assert_eq!(initiator.association(responder.hit()).unwrap().state(), State::Established);
    while responder.poll_event().is_some() {}
}

fn benches(c: &mut Criterion) {
    for (name, kind, group) in
        [("p256", KeyKind::P256, DhGroup::P256), ("p384", KeyKind::P384, DhGroup::P384)]
    {
        let mut random = Random::from_seed([3; 32]);
        let mut bench = c.benchmark_group(name);
        bench.throughput(Throughput::Elements(1));
        let mut number = 0;
        let mut responder = host(kind, group, number);
        bench.bench_function("base exchange", |b| {
            let fresh = || {
                number += 1;
                host(kind, group, number)
            };
            b.iter_batched(fresh, |mut i| exchange(&mut i, &mut responder), BatchSize::SmallInput);
        });
        let identity = Identity::generate(kind, &mut random).unwrap();
        let signature = identity.sign(&[1; 400]).unwrap();
        let peer = DhKey::generate(group, &mut random);
        bench.bench_function("bare operations", |b| {
            b.iter(|| {
                for _ in 0..3 {
                    identity.public().verify(&[1; 400], &signature).unwrap();
                }
                for _ in 0..2 {
                    identity.sign(&[1; 400]).unwrap();
                }
                let key = DhKey::generate(group, &mut random);
                for _ in 0..2 {
                    key.agree(peer.public()).unwrap();
                }
            });
        });
    }
}

criterion_group!(all, benches);
criterion_main!(all);
