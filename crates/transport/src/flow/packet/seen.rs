//! Which packets came of late, so that a copy is known for one.

use super::numbering::expand;

/// Packets that are remembered: as many as there are behind the highest number.
const SIZE: u64 = 1 << 16;

/// A window over the numbers of packets.
#[derive(Debug)]
pub(super) struct Seen {
    /// First number beyond all that came.
    next: u64,
    /// One bit for each of the last [`SIZE`] numbers, by their remainder.
    bits: Box<[u64]>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { next: 0, bits: vec![0; SIZE as usize / 64].into() }
    }
}

impl Seen {
    /// The packet whose number ends in `low` came: its number, or none if it came before or is older than what is
    /// remembered.
    pub(super) fn note(&mut self, low: u32) -> Option<u64> {
        let number = expand(low, self.next)?;
        if number >= self.next {
            let from = self.next.max((number + 1).saturating_sub(SIZE));
            (from..=number).for_each(|n| self.set(n, false));
            self.next = number + 1;
        }
        if number + SIZE < self.next || self.get(number) {
            return None;
        }
        self.set(number, true);
        Some(number)
    }

    /// Whether the packet `number` came, or is older than what is remembered.
    pub(super) fn contains(&self, number: u64) -> bool {
        number < self.next && (number + SIZE < self.next || self.get(number))
    }

    fn get(&self, number: u64) -> bool {
        let at = number % SIZE;
        self.bits[at as usize / 64] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, number: u64, seen: bool) {
        let at = number % SIZE;
        let (word, bit) = (&mut self.bits[at as usize / 64], 1 << (at % 64));
        *word = if seen { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_new_once() {
        let mut seen = Seen::default();
        assert_eq!([0, 2, 1, 2, 0].map(|n| seen.note(n)), [Some(0), Some(2), Some(1), None, None]);
        assert!(seen.contains(1) && !seen.contains(3));
    }

    #[test]
    fn what_is_too_old_to_be_known_counts_as_seen() {
        let mut seen = Seen::default();
        assert_eq!(seen.note(1 << 20), Some(1 << 20));
        assert_eq!((seen.note(0), seen.note((1 << 20) - 9)), (None, Some((1 << 20) - 9)));
        assert!(seen.contains(0) && !seen.contains((1 << 20) - 1));
    }
}
