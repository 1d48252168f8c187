//! Times worked out by hand, and what must hold for every hop.

use polypath_wire::{Duration, Instant, Rate, Seed};
use proptest::prelude::*;

use super::*;

const SIZE: u32 = 1250;

fn micros(n: u64) -> Instant {
    Instant(n * 1_000)
}

fn step(at: Instant, change: Change) -> Step {
    Step { at, change }
}

/// 8 Mbit/s and 30 ms: a packet of 1250 bytes takes 1.25 ms and arrives 31.25 ms later.
fn hop(config: HopConfig) -> Hop<u32> {
    config.validate().unwrap();
    Hop::new(config, Seed(1))
}

fn slow() -> HopConfig {
    HopConfig { rate: Rate::from_mbps(8), delay: Duration::from_millis(30), ..HopConfig::default() }
}

/// Polls at each event until it is empty: (time, item, fate).
fn drain(hop: &mut Hop<u32>) -> Vec<(Instant, u32, Fate)> {
    let mut out = Vec::new();
    while let Some(at) = hop.next_event() {
        while let Some(d) = hop.poll(at) {
            out.push((at, d.item, d.fate));
        }
    }
    out
}

fn arrivals(hop: &mut Hop<u32>) -> Vec<(Instant, u32)> {
    drain(hop).into_iter().map(|(at, item, _)| (at, item)).collect()
}

#[test]
fn packets_are_served_one_after_another() {
    let mut hop = hop(slow());
    for i in 0..3 {
        hop.enqueue(Instant::ZERO, i, SIZE).unwrap();
    }
    hop.enqueue(micros(10_000), 3, SIZE).unwrap();
    let expected = [(31_250, 0), (32_500, 1), (33_750, 2), (41_250, 3)];
    assert_eq!(arrivals(&mut hop), expected.map(|(at, item)| (micros(at), item)));
}

#[test]
fn at_a_tie_the_newcomer_finds_the_queue_as_it_was() {
    let delay = Duration::from_micros(1250);
    let mut hop = hop(HopConfig { queue: QueueLimit::Packets(1), delay, ..slow() });
    for (at, item) in [(0, 0), (0, 1), (1300, 2)] {
        hop.enqueue(micros(at), item, SIZE).unwrap();
    }
    let tie = micros(2500); // 0 arrives, 1 is served, 2 waits until then
    assert_eq!(hop.poll(tie).map(|d| d.item), Some(0));
    assert_eq!(hop.enqueue(tie, 3, SIZE), Err(Drop::QueueFull));
    assert_eq!(hop.enqueue(Instant(tie.0 + 1), 4, SIZE), Ok(()));
}

#[test]
fn a_server_that_has_just_finished_needs_no_queue() {
    let mut hop = hop(HopConfig { queue: QueueLimit::Packets(0), ..slow() });
    assert_eq!(hop.enqueue(Instant::ZERO, 0, SIZE), Ok(()));
    assert_eq!(hop.enqueue(micros(1249), 1, SIZE), Err(Drop::QueueFull));
    assert_eq!(hop.enqueue(micros(1250), 2, SIZE), Ok(()));
}

#[test]
fn the_rest_of_the_division_is_carried() {
    // 8 bits at 7 Gbit/s are 8/7 ns: seven of them are 8 ns.
    let mut hop = hop(HopConfig { rate: Rate(7_000_000_000), delay: Duration::ZERO, ..slow() });
    (0..7).for_each(|i| hop.enqueue(Instant::ZERO, i, 1).unwrap());
    let times: Vec<_> = arrivals(&mut hop).into_iter().map(|(at, _)| at.0).collect();
    assert_eq!(times, [1, 2, 3, 4, 5, 6, 8]);
}

#[test]
fn the_packet_in_service_does_not_count_against_the_limit() {
    let mut hop = hop(HopConfig { queue: QueueLimit::Packets(2), ..slow() });
    let offered: Vec<_> = (0..4).map(|i| hop.enqueue(Instant::ZERO, i, SIZE)).collect();
    assert_eq!(offered, [Ok(()), Ok(()), Ok(()), Err(Drop::QueueFull)]);
    assert_eq!(hop.waiting(Instant::ZERO), (2, 2 * u64::from(SIZE)));
    assert_eq!(hop.enqueue(micros(1_249), 4, SIZE), Err(Drop::QueueFull));
    assert_eq!(hop.enqueue(micros(1_251), 5, SIZE), Ok(()));
    assert_eq!((hop.stats().dropped(Drop::QueueFull), hop.stats().peak_waiting), (2, 2));
}

