//! A stream over an engine without windows.

use super::*;
use crate::cc::Env;
use crate::conn::config::ConnectionConfig;
use crate::conn::sender;
use crate::engine::config::PathConfig;
use crate::facts::{Episode, LossCause};
use crate::path::flight::Flight;

const LANE: PathId = PathId::FIRST;

struct Stream {
    map: StreamMap,
    engine: Engine,
}

impl Stream {
    /// On this number of paths.
    fn new(paths: u16) -> Self {
        let mut engine = sender::engine(&ConnectionConfig::default(), &Env::default());
        for path in (0..paths).map(PathId) {
            engine.add_path(Instant::ZERO, path, &PathConfig::default(), 1000);
        }
        Self { map: StreamMap::default(), engine }
    }

    /// This number of segments of ten bytes leaves on `path`.
    fn send(mut self, path: PathId, segments: usize) -> Self {
        for _ in 0..segments {
            let cargo = Cargo { key: self.map.nxt(), len: 10, history: History::Once };
            let number = self.engine.send(Instant::ZERO, path, cargo, false);
            self.map.send_new(path, number, 10);
        }
        self
    }

    fn flight(&self) -> &Flight {
        &self.engine.lanes()[LANE].flight
    }

    /// In flight, and FlightSize.
    fn sizes(&self) -> (u64, u64) {
        (self.flight().in_flight(), self.flight().flight_size(10))
    }

    /// The transmission `number`, of the segment at `offset`, is lost.
    fn lose(&mut self, number: u64, offset: u64) {
        assert!(self.map.take_again(LANE, number, offset, &mut self.engine).is_some());
    }

    fn send_again(&mut self, now: u64, offset: u64) {
        let cargo = Cargo { key: offset, len: 10, history: History::Again };
        let number = self.engine.send(Instant(now), LANE, cargo, false);
        self.map.send_again(offset, LANE, number);
    }

    fn sack(&mut self, start: u64, end: u64) -> bool {
        self.map.sack(start, end, &mut self.engine)
    }

    fn ack(&mut self, una: u64) -> bool {
        self.map.ack_up_to(una, &mut self.engine)
    }
}

#[test]
fn reneging_takes_back_what_was_counted_and_no_more() {
    let mut stream = Stream::new(1).send(LANE, 5);
    stream.lose(2, 20);
    assert!(stream.sack(20, 30) && stream.sack(30, 40) && stream.sack(0, 10));
    assert_eq!(stream.sizes(), (20, 30));
    stream.map.renege(&mut stream.engine);
    assert_eq!(stream.sizes(), (20, 20));
    assert_eq!(stream.map.next_lost().map(|lost| lost.offset), Some(0));
}

#[test]
fn what_is_taken_back_is_in_flight_where_it_was() {
    let mut stream = Stream::new(1).send(LANE, 5);
    (0..5).for_each(|number| stream.lose(number, 10 * number));
    stream.send_again(2, 0);
    stream.lose(5, 0);
    stream.send_again(3, 0);
    assert_eq!(stream.sizes().0, 10);
    stream.map.begin_ack(&mut stream.engine);
    assert!(stream.ack(10));
    stream.map.take_back(LANE, Instant(1), &mut stream.engine);
    assert_eq!((stream.sizes().0, stream.map.has_lost(), stream.flight().fresh().newest), (40, false, None));
    assert_eq!(stream.flight().numbers(), [1, 2, 3, 4]);
    stream.map.begin_ack(&mut stream.engine);
    assert!(stream.sack(30, 40) && stream.ack(30));
    assert_eq!(stream.sizes(), (10, 10));
    assert!(stream.ack(50) && stream.map.is_idle());
    assert_eq!((stream.sizes(), stream.flight().next_number()), ((0, 0), 7));
}

#[test]
fn what_a_faster_path_tells_first_is_no_evidence_yet() {
    let (fast, slow) = (PathId(0), PathId(1));
    let mut stream = Stream::new(2).send(slow, 6);
    let mut acked = |path, block: (u64, u64)| {
        stream.map.begin_ack(&mut stream.engine);
        assert!(stream.map.sack(block.0, block.1, &mut stream.engine));
        stream.map.vouch(path, 0, &[block], &mut stream.engine);
        let flight = &stream.engine.lanes()[slow].flight;
        flight.overtaken(3).map(|(number, _)| number).collect::<Vec<_>>()
    };
    // The acknowledgments of 0 to 20 are still on the slow path when the fast one tells of 30 to 60.
    assert!(acked(fast, (30, 60)).is_empty());
    assert!(acked(slow, (0, 20)).is_empty());
    // On the slow path 20 to 30 was overtaken indeed.
    assert!(acked(slow, (30, 40)).is_empty());
    assert_eq!(acked(slow, (30, 60)), [2]);
}

#[test]
fn of_a_lost_segment_that_was_cut_the_first_part_is_taken_back() {
    let mut stream = Stream::new(1).send(LANE, 2);
    stream.lose(0, 0);
    stream.map.split(0, 4);
    stream.map.take_back(LANE, Instant(1), &mut stream.engine);
    assert_eq!(stream.sizes().0, 14);
    assert_eq!(stream.map.next_lost().map(|lost| (lost.offset, lost.len)), Some((4, 6)));
}

#[test]
fn what_is_given_up_and_arrives_after_all_is_waited_for_no_more() {
    let mut stream = Stream::new(1).send(LANE, 3);
    stream.engine.give_up(LANE, 0, LossCause::TooBig, Episode::default());
    let facts = stream.engine.take_facts();
    let [crate::engine::facts::Fact::Lost { what, transmission, .. }] = facts[..] else {
        panic!("{facts:?}")
    };
    stream.map.mark_lost(&what, transmission);
    assert!(stream.map.has_lost() && stream.ack(10));
    assert!(!stream.map.has_lost());
    assert_eq!(stream.flight().fresh().bytes, 10);
}
