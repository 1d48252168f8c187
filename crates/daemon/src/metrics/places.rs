//! How many requests are answered at a time, of one address and in all.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Requests at the same time, in all.
const MOST: usize = 64;
/// Requests at the same time of one address: a browser asks six at once.
const OF_ONE: usize = 8;

/// Who is being answered. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// The right to be answered; it ends when this is dropped.
pub(super) struct Place {
    places: Places,
    asker: IpAddr,
}

impl Places {
    /// Takes a place for a request from `from`. `None` if no place is free, or its address holds as many as one may.
    pub fn take(&self, from: IpAddr) -> Option<Place> {
        let asker = network(from);
        let mut taken = self.lock();
        let (all, of_one) = (taken.values().sum::<usize>(), taken.get(&asker).copied().unwrap_or(0));
        if all >= MOST || of_one >= OF_ONE {
            return None;
        }
        taken.insert(asker, of_one + 1);
        Some(Place { places: self.clone(), asker })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        match taken.get_mut(&self.asker) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = taken.remove(&self.asker),
        }
    }
}

/// Whom an address stands for: a host with IPv6 has a network of 64 bits to itself (RFC 6177).
fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_leaves_places_to_others_and_a_place_is_free_again_when_it_is_given_back() {
        let places = Places::default();
        for (one, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::2:3:4:5", "2001:db8:0:1::1"),
        ] {
            let mut held: Vec<_> = (0..OF_ONE).map(|_| places.take(ip(one)).unwrap()).collect();
            assert!(places.take(ip(same)).is_none() && places.take(ip(other)).is_some());
            held.pop();
            assert!(places.take(ip(same)).is_some());
        }
        assert!(places.lock().is_empty());
        let all: Vec<_> = (0..=255).filter_map(|n| places.take([10, 0, 0, n].into())).collect();
        assert_eq!(all.len(), MOST);
    }
}
