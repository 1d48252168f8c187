//! Times worked out by hand.

use polypath_wire::{Duration, Instant, Rate, Seed};

use crate::*;

const SIZE: u32 = 1250;
const FINE: Fate = Fate::Arrived { copies: 1, corrupted: None, marked: false };

fn micros(n: u64) -> Instant {
    Instant(n * 1_000)
}

pub(crate) fn step(at: Instant, change: Change) -> Step {
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
pub(crate) fn drain(hop: &mut Hop<u32>) -> Vec<(Instant, u32, Fate)> {
    let mut out = Vec::new();
    while let Some(at) = hop.next_event() {
        while let Some(d) = hop.poll(at) {
            out.push((at, d.item, d.fate));
        }
    }
    out
}

pub(crate) fn arrivals(hop: &mut Hop<u32>) -> Vec<(Instant, u32)> {
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
    assert_eq!(out[0], (micros(31_250), 0, FINE));
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
    let [(at, 0, Fate::Arrived { copies: 2, corrupted: Some(_), .. })] = drain(&mut hop1)[..] else {
        panic!()
    };
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

#[test]
fn a_label_of_more_than_a_size_is_read_only_under_a_discipline() {
    assert!(!hop(slow()).reads_labels());
    assert!(
        hop(HopConfig { discipline: Discipline::Codel(CodelConfig::default()), ..slow() }).reads_labels()
    );
}

/// What leaves when under `discipline`, of a packet of 1250 bytes every millisecond: 10 Mbit/s into 8.
fn overloaded(discipline: Discipline) -> (Hop<u32>, Vec<(Instant, u32, Fate)>) {
    let config = HopConfig { discipline, delay: Duration::ZERO, queue: QueueLimit::Packets(1000), ..slow() };
    let (mut hop, mut out) = (hop(config), Vec::new());
    for n in 0..5_000 {
        let now = micros(u64::from(n) * 1_000);
        while let Some(at) = hop.next_event().filter(|at| *at <= now) {
            out.extend(std::iter::from_fn(|| hop.poll(at)).map(|d| (at, d.item, d.fate)));
        }
        let label = Label { size: SIZE, flow: 0, ecn_capable: n % 100 == 99 };
        hop.enqueue(now, n, label).ok();
    }
    (hop, out)
}

/// The queue grows by a packet every 5 ms, so that the 20th packet to leave is the first that waited 5 ms: at
/// 25 ms, and the first drop an interval later.
#[test]
fn codel_drops_at_the_head_when_a_packet_would_leave() {
    let (hop, out) = overloaded(Discipline::Codel(CodelConfig::default()));
    let drops: Vec<_> = out.iter().filter(|(_, _, fate)| *fate == Fate::Lost(Drop::Aqm)).collect();
    let (at, item, _) = drops[0];
    // What is taken at 125 ms is the 101st, number 100, which came at 100 ms.
    assert_eq!((*at, *item), (micros(125_000), 100));
    assert_eq!(drops[1].0, micros(225_000));
    assert_eq!(hop.stats().dropped(Drop::Aqm), drops.len() as u64);
    let waits = out.iter().filter(|(at, _, fate)| *fate == FINE && *at > micros(3_000_000));
    assert!(waits.count() > 1_500, "the link stays busy");
}

#[test]
fn codel_marks_what_is_ecn_capable() {
    let (hop, out) = overloaded(Discipline::Codel(CodelConfig::default()));
    let marked = out.iter().filter(|(_, _, fate)| matches!(fate, Fate::Arrived { marked: true, .. }));
    let items: Vec<_> = marked.map(|(_, item, _)| *item).collect();
    assert!(!items.is_empty() && items.iter().all(|item| item % 100 == 99), "{items:?}");
    assert!(out.iter().all(|(_, item, fate)| *fate != Fate::Lost(Drop::Aqm) || item % 100 != 99));
    assert_eq!(hop.stats().marked, items.len() as u64);
}

#[test]
fn red_drops_before_the_queue_is_full() {
    let (mut hop, _) = overloaded(Discipline::Red(RedConfig::default()));
    assert_eq!(hop.stats().dropped(Drop::QueueFull), 0);
    // A fifth of 5,000 packets must go; those that still wait are within gentle RED's range.
    assert!(hop.stats().dropped(Drop::Aqm).abs_diff(980) < 60, "{:?}", hop.stats());
    assert!((10..40).contains(&hop.waiting(micros(5_000_000)).0));
}

#[test]
fn fq_codel_lets_a_sparse_flow_pass_a_bulk_one() {
    let discipline = Discipline::FqCodel(FqCodelConfig::default());
    let mut hop = hop(HopConfig { discipline, delay: Duration::ZERO, ..slow() });
    (0..20).for_each(|n| {
        hop.enqueue(Instant::ZERO, n, Label { size: SIZE, flow: 1, ecn_capable: false }).unwrap()
    });
    hop.enqueue(micros(2_000), 100, Label { size: 125, flow: 2, ecn_capable: false }).unwrap();
    // Two packets have begun; it is served third.
    assert_eq!(arrivals(&mut hop)[2], (micros(2_625), 100));
}

#[test]
fn a_full_fq_codel_queue_loses_packets_of_the_longest_flow() {
    let discipline = Discipline::FqCodel(FqCodelConfig::default());
    let mut hop = hop(HopConfig { discipline, queue: QueueLimit::Packets(10), ..slow() });
    for n in 0..20 {
        let flow = u64::from(n % 10 == 9);
        hop.enqueue(Instant::ZERO, n, Label { size: SIZE, flow, ecn_capable: false }).unwrap();
    }
    let out = drain(&mut hop);
    let lost: Vec<_> =
        out.iter().filter(|(_, _, fate)| *fate == Fate::Lost(Drop::QueueFull)).map(|o| o.1).collect();
    assert!(lost.len() >= 9 && lost.iter().all(|item| item % 10 != 9), "{lost:?}");
}

#[test]
fn a_hop_that_goes_down_loses_what_its_discipline_keeps() {
    let schedule = vec![step(micros(2_000), Change::Down), step(micros(5_000), Change::Up)];
    let discipline = Discipline::Codel(CodelConfig::default());
    let mut hop = hop(HopConfig { discipline, schedule, ..slow() });
    (0..4).for_each(|n| hop.enqueue(Instant::ZERO, n, SIZE).unwrap());
    let out = drain(&mut hop);
    assert_eq!(out.len(), 4);
    assert!(
        out.iter().all(|&(at, _, fate)| (at, fate) == (micros(2_000), Fate::Lost(Drop::Down))),
        "{out:?}"
    );
    hop.enqueue(micros(5_000), 9, SIZE).unwrap();
    assert_eq!(arrivals(&mut hop), [(micros(36_250), 9)]);
}

#[test]
fn a_rate_step_moves_the_next_packet_that_a_discipline_keeps() {
    let schedule = vec![step(micros(625), Change::Rate(Rate::from_mbps(4)))];
    let discipline = Discipline::Codel(CodelConfig::default());
    let mut hop = hop(HopConfig { discipline, schedule, delay: Duration::ZERO, ..slow() });
    (0..2).for_each(|n| hop.enqueue(Instant::ZERO, n, SIZE).unwrap());
    assert_eq!(arrivals(&mut hop), [(micros(1_875), 0), (micros(4_375), 1)]);
}

/// Opportunities of 1500 bytes at 2, 4, 4 and 10 ms, then at 12, 14, 14 and 20.
fn traced(discipline: Discipline) -> Hop<u32> {
    let trace = Some(LinkTrace::parse("2\n4\n4\n10\n").unwrap());
    hop(HopConfig { trace, discipline, delay: Duration::from_millis(1), ..HopConfig::default() })
}

#[test]
fn packets_leave_at_the_opportunities_of_a_trace() {
    for discipline in [Discipline::DropTail, Discipline::Codel(CodelConfig::default())] {
        let mut hop = traced(discipline);
        // 600 and 900 bytes share an opportunity, 1500 take one, 2000 one and a third, the next has what is left.
        for (item, size) in [(0, 600), (1, 900), (2, 1500), (3, 2000), (4, 1000), (5, 100)] {
            hop.enqueue(micros(500), item, size).unwrap();
        }
        // The one at 20 ms is not for what comes at 20 ms, and what was left at 12 ms is gone.
        assert_eq!(
            hop.next_event(),
            if discipline == Discipline::DropTail { Some(micros(3_000)) } else { Some(micros(2_000)) }
        );
        let times: Vec<_> =
            arrivals(&mut hop).into_iter().map(|(at, item)| (at.0 / 1_000_000, item)).collect();
        assert_eq!(times, [(3, 0), (3, 1), (5, 2), (11, 3), (11, 4), (13, 5)]);
        hop.enqueue(micros(20_000), 6, 1500).unwrap();
        assert_eq!(arrivals(&mut hop), [(micros(23_000), 6)]);
    }
}

#[test]
fn what_a_trace_offers_to_nobody_is_lost() {
    let mut hop = traced(Discipline::DropTail);
    hop.enqueue(micros(4_000), 0, 100).unwrap();
    hop.enqueue(micros(10_500), 1, 100).unwrap();
    assert_eq!(arrivals(&mut hop), [(micros(11_000), 0), (micros(13_000), 1)]);
}

#[test]
fn a_delay_step_reaches_the_packets_that_wait_for_opportunities() {
    let trace = Some(LinkTrace::parse("2\n4\n4\n10\n").unwrap());
    let schedule = vec![step(micros(3_000), Change::Delay(Duration::from_millis(5)))];
    let mut hop = hop(HopConfig { trace, schedule, delay: Duration::from_millis(1), ..HopConfig::default() });
    (0..3).for_each(|n| hop.enqueue(Instant::ZERO, n, 1500).unwrap());
    assert_eq!(arrivals(&mut hop), [(micros(3_000), 0), (micros(9_000), 1), (micros(9_000), 2)]);
}

#[test]
fn a_trace_excludes_changes_of_the_rate() {
    let trace = Some(LinkTrace::parse("2\n").unwrap());
    let schedule = vec![step(micros(1), Change::Rate(Rate(5)))];
    let refused = HopConfig { trace, schedule, ..slow() }.validate().unwrap_err();
    assert_eq!(refused.to_string(), "hop: schedule.rate = 5: none beside a trace");
}

#[test]
fn a_discipline_that_cannot_be_is_refused_by_name() {
    let refused = |discipline| HopConfig { discipline, ..slow() }.validate().unwrap_err().field;
    let red = RedConfig::default();
    assert_eq!(refused(Discipline::Red(RedConfig { weight: 0.0, ..red })), "red.weight");
    assert_eq!(refused(Discipline::Red(RedConfig { probability: 1.1, ..red })), "red.probability");
    assert_eq!(refused(Discipline::Red(RedConfig { max: QueueLimit::Packets(5), ..red })), "red.max");
    assert_eq!(refused(Discipline::Red(RedConfig { max: QueueLimit::Bytes(9000), ..red })), "red.max");
    let codel = CodelConfig::default();
    assert_eq!(refused(Discipline::Codel(CodelConfig { target: Duration::ZERO, ..codel })), "codel.target");
    assert_eq!(refused(Discipline::Codel(CodelConfig { interval: codel.target, ..codel })), "codel.interval");
    let fq = FqCodelConfig::default();
    assert_eq!(refused(Discipline::FqCodel(FqCodelConfig { flows: 0, ..fq })), "fq_codel.flows");
    assert_eq!(refused(Discipline::FqCodel(FqCodelConfig { quantum: 0, ..fq })), "fq_codel.quantum");
}
