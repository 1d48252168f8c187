//! How far packets arrive out of the order in which they were sent (RFC 4737).

use std::collections::VecDeque;

use serde::Serialize;

/// Sums over the data packets of a flow that arrived, duplicates made on the way not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Reordering {
    /// Packets that arrived.
    pub arrived: u64,
    /// Those that arrived after one sent later (RFC 4737 §3.3).
    pub reordered: u64,
    /// Sum of their extents: how many packets arrived since the first that was sent later (§4.2.2).
    pub extent_sum: u64,
    /// The largest extent.
    pub extent_max: u64,
}

/// Arrivals remembered; an extent beyond them counts as this many.
const MEMORY: usize = 1 << 16;

/// Watches the arrivals of one flow.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Each arrival that was the latest sent so far: its number, and how many had arrived before it.
    latest: VecDeque<(u64, u64)>,
    pub sums: Reordering,
}

impl Watch {
    /// The packet that was sent as the `number`-th of all arrived.
    pub fn arrived(&mut self, number: u64) {
        let index = self.sums.arrived;
        match self.latest.back() {
            Some(&(last, _)) if number == last => return,
            Some(&(last, _)) if number < last => {
                let first_later = self.latest.partition_point(|(n, _)| *n < number);
                if self.latest[first_later].0 == number {
                    return;
                }
                let extent = index - self.latest[first_later].1;
                self.sums.reordered += 1;
                self.sums.extent_sum += extent;
                self.sums.extent_max = self.sums.extent_max.max(extent);
            }
            _ => {
                if self.latest.len() == MEMORY {
                    self.latest.pop_front();
                }
                self.latest.push_back((number, index));
            }
        }
        self.sums.arrived += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u64]) -> Reordering {
        let mut watch = Watch::default();
        numbers.iter().for_each(|n| watch.arrived(*n));
        watch.sums
    }

    /// The examples of RFC 4737 §A: order sent 1 to 10.
    #[test]
    fn extents_are_those_of_the_rfc() {
        let late = of(&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
        assert_eq!(late, Reordering { arrived: 10, reordered: 1, extent_sum: 4, extent_max: 4 });
        let two = of(&[1, 2, 3, 4, 7, 5, 6, 8, 9, 10]);
        assert_eq!(two, Reordering { arrived: 10, reordered: 2, extent_sum: 3, extent_max: 2 });
        assert_eq!(of(&[1, 4, 9]).reordered, 0, "gaps are no reordering");
    }

    #[test]
    fn a_copy_is_no_arrival() {
        assert_eq!(of(&[1, 2, 2, 1, 3]), Reordering { arrived: 3, ..Reordering::default() });
    }
}
