//! Loss and its repair (RFC 5681, 6298, 6582, 6675, 3042, 2018).

use std::collections::BTreeSet;

use polypath_transport::{ConnectionConfig, Payload};
use polypath_transport::{LossConfig, ThresholdConfig};
use polypath_wire::tcp::SackBlock;
use polypath_wire::{Duration, PathId};

use crate::common::{Bed, CLIENT, Edit, ISN, Pair, SERVER, at, ms, prompt};

const MSS: u64 = 988;

fn newreno() -> ConnectionConfig {
    let loss = LossConfig::Dupack(Default::default());
    ConnectionConfig { sack: false, loss, ..prompt() }
}

/// Loses the first transmission of the segments with these numbers.
fn lose_once(pair: &mut Pair, segments: &[u64]) {
    let mut left: BTreeSet<u64> = segments.iter().map(|n| n * MSS).collect();
    pair.script(
        move |f| if f.is_data_of(CLIENT) && left.remove(&f.offset()) { Edit::Lose } else { Edit::Pass },
    );
}

/// What was sent more than once: how often each.
fn sent_again(pair: &Pair) -> Vec<(u64, usize)> {
    let data = pair.data(CLIENT);
    let offsets: BTreeSet<_> = data.iter().map(|d| d.2).collect();
    let count = |o: u64| data.iter().filter(|d| d.2 == o).count();
    offsets.into_iter().map(|o| (o / MSS, count(o))).filter(|(_, n)| *n > 1).collect()
}

fn open(config: ConnectionConfig, segments: u64, lost: &[u64]) -> Pair {
    let mut pair = Pair::open(config, &[50]);
    lose_once(&mut pair, lost);
    pair.write(CLIENT, segments * MSS);
    pair.run_until_received(SERVER, segments * MSS);
    pair.run_for(ms(200));
    pair
}

/// RFC 6298 §5.5: the timeout doubles up to its largest value; §5.3: an acknowledgment ends that.
#[test]
fn timeouts_back_off() {
    let config = ConnectionConfig { max_rto: Duration::from_secs(2), ..prompt() };
    let mut pair = Pair::open(config, &[10]);
    pair.script(|_| Edit::Lose);
    pair.write(CLIENT, 100);
    pair.run_for(Duration::from_secs(9));
    let times: Vec<_> = pair.data(CLIENT).iter().map(|d| d.0 - 1000).collect();
    assert_eq!(times, [0, 200, 600, 1400, 3000, 5000, 7000, 9000]);
    pair.script(|_| Edit::Pass);
    pair.run_until_received(SERVER, 100);
    pair.run_for(ms(100));
    pair.log.clear();
    let start = pair.now.0 / 1_000_000;
    pair.script(|_| Edit::Lose);
    pair.write(CLIENT, 100);
    pair.run_for(ms(250));
    let times: Vec<_> = pair.data(CLIENT).iter().map(|d| d.0 - start).collect();
    assert_eq!(times, [0, 200], "the backoff is forgotten");
}

/// RFC 6298 §5.1, §5.6 and RFC 5681 §3.1: after a timeout one segment, then slow start.
#[test]
fn a_timeout_starts_again_with_one_segment() {
    let mut pair = Pair::open(newreno(), &[50]);
    pair.script(|f| if f.is_data_of(CLIENT) { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 40 * MSS);
    pair.run_for(ms(150));
    pair.script(|_| Edit::Pass);
    pair.log.clear();
    pair.run_until_received(SERVER, 40 * MSS);
    let data = pair.data(CLIENT);
    let first = data[0].0;
    assert_eq!(data.iter().filter(|d| d.0 == first).count(), 1);
    assert!(data.iter().filter(|d| d.0 == first + 100).count() <= 3, "{data:?}");
}

/// RFC 5681 §3.2: two duplicates are reordering, three are a loss.
#[test]
fn reordering_by_two_is_not_a_loss() {
    for config in [newreno(), prompt()] {
        for (by, again) in [(2u64, false), (3, true)] {
            let mut pair = Pair::open(config.clone(), &[50]);
            pair.write(CLIENT, MSS); // its answer widens the window; later ones are duplicates
            pair.run_for(ms(1000));
            pair.log.clear();
            // the first segment arrives between number `by` and the one after it
            let mut n = 0;
            pair.script(move |f| {
                n += u64::from(f.is_data_of(CLIENT));
                match n {
                    _ if f.from == SERVER => Edit::Pass,
                    1 => Edit::Delay(ms(5)),
                    n if n <= by + 1 => Edit::Pass,
                    _ => Edit::Delay(ms(10)),
                }
            });
            pair.write(CLIENT, 8 * MSS);
            pair.run_for(ms(300));
            assert_eq!(pair.received[SERVER], 9 * MSS);
            assert_eq!(!sent_again(&pair).is_empty(), again, "overtaken by {by}: {:?}", sent_again(&pair));
        }
    }
}

/// RFC 5681 §3.2: one loss is repaired a round trip later, and the window is halved once.
#[test]
fn fast_retransmit() {
    for config in [newreno(), prompt()] {
        let pair = &mut open(config, 30, &[4]);
        assert_eq!(sent_again(pair), [(4, 2)]);
        let stats = pair.end(CLIENT).stats().clone();
        assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 1));
        let times: Vec<_> = pair.data(CLIENT).iter().filter(|d| d.2 == 4 * MSS).map(|d| d.0 - 1000).collect();
        assert_eq!(times, [0, 100]);
    }
}

