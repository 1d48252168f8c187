//! Two ends and the paths between them, in virtual time.

mod bench;
mod idle;

use bench::{Bench, link};
use polypath_testing::{Bed, Way};
use polypath_wire::{Duration, Ecn};

use super::*;
use crate::engine::config::PathConfig;
use crate::facts::PathState;
use crate::sched::SchedulerConfig;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Packets of this class leave twice.
const TWICE: u8 = 3;

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS(ms)
}

#[test]
fn two_paths_carry_the_sum_and_each_flow_stays_in_order() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(20, 10), link(10, 40)]);
    bench.fill_until(at(10_000), 3);
    assert!(bench.share(MS(10_000)) > 0.9, "{}", bench.share(MS(10_000)));
    let (sent, out) = (bench.ends[0].stats(), bench.ends[1].stats());
    let disorder = bench.disorder();
    assert!(disorder * 1000 < bench.out.len(), "{disorder} of {}: {sent:?} {out:?}", bench.out.len());
    let shares = [0, 1].map(|path| bench.ends[0].path_stats(PathId(path)).bytes_delivered);
    assert!(shares[0] > shares[1] && shares[1] > shares[0] / 4, "{shares:?}");
}

#[test]
fn losses_are_counted_where_they_happen_and_nothing_is_waited_for_long() {
    let lossy = link(10, 30).losing(100);
    let mut bench = Bench::new(&PacketConfig::default(), &[link(20, 10), lossy]);
    bench.fill_until(at(10_000), 1);
    bench.run_until(at(11_000));
    let (sent, out) = (bench.ends[0].stats(), bench.ends[1].stats());
    let dropped = bench.dropped();
    assert!(dropped > 20 && sent.late == 0, "{sent:?}, {dropped} dropped");
    assert!(sent.lost.abs_diff(dropped) <= 2, "{sent:?}, {dropped} dropped");
    assert!(out.gaps > 0 && out.waited * 4 < out.gaps, "most are given up at once: {out:?}");
    let disorder = bench.disorder();
    assert!(disorder * 500 < bench.out.len(), "{disorder} of {}", bench.out.len());
}

#[test]
fn what_is_reordered_on_a_path_is_late_and_not_lost() {
    let jumpy = link(20, 40).reordering(50, MS(20));
    let mut bench = Bench::new(&PacketConfig::default(), &[jumpy]);
    bench.fill_until(at(10_000), 1);
    bench.run_until(at(11_000));
    let stats = bench.ends[0].stats();
    let Way { given, lost: dropped, .. } = bench.wire.links[0].ways[0];
    let (jumped, mistaken) = (given / 50, stats.lost.saturating_sub(dropped));
    assert!(jumped > 100 && mistaken * 10 < jumped, "{jumped} jumped, {dropped} dropped: {stats:?}");
    assert!(stats.late + 2 >= mistaken, "what was mistaken for lost is found to be late: {stats:?}");
    assert!(bench.share(MS(10_000)) > 0.8, "{}", bench.share(MS(10_000)));
}

/// Two links, of which the first dies without a word at 3 s: the numbers of a small flow of `class` that arrive from 2 s to
/// 4 s, while another flow keeps the queue full.
fn beside_bulk(class: u8) -> (Vec<u64>, PacketStats) {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10), link(10, 30)]);
    bench.pushes = Some((1, class, 0));
    bench.fill_until(at(3000), 1);
    bench.wire.links[0].ways[0].lossy = 1;
    bench.fill_until(at(4000), 1);
    bench.pushes = None;
    bench.run_until(at(6000));
    let small = bench.out.iter().filter(|(flow, _)| *flow == 1).map(|(_, number)| *number);
    (small.collect(), bench.ends[0].stats())
}

