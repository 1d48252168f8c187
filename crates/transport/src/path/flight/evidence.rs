//! What acknowledgments are evidence of.

use super::Flight;
use crate::path::transmission::{Fate, Transmission};

impl Flight {
    /// The acknowledgment, which came on the path itself, tells of what `covers` says. Whatever arrived there before what
    /// it tells of has been acknowledged there before, so it is evidence about the ones in between. What only faster
    /// paths covered so far is not: the news of those is still on its way.
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
                if covers(entry) {
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