/// RFC 6582 §3.2: each partial acknowledgment brings the next retransmission; one reduction in all.
#[test]
fn newreno_repairs_one_loss_a_round_trip() {
    let pair = &mut open(newreno(), 30, &[2, 4, 6]);
    assert_eq!(sent_again(pair), [(2, 2), (4, 2), (6, 2)]);
    let stats = pair.end(CLIENT).stats().clone();
    assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 1));
    let last = |n: u64| pair.data(CLIENT).iter().filter(|d| d.2 == n * MSS).map(|d| d.0).max().unwrap();
    assert_eq!([last(4) - last(2), last(6) - last(4)], [100, 100]);
}

/// RFC 6675 §5: losses are repaired as fast as the pipe has room, not one a round trip; one reduction.
#[test]
fn sack_repairs_all_losses_at_once() {
    let pair = &mut open(prompt(), 30, &[2, 4, 6]);
    assert_eq!(sent_again(pair), [(2, 2), (4, 2), (6, 2)]);
    let stats = pair.end(CLIENT).stats().clone();
    assert_eq!((stats.timeouts, stats.fast_recoveries), (0, 1));
    let last = |n: u64| pair.data(CLIENT).iter().filter(|d| d.2 == n * MSS).map(|d| d.0).max().unwrap();
    assert_eq!(last(6), last(4), "one more round trip than the first: the halved window has to drain");
}

/// RFC 6675 sends again what the blocks leave out, and nothing else.
#[test]
fn sack_sends_nothing_twice_that_arrived() {
    let lost: Vec<_> = (0..60).filter(|n| n % 3 == 1).collect();
    let pair = &mut open(prompt(), 100, &lost);
    for (segment, times) in sent_again(pair) {
        assert!(lost.contains(&segment), "segment {segment} was sent {times} times");
    }
}

/// A lost retransmission is left to the timer (RFC 5681, 6675) and still repaired.
#[test]
fn a_lost_retransmission() {
    for config in [newreno(), prompt()] {
        let mut pair = Pair::open(config, &[50]);
        let mut count = 0;
        pair.script(move |f| {
            count += u32::from(f.is_data_of(CLIENT) && f.offset() == 4 * MSS);
            if f.is_data_of(CLIENT) && f.offset() == 4 * MSS && count <= 2 { Edit::Lose } else { Edit::Pass }
        });
        pair.write(CLIENT, 30 * MSS);
        pair.run_until_received(SERVER, 30 * MSS);
        assert_eq!(pair.data(CLIENT).iter().filter(|d| d.2 == 4 * MSS).count(), 3);
    }
}

/// The last segment has nobody behind it to report its loss: the timer does it.
#[test]
fn a_lost_tail() {
    for config in [newreno(), prompt()] {
        let pair = &mut open(config, 10, &[9]);
        assert_eq!(sent_again(pair), [(9, 2)]);
        assert_eq!(pair.end(CLIENT).stats().timeouts, 1);
    }
}

/// RFC 3042: the first two duplicates each let a new segment out.
#[test]
fn limited_transmit() {
    let mut pair = Pair::open(newreno(), &[50]);
    lose_once(&mut pair, &[0]);
    pair.write(CLIENT, 40 * MSS);
    pair.run_for(ms(99));
    let window = pair.data(CLIENT).len();
    assert_eq!(window, 10);
    pair.run_for(ms(2));
    let data = pair.data(CLIENT);
    let new: Vec<_> = data[window..].iter().map(|d| d.2 / MSS).take(3).collect();
    assert_eq!(new, [10, 11, 0], "two new segments, then the one that is missing");
}

