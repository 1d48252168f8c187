//! Connections that are remembered for as long as others do not take their place.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Source and destination as the kernel sends.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// Connections in each of two generations: when the younger one is full, the older one is forgotten.
const MOST: usize = 32_768;

/// Connections, and what is known of each.
#[derive(Debug)]
pub(super) struct Remembered<T = ()> {
    young: BTreeMap<Ends, T>,
    old: BTreeMap<Ends, T>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new() }
    }
}

impl<T: Copy> Remembered<T> {
    pub fn insert(&mut self, ends: Ends, known: T) {
        if self.young.len() >= MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(ends, known);
    }

    pub fn remove(&mut self, ends: &Ends) {
        self.young.remove(ends);
        self.old.remove(ends);
    }

    /// What is known of a connection; then it stays longer than others.
    pub fn of(&mut self, ends: &Ends) -> Option<T> {
        if let Some(known) = self.old.remove(ends) {
            self.insert(*ends, known);
        }
        self.young.get(ends).copied()
    }

    pub fn contains(&mut self, ends: &Ends) -> bool {
        self.of(ends).is_some()
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
            known.insert(ends(n), n);
            assert_eq!(known.of(&ends(0)), Some(0));
        }
        assert!(known.young.len() + known.old.len() <= 2 * MOST);
        assert!(!known.contains(&ends(1)));
        known.remove(&ends(0));
        assert!(!known.contains(&ends(0)));
    }
}
