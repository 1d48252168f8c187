//! Numbers of packets in the order in which they are sent, and of each flow's packet before.

use std::collections::BTreeMap;

use polypath_wire::{Duration, Instant};

/// A packet is alone if the one before it of its flow arrived longer ago, as those of a call, and it has not waited longer for its turn.
pub(super) const ALONE: Duration = Duration::from_millis(5);
/// Flows that are remembered before those that paused are forgotten.
const FLOWS: usize = 1024;

/// Counts packets.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    next: u64,
    /// Number of the last packet of each flow, and when it left.
    last: BTreeMap<u16, (u64, Instant)>,
    /// When the last packet of each flow arrived to be sent.
    arrived: BTreeMap<u16, Instant>,
}

impl Numbering {
    /// A packet of `flow` leaves now. Returns its number, and the difference to the number of the previous packet of the flow: 0 if that
    /// packet left too long ago for anybody to wait for it.
    pub(super) fn take(&mut self, now: Instant, flow: u16) -> (u64, u16) {
        let number = self.next;
        self.next += 1;
        if self.last.len() >= FLOWS {
            self.last.retain(|_, (last, _)| number - *last <= FLOWS as u64 / 2);
        }
        let back = self.last.insert(flow, (number, now)).map_or(0, |(last, _)| number - last);
        (number, u16::try_from(back).unwrap_or(0))
    }

    /// A packet of `flow` arrived to be sent. Returns whether it is alone.
    pub(super) fn arrive(&mut self, now: Instant, flow: u16) -> bool {
        if self.arrived.len() >= FLOWS {
            self.arrived.clear();
        }
        self.arrived.insert(flow, now).is_none_or(|before| now.since(before) > ALONE)
    }

    /// Forgets the flows of which nothing arrived or left since `before`; whether any are left.
    pub(super) fn forget(&mut self, before: Instant) -> bool {
        self.last.retain(|_, (_, left)| *left >= before);
        self.arrived.retain(|_, at| *at >= before);
        !self.last.is_empty() || !self.arrived.is_empty()
    }

    /// Number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

/// The number that ends in `low` and is nearest to `near`; none if that were below 0.
pub(super) fn expand(low: u32, near: u64) -> Option<u64> {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(ahead.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_names_the_one_before_of_its_flow() {
        let mut numbering = Numbering::default();
        let taken: Vec<_> = [7, 7, 8, 7, 8].map(|flow| numbering.take(Instant::ZERO, flow)).into();
        assert_eq!(taken, [(0, 0), (1, 1), (2, 0), (3, 2), (4, 2)]);
    }

    #[test]
    fn flows_that_pause_are_forgotten_and_memory_stays_bounded() {
        let (mut numbering, now) = (Numbering::default(), Instant(9));
        (0..=u16::MAX).for_each(|flow| _ = (numbering.take(now, flow), numbering.arrive(now, flow)));
        assert!(numbering.last.len() <= FLOWS && numbering.arrived.len() <= FLOWS);
        assert_eq!(numbering.take(now, 0), (1 << 16, 0));
        assert_eq!((numbering.forget(now), numbering.forget(now + Duration(1))), (true, false));
        assert_eq!(numbering.take(now, 0), ((1 << 16) + 1, 0));
    }

    #[test]
    fn a_packet_is_alone_when_its_flow_paused() {
        let (mut numbering, after) = (Numbering::default(), Instant::ZERO + ALONE);
        assert!(numbering.arrive(Instant::ZERO, 7));
        assert!(!numbering.arrive(after, 7) && numbering.arrive(after, 8));
        assert!(numbering.arrive(after + ALONE + Duration::from_nanos(1), 7));
    }

    #[test]
    fn numbers_expand_around_what_is_known() {
        let near = (5 << 32) + 2;
        assert_eq!(expand(1, near), Some((5 << 32) + 1));
        assert_eq!(expand(u32::MAX, near), Some((5 << 32) - 1));
        assert_eq!((expand(u32::MAX, 3), expand(9, 3)), (None, Some(9)));
    }
}