#[test]
fn a_limit_in_bytes_lets_small_ones_in() {
    let mut hop = hop(HopConfig { queue: QueueLimit::Bytes(2000), ..slow() });
    let offered: Vec<_> =
        [SIZE, SIZE, SIZE, 40, 711].into_iter().map(|s| hop.enqueue(Instant::ZERO, s, s)).collect();
    assert_eq!(offered, [Ok(()), Ok(()), Err(Drop::QueueFull), Ok(()), Err(Drop::QueueFull)]);
}

#[test]
fn no_queue_at_all_still_serves() {
    let mut hop = hop(HopConfig { queue: QueueLimit::Packets(0), ..slow() });
    assert_eq!(hop.enqueue(Instant::ZERO, 0, SIZE), Ok(()));
    assert_eq!(hop.enqueue(micros(1), 1, SIZE), Err(Drop::QueueFull));
    assert_eq!(hop.enqueue(micros(1_250), 2, SIZE), Ok(()));
}

#[test]
fn a_rate_step_changes_the_rest_of_the_packet_in_service() {
    // Half of the first packet is out at 625 µs; at half the rate the other half takes 1250 µs.
    let schedule = vec![step(micros(625), Change::Rate(Rate::from_mbps(4)))];
    let mut hop = hop(HopConfig { schedule, ..slow() });
    hop.enqueue(Instant::ZERO, 0, SIZE).unwrap();
    hop.enqueue(Instant::ZERO, 1, SIZE).unwrap();
    assert_eq!(arrivals(&mut hop), [(micros(31_875), 0), (micros(34_375), 1)]);
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake() {
    let schedule = vec![step(micros(1_300), Change::Delay(Duration::from_millis(5)))];
    let mut hop = hop(HopConfig { schedule, ..slow() });
    hop.enqueue(Instant::ZERO, 0, SIZE).unwrap();
    hop.enqueue(Instant::ZERO, 1, SIZE).unwrap();
    hop.enqueue(micros(40_000), 2, SIZE).unwrap();
    assert_eq!(arrivals(&mut hop), [(micros(31_250), 0), (micros(31_250), 1), (micros(46_250), 2)]);
}

#[test]
fn down_loses_what_waits_and_what_is_on_the_wire() {
    let schedule = vec![step(micros(32_000), Change::Down), step(micros(50_000), Change::Up)];
    let mut hop = hop(HopConfig { schedule, ..slow() });
    (0..30).for_each(|i| hop.enqueue(Instant::ZERO, i, SIZE).unwrap());
    let out = drain(&mut hop);
    assert_eq!(out[0], (micros(31_250), 0, Fate::Arrived { copies: 1, corrupted: None }));
    assert_eq!(out.len(), 30);
    assert!(out[1..].iter().all(|&(at, _, fate)| (at, fate) == (micros(32_000), Fate::Lost(Drop::Down))));
    assert_eq!(hop.enqueue(micros(40_000), 30, SIZE), Err(Drop::Down));
    assert_eq!(hop.enqueue(micros(50_000), 31, SIZE), Ok(()));
    assert_eq!(arrivals(&mut hop), [(micros(81_250), 31)]);
}

#[test]
fn a_late_driver_gets_what_arrived_before_the_hop_went_down() {
    let schedule = vec![step(micros(32_000), Change::Down)];
    let mut hop = hop(HopConfig { schedule, ..slow() });
    (0..2).for_each(|i| hop.enqueue(Instant::ZERO, i, SIZE).unwrap());
    let late = micros(1_000_000);
    assert!(matches!(hop.poll(late), Some(Departure { item: 0, fate: Fate::Arrived { .. }, .. })));
    assert!(matches!(hop.poll(late), Some(Departure { item: 1, fate: Fate::Lost(Drop::Down), .. })));
    assert_eq!(hop.poll(late), None);
}

#[test]
fn too_big_is_dropped() {
    let mut hop = hop(HopConfig { mtu: Some(SIZE), ..slow() });
    assert_eq!(hop.enqueue(Instant::ZERO, 0, SIZE + 1), Err(Drop::TooBig));
    assert_eq!(hop.enqueue(Instant::ZERO, 0, SIZE), Ok(()));
}

#[test]
fn certain_misfortune_is_certain() {
    let all = HopConfig { duplication: 1.0, corruption: 1.0, reordering: 1.0, ..slow() };
    let mut hop1 = hop(HopConfig { reorder_delay: Duration::from_micros(100), ..all });
    hop1.enqueue(Instant::ZERO, 0, SIZE).unwrap();
    let [(at, 0, Fate::Arrived { copies: 2, corrupted: Some(_) })] = drain(&mut hop1)[..] else { panic!() };
    assert_eq!(at, micros(31_350));
    let mut hop2 = hop(HopConfig { loss: 1.0, ..slow() });
    hop2.enqueue(Instant::ZERO, 0, SIZE).unwrap();
    assert_eq!(drain(&mut hop2), [(micros(31_250), 0, Fate::Lost(Drop::Loss))]);
}

#[test]
fn the_share_lost_is_the_probability() {
    let mut hop = hop(HopConfig { loss: 0.1, queue: QueueLimit::Packets(100_000), ..slow() });
    (0..100_000).for_each(|i| hop.enqueue(Instant::ZERO, i, SIZE).unwrap());
    drain(&mut hop);
    // Standard deviation 95.
    assert!(hop.stats().dropped(Drop::Loss).abs_diff(10_000) < 400);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |config: HopConfig| config.validate().unwrap_err().to_string();
    assert_eq!(refused(HopConfig { loss: 1.5, ..slow() }), "hop: loss = 1.5: a probability, 0 to 1");
    assert_eq!(refused(HopConfig { rate: Rate(0), ..slow() }), "hop: rate = 0: at least 1 bit/s");
    let schedule = vec![step(micros(2), Change::Down), step(micros(1), Change::Up)];
    assert!(refused(HopConfig { schedule, ..slow() }).contains("schedule.at"));
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (1u64..20_000_000).prop_map(|r| Change::Rate(Rate(r))),
        (0u64..50).prop_map(|ms| Change::Delay(Duration::from_millis(ms))),
        (0.0..1.0).prop_map(Change::Loss),
        Just(Change::Down),
        Just(Change::Up),
    ]
}

