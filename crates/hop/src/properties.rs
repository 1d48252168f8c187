//! What must hold for every hop, whatever its discipline and its trace.

use polypath_wire::{Duration, Instant, Rate, Seed};
use proptest::prelude::*;

use crate::tests::{arrivals, drain, step};
use crate::*;

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (1u64..20_000_000).prop_map(|r| Change::Rate(Rate(r))),
        (0u64..50).prop_map(|ms| Change::Delay(Duration::from_millis(ms))),
        (0.0..1.0).prop_map(Change::Loss),
        Just(Change::Down),
        Just(Change::Up),
    ]
}

fn any_discipline() -> impl Strategy<Value = Discipline> {
    let codel =
        CodelConfig { target: Duration::from_millis(1), interval: Duration::from_millis(10), ecn: true };
    prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::Red(RedConfig { weight: 0.1, ..RedConfig::default() })),
        Just(Discipline::Codel(codel)),
        (1u32..9).prop_map(move |flows| Discipline::FqCodel(FqCodelConfig { codel, flows, quantum: 1000 })),
    ]
}

/// Without changes of the rate, which a trace does not have.
fn any_trace() -> impl Strategy<Value = Option<LinkTrace>> {
    prop::option::of((1u64..30, 1u64..2000).prop_map(|(mbps, ms)| {
        let length = Duration::from_millis(200 + ms);
        LinkTrace::sample(Seed(ms), Rate::from_mbps(mbps), length).expect("it has opportunities")
    }))
}

prop_compose! {
    fn any_config()(
        rate in 1_000u64..20_000_000_000,
        delay in 0u64..50_000_000,
        (trace, discipline) in (any_trace(), any_discipline()),
        queue in prop_oneof![(0u32..20).prop_map(QueueLimit::Packets), (0u64..30_000).prop_map(QueueLimit::Bytes)],
        [loss, duplication, reordering, corruption] in prop::array::uniform4(prop_oneof![Just(0.0), 0.0..=1.0]),
        reorder_delay in 0u64..20_000_000,
        mtu in prop::option::of(1u32..3000),
        mut schedule in prop::collection::vec((0u64..300_000_000, any_change()), 0..6),
    ) -> HopConfig {
        schedule.sort_by_key(|(at, _)| *at);
        schedule.retain(|(_, change)| trace.is_none() || !matches!(change, Change::Rate(_)));
        let schedule = schedule.into_iter().map(|(at, change)| step(Instant(at), change)).collect();
        let (rate, delay, reorder_delay) = (Rate(rate), Duration(delay), Duration(reorder_delay));
        HopConfig { rate, trace, discipline, delay, queue, loss, duplication, reordering, corruption, reorder_delay, mtu, schedule, ..HopConfig::default() }
    }
}

/// Offers packets with the given gaps and sizes, polling in between as a driver does.
fn drive(hop: &mut Hop<u32>, offers: &[(u64, u32)]) -> Vec<(Instant, u32, Fate)> {
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    for (i, &(gap, size)) in offers.iter().enumerate() {
        now += Duration(gap);
        while let Some(at) = hop.next_event().filter(|at| *at <= now) {
            out.extend(std::iter::from_fn(|| hop.poll(at)).map(|d| (at, d.item, d.fate)));
        }
        let flow = i as u64 % 5;
        let _ = hop.enqueue(now, i as u32, Label { size, flow, ecn_capable: flow == 0 });
        let s = hop.stats();
        assert_eq!(s.entered + s.duplicated, s.left + s.dropped_total() + hop.queued() as u64);
    }
    out.extend(drain(hop));
    out
}

proptest! {
    #[test]
    fn nothing_appears_or_vanishes(
        config in any_config(),
        offers in prop::collection::vec((0u64..5_000_000, 1u32..3000), 0..200),
    ) {
        let mut hop = Hop::new(config, Seed(7));
        let out = drive(&mut hop, &offers);
        let s = hop.stats();
        prop_assert_eq!(hop.queued(), 0);
        prop_assert_eq!(s.entered + s.duplicated, s.left + s.dropped_total());
        prop_assert_eq!(hop.waiting(Instant::MAX), (0, 0));
        let mut items: Vec<_> = out.iter().map(|(_, item, _)| *item).collect();
        items.sort_unstable();
        prop_assert!(items.windows(2).all(|w| w[0] < w[1]), "an item came out twice");
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0), "time went back");
    }

    #[test]
    fn without_reordering_a_flow_is_in_order(
        config in any_config(),
        offers in prop::collection::vec((0u64..5_000_000, 1u32..3000), 0..200),
    ) {
        let mut hop = Hop::new(HopConfig { reordering: 0.0, ..config.clone() }, Seed(7));
        let arrived = drive(&mut hop, &offers).into_iter().filter(|(_, _, fate)| matches!(fate, Fate::Arrived { .. }));
        let items: Vec<_> = arrived.map(|(_, item, _)| item).collect();
        let by_turns = matches!(config.discipline, Discipline::FqCodel(_));
        for flow in 0..5 {
            prop_assert!(items.iter().filter(|item| **item % 5 == flow).is_sorted());
        }
        prop_assert!(by_turns || items.is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(
        config in any_config(),
        offers in prop::collection::vec((0u64..5_000_000, 1u32..3000), 0..50),
    ) {
        let run = |config: &HopConfig| drive(&mut Hop::new(config.clone(), Seed(9)), &offers);
        prop_assert_eq!(run(&config), run(&config));
    }

    #[test]
    fn the_long_run_rate_is_exact(rate in 1_000u64..200_000_000_000, sizes in prop::collection::vec(1u32..9000, 1..300)) {
        let config = HopConfig { rate: Rate(rate), delay: Duration::ZERO, queue: QueueLimit::Packets(1000), ..HopConfig::default() };
        let mut hop = Hop::new(config, Seed(1));
        sizes.iter().for_each(|&s| hop.enqueue(Instant::ZERO, 0, s).unwrap());
        let bits = sizes.iter().map(|&s| u128::from(s) * 8).sum::<u128>();
        let end = arrivals(&mut hop).last().unwrap().0;
        prop_assert_eq!(u128::from(end.0), bits * 1_000_000_000 / u128::from(rate));
    }
}