/// RFC 6298 §3 and Karn: an acknowledgment of something sent twice gives no sample without timestamps.
#[test]
fn a_retransmission_gives_no_false_round_trip() {
    for timestamps in [false, true] {
        let mut pair = Pair::open(ConnectionConfig { timestamps, ..newreno() }, &[50]);
        let delay = ms(300); // the acknowledgment of the first transmission comes after the timeout
        let mut first = true;
        pair.script(move |f| match f.is_data_of(CLIENT) && std::mem::replace(&mut first, false) {
            true => Edit::Delay(delay),
            false => Edit::Pass,
        });
        pair.write(CLIENT, 100);
        pair.run_for(Duration::from_secs(2));
        let srtt = pair.end(CLIENT).path_stats(PathId(0)).srtt.unwrap();
        assert!(srtt >= ms(99), "timestamps {timestamps}: {srtt:?}");
    }
}

/// RFC 2018 §8: a receiver may take back what it reported; nothing is lost by it. None of the first ten
/// segments arrives, and yet it reports that the last five did.
#[test]
fn a_receiver_that_reneges() {
    for loss in [LossConfig::Rack(Default::default()), LossConfig::Sack(ThresholdConfig { threshold: 3 })] {
        let mut pair = Pair::open(ConnectionConfig { loss, ..prompt() }, &[50]);
        let mut left = 10;
        pair.script(move |f| match f.is_data_of(CLIENT) && left > 0 {
            true => {
                left -= 1;
                Edit::Lose
            }
            false => Edit::Pass,
        });
        pair.write(SERVER, 1); // a segment of the server's to put the lie into
        pair.run_for(ms(200));
        let mut lie = pair.log.iter().rfind(|f| f.from == SERVER).expect("it wrote").segment.clone();
        pair.write(CLIENT, 10 * MSS);
        pair.run_for(ms(100));
        let seq = |n: u64| ISN[CLIENT].plus(1 + (n * MSS) as u32);
        lie.header.seq = lie.header.seq.plus(1);
        lie.payload = Payload::EMPTY;
        lie.header.options.sack.push(SackBlock { start: seq(5), end: seq(10) });
        pair.inject(CLIENT, 0, lie);
        pair.run_until_received(SERVER, 10 * MSS);
        let again: Vec<_> = sent_again(&pair).iter().map(|s| s.0).collect();
        assert_eq!(again, (0..10).collect::<Vec<_>>(), "what was taken back goes again too");
        pair.run_for(ms(500));
        assert_eq!(pair.end(CLIENT).path_stats(PathId(0)).in_flight, 0);
    }
}

/// RFC 8985 §6.2: a path that was seen to reorder is given a quarter of its round trip, and the first
/// mistake is taken back once the receiver reports the duplicate.
#[test]
fn reordering_is_learned() {
    let mut pair = Pair::open(prompt(), &[50]);
    pair.script(|f| match f.is_data_of(CLIENT) && f.offset() / MSS % 10 == 3 && f.sent > at(900) {
        true => Edit::Delay(ms(12)),
        false => Edit::Pass,
    });
    pair.write(CLIENT, 200 * MSS);
    pair.run_until_received(SERVER, 200 * MSS);
    pair.run_for(ms(300));
    let stats = pair.end(CLIENT).stats().clone();
    assert_eq!((stats.fast_recoveries, stats.undone, stats.timeouts), (1, 1, 0));
    assert_eq!(sent_again(&pair).len(), 1, "{:?}", sent_again(&pair));
}

/// RFC 8985 §7: what is missing at the end is found by a probe long before the timer would.
#[test]
fn a_tail_is_probed() {
    let slow_timer = ConnectionConfig { min_rto: Duration::from_secs(5), ..prompt() };
    for (lost, reductions) in [(&[7, 8, 9][..], 1), (&[9], 1), (&[], 0)] {
        let pair = &mut open(slow_timer.clone(), 10, lost);
        pair.run_for(ms(1000));
        let stats = pair.end(CLIENT).stats().clone();
        assert_eq!((stats.timeouts, stats.fast_recoveries), (0, reductions), "{lost:?}");
        let last = pair.data(CLIENT).iter().map(|d| d.0).max().unwrap();
        assert!(last < 1000 + 700, "{lost:?}: {last} ms");
    }
}

