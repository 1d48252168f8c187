//! How long data is under way.

use std::collections::VecDeque;
use std::ops::AddAssign;

use polypath_transport::Observation;
use polypath_wire::{Duration, Instant};

/// How many bytes took how long, one way. Times are in classes less than 1 % wide, so that no logarithm is needed, which
/// differs between platforms.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// By the number of the class.
    bytes: Vec<u64>,
}

/// Classes between a power of two and the next, as a power of two.
const BITS: u32 = 7;

/// The class of a time in ns.
fn class(ns: u64) -> usize {
    let power = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(power) << BITS) + (ns >> power)) as usize
}

/// The middle of a class, ns.
fn middle(class: usize) -> f64 {
    let power = (class >> BITS).saturating_sub(1);
    let lowest = (class - (power << BITS)) as f64;
    (lowest + if power == 0 { 0.0 } else { 0.5 }) * (1u64 << power) as f64
}

impl Delays {
    /// None.
    pub const NONE: Self = Self { bytes: Vec::new() };

    fn add(&mut self, time: Duration, bytes: u64) {
        let class = class(time.0);
        if class >= self.bytes.len() {
            self.bytes.resize(class + 1, 0);
        }
        self.bytes[class] += bytes;
    }

    /// The time, ms, within which the share `share` arrived of what arrived after `before` was taken; `None` if nothing did.
    pub fn quantile_since(&self, before: &Self, share: f64) -> Option<f64> {
        let of = |class: usize| self.bytes[class] - before.bytes.get(class).copied().unwrap_or(0);
        let wanted = share * (0..self.bytes.len()).map(of).sum::<u64>() as f64;
        let mut sum = 0.0;
        let reached = |class: &usize| {
            sum += of(*class) as f64;
            sum > 0.0 && sum >= wanted
        };
        (0..self.bytes.len()).find(reached).map(|class| middle(class) / 1e6)
    }
}

impl AddAssign<&Delays> for Delays {
    fn add_assign(&mut self, other: &Self) {
        self.bytes.resize(self.bytes.len().max(other.bytes.len()), 0);
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(sum, bytes)| *sum += bytes);
    }
}

/// The data of one TCP flow that is under way.
#[derive(Debug, Default)]
struct Stream {
    /// Where segments end that were sent and not yet delivered, and when each was sent first.
    sent: VecDeque<(u64, Instant)>,
    delivered: u64,
    delays: Delays,
}

/// Watches the TCP flows: from the first transmission of a byte to its delivery in order.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    flows: Vec<Stream>,
}

impl Watch {
    /// An end of the flow `flow` observed `what`.
    pub fn observe(&mut self, now: Instant, flow: u32, what: &Observation) {
        let flow = flow as usize;
        if flow >= self.flows.len() {
            self.flows.resize_with(flow + 1, Stream::default);
        }
        let stream = &mut self.flows[flow];
        match *what {
            Observation::Sent { offset, len, .. } => {
                let end = offset + u64::from(len);
                if stream.sent.back().map_or(stream.delivered, |(last, _)| *last) < end {
                    stream.sent.push_back((end, now));
                }
            }
            Observation::Delivered { offset, .. } => stream.deliver(now, offset),
            _ => {}
        }
    }

    /// Delays of the flow `flow`.
    pub fn of(&self, flow: u32) -> Option<&Delays> {
        self.flows.get(flow as usize).map(|stream| &stream.delays)
    }
}

impl Stream {
    fn deliver(&mut self, now: Instant, end: u64) {
        while let Some(&(sent, at)) = self.sent.front().filter(|_| self.delivered < end) {
            self.delays.add(now.since(at), sent.min(end) - self.delivered);
            self.delivered = sent.min(end);
            if sent <= end {
                self.sent.pop_front();
            }
        }
    }
}

/// Datagrams that are remembered; one that arrives after as many later ones were sent does not count.
const MEMORY: usize = 1 << 16;

/// Watches a source of datagrams.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// When the last ones were sent.
    sent: VecDeque<Instant>,
    /// How many were sent before those.
    before: u64,
    pub delays: Delays,
}

impl Datagrams {
    pub fn sent(&mut self, now: Instant) {
        if self.sent.len() == MEMORY {
            self.sent.pop_front();
            self.before += 1;
        }
        self.sent.push_back(now);
    }

    pub fn received(&mut self, now: Instant, number: u64, bytes: u64) {
        let sent = number.checked_sub(self.before).and_then(|n| self.sent.get(n as usize));
        if let Some(sent) = sent {
            self.delays.add(now.since(*sent), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    fn sent(offset: u64, len: u32) -> Observation {
        Observation::Sent { offset, len, retransmission: false }
    }

    #[test]
    fn a_class_is_less_than_a_hundredth_wide_and_its_middle_lies_in_it() {
        let mut last = 0;
        for ns in (0..100_000).chain((17..63).map(|n| (1 << n) + 1)).chain([u64::MAX]) {
            let found = class(ns);
            let off = (middle(found) - ns as f64).abs();
            assert!(off <= 0.004 * ns as f64, "{ns}: {off}");
            assert!(found >= last, "{ns}");
            last = found;
        }
    }

    #[test]
    fn a_byte_is_under_way_from_its_first_transmission_to_its_delivery_in_order() {
        let mut watch = Watch::default();
        watch.observe(ms(0), 1, &sent(0, 1000));
        watch.observe(ms(10), 1, &sent(1000, 1000));
        watch.observe(ms(30), 1, &Observation::Sent { offset: 0, len: 1000, retransmission: true });
        watch.observe(ms(50), 1, &Observation::Delivered { offset: 2000, len: 2000 });
        let delays = watch.of(1).unwrap();
        let quantile = |share| delays.quantile_since(&Delays::NONE, share).unwrap();
        assert!((quantile(0.5) - 40.0).abs() < 0.2 && (quantile(0.51) - 50.0).abs() < 0.2);
        let before = delays.clone();
        watch.observe(ms(60), 1, &sent(2000, 100));
        watch.observe(ms(65), 1, &Observation::Delivered { offset: 2050, len: 50 });
        let later = watch.of(1).unwrap().quantile_since(&before, 0.99).unwrap();
        assert!((later - 5.0).abs() < 0.03, "{later}");
        assert_eq!((before.quantile_since(&before, 0.5), watch.of(0).unwrap()), (None, &Delays::NONE));
    }

    #[test]
    fn a_datagram_that_is_lost_does_not_count() {
        let mut datagrams = Datagrams::default();
        (0..3).for_each(|n| datagrams.sent(ms(n)));
        datagrams.received(ms(22), 2, 100);
        datagrams.received(ms(40), 0, 100);
        let quantile = |share| datagrams.delays.quantile_since(&Delays::NONE, share).unwrap();
        assert!((quantile(0.5) - 20.0).abs() < 0.1 && (quantile(1.0) - 40.0).abs() < 0.2);
    }
}