#[test]
fn what_leaves_twice_survives_the_silent_death_of_a_path_even_beside_bulk() {
    let (once, _) = beside_bulk(0);
    assert!(once.len() < 199, "{} of 200 without copies", once.len());
    let (twice, stats) = beside_bulk(TWICE);
    assert_eq!(twice, (0..200).collect::<Vec<_>>(), "{stats:?}");
}

#[test]
fn copies_are_handed_on_once_and_counted_at_both_ends() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10), link(10, 30), link(10, 60)]);
    for number in 0..100 {
        assert!(bench.push(1, TWICE, number));
        bench.run_until(bench.now + MS(5));
    }
    bench.run_until(at(2000));
    assert_eq!(bench.out, (0..100).map(|number| (1, number)).collect::<Vec<_>>());
    let (sent, came) = (bench.ends[0].stats(), bench.ends[1].stats());
    assert_eq!((sent.copies, sent.uncopied, came.duplicates), (100, 0, 100), "{sent:?} {came:?}");
    let by_path = [0, 1, 2].map(|path| bench.ends[0].path_stats(PathId(path)).segments_sent);
    assert!(by_path[2] < 20, "the two on which it should arrive first, once that is known: {by_path:?}");
}

#[test]
fn what_leaves_twice_fills_no_window_beyond_what_it_allows() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10), link(4, 30)]);
    let mut number = 0;
    while bench.now < at(5000) {
        while bench.push(1, TWICE, number) {
            number += 1;
        }
        bench.advance(at(5000));
    }
    let stats = bench.ends[0].stats();
    assert!(stats.copies > 1000 && bench.share(MS(5000)) > 0.6, "{}: {stats:?}", bench.share(MS(5000)));
}

/// Two paths at 5 s, of which the second died and failed, and is back now.
fn failed() -> Bench {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10), link(10, 10)]);
    bench.fill_until(at(2000), 1);
    bench.wire.links[1].ways[0].lossy = 1;
    bench.fill_until(at(5000), 1);
    assert_eq!(bench.ends[0].path_state(PathId(1)), PathState::Failed);
    bench.wire.links[1].ways[0].lossy = 0;
    bench
}

#[test]
fn a_path_that_dies_fails_and_is_used_again_when_it_is_back() {
    let mut bench = failed();
    let before = bench.ends[0].path_stats(PathId(1)).bytes_delivered;
    bench.fill_until(at(8000), 1);
    assert_eq!(bench.ends[0].path_state(PathId(1)), PathState::Active);
    assert!(bench.ends[0].path_stats(PathId(1)).bytes_delivered > before + 1_000_000);
}

#[test]
fn a_path_that_got_longer_than_its_questions_are_apart_works_again() {
    let mut bench = failed();
    bench.wire.links[1].delay = MS(3000);
    bench.fill_until(at(20_000), 1);
    assert_eq!(bench.ends[0].path_state(PathId(1)), PathState::Active);
}

/// The way back carries small packets only, and losses make reports long.
#[test]
fn a_report_is_no_longer_than_its_path_carries() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10).losing(7)]);
    bench.ends[1].path_carries(Instant::ZERO, PathId(0), 60);
    bench.fill_until(at(5000), 1);
    let (sent, out) = (bench.ends[0].stats(), bench.out.len());
    assert!(out > 100 && sent.lost.abs_diff(bench.dropped()) <= 2, "{out} came, {sent:?}");
}

#[test]
fn the_last_packets_of_a_burst_are_known_to_be_lost_before_any_timeout() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 20)]);
    (0..10).for_each(|number| assert!(bench.push(1, 0, number)));
    bench.turn(0);
    let mut number = 0;
    bench.wire.retain(|_| {
        number += 1;
        number <= 8
    });
    bench.run_until(at(600));
    assert_eq!((bench.out.len(), bench.ends[0].stats().lost), (8, 2));
    assert_eq!(bench.ends[0].path_stats(PathId(0)).in_flight, 0);
}

