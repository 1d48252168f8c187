//! Connections that are remembered for as long as others do not take their place.

use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Source and destination as the kernel sends.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Connections in each of two generations: when the younger one is full, the older one is forgotten.
const MOST: usize = 32_768;

/// A set of connections.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    young: BTreeSet<Ends>,
    old: BTreeSet<Ends>,
}

impl Remembered {
    pub fn insert(&mut self, ends: Ends) {
        if self.young.len() >= MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(ends);
    }

    pub fn remove(&mut self, ends: &Ends) {
        self.young.remove(ends);
        self.old.remove(ends);
    }

    /// Whether it is in the set; then it stays there longer than others.
    pub fn contains(&mut self, ends: &Ends) -> bool {
        if self.old.remove(ends) {
            self.insert(*ends);
        }
        self.young.contains(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let ends = |n: u32| (SocketAddr::new(n.to_be_bytes().into(), 1), SocketAddr::new([9; 4].into(), 2));
        let mut known = Remembered::default();
        for n in 0..3 * MOST as u32 {
            known.insert(ends(n));
            assert!(known.contains(&ends(0)));
        }
        assert!(known.young.len() + known.old.len() <= 2 * MOST);
        assert!(!known.contains(&ends(1)));
        known.remove(&ends(0));
        assert!(!known.contains(&ends(0)));
    }
}
