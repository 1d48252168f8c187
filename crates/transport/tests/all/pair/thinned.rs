//! Acknowledgments a few times a round trip of each path (`acks = { policy = "thinned" }`).

use polypath_transport::cc::{CcConfig, NewRenoConfig, SlowStart};
use polypath_transport::{AckConfig, ConnectionConfig};
use polypath_wire::{Duration, Instant, PathId};

use crate::common::{Bed, CLIENT, Edit, Flying, ISN, Pair, SERVER, at, ms, prompt};

const MSS: u64 = 988;
const MEGABYTES: u64 = 4_000_000;

fn thinned() -> ConnectionConfig {
    let cc = CcConfig::Newreno(NewRenoConfig { abc_limit: 64, ..NewRenoConfig::default() });
    ConnectionConfig { acks: AckConfig::thinned(), delayed_ack: ms(40), cc, ..prompt() }
}

fn standard() -> ConnectionConfig {
    ConnectionConfig { acks: AckConfig::Standard, ..thinned() }
}

/// A transfer of 4 MB over paths with these delays; `script` edits it.
fn transfer(config: ConnectionConfig, delays: &[u64], script: impl FnMut(&Flying) -> Edit + 'static) -> Pair {
    let mut pair = Pair::open(config, delays);
    pair.script(script);
    pair.write(CLIENT, MEGABYTES);
    pair.run_until_received(SERVER, MEGABYTES);
    pair.run_for(ms(1000));
    pair
}

/// A transfer over two paths whose packets are numbered, if `numbered`.
fn numbered(numbered: bool, script: impl FnMut(&Flying) -> Edit + 'static) -> Pair {
    let mut pair = Pair::open(thinned(), &[10, 40]);
    pair.numbered = numbered;
    pair.script(script);
    pair.write(CLIENT, MEGABYTES);
    pair.run_until_received(SERVER, MEGABYTES);
    pair
}

fn acks(pair: &Pair, path: u16) -> usize {
    pair.log.iter().filter(|f| f.from == SERVER && f.path.0 == path).count()
}

fn sent_again(pair: &mut Pair) -> u64 {
    (0..2).map(|p| pair.end(CLIENT).path_stats(PathId(p)).retransmissions).sum()
}

#[test]
fn what_another_path_will_bring_is_no_reason_for_haste() {
    let many = transfer(standard(), &[10, 40], |_| Edit::Pass);
    let mut few = transfer(thinned(), &[10, 40], |_| Edit::Pass);
    let [few_acks, many_acks] = [&few, &many].map(|pair| acks(pair, 0) + acks(pair, 1));
    assert!(few_acks * 4 < many_acks, "{few_acks} of {many_acks}");
    assert_eq!(sent_again(&mut few), 0);
    assert_eq!(few.end(CLIENT).stats().timeouts, 0);
    assert!(few.now <= many.now + ms(40), "{:?} beside {:?}", few.now, many.now);
}

#[test]
fn both_paths_hear_of_what_they_carried() {
    let pair = &mut transfer(thinned(), &[10, 40], |_| Edit::Pass);
    for (path, round_trip) in [(0, ms(20)), (1, ms(50))] {
        let stats = pair.end(CLIENT).path_stats(PathId(path));
        assert_eq!(stats.in_flight, 0);
        // the slow path's data is acknowledged by way of the quick one
        assert!(
            stats.srtt.is_some_and(|srtt| srtt >= round_trip && srtt.times(2) < round_trip.times(3)),
            "{stats:?}"
        );
    }
}

/// Of each acknowledgment, of single segments on the first path: how long after its segment came it left, and its TSval less the time at which
/// that came, µs.
fn dated(delays: &[u64]) -> Vec<(i64, i64)> {
    let mut pair = Pair::open(thinned(), delays);
    for n in 0..20 {
        pair.write(CLIENT, MSS);
        pair.run_for(Duration::from_micros(100_000 + 300 * n));
    }
    let (mut segments, mut dated) = (Vec::new(), Vec::new());
    for flying in pair.log.iter().filter(|f| f.path.0 == 0) {
        match flying.segment.header.options.timestamps {
            _ if flying.is_data_of(CLIENT) => segments.push(flying.sent + ms(delays[0])),
            Some(timestamps) if flying.from == SERVER => {
                let newest = segments.iter().rev().find(|came| **came <= flying.sent);
                let us = |came: &Instant| (came.0 / 1000) as i64;
                let since = |came| us(&flying.sent) - us(came);
                dated.extend(newest.map(|came| (since(came), i64::from(timestamps.value) * 1000 - us(came))));
            }
            _ => {}
        }
    }
    dated
}

