//! A set of disjoint ranges of stream offsets, in order.

/// Disjoint half-open ranges, ascending, never touching one another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

impl Ranges {
    /// How many ranges, from the first on, are `before` something. Most often it concerns the last range or what follows it.
    #[inline]
    fn count(&self, before: impl Fn(&(u64, u64)) -> bool) -> usize {
        match &self.ranges[..] {
            [.., last] if before(last) => self.ranges.len(),
            [.., other, _] if before(other) => self.ranges.len() - 1,
            all => all.partition_point(before),
        }
    }

    /// Adds `start..end` and returns the range it is part of now.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> (u64, u64) {
        let first = self.count(|r| r.1 < start);
        let last = first + self.ranges[first..].partition_point(|r| r.0 <= end);
        if first == last {
            self.ranges.insert(first, (start, end));
            return (start, end);
        }
        let merged = (start.min(self.ranges[first].0), end.max(self.ranges[last - 1].1));
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        merged
    }

    /// The first part of `start..end` that is not in the set.
    pub(crate) fn first_gap(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let mut from = start;
        let i = self.count(|r| r.1 <= start);
        let mut next = self.ranges[i..].iter();
        while from < end {
            match next.next() {
                Some(&(s, e)) if s <= from => from = e,
                Some(&(s, _)) => return Some((from, s.min(end))),
                None => return Some((from, end)),
            }
        }
        None
    }

    /// Removes everything below `offset`.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        let gone = self.ranges.partition_point(|r| r.1 <= offset);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(offset);
        }
    }

    /// The range that contains `offset`.
    pub(crate) fn containing(&self, offset: u64) -> Option<(u64, u64)> {
        let i = self.count(|r| r.1 <= offset);
        self.ranges.get(i).copied().filter(|r| r.0 <= offset)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// All ranges, ascending.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn merges_what_touches() {
        let mut r = Ranges::default();
        assert_eq!(r.insert(10, 20), (10, 20));
        assert_eq!(r.insert(30, 40), (30, 40));
        assert_eq!(r.first_gap(5, 50), Some((5, 10)));
        assert_eq!(r.first_gap(10, 50), Some((20, 30)));
        assert_eq!(r.first_gap(12, 20), None);
        assert_eq!(r.insert(20, 30), (10, 40));
        r.remove_below(15);
        assert_eq!(r.iter().collect::<Vec<_>>(), [(15, 40)]);
        assert_eq!((r.containing(39), r.containing(40)), (Some((15, 40)), None));
    }

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(
            inserts in prop::collection::vec((0u64..200, 1u64..20), 0..40), below in 0u64..220, asked in (0u64..220, 0u64..20),
        ) {
            let (mut ranges, mut bits) = (Ranges::default(), [false; 220]);
            for (start, len) in inserts {
                let whole = ranges.insert(start, start + len);
                bits[start as usize..(start + len) as usize].fill(true);
                let from = bits[..start as usize].iter().rposition(|bit| !bit).map_or(0, |i| i + 1);
                let to = (start..220).find(|i| !bits[*i as usize]).unwrap_or(220);
                prop_assert_eq!(whole, (from as u64, to));
            }
            ranges.remove_below(below);
            bits[..below as usize].fill(false);
            for (i, bit) in bits.iter().enumerate() {
                prop_assert_eq!(ranges.containing(i as u64).is_some(), *bit);
            }
            let gap = (0..220).find(|i| !bits[*i]);
            prop_assert_eq!(ranges.first_gap(0, 220).map(|g| g.0), gap.map(|g| g as u64));
            let (start, end) = (asked.0, (asked.0 + asked.1).min(220));
            let from = (start..end).find(|i| !bits[*i as usize]);
            let to = |from| (from..end).find(|i| bits[*i as usize]).unwrap_or(end);
            prop_assert_eq!(ranges.first_gap(start, end), from.map(|from| (from, to(from))));
            let all: Vec<_> = ranges.iter().collect();
            prop_assert!(all.windows(2).all(|w| w[0].1 < w[1].0));
        }
    }
}
