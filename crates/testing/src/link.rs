//! A link between the two ends.

use polypath_wire::{Duration, Instant, Rate};

/// Both directions of a link, which a test may change at any time.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Of propagation.
    pub delay: Duration,
    /// None: packets leave at once.
    pub rate: Option<Rate>,
    /// A packet that would wait longer than this for its turn is lost.
    pub queue: Duration,
    /// By the end that sends.
    pub ways: [Way; 2],
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Of this number of packets the last one is lost; 0 for none.
    pub lossy: u64,
    /// Of this number of packets the last one takes longer by `late`; 0 for none.
    pub jumpy: u64,
    /// How much longer.
    pub late: Duration,
    /// When all that it was given has left.
    pub idle: Instant,
    /// Packets sent into it.
    pub given: u64,
    /// Packets sent into it and lost.
    pub lost: u64,
}

impl Link {
    /// A delay, and nothing else.
    pub fn new(delay: Duration) -> Self {
        Self { delay, rate: None, queue: Duration::MAX, ways: [Way::default(); 2] }
    }

    /// Of this rate, with a queue before it.
    pub fn with_rate(self, rate: Rate, queue: Duration) -> Self {
        Self { rate: Some(rate), queue, ..self }
    }

    /// Loses every `nth` packet of the client.
    pub fn losing(mut self, nth: u64) -> Self {
        self.ways[0].lossy = nth;
        self
    }

    /// Every `nth` packet of the client takes longer by `late`.
    pub fn reordering(mut self, nth: u64, late: Duration) -> Self {
        (self.ways[0].jumpy, self.ways[0].late) = (nth, late);
        self
    }

    /// When a packet of `len` bytes that `from` sends now arrives, if it does.
    pub fn carry(&mut self, now: Instant, from: usize, len: usize) -> Option<Instant> {
        let way = &mut self.ways[from];
        way.given += 1;
        let is_nth = |n: u64| n > 0 && way.given.is_multiple_of(n);
        let (lost, late) = (is_nth(way.lossy), is_nth(way.jumpy));
        let left = if lost { None } else { self.serve(now, from, len) };
        let way = &mut self.ways[from];
        way.lost += u64::from(left.is_none());
        Some(left? + self.delay + if late { way.late } else { Duration::ZERO })
    }

    /// When it has left the queue, if that has room: what else happens to it is the caller's matter.
    pub fn serve(&mut self, now: Instant, from: usize, len: usize) -> Option<Instant> {
        let way = &mut self.ways[from];
        let Some(rate) = self.rate else { return Some(now) };
        let begins = way.idle.max(now);
        if begins.since(now) > self.queue {
            return None;
        }
        way.idle = begins + rate.transmission_time(len as u64);
        Some(way.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CLIENT, SERVER};

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const START: Instant = Instant::ZERO;

    #[test]
    fn packets_wait_for_one_another_in_each_direction_and_longer_than_the_queue_none_does() {
        let mut link = Link::new(MS(10)).with_rate(Rate::from_mbps(8), MS(2)); // a millisecond each
        let arrive = [11, 12, 13].map(|ms| Some(START + MS(ms)));
        assert_eq!([(); 3].map(|()| link.carry(START, CLIENT, 1000)), arrive);
        assert_eq!(link.carry(START, CLIENT, 1000), None, "it would wait 3 ms");
        assert_eq!(link.carry(START, SERVER, 1000), arrive[0]);
        assert_eq!([CLIENT, SERVER].map(|end| link.ways[end].lost), [1, 0]);
    }

    #[test]
    fn every_nth_packet_of_the_client_is_lost_or_late() {
        let mut link = Link::new(MS(1)).losing(3).reordering(2, MS(20));
        let course = [1, 2, 3, 4, 5, 6]
            .map(|_| link.carry(START, CLIENT, 1).map(|at| at.since(START).as_nanos() / 1_000_000));
        assert_eq!(course, [Some(1), Some(21), None, Some(21), Some(1), None]);
        assert!((0..6).all(|_| link.carry(START, SERVER, 1) == Some(START + MS(1))));
    }
}
