//! Segments that leave together as where a network card cuts them (`segmentation = "offload"`).

use polypath_transport::{ConnectionConfig, SchedulerConfig, Segmentation};
use polypath_wire::{PathId, Rate};

use crate::common::{Bed, CLIENT, Edit, Flying, Pair, SERVER, every, ms, prompt};

const MSS: u64 = 988;
const MEGABYTES: u64 = 4_000_000;

fn offload() -> ConnectionConfig {
    ConnectionConfig { segmentation: Segmentation::Offload, ..standard() }
}

fn standard() -> ConnectionConfig {
    ConnectionConfig { delayed_ack: ms(40), ..prompt() }
}

/// Paths of 40 Mbit/s, 20 ms, with a queue of as much.
fn open(config: ConnectionConfig, paths: usize) -> Pair {
    let mut pair = Pair::open(config, &vec![10; paths]);
    pair.wire.links.iter_mut().for_each(|link| *link = link.with_rate(Rate::from_mbps(40), ms(20)));
    pair
}

/// How many segments left together each time on the first path, without those that were sent again.
fn together(pair: &Pair) -> Vec<usize> {
    let (mut groups, mut last, mut end) = (Vec::new(), None, 0);
    for f in pair.log.iter().filter(|f| f.is_data_of(CLIENT) && f.path == PathId(0)) {
        if f.offset() < end {
            continue;
        }
        end = f.offset() + f.len();
        match groups.last_mut().filter(|_| last == Some(f.sent)) {
            Some(group) => *group += 1,
            None => groups.push(1),
        }
        last = Some(f.sent);
    }
    groups
}

fn share(groups: &[usize], of: impl Fn(usize) -> bool) -> f64 {
    let all: usize = groups.iter().sum();
    groups.iter().filter(|n| of(**n)).sum::<usize>() as f64 / all as f64
}

/// 40 Mbit/s are 4.9 segments in 1/1024 s, and 1.2 times that 5.9: five, or the six of three acknowledgments.
#[test]
fn what_leaves_together_is_what_the_rate_carries_in_a_millisecond() {
    let run = |config| {
        let mut pair = open(config, 1);
        pair.write(CLIENT, MEGABYTES);
        pair.run_until_received(SERVER, MEGABYTES / 4);
        pair.log.clear();
        pair.run_until_received(SERVER, MEGABYTES);
        together(&pair)
    };
    let (pieces, pairs) = (run(offload()), run(standard()));
    assert!(share(&pieces, |n| n == 5 || n == 6) > 0.9, "{pieces:?}");
    assert!(share(&pairs, |n| n <= 3) > 0.9, "{pairs:?}");
}

#[test]
fn a_first_window_and_an_end_do_not_wait() {
    let mut pair = open(offload(), 1);
    pair.write(CLIENT, 10 * MSS);
    pair.run_for(ms(1));
    assert_eq!(together(&pair), [10], "nothing was in flight");
    pair.write(CLIENT, MSS);
    pair.run_until_received(SERVER, 11 * MSS);
    let sent = pair.data(CLIENT);
    assert_eq!(sent.len(), 11);
    assert!(sent[10].0 <= sent[0].0 + 21, "{sent:?}");
}

/// With windows that hold less than a piece, with losses, over several paths by each scheduler. Which segments are lost depends on the
/// order in which they leave, hence a quarter.
#[test]
fn it_takes_no_longer() {
    let transfer = |config: ConnectionConfig, paths: usize, lossy: u64| {
        let mut pair = open(config, paths);
        let mut count = 0;
        pair.script(move |f: &Flying| {
            count += u64::from(f.is_data_of(CLIENT));
            if lossy > 0 && f.is_data_of(CLIENT) && count.is_multiple_of(lossy) {
                Edit::Lose
            } else {
                Edit::Pass
            }
        });
        let began = pair.now;
        pair.write(CLIENT, MEGABYTES);
        pair.run_until_received(SERVER, MEGABYTES);
        (pair.now.since(began), pair.end(CLIENT).stats().timeouts)
    };
    let compare = |config: ConnectionConfig, paths, lossy, what: &str| {
        let (plain, _) = transfer(config.clone(), paths, lossy);
        let config = ConnectionConfig { segmentation: Segmentation::Offload, ..config };
        let (time, timeouts) = transfer(config, paths, lossy);
        assert!(time.times(4) <= plain.times(5), "{what}: {time:?} beside {plain:?}");
        assert_eq!(timeouts, 0, "{what}");
    };
    for window in [2, 3, 8] {
        let config = ConnectionConfig { receive_buffer: window * MSS, ..standard() };
        compare(config, 1, 0, "a small window of the peer");
    }
    compare(standard(), 1, 50, "losses");
    for scheduler in every::<SchedulerConfig>() {
        let what = format!("{scheduler:?}");
        compare(ConnectionConfig { scheduler, ..standard() }, 2, 0, &what);
    }
}