#[test]
fn what_is_repaired_arrives_whole_and_in_order() {
    let lossy = link(10, 30).losing(50);
    let mut bench = Bench::new(&PacketConfig::default(), &[link(2, 10), lossy]);
    for number in 0..2000 {
        bench.push_repaired(number);
        bench.run_until(bench.now + Duration::from_micros(3000));
    }
    bench.run_until(bench.now + MS(1000));
    assert_eq!(bench.out, (0..2000).map(|number| (1, number)).collect::<Vec<_>>());
    let dropped = bench.dropped();
    let again = bench.ends[0].stats().again;
    assert!(dropped >= 10 && again >= dropped && again < 2 * dropped, "{again} again, {dropped} dropped");
}

/// On the slower path it comes 60 ms and a little later if it is lost once.
#[test]
fn what_is_repaired_may_wait_for_as_long_as_a_repair_takes_where_packets_are_lost() {
    let lossy = link(10, 30).losing(50);
    let mut bench = Bench::new(&PacketConfig::default(), &[link(2, 10), lossy]);
    assert_eq!(bench.ends[0].tolerable(bench.now), Tolerable::default(), "nothing is known");
    for number in 0..1000 {
        bench.push_repaired(number);
        bench.run_until(bench.now + MS(3));
    }
    let more = |bench: &Bench| {
        let Tolerable { repaired, others } = bench.ends[0].tolerable(bench.now);
        repaired - others
    };
    let repair = more(&bench);
    assert!((MS(55)..MS(90)).contains(&repair), "{repair:?}");
    bench.run_until(bench.now + MS(11_000));
    assert_eq!(more(&bench), Duration::ZERO, "ten seconds after the last loss");
}

#[test]
fn what_is_lost_again_and_again_is_given_up() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10).losing(2)]);
    (0..50).for_each(|number| bench.push_repaired(number));
    bench.run_until(at(900_000));
    let again = bench.ends[0].stats().again;
    assert!((1..=100).contains(&again) && bench.out.len() < 50, "{again} again, {} came", bench.out.len());
    assert_eq!(bench.ends[0].waiting(), 0);
}

#[test]
fn what_nobody_waits_for_any_more_does_not_leave_again() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10).losing(1)]);
    (0..5).for_each(|number| bench.push_repaired(number));
    bench.run_until(at(900_000)); // the first timeout is after a second
    let stats = bench.ends[0].stats();
    assert_eq!((stats.lost, stats.again, bench.ends[0].waiting()), (5, 0, 0));
}

#[test]
fn what_cannot_leave_twice_is_repaired() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10).losing(5)]);
    for number in 0..50 {
        assert!(bench.push_as(Packet { flow: 1, repaired: true, twice: true, ..Packet::default() }, number));
    }
    bench.run_until(at(5000));
    let stats = bench.ends[0].stats();
    assert!(stats.again > 0 && (stats.copies, stats.uncopied) == (0, 0), "{stats:?}");
    assert_eq!(bench.out, (0..50).map(|number| (1, number)).collect::<Vec<_>>());
}

#[test]
fn many_flows_in_turn_are_not_alone_and_use_a_slower_path_too() {
    let config = PacketConfig { scheduler: SchedulerConfig::EarliestCompletion, ..PacketConfig::default() };
    let mut bench = Bench::new(&config, &[link(20, 10), link(10, 50)]);
    bench.fill_until(at(8000), 20);
    let [quick, slow] = [0, 1].map(|path| bench.ends[0].path_stats(PathId(path)).segments_sent);
    assert!(slow > quick / 4, "{quick} and {slow} packets");
}

#[test]
fn what_was_under_way_on_a_path_that_goes_arrives_on_another() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10), link(10, 40)]);
    (0..10).for_each(|number| bench.push_repaired(number));
    bench.turn(0);
    assert!(!bench.wire.is_empty());
    bench.wire.retain(|(path, _)| path.index() != 0);
    bench.ends[0].remove_path(bench.now, PathId(0));
    bench.run_until(at(1000));
    assert_eq!(bench.out, (0..10).map(|number| (1, number)).collect::<Vec<_>>());
}

