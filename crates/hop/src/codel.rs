//! CoDel (RFC 8289): a queue whose smallest sojourn time stays above `target` for an `interval` is a standing
//! one, and loses or marks packets at its head, ever more often, until it drains.
//!
//! The control law (§3.3, §5.5): while the queue stands, the next drop is `interval / √count` after the last.

use std::fmt::Debug;

use polypath_wire::{Duration, Instant, millis};
use serde::{Deserialize, Serialize};

use crate::aqm::Queue;
use crate::error::{HopError, check};
use crate::fifo::{Fifo, Waiting};

/// Parameters of CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodelConfig {
    /// Acceptable standing delay, ms: RFC 8289 §4.3, 5 ms; at least the time of one packet.
    #[serde(with = "millis")]
    pub target: Duration,
    /// Time in which the delay must fall below it once, ms: RFC 8289 §4.2, 100 ms; a worst-case round trip.
    #[serde(with = "millis")]
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: true }
    }
}

impl CodelConfig {
    /// Checks the ranges of its parameters.
    pub(crate) fn check(&self) -> Result<(), HopError> {
        let Self { target, interval, .. } = self;
        check(*target > Duration::ZERO, "codel.target", "more than no time", 0)?;
        check(interval > target, "codel.interval", "longer than target", interval.as_millis_f64())
    }

    /// When to drop after `at`, having dropped `count` packets in this dropping state.
    fn next_drop(&self, at: Instant, count: u32) -> Instant {
        // IEEE 754 defines the square root to the last bit.
        at + Duration((self.interval.0 as f64 / f64::from(count).sqrt()) as u64)
    }
}

/// One queue under CoDel.
#[derive(Debug)]
pub(crate) struct CodelQueue<T> {
    config: CodelConfig,
    codel: Codel,
    fifo: Fifo<T>,
}

impl<T> CodelQueue<T> {
    pub fn new(config: CodelConfig) -> Self {
        Self { config, codel: Codel::default(), fifo: Fifo::default() }
    }
}

impl<T: Debug + Send> Queue<T> for CodelQueue<T> {
    fn push(&mut self, packet: Waiting<T>) {
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Waiting<T>>) -> Option<Waiting<T>> {
        self.codel.dequeue(&self.config, now, &mut self.fifo, dropped)
    }

    fn pop(&mut self) -> Option<Waiting<T>> {
        self.fifo.pop()
    }
}

/// The state of CoDel for one queue.
#[derive(Debug, Default)]
pub(crate) struct Codel {
    /// When the delay will have been above target for an interval; `None` while it is not above.
    above_until: Option<Instant>,
    dropping: bool,
    next_drop: Instant,
    /// Packets dropped since the dropping state was entered, or what it resumed with.
    count: u32,
    /// The count with which it was entered last.
    entry_count: u32,
    /// Largest packet seen, bytes: a queue of no more than this is no queue.
    largest: u32,
}

/// How soon after leaving the dropping state its rate of drops is resumed (§5.4).
const RECENT_INTERVALS: u64 = 16;

impl Codel {
    /// The next packet to be sent; those dropped before it are appended to `dropped`.
    pub fn dequeue<T>(
        &mut self,
        config: &CodelConfig,
        now: Instant,
        fifo: &mut Fifo<T>,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        let (packet, late) = self.pull(config, now, fifo);
        match (self.dropping, late) {
            (true, false) => {
                self.dropping = false;
                packet
            }
            (true, true) => self.drop_on(config, now, packet, fifo, dropped),
            (false, true) => self.enter(config, now, packet, fifo, dropped),
            (false, false) => packet,
        }
    }

    /// Drops what is due in the dropping state.
    fn drop_on<T>(
        &mut self,
        config: &CodelConfig,
        now: Instant,
        mut packet: Option<Waiting<T>>,
        fifo: &mut Fifo<T>,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        while self.dropping && now >= self.next_drop {
            self.count += 1;
            if marked(config, &mut packet) {
                self.next_drop = config.next_drop(self.next_drop, self.count);
                break;
            }
            dropped.extend(packet.take());
            (packet, self.dropping) = self.pull(config, now, fifo);
            if self.dropping {
                self.next_drop = config.next_drop(self.next_drop, self.count);
            }
        }
        packet
    }

    /// Enters the dropping state with its first drop.
    fn enter<T>(
        &mut self,
        config: &CodelConfig,
        now: Instant,
        mut packet: Option<Waiting<T>>,
        fifo: &mut Fifo<T>,
        dropped: &mut Vec<Waiting<T>>,
    ) -> Option<Waiting<T>> {
        if !marked(config, &mut packet) {
            dropped.extend(packet.take());
            packet = self.pull(config, now, fifo).0;
        }
        self.dropping = true;
        // If it dropped recently, the rate that controlled the queue then is where it starts now.
        let earned = self.count - self.entry_count;
        self.count = if earned > 1 && self.dropped_lately(config, now) { earned } else { 1 };
        self.entry_count = self.count;
        self.next_drop = config.next_drop(now, self.count);
        packet
    }

    /// Whether it dropped so recently that this counts.
    pub fn dropped_lately(&self, config: &CodelConfig, now: Instant) -> bool {
        self.count > 0 && now.since(self.next_drop).0 < config.interval.0.saturating_mul(RECENT_INTERVALS)
    }

