//! Which pairs of locators should be paths.

use std::net::{IpAddr, SocketAddr};

use polypath_wire::{Duration, Instant};

use crate::paths::Locators;

/// Where a peer is to be found, for whoever begins the association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Over these pairs of locators and no others.
    Pairs(Vec<Locators>),
    /// At these addresses, from whatever addresses we have.
    Addresses(Vec<SocketAddr>),
}

/// A pair of locators that should be a path.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub locators: Locators,
    /// Not before this instant.
    pub at: Instant,
    /// Attempts that failed in a row.
    tries: u32,
    /// An attempt is under way.
    pub asked: bool,
}

impl Wanted {
    pub fn new(locators: Locators, now: Instant) -> Self {
        Self { locators, at: now, tries: 0, asked: false }
    }

    /// The attempt failed.
    pub fn fail(&mut self, now: Instant, retry: Duration) {
        self.at = now + retry.times(1 << self.tries.min(4));
        self.tries += 1;
        self.asked = false;
    }

    /// There is a path.
    pub fn succeed(&mut self) {
        self.tries = 0;
        self.asked = false;
    }
}

impl Reach {
    /// The pairs for our addresses `locals`, in the order in which they are best tried.
    pub(super) fn pairs(&self, locals: &[SocketAddr]) -> Vec<Locators> {
        match self {
            Self::Pairs(pairs) => pairs.clone(),
            Self::Addresses(remotes) => pair_up(locals, remotes),
        }
    }
}

/// Every address of either side in at least one pair, and no more pairs than that takes: paths that
/// share a link gain nothing and take more than one connection's part of it. Addresses that look
/// alike, as those on one link do, come together first.
fn pair_up(locals: &[SocketAddr], remotes: &[SocketAddr]) -> Vec<Locators> {
    let mut all: Vec<_> = locals
        .iter()
        .flat_map(|&local| remotes.iter().map(move |&remote| Locators { local, remote }))
        .filter(usable)
        .collect();
    all.sort_by_key(|pair| std::cmp::Reverse(likeness(pair)));
    let (mut ours, mut theirs, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for both in [true, false] {
        for pair in &all {
            let fresh = (!ours.contains(&pair.local), !theirs.contains(&pair.remote));
            if fresh == (true, true) || !both && (fresh.0 || fresh.1) {
                ours.push(pair.local);
                theirs.push(pair.remote);
                pairs.push(*pair);
            }
        }
    }
    pairs
}

fn usable(pair: &Locators) -> bool {
    let (local, remote) = (pair.local.ip(), pair.remote.ip());
    local.is_ipv4() == remote.is_ipv4() && local.is_loopback() == remote.is_loopback() && local != remote
        || local.is_loopback() && remote.is_loopback()
}

/// Length of the common prefix, bits.
fn likeness(pair: &Locators) -> u32 {
    match (pair.local.ip(), pair.remote.ip()) {
        (IpAddr::V4(l), IpAddr::V4(r)) => (l.to_bits() ^ r.to_bits()).leading_zeros(),
        (IpAddr::V6(l), IpAddr::V6(r)) => (l.to_bits() ^ r.to_bits()).leading_zeros(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(locals: &[&str], remotes: &[&str]) -> Vec<String> {
        let parse =
            |list: &[&str]| list.iter().map(|a| format!("{a}:1").parse().unwrap()).collect::<Vec<_>>();
        let pairs = pair_up(&parse(locals), &parse(remotes));
        pairs.iter().map(|p| format!("{} {}", p.local.ip(), p.remote.ip())).collect()
    }

    #[test]
    fn links_are_told_by_their_prefixes() {
        assert_eq!(
            pairs(&["10.1.0.1", "10.2.0.1"], &["10.2.0.2", "10.1.0.2"]),
            ["10.1.0.1 10.1.0.2", "10.2.0.1 10.2.0.2"]
        );
    }

    #[test]
    fn every_address_has_a_path() {
        assert_eq!(
            pairs(&["10.1.0.1", "10.2.0.1"], &["192.0.2.1"]),
            ["10.1.0.1 192.0.2.1", "10.2.0.1 192.0.2.1"]
        );
        assert_eq!(
            pairs(&["10.1.0.1"], &["192.0.2.1", "192.0.2.2"]),
            ["10.1.0.1 192.0.2.1", "10.1.0.1 192.0.2.2"]
        );
        assert_eq!(pairs(&["10.1.0.1", "[fd00::1]"], &["[fd00::2]"]), ["fd00::1 fd00::2"]);
        assert_eq!(pairs(&["10.1.0.1"], &["127.0.0.1"]), Vec::<String>::new());
    }
}
