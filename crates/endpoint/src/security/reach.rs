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

    /// The attempt failed: the next one follows after `retry`, and ever later unless data `flows` to the peer.
    pub fn fail(&mut self, now: Instant, retry: Duration, flows: bool) {
        self.at = now + retry.times(if flows { 1 } else { 1 << self.tries.min(4) });
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
    /// The pairs for our addresses `locals`, in the order in which they are best tried. What the peer `announced`
    /// counts like what we were told once a path has proved it; before, it is tried beside the others.
    pub(super) fn pairs(
        &self,
        locals: &[SocketAddr],
        announced: &[SocketAddr],
        is_proven: impl Fn(&SocketAddr) -> bool,
    ) -> Vec<Locators> {
        let remotes = match self {
            Self::Pairs(pairs) => return pairs.clone(),
            Self::Addresses(remotes) => remotes,
        };
        let news = announced.iter().filter(|a| remotes.iter().all(|r| r.ip() != a.ip()));
        let (proven, fresh): (Vec<SocketAddr>, Vec<SocketAddr>) = news.copied().partition(is_proven);
        let mut pairs = pair_up(locals, &[remotes.as_slice(), &proven].concat());
        let nearest = |remote: SocketAddr| {
            let pairs = locals.iter().map(|&local| Locators { local, remote });
            pairs.filter(usable).max_by_key(likeness)
        };
        pairs.extend(fresh.into_iter().filter_map(nearest));
        pairs
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
    fn what_the_peer_announces_is_tried_beside_what_we_know() {
        let parse = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|a| format!("{a}:1").parse().unwrap()).collect()
        };
        let reach = Reach::Addresses(parse(&["192.0.2.1"]));
        let locals = parse(&["192.0.2.9", "10.0.0.9"]);
        let pairs = |proven: bool| -> Vec<String> {
            let announced = parse(&["192.0.2.1", "10.0.0.1", "[fd00::1]"]);
            let pairs = reach.pairs(&locals, &announced, |_| proven);
            pairs.iter().map(|p| format!("{} {}", p.local.ip(), p.remote.ip())).collect()
        };
        assert_eq!(pairs(false), ["192.0.2.9 192.0.2.1", "10.0.0.9 192.0.2.1", "10.0.0.9 10.0.0.1"]);
        assert_eq!(pairs(true), ["192.0.2.9 192.0.2.1", "10.0.0.9 10.0.0.1"]);
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