#[test]
fn of_several_paths_an_acknowledgment_bears_the_time_at_which_the_newest_segment_came() {
    let clock = 5_000_000; // what the server's shows at the start
    let waited =
        |dated: Vec<(i64, i64)>| dated.into_iter().filter(|(since, _)| *since >= 5000).collect::<Vec<_>>();
    let (several, one) = (waited(dated(&[10, 40])), waited(dated(&[10])));
    assert!(several.len() > 10 && one.len() > 10, "{several:?} {one:?}");
    assert!(several.iter().all(|(_, value)| (0..1000).contains(&(clock - value))), "{several:?}");
    assert!(one.iter().all(|(since, value)| (0..1000).contains(&(clock + since - value))), "{one:?}");
}

#[test]
fn losses_are_repaired_without_a_timeout_and_nothing_goes_twice() {
    for delays in [&[10, 40][..], &[20]] {
        let mut lost = 0;
        let mut n = 0;
        let counted = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = counted.clone();
        let mut pair = transfer(thinned(), delays, move |f| {
            n += u64::from(f.is_data_of(CLIENT));
            if f.is_data_of(CLIENT) && n % 97 == 0 && n < 3500 {
                lost += 1;
                count.set(lost);
                return Edit::Lose;
            }
            Edit::Pass
        });
        let paths = delays.len() as u16;
        let again: u64 = (0..paths).map(|p| pair.end(CLIENT).path_stats(PathId(p)).retransmissions).sum();
        assert!(counted.get() > 20);
        assert_eq!(again, counted.get(), "{delays:?}");
        assert_eq!(pair.end(CLIENT).stats().timeouts, 0, "{delays:?}");
    }
}

#[test]
fn an_acknowledgment_that_is_lost_makes_nobody_send_again() {
    let mut n = 0;
    let mut pair = transfer(thinned(), &[10, 40], move |f| {
        n += u64::from(f.from == SERVER);
        if f.from == SERVER && n % 7 == 0 { Edit::Lose } else { Edit::Pass }
    });
    assert_eq!(sent_again(&mut pair), 0);
}

/// When acknowledgments leave, ms, after eight segments begin to leave a millisecond apart on the first path, of 50 ms.
/// The `lost`th is lost.
fn told_of_a_loss(delays: &[u64], numbered: bool, lost: u64) -> Vec<u64> {
    let mut pair = Pair::open(thinned(), delays);
    pair.numbered = numbered;
    pair.write(CLIENT, 300 * MSS);
    pair.run_until_received(SERVER, 300 * MSS);
    pair.run_for(ms(500));
    pair.log.clear();
    let start = pair.now.0 / 1_000_000;
    let lost = (300 + lost) * MSS;
    pair.script(move |f| match f.is_data_of(CLIENT) && f.offset() == lost {
        true if f.sent < at(start + 20) => Edit::Lose,
        _ => Edit::Pass,
    });
    for _ in 0..8 {
        pair.write(CLIENT, MSS);
        pair.run_for(ms(1));
    }
    pair.run_for(ms(60));
    assert!(pair.log.iter().all(|f| f.path.0 == 0));
    pair.times(SERVER, |_| true).iter().map(|at| at - start).collect()
}

#[test]
fn a_gap_on_the_only_path_is_told_at_once() {
    // 0 and 2 arrive, then 3 and 4 confirm; two take 2 ms, so what follows is acknowledged in twos
    assert_eq!(told_of_a_loss(&[50], false, 1), [52, 54, 56], "each a path of 50 ms later than it was sent");
}

#[test]
fn a_gap_within_one_of_several_paths_is_told_at_once_if_their_packets_are_numbered() {
    let [plain, numbered] = [false, true].map(|numbered| told_of_a_loss(&[50, 55], numbered, 2));
    // 0 and 1 were acknowledged; 3 shows that 2 is missing
    assert_eq!((plain[..2].to_vec(), numbered[..3].to_vec()), (vec![51, 54], vec![51, 53, 55]));
}