/// Each tail of each path: nothing was missing before that an acknowledgment on the path itself could have told of.
#[test]
fn every_tail_of_several_paths_is_probed() {
    let slow_timer = ConnectionConfig { min_rto: Duration::from_secs(5), ..prompt() };
    let mut pair = Pair::open(slow_timer, &[10, 15]);
    lose_once(&mut pair, &[2, 4, 6]);
    for segment in 0..8 {
        let asked = pair.now;
        pair.write(CLIENT, MSS);
        pair.run_until_received(SERVER, (segment + 1) * MSS);
        assert!(pair.now.since(asked) < ms(400), "segment {segment}: {:?}", pair.now.since(asked));
        pair.run_for(ms(200));
    }
    let stats = pair.end(CLIENT).stats();
    assert_eq!(
        (stats.timeouts, stats.fast_recoveries),
        (0, 3),
        "each is a loss, and was repaired by the probe"
    );
}

/// RFC 2018 §4: data segments report what came early where they have room; duplicates such segments are not (RFC 5681 §2).
#[test]
fn data_tells_of_what_came_early_if_there_is_room() {
    let loss = LossConfig::Dupack(Default::default());
    let mut pair = Pair::open(ConnectionConfig { loss, ..prompt() }, &[10]);
    pair.script(|f| if f.is_data_of(CLIENT) && f.offset() == 0 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 2 * MSS);
    pair.run_for(ms(15));
    for len in [100, 100, 100, 100, MSS] {
        pair.write(SERVER, len);
        pair.run_for(ms(1));
    }
    pair.run_for(ms(30));
    let data = pair.log.iter().filter(|f| f.is_data_of(SERVER));
    let told: Vec<_> = data.map(|f| f.segment.header.options.sack.len()).collect();
    assert_eq!(told, [1, 1, 1, 1, 0]);
    assert_eq!(pair.end(CLIENT).path_stats(PathId(0)).retransmissions, 0);
    pair.script(|_| Edit::Pass);
    pair.run_until_received(SERVER, 2 * MSS);
}

/// RFC 3522 and 4015: a queue holds everything for two seconds and loses nothing.
#[test]
fn a_timeout_for_nothing_is_undone() {
    let mut pair = Pair::open(prompt(), &[50]);
    pair.write(CLIENT, 100 * MSS);
    pair.run_until_received(SERVER, 100 * MSS);
    pair.run_for(ms(500));
    let until = pair.now + ms(2000);
    pair.script(move |f| {
        if f.from == CLIENT && f.sent < until { Edit::Delay(until.since(f.sent)) } else { Edit::Pass }
    });
    let before = pair.end(CLIENT).path_stats(PathId::FIRST);
    pair.log.clear();
    pair.write(CLIENT, 300 * MSS);
    pair.run_until_received(SERVER, 400 * MSS);
    pair.run_for(ms(500));
    let (stats, path) = (pair.end(CLIENT).stats().clone(), pair.end(CLIENT).path_stats(PathId::FIRST));
    assert!(stats.timeouts > 1 && stats.undone == 1, "{stats:?}");
    assert!(path.cwnd >= before.cwnd && path.ssthresh == before.ssthresh, "{path:?}");
    assert_eq!(sent_again(&pair).iter().map(|(n, _)| *n).collect::<Vec<_>>(), [100], "what the timer sent");
    assert_eq!(path.in_flight, 0);
}

/// The data arrived, its acknowledgments did not: what was sent again is reported to have come before (RFC 2883).
#[test]
fn a_timeout_after_lost_acknowledgments_is_not_undone() {
    let mut pair = Pair::open(prompt(), &[50]);
    let until = pair.now + ms(400);
    pair.script(move |f| if f.from == SERVER && f.sent < until { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 3 * MSS);
    pair.run_for(ms(2000));
    let stats = pair.end(CLIENT).stats();
    assert_eq!((stats.timeouts, stats.undone, stats.bytes_acked), (1, 0, 3 * MSS));
}

/// What was sent again is what is answered: the timeout was right.
#[test]
fn a_timeout_after_a_loss_is_not_undone() {
    let mut pair = open(prompt(), 1, &[0]);
    assert_eq!(sent_again(&pair), [(0, 2)]);
    assert_eq!(pair.end(CLIENT).stats().undone, 0);
}