#[test]
fn what_no_path_carries_is_refused() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10), link(10, 10)]);
    let packet = |len| Packet { flow: 1, bytes: vec![0; len].into(), ..Packet::default() };
    (0..2).for_each(|path| bench.ends[0].path_carries(Instant::ZERO, PathId(path), 1216));
    assert_eq!(bench.ends[0].largest(), Some(1200));
    assert_eq!(bench.ends[0].push(Instant::ZERO, packet(1201)), Err(Refused::TooBig));
    assert_eq!(bench.ends[0].push(Instant::ZERO, packet(1200)), Ok(()));
    let full = (0..100).map(|_| bench.ends[0].push(Instant::ZERO, packet(1200))).find(Result::is_err);
    assert_eq!(full, Some(Err(Refused::Full)));
}

#[test]
fn a_packet_takes_a_path_that_carries_it_whole() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 1), link(10, 40)]);
    bench.ends[0].path_carries(Instant::ZERO, PathId(0), 900);
    (0..50).for_each(|number| assert!(bench.push(1, 0, number)));
    bench.run_until(at(2000));
    assert_eq!(bench.out.len(), 50);
    let sent = [0, 1].map(|path| bench.ends[0].path_stats(PathId(path)).segments_sent);
    assert_eq!(sent, [0, 50]);
}

#[test]
fn a_path_that_one_end_took_away_and_added_again_is_numbered_on() {
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10)]);
    bench.fill_until(at(1000), 1);
    let next = bench.ends[0].remove_path(bench.now, PathId(0)).expect("it was there");
    bench.first_path = PathId(64);
    let config = PathConfig { mss: 1400, ..PathConfig::default() };
    bench.ends[0].add_path(bench.now, bench.first_path, &config, next);
    let (before, lost) = (bench.out.len(), bench.ends[0].stats().lost);
    bench.fill_until(at(3000), 1);
    let stats = bench.ends[0].stats();
    assert!(bench.out.len() > before + 2000, "{} of {before}: {stats:?}", bench.out.len());
    assert!(stats.lost < lost + 200, "{stats:?}");
}

#[test]
fn any_bytes_and_any_report_are_an_error_or_harmless() {
    use polypath_wire::shim::Report;
    let mut bench = Bench::new(&PacketConfig::default(), &[link(10, 10)]);
    bench.fill_until(at(500), 1);
    let now = bench.now;
    for ranges in [vec![(0, u32::MAX / 4)], vec![(u32::MAX, 7)], vec![(9_000_000, 9_000_001), (3, 3)]] {
        let report = Report { ranges, received: u32::MAX, delay: u32::MAX, ..Report::default() };
        let mut frame = vec![0; report.len()];
        report.emit(&mut frame).expect("there is room");
        assert_eq!(bench.ends[0].handle(now, PathId(0), frame.into(), Ecn::Marked), Ok(()));
    }
    assert!(bench.ends[0].stats().bad_ranges > 0);
    for junk in [&[][..], &[0; 40], &[2, 200, 0, 0], &[1, 0, 0]] {
        assert!(bench.ends[0].handle(now, PathId(0), Bytes::from_static(junk), Ecn::None).is_err());
    }
    bench.fill_until(at(1500), 1);
    assert!(bench.out.len() > 500, "it goes on: {}", bench.out.len());
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = || {
        let lossy = link(10, 30).losing(77).reordering(31, MS(20));
        let mut bench = Bench::new(&PacketConfig::default(), &[link(20, 10), lossy]);
        bench.fill_until(at(2000), 2);
        let given: Vec<_> = bench.wire.links.iter().map(|link| link.ways.map(|way| way.given)).collect();
        (bench.out, given, bench.ends[0].stats())
    };
    assert_eq!(run(), run());
}
