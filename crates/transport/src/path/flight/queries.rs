//! What policies and owners may ask.

use polypath_wire::Instant;

use super::{Delivery, Flight};
use crate::path::transmission::{Fate, Transmission};

impl Flight {
    /// Number that the next transmission will have.
    #[inline]
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Number of the oldest transmission that is remembered.
    #[inline]
    pub(crate) fn first_number(&self) -> u64 {
        self.first
    }

    /// The transmission `number`, unless it was forgotten.
    pub(crate) fn get(&self, number: u64) -> Option<&Transmission> {
        self.entries.get(number.checked_sub(self.first)? as usize)
    }

    /// Bytes on their way, as far as acknowledgments tell.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.saturating_sub(self.credit)
    }

    /// FlightSize (RFC 5681): bytes sent, not judged lost, and not delivered in order; `size` is the usual size of a
    /// segment.
    pub(crate) fn flight_size(&self, size: u32) -> u64 {
        self.in_flight + u64::from(self.delivered) * u64::from(size)
    }

    /// Whether anything is on its way.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        self.in_flight > 0
    }

    /// What the present acknowledgment delivered.
    #[inline]
    pub(crate) fn fresh(&self) -> &Delivery {
        &self.fresh
    }

    /// Highest number delivered.
    pub(crate) fn highest_delivered(&self) -> Option<u64> {
        self.highest_delivered
    }

    /// Acknowledgments on the path itself have covered everything delivered below this number.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }

    /// Transmissions delivered after the oldest that was not, as far as [`vouch`](Self::vouch) knows.
    pub(crate) fn vouched(&self) -> u32 {
        self.vouched
    }

    /// What is in flight, oldest first, with its numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Transmission)> {
        let numbered = self.entries.iter().enumerate().map(|(i, entry)| (self.first + i as u64, entry));
        numbered.filter(|(_, entry)| entry.fate == Fate::InFlight)
    }

    /// The oldest in flight of which no copy left on another path, with its number: from `number` on or, if that is sooner, from the first
    /// that left after `since`.
    pub(crate) fn oldest_alone(&self, number: u64, since: Instant) -> Option<(u64, &Transmission)> {
        let by_number = number.saturating_sub(self.first) as usize;
        let at = by_number.min(self.entries.partition_point(|entry| entry.sent_at <= since));
        let mut numbered = (self.first + at as u64..).zip(self.entries.range(at..));
        let alone = |entry: &Transmission| entry.fate == Fate::InFlight && !entry.reinjected;
        numbered.find(|(_, entry)| alone(entry))
    }

    /// A copy of the transmission `number` leaves on another path.
    pub(crate) fn reinject(&mut self, number: u64) {
        self.entry(number).into_iter().for_each(|entry| entry.reinjected = true);
    }

    /// Copies of what left last leave with it on other paths.
    pub(crate) fn copy_last(&mut self) {
        self.entries.back_mut().into_iter().for_each(|entry| entry.copied = true);
    }

    /// Numbers of what is in flight, oldest first.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.iter().map(|(number, _)| number).collect()
    }

    /// What is in flight with at least `threshold` later ones delivered, as far as [`vouch`](Self::vouch) knows; oldest
    /// first.
    pub(crate) fn overtaken(&self, threshold: u32) -> impl Iterator<Item = (u64, &Transmission)> {
        let mut later = self.vouched;
        let numbered = (self.first..).zip(&self.entries);
        numbered
            .map_while(move |(number, entry)| {
                if later < threshold.max(1) {
                    return None;
                }
                later -= u32::from(entry.fate == Fate::Delivered);
                Some((number, entry))
            })
            .filter(|(_, entry)| entry.fate == Fate::InFlight)
    }
}
