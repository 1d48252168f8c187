//! The peer's locators with their states (RFC 8046 §5.1), and the credit that allows a little traffic
//! to one that is not verified yet (RFC 8046 §5.6).

use std::net::IpAddr;

use polypath_wire::hip::Locator;
use polypath_wire::{Duration, Instant};

/// The states of RFC 8046 §5.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocatorState {
    /// Announced; nothing came back from there yet.
    Unverified,
    /// The peer answered from there.
    Active,
    /// Its lifetime is over, or the peer does not list it any more.
    Deprecated,
}

/// One locator of the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerLocator {
    /// Where it is.
    pub address: IpAddr,
    /// The peer's inbound SPIs there, as far as it named them: two paths may begin at one address.
    pub spis: Vec<u32>,
    /// What we know of it.
    pub state: LocatorState,
    /// Whether the peer prefers it.
    pub preferred: bool,
    /// When its lifetime is over; `None` for never.
    pub expires: Option<Instant>,
}

/// All locators of one peer that we have heard of and not forgotten.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PeerLocators {
    list: Vec<PeerLocator>,
}

/// What a hostile peer can make us remember.
const MOST: usize = 64;

impl PeerLocators {
    /// The address of the base exchange: preferred, for ever, and active (RFC 8046 §5.1) if the peer is known to be there.
    pub(crate) fn new(address: IpAddr, proved: bool) -> Self {
        let state = if proved { LocatorState::Active } else { LocatorState::Unverified };
        Self { list: vec![PeerLocator { address, spis: Vec::new(), state, preferred: true, expires: None }] }
    }

    /// All of them, deprecated ones too.
    pub fn iter(&self) -> impl Iterator<Item = &PeerLocator> {
        self.list.iter()
    }

    /// Where to send: the preferred one if it is active, else any active one, else any that is not
    /// deprecated (RFC 8046 §5.5).
    pub fn best(&self) -> Option<&PeerLocator> {
        let rank = |l: &&PeerLocator| match (l.state, l.preferred) {
            (LocatorState::Active, true) => 0,
            (LocatorState::Active, false) => 1,
            (LocatorState::Unverified, true) => 2,
            (LocatorState::Unverified, false) => 3,
            (LocatorState::Deprecated, _) => 4,
        };
        self.list.iter().filter(|l| l.state != LocatorState::Deprecated).min_by_key(rank)
    }

    /// A LOCATOR_SET is the complete list: what it leaves out is deprecated (RFC 8046 §5.3).
    pub(crate) fn replace(&mut self, now: Instant, set: &[Locator]) {
        self.list.retain(|l| l.state != LocatorState::Deprecated);
        let listed = |l: &PeerLocator| set.iter().any(|s| s.address.ip() == Some(l.address));
        self.list.iter_mut().filter(|l| !listed(l)).for_each(|l| l.state = LocatorState::Deprecated);
        for known in &mut self.list {
            (known.spis, known.preferred) = (Vec::new(), false);
        }
        for locator in set {
            let Some(address) = locator.address.ip() else { continue };
            let forever = locator.lifetime == u32::MAX;
            let expires = (!forever).then(|| now + Duration::from_secs(locator.lifetime.into()));
            let (spi, preferred) = (locator.address.spi(), locator.preferred);
            match self.list.iter_mut().find(|l| l.address == address) {
                Some(known) => {
                    known.preferred |= preferred;
                    known.expires = expires;
                    known.spis.extend(spi);
                }
                None => {
                    let state = LocatorState::Unverified;
                    let spis = spi.into_iter().collect();
                    self.add(PeerLocator { address, spis, state, preferred, expires });
                }
            }
        }
    }

    /// Where the peer received on the SPI `old`, it does on `new`.
    pub(crate) fn rename(&mut self, old: u32, new: u32) {
        self.list.iter_mut().flat_map(|l| &mut l.spis).filter(|spi| **spi == old).for_each(|spi| *spi = new);
    }

    fn add(&mut self, locator: PeerLocator) {
        if self.list.len() < MOST {
            self.list.push(locator);
        }
    }

    /// There is a path to `address`, whether or not the peer has listed it.
    pub(crate) fn meet(&mut self, address: IpAddr) {
        self.list.retain(|l| l.address != address || l.state != LocatorState::Deprecated);
        if self.list.iter().all(|l| l.address != address) {
            let state = LocatorState::Unverified;
            self.add(PeerLocator { address, spis: Vec::new(), state, preferred: false, expires: None });
        }
    }

    /// The peer proved that it is at `address`, which a NAT may have kept it from listing.
    pub(crate) fn verified(&mut self, address: IpAddr) {
        match self.list.iter_mut().find(|l| l.address == address) {
            Some(l) if l.state == LocatorState::Unverified => l.state = LocatorState::Active,
            Some(_) => {}
            None => {
                let state = LocatorState::Active;
                self.add(PeerLocator { address, spis: Vec::new(), state, preferred: false, expires: None });
            }
        }
    }