    /// Takes the head, and says whether the delay has been above target for an interval.
    fn pull<T>(
        &mut self,
        config: &CodelConfig,
        now: Instant,
        fifo: &mut Fifo<T>,
    ) -> (Option<Waiting<T>>, bool) {
        let Some(packet) = fifo.pop() else {
            self.above_until = None;
            return (None, false);
        };
        self.largest = self.largest.max(packet.label.size);
        if now.since(packet.came) < config.target || fifo.bytes() <= u64::from(self.largest) {
            self.above_until = None;
            return (Some(packet), false);
        }
        let until = *self.above_until.get_or_insert(now + config.interval);
        // The first packet above target only starts the interval.
        (Some(packet), now >= until)
    }
}

/// Marks a packet that would be dropped, if it can be.
fn marked<T>(config: &CodelConfig, packet: &mut Option<Waiting<T>>) -> bool {
    let capable = packet.as_mut().filter(|p| config.ecn && p.label.ecn_capable);
    capable.map(|p| p.marked = true).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CodelConfig =
        CodelConfig { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: true };

    fn ms(n: u64) -> Instant {
        Instant(n * 1_000_000)
    }

    /// A queue in which each packet has waited 20 ms when it is taken, one a millisecond, until `last` ms: when
    /// packets are dropped, or marked if they can be.
    fn dropped_at(codel: &mut Codel, from: u64, last: u64, ecn_capable: bool) -> Vec<u64> {
        let (mut fifo, mut found) = (Fifo::default(), Vec::new());
        let label = crate::Label { size: 1000, ecn_capable, ..Default::default() };
        let packet = |now: u64| Waiting { item: (), label, came: ms(now - 20), marked: false };
        for now in from..=last {
            (0..10).for_each(|_| fifo.push(packet(now)));
            let mut dropped = Vec::new();
            let sent = codel.dequeue(&CONFIG, ms(now), &mut fifo, &mut dropped);
            let marks = sent.iter().filter(|p| p.marked).count();
            found.extend(std::iter::repeat_n(now, dropped.len() + marks));
            fifo = Fifo::default();
        }
        found
    }

    #[test]
    fn the_control_law_is_the_interval_over_the_root_of_the_count() {
        let after = |count| CONFIG.next_drop(Instant::ZERO, count).0;
        assert_eq!((after(1), after(4), after(25)), (100_000_000, 50_000_000, 20_000_000));
        assert_eq!((after(2), after(3)), (70_710_678, 57_735_026));
    }

    /// Above target from 1000 ms on, so above for an interval at 1100; then 100, 100/√2, 100/√3 … ms later.
    #[test]
    fn a_standing_queue_loses_packets_by_the_control_law() {
        let expected = [1100, 1200, 1271, 1329, 1379, 1424, 1464];
        assert_eq!(dropped_at(&mut Codel::default(), 1000, 1480, false), expected);
    }

    #[test]
    fn what_can_be_marked_is_marked_at_the_same_times_and_not_dropped() {
        let expected = [1100, 1200, 1271, 1329, 1379, 1424, 1464];
        assert_eq!(dropped_at(&mut Codel::default(), 1000, 1480, true), expected);
    }

    #[test]
    fn a_queue_that_drains_within_an_interval_loses_nothing() {
        let (mut codel, mut fifo) = (Codel::default(), Fifo::default());
        for burst in 0..50 {
            let start = burst * 95;
            let packet = |_| Waiting { item: (), label: 1000.into(), came: ms(start), marked: false };
            (0..90).map(packet).for_each(|packet| fifo.push(packet));
            let mut dropped = Vec::new();
            for now in start..start + 90 {
                assert!(codel.dequeue(&CONFIG, ms(now), &mut fifo, &mut dropped).is_some());
            }
            assert!(dropped.is_empty() && fifo.pop().is_none(), "burst {burst}");
        }
    }

    #[test]
    fn one_packet_is_no_queue_however_late_it_is() {
        let (mut codel, mut fifo, mut dropped) = (Codel::default(), Fifo::default(), Vec::new());
        for now in (0..1000).map(|n| 1000 + n) {
            fifo.push(Waiting { item: (), label: 1000.into(), came: ms(now - 500), marked: false });
            fifo.push(Waiting { item: (), label: 1000.into(), came: ms(now - 500), marked: false });
            assert!(codel.dequeue(&CONFIG, ms(now), &mut fifo, &mut dropped).is_some());
            fifo.pop();
        }
        assert!(dropped.is_empty());
    }

    /// Six drops until 1424 ms, then calm, then above target from 1500: it enters again at 1600 and resumes
    /// with a count of 6 - 1 = 5, so that the second drop comes 100/√5 ms later. After 16 intervals it starts anew.
    #[test]
    fn the_rate_of_drops_is_resumed_if_it_was_needed_recently() {
        let calm = |codel: &mut Codel, now: u64| {
            let mut fifo = Fifo::default();
            fifo.push(Waiting { item: (), label: 1000.into(), came: ms(now), marked: false });
            assert!(codel.dequeue(&CONFIG, ms(now), &mut fifo, &mut Vec::new()).is_some());
        };
        let mut codel = Codel::default();
        assert_eq!(dropped_at(&mut codel, 1000, 1430, false).len(), 6);
        calm(&mut codel, 1450);
        assert_eq!(dropped_at(&mut codel, 1500, 1690, false), [1600, 1645, 1686]);
        calm(&mut codel, 1700);
        assert_eq!(dropped_at(&mut codel, 4000, 4250, false), [4100, 4200]);
    }
}