#[test]
fn segments_that_came_before_it_leaves_share_an_acknowledgment() {
    let mut pair = Pair::open(thinned(), &[10]);
    pair.write(CLIENT, 400 * MSS);
    pair.run_until_received(SERVER, 400 * MSS);
    pair.run_for(ms(500));
    pair.script(|f| if f.is_data_of(CLIENT) { Edit::Lose } else { Edit::Pass });
    pair.log.clear();
    pair.write(CLIENT, 40 * MSS);
    pair.run_for(ms(1));
    let sent: Vec<_> = pair.log.iter().filter(|f| f.is_data_of(CLIENT)).cloned().collect();
    let now = pair.now;
    for flying in &sent {
        pair.end(SERVER).handle(now, flying.path, flying.segment.clone());
    }
    let answers = std::iter::from_fn(|| pair.end(SERVER).poll_transmit(now)).count();
    assert_eq!((sent.len(), answers), (40, 1));
}

#[test]
fn without_sack_or_delay_each_segment_out_of_order_is_acknowledged() {
    for config in
        [ConnectionConfig { sack: false, ..thinned() }, ConnectionConfig { delayed_ack: ms(0), ..thinned() }]
    {
        let mut pair = Pair::open(config, &[10]);
        pair.script(|f| if f.is_data_of(CLIENT) && f.offset() == 0 { Edit::Lose } else { Edit::Pass });
        pair.write(CLIENT, 10 * MSS);
        pair.run_for(ms(12));
        assert_eq!(pair.times(SERVER, |f| f.acks() == 0).len(), 9);
    }
}

#[test]
fn what_another_path_will_bring_is_no_reason_for_haste_with_numbers_either() {
    let with = [false, true].map(|numbers| numbered(numbers, |_| Edit::Pass).log.len());
    assert_eq!(with[0], with[1]);
}

#[test]
fn a_path_that_reorders_costs_few_acknowledgments_more() {
    let counts = [false, true].map(|numbers| {
        let mut n = 0;
        let pair = numbered(numbers, move |f| {
            n += 1;
            if f.from == CLIENT && n % 3 == 0 { Edit::Delay(ms(2)) } else { Edit::Pass }
        });
        acks(&pair, 0) + acks(&pair, 1)
    });
    assert!(counts[1] * 2 < counts[0] * 3, "{counts:?}");
}

/// The most segments that left within 0.1 ms of each other after 2 s, over a link that takes 1 ms for each.
fn longest_burst(config: ConnectionConfig) -> usize {
    let mut pair = Pair::open(config, &[40]);
    let mut busy = Instant::ZERO;
    pair.script(move |f| {
        if !f.is_data_of(CLIENT) {
            return Edit::Pass;
        }
        busy = busy.max(f.sent) + ms(1);
        Edit::Delay(busy.since(f.sent))
    });
    pair.write(CLIENT, 40_000_000);
    pair.run_until(at(4000));
    let sent = pair.log.iter().filter(|f| f.is_data_of(CLIENT) && f.sent > at(2000)).map(|f| f.sent);
    let sent: Vec<_> = sent.collect();
    let bursts = sent.chunk_by(|a, b| b.since(*a) < Duration::from_micros(100));
    bursts.map(<[Instant]>::len).max().unwrap_or_default()
}

/// An acknowledgment opens the window for a sixteenth of it. The time until then is no lateness that a pacer makes up for.
#[test]
fn what_an_acknowledgment_releases_leaves_at_its_pace() {
    let paced = NewRenoConfig {
        initial_ssthresh: Some(200),
        slow_start: SlowStart::Paced,
        ..NewRenoConfig::default()
    };
    let longest = longest_burst(ConnectionConfig { cc: CcConfig::Newreno(paced), ..thinned() });
    assert!((2..=4).contains(&longest), "{longest} segments at once");
}

/// Of two windows beyond the same data the later counts, so what answers a segment beyond the window must be later than what told of data.
#[test]
fn an_acknowledgment_that_tells_of_no_segment_bears_the_time_at_which_it_leaves() {
    let config = ConnectionConfig { receive_buffer: 1 << 20, ..thinned() };
    let mut pair = Pair::open(config, &[10, 13]);
    pair.reads[SERVER] = false;
    pair.write(CLIENT, MEGABYTES);
    pair.run_until(at(60));
    pair.end(SERVER).limit_memory(1000);
    pair.run_for(Duration::from_secs(1));
    pair.log.clear();
    pair.run_for(Duration::from_secs(60));
    let late = |f: &&Flying| {
        let clock = ((f.sent.0 / 1_000_000) as u32).wrapping_add(ISN[SERVER].0);
        f.segment.header.options.timestamps.unwrap().value != clock
    };
    let answers: Vec<_> = pair.log.iter().filter(|f| f.from == SERVER).collect();
    assert!(answers.len() > 5, "{answers:?}");
    assert_eq!(answers.into_iter().find(late).map(|f| f.sent), None);
}