    /// When the next lifetime is over.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.list.iter().filter(|l| l.state != LocatorState::Deprecated).filter_map(|l| l.expires).min()
    }

    /// Deprecates what is over at `now`; whether anything is.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        if self.timeout().is_none_or(|at| at > now) {
            return false;
        }
        let over = |l: &&mut PeerLocator| l.expires.is_some_and(|at| at <= now);
        self.list.iter_mut().filter(over).for_each(|l| l.state = LocatorState::Deprecated);
        true
    }
}

/// CreditAgingInterval of RFC 8046 §5.6.2.
const AGING_INTERVAL: Duration = Duration::from_secs(5);

/// The credit counter of one peer (RFC 8046 §5.6).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Credit {
    bytes: u64,
    aged: Instant,
}

impl Credit {
    /// The peer sent `bytes`.
    pub fn earn(&mut self, now: Instant, bytes: u64) {
        self.age(now);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether `bytes` may go to an unverified locator; then they are paid for.
    pub fn spend(&mut self, now: Instant, bytes: u64) -> bool {
        self.age(now);
        let enough = self.bytes >= bytes;
        self.bytes -= if enough { bytes } else { 0 };
        enough
    }

    /// Credit loses an eighth every interval; after 512 of them there is none.
    fn age(&mut self, now: Instant) {
        let intervals = now.since(self.aged).as_nanos() / AGING_INTERVAL.as_nanos();
        self.aged += AGING_INTERVAL.times(intervals);
        for _ in 0..intervals.min(512) {
            self.bytes -= self.bytes.div_ceil(8);
        }
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::hip::{LocatorAddress, TrafficType};

    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }
    fn ip(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }
    fn listed(n: u8, preferred: bool, lifetime: u32) -> Locator {
        let address = LocatorAddress::Esp { spi: 1000 + u32::from(n), address: ip(n) };
        Locator { traffic: TrafficType::Both, preferred, lifetime, address }
    }
    fn states(locators: &PeerLocators) -> Vec<(IpAddr, LocatorState)> {
        locators.iter().map(|l| (l.address, l.state)).collect()
    }

    #[test]
    fn two_paths_that_begin_at_one_address_are_both_listed() {
        let listed = |spi, preferred| {
            let address = LocatorAddress::Esp { spi, address: ip(1) };
            Locator { traffic: TrafficType::Both, preferred, lifetime: u32::MAX, address }
        };
        let mut locators = PeerLocators::new(ip(1), true);
        for _ in 0..2 {
            locators.replace(at(0), &[listed(7, true), listed(8, false)]);
            let known: Vec<_> = locators.iter().map(|l| (l.spis.clone(), l.preferred)).collect();
            assert_eq!(known, [(vec![7, 8], true)]);
        }
    }

    #[test]
    fn a_locator_goes_through_its_states() {
        use LocatorState::{Active, Deprecated, Unverified};
        let mut locators = PeerLocators::new(ip(1), true);
        locators.replace(at(0), &[listed(1, false, u32::MAX), listed(2, true, 10)]);
        assert_eq!(states(&locators), [(ip(1), Active), (ip(2), Unverified)]);
        assert_eq!(locators.best().map(|l| l.address), Some(ip(1)), "active before preferred");
        locators.verified(ip(2));
        assert_eq!(locators.best().map(|l| l.address), Some(ip(2)));
        assert_eq!(locators.timeout(), Some(at(10)));
        locators.expire(at(10));
        assert_eq!(states(&locators), [(ip(1), Active), (ip(2), Deprecated)]);
        locators.verified(ip(2));
        assert_eq!(states(&locators)[1].1, Deprecated, "never from deprecated to active");
        locators.replace(at(11), &[listed(2, true, 10)]);
        assert_eq!(states(&locators), [(ip(1), Deprecated), (ip(2), Unverified)]);
        locators.replace(at(12), &[]);
        assert_eq!(locators.best(), None, "an empty set deprecates all");
    }

    #[test]
    fn a_flood_of_locators_is_not_remembered() {
        let mut locators = PeerLocators::new(ip(1), true);
        (0..=255).for_each(|n| locators.verified(IpAddr::from([10, 0, 0, n])));
        assert_eq!(locators.iter().count(), MOST);
    }

    #[test]
    fn credit_is_earned_spent_and_lost() {
        let mut credit = Credit::default();
        assert!(!credit.spend(at(0), 1));
        credit.earn(at(0), 800);
        assert!(credit.spend(at(4), 100));
        assert!(!credit.spend(at(5), 613), "700 · 7/8 = 612.5");
        assert!(credit.spend(at(5), 612));
        credit.earn(at(6), u64::MAX);
        assert!(!credit.spend(at(100_000), 1));
    }
}
