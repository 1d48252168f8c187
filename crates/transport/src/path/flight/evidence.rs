//! What acknowledgments are evidence of.

use super::Flight;
use crate::path::transmission::{Fate, Transmission};

impl Flight {
    /// The acknowledgment, which came on the path itself, covers what `covers` says. Whatever arrived there before what
    /// it covers has been acknowledged there before, so it is evidence about the ones in between. What only faster
    /// paths covered so far is not: the news of those is still on its way. Nor is what left on another path too.
    #[inline]
    pub(crate) fn vouch(&mut self, covers: impl Fn(&Transmission) -> bool) {
        if self.covered != u64::MAX {
            self.weigh(covers);
        }
    }

    fn weigh(&mut self, covers: impl Fn(&Transmission) -> bool) {
        let Some(highest) = self.highest_delivered else { return };
        let (mut covered, mut vouched, mut delivered) = (self.covered, self.vouched, 0);
        let from = covered.max(self.first);
        let later = self.entries.iter().skip((from - self.first) as usize);
        for (number, entry) in (from..=highest).zip(later) {
            if entry.fate == Fate::Delivered {
                delivered += 1;
                if covers(entry) && !entry.reinjected {
                    covered = number + 1;
                    vouched += std::mem::take(&mut delivered);
                }
            }
        }
        (self.covered, self.vouched) = (covered, vouched);
    }

    /// The present acknowledgment, which came on this path, reports something that came twice.
    pub(crate) fn note_duplicate(&mut self) {
        self.fresh.duplicates += 1;
    }

    /// Some transmission of `bytes` left the network, nobody says which.
    pub(crate) fn add_credit(&mut self, bytes: u64) {
        self.credit += bytes;
    }

    /// What was reported so is in ordinary acknowledgments now.
    pub(crate) fn clear_credit(&mut self) {
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Instant;

    use super::*;
    use crate::path::bandwidth::DeliveryMark;
    use crate::path::transmission::{Cargo, History};

    /// Segments of 1000 bytes in flight, one each nanosecond.
    fn flight(segments: u64) -> Flight {
        let mut flight = Flight::new(false);
        for n in 0..segments {
            let cargo = Cargo { key: 1000 * n, len: 1000, history: History::Once };
            flight.push(Transmission::new(cargo, Instant(n), DeliveryMark::default()));
        }
        flight
    }

    #[test]
    fn what_left_on_another_path_too_is_no_evidence_of_its_own() {
        let mut flight = flight(4);
        flight.reinject(1);
        flight.deliver(1, false);
        flight.vouch(|_| true);
        assert_eq!((flight.covered(), flight.vouched()), (0, 0));
        flight.deliver(2, false);
        flight.vouch(|_| true);
        assert_eq!((flight.covered(), flight.vouched()), (3, 2), "it left before what arrived here");
    }

    #[test]
    fn the_oldest_alone_is_no_copy_and_left_late_enough_by_number_or_by_time() {
        let mut flight = flight(8);
        let found =
            |flight: &Flight, number, since| flight.oldest_alone(number, Instant(since)).map(|found| found.0);
        assert_eq!(
            (found(&flight, 5, 9), found(&flight, 5, 2), found(&flight, 9, 9)),
            (Some(5), Some(3), None)
        );
        flight.reinject(5);
        flight.deliver(6, false);
        assert_eq!(found(&flight, 5, 9), Some(7));
    }
}