prop_compose! {
    fn any_config()(
        rate in 1_000u64..20_000_000_000,
        delay in 0u64..50_000_000,
        queue in prop_oneof![(0u32..20).prop_map(QueueLimit::Packets), (0u64..30_000).prop_map(QueueLimit::Bytes)],
        [loss, duplication, reordering, corruption] in prop::array::uniform4(prop_oneof![Just(0.0), 0.0..=1.0]),
        reorder_delay in 0u64..20_000_000,
        mtu in prop::option::of(1u32..3000),
        mut schedule in prop::collection::vec((0u64..300_000_000, any_change()), 0..6),
    ) -> HopConfig {
        schedule.sort_by_key(|(at, _)| *at);
        let schedule = schedule.into_iter().map(|(at, change)| step(Instant(at), change)).collect();
        let (rate, delay, reorder_delay) = (Rate(rate), Duration(delay), Duration(reorder_delay));
        HopConfig { rate, delay, queue, loss, duplication, reordering, corruption, reorder_delay, mtu, schedule, up: true }
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
        let _ = hop.enqueue(now, i as u32, size);
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
    fn without_reordering_it_is_a_queue(
        config in any_config(),
        offers in prop::collection::vec((0u64..5_000_000, 1u32..3000), 0..200),
    ) {
        let mut hop = Hop::new(HopConfig { reordering: 0.0, ..config }, Seed(7));
        let items: Vec<_> = drive(&mut hop, &offers).into_iter().map(|(_, item, _)| item).collect();
        prop_assert!(items.is_sorted());
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
