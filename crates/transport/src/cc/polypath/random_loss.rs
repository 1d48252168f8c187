//! Losses that no queue explains.
//!
//! A drop-tail queue loses packets when it is full. What packets wait shows how deep it is: the longest wait that all of a few packets in
//! a row had of late is a depth that it has for certain. A packet that is lost while those about it wait less than half as
//! long met no full queue, and the path lost it for another reason.
//!
//! It cannot tell: where queues are so shallow that waits mean nothing (below [`SHALLOW`]); where a queue drops early on purpose (RED,
//! CoDel) a loss is explained only if the queue has half of its greatest depth of late; where a second, full
//! and shallow, queue is on the way. Bounds: timeouts are never excused, nor any loss once more than a tenth of the packets
//! are lost.

use std::cmp::Reverse;

use polypath_wire::{Duration, Instant};

use crate::facts::{LossCause, LossEvent};
use crate::windowed::WindowedMin;

/// Packets in a row whose waits count together.
const WITNESSES: usize = 8;
/// A queue that is not as deep tells nothing.
const SHALLOW: Duration = Duration::from_millis(4);
/// The depth of a queue is remembered for one or two of these.
const MEMORY: Duration = Duration::from_secs(20);
/// Losses are counted over about so many packets, and are excused up to this share of them.
const PACKETS: f64 = 64.0;
const MOST: f64 = 0.1;

/// What is known of the queue of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct RandomLoss {
    waits: [Duration; WITNESSES],
    seen: usize,
    depth: WindowedMin<Reverse<Duration>>,
    /// Share of the packets of late that were lost.
    lost: f64,
}

impl RandomLoss {
    /// A packet waited so long.
    pub fn on_delay(&mut self, now: Instant, wait: Duration) {
        self.waits[self.seen % WITNESSES] = wait;
        self.seen += 1;
        if self.seen >= WITNESSES
            && let Some(least) = self.waits.into_iter().min()
        {
            self.depth.add(now, Reverse(least), MEMORY);
        }
    }

    /// So many packets were delivered.
    pub fn on_delivered(&mut self, packets: u32) {
        self.lost *= (1.0 - f64::from(packets) / PACKETS).max(0.0);
    }

    /// A packet was lost.
    pub fn on_lost(&mut self) {
        self.lost += (1.0 - self.lost) / PACKETS;
    }

    /// Whether the queue was not full when this was lost.
    pub fn is_unexplained(&self, loss: &LossEvent) -> bool {
        let told =
            matches!(loss.cause, LossCause::LaterDelivered | LossCause::DupAck | LossCause::PartialAck);
        let depth = self.depth.value().map_or(Duration::ZERO, |Reverse(depth)| depth);
        let longest = self.waits.into_iter().max().unwrap_or_default();
        told && self.lost <= MOST && depth >= SHALLOW && longest.times(2) < depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Episode;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn lost(cause: LossCause) -> LossEvent {
        LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size: 10_000, oldest_sent: Instant::ZERO }
    }

    /// Waits in ms, a packet each 10 ms.
    fn after(waits: &[u64]) -> RandomLoss {
        let mut random = RandomLoss::default();
        (0u64..).zip(waits).for_each(|(n, wait)| random.on_delay(Instant::ZERO + MS(10 * n), MS(*wait)));
        random
    }

    fn unexplained(waits: &[u64]) -> bool {
        after(waits).is_unexplained(&lost(LossCause::LaterDelivered))
    }

    #[test]
    fn a_loss_while_the_queue_is_less_than_half_as_deep_as_it_was_is_unexplained() {
        let full = [40; 20];
        assert!(unexplained(&[&full[..], &[19; 8]].concat()));
        assert!(!unexplained(&[&full[..], &[21; 8]].concat()), "more than half");
        assert!(!unexplained(&[&full[..], &[5; 7]].concat()), "one of them waited long");
    }

    #[test]
    fn a_shallow_queue_explains_all_and_so_does_one_long_wait_among_short_ones() {
        assert!(!unexplained(&[&[3; 20][..], &[0; 20]].concat()));
        assert!(!unexplained(&[&[0, 40, 0, 0, 40, 0, 0][..], &[0; 20]].concat()), "jitter is no depth");
    }

    #[test]
    fn a_timeout_is_never_excused() {
        let random = after(&[&[40; 20][..], &[0; 20]].concat());
        assert!(!random.is_unexplained(&lost(LossCause::Timeout)));
    }

    #[test]
    fn nothing_is_excused_while_more_than_a_tenth_is_lost() {
        let mut random = after(&[&[40; 20][..], &[0; 20]].concat());
        (0..7).for_each(|_| random.on_lost());
        assert!(!random.is_unexplained(&lost(LossCause::LaterDelivered)));
        random.on_delivered(20);
        assert!(random.is_unexplained(&lost(LossCause::LaterDelivered)));
    }
}
