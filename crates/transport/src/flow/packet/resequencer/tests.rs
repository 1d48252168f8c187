use bytes::Bytes;

use super::*;

const MS: fn(u64) -> Instant = |n| Instant(n * 1_000_000);
const FAST: PathId = PathId(0);
const SLOW: PathId = PathId(1);

/// Two paths, one of which takes 40 ms longer; packets of one flow follow one another.
struct Bench {
    resequencer: Resequencer,
    came: Vec<u64>,
    repaired: bool,
}

impl Bench {
    fn new() -> Self {
        let mut resequencer = Resequencer::new(10_000, Duration::from_millis(200));
        for n in 0..50 {
            resequencer.arrived(MS(n), FAST, (0, delays::stamp_of(MS(n))));
            resequencer.arrived(MS(n + 40), SLOW, (0, delays::stamp_of(MS(n))));
        }
        Self { resequencer, came: Vec::new(), repaired: false }
    }

    /// The packet `number` of `flow` comes on `path`; what is handed on then.
    fn take(&mut self, ms: u64, path: PathId, flow: u16, number: u64) -> Vec<u8> {
        let previous = number.checked_sub(1);
        let missing = previous.is_some_and(|previous| !self.came.contains(&previous));
        self.came.push(number);
        let bytes = Bytes::from(vec![number as u8; 100]);
        let packet = Packet { flow, repaired: self.repaired, bytes, ..Packet::default() };
        self.resequencer.arrived(MS(ms), path, (number, delays::stamp_of(MS(ms))));
        self.resequencer.insert(MS(ms), number, (previous, missing), packet);
        self.ready()
    }

    fn ready(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.resequencer.pop()).map(|packet| packet.bytes[0]).collect()
    }
}

#[test]
fn what_overtook_waits_for_what_comes_by_the_slower_path() {
    let mut bench = Bench::new();
    assert_eq!(bench.take(100, FAST, 7, 0), [0]);
    assert_eq!(bench.take(101, FAST, 7, 2), Vec::<u8>::new());
    assert_eq!(bench.take(102, FAST, 7, 3), Vec::<u8>::new());
    assert_eq!(bench.take(120, SLOW, 7, 1), [1, 2, 3]);
    assert_eq!(bench.resequencer.given_up(), (0, 0));
}

#[test]
fn a_gap_is_given_up_at_once_when_every_path_delivered_something_later() {
    let mut bench = Bench::new();
    bench.take(100, FAST, 7, 0);
    assert_eq!(bench.take(101, FAST, 7, 2), Vec::<u8>::new());
    assert_eq!(bench.take(102, SLOW, 7, 3), [2, 3], "1 is on no path any more");
    assert_eq!(bench.resequencer.given_up(), (1, 0));
    assert_eq!(bench.take(103, SLOW, 7, 1), [1], "late, and better late than never");
}

#[test]
fn what_goes_again_is_waited_for_whatever_came_later() {
    let mut bench = Bench::new();
    bench.repaired = true;
    bench.take(100, FAST, 7, 0);
    assert_eq!(bench.take(101, FAST, 7, 2), Vec::<u8>::new());
    assert_eq!(bench.take(142, SLOW, 7, 3), Vec::<u8>::new());
    bench.resequencer.on_timeout(MS(300));
    assert_eq!(bench.take(300, FAST, 7, 1), [1, 2, 3]);
    assert_eq!(bench.take(301, FAST, 7, 5), Vec::<u8>::new());
    assert_eq!(bench.resequencer.next_timeout(), Some(MS(501)), "no longer than is allowed");
}

#[test]
fn a_gap_is_given_up_after_the_difference_of_the_delays() {
    let mut bench = Bench::new();
    bench.take(100, FAST, 7, 0);
    let allowance = bench.resequencer.allowance();
    assert!(allowance > Duration::from_millis(30) && allowance < Duration::from_millis(80), "{allowance:?}");
    bench.take(101, FAST, 7, 2);
    let at = bench.resequencer.next_timeout().expect("a gap");
    assert!(at <= MS(101) + Duration::from_millis(80));
    bench.resequencer.on_timeout(Instant(at.0 - 1));
    assert_eq!(bench.ready(), Vec::<u8>::new());
    bench.resequencer.on_timeout(at);
    assert_eq!((bench.ready(), bench.resequencer.given_up()), (vec![2], (1, 1)));
    assert_eq!(bench.resequencer.next_timeout(), None);
}

#[test]
fn what_came_first_waits_no_longer_for_what_came_in_front_of_it() {
    let mut bench = Bench::new();
    bench.repaired = true;
    bench.take(100, FAST, 7, 0);
    assert_eq!(bench.take(101, FAST, 7, 3), Vec::<u8>::new());
    assert_eq!(bench.take(250, SLOW, 7, 2), Vec::<u8>::new(), "1 is missing");
    assert_eq!(bench.resequencer.next_timeout(), Some(MS(301)));
    bench.resequencer.on_timeout(MS(301));
    assert_eq!(bench.ready(), [2, 3]);
}

#[test]
fn the_very_first_packet_is_waited_for() {
    let mut bench = Bench::new();
    assert_eq!(bench.take(100, FAST, 7, 2), Vec::<u8>::new());
    assert_eq!(bench.take(101, FAST, 7, 1), Vec::<u8>::new());
    assert_eq!(bench.take(120, SLOW, 7, 0), [0, 1, 2]);
}

/// The flow was forgotten after a pause.
#[test]
fn nobody_waits_for_what_came_before_the_flow_was_forgotten() {
    let mut bench = Bench::new();
    bench.take(100, FAST, 7, 0);
    assert!(!bench.resequencer.forget(MS(200)));
    assert_eq!(bench.take(300, FAST, 7, 2), Vec::<u8>::new(), "1 is missing");
    assert_eq!(bench.take(300, FAST, 7, 3), Vec::<u8>::new(), "2 waits");
    assert_eq!(bench.take(301, FAST, 7, 1), [1, 2, 3], "0 came long ago");
}

#[test]
fn no_flow_waits_for_another() {
    let mut bench = Bench::new();
    bench.take(100, FAST, 7, 0);
    assert_eq!(bench.take(101, FAST, 7, 2), Vec::<u8>::new());
    let packet = Packet { flow: 8, bytes: Bytes::from_static(&[9]), ..Packet::default() };
    bench.resequencer.insert(MS(102), 3, (None, false), packet);
    assert_eq!(bench.ready(), [9]);
}

#[test]
fn what_is_held_is_bounded() {
    let mut bench = Bench::new();
    bench.take(100, FAST, 7, 0);
    (2..=102).for_each(|n| _ = bench.take(101, FAST, 7, n));
    assert!(bench.resequencer.held <= 10_000);
    let mut flows = Bench::new();
    (0..u16::MAX).for_each(|flow| _ = flows.take(100, FAST, flow, 1 + 2 * u64::from(flow)));
    assert!(flows.resequencer.flows.len() <= FLOWS && flows.resequencer.held <= 10_000);
}
