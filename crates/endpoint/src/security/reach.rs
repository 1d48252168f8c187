//! Which pairs of locators should be paths.

use std::net::{IpAddr, SocketAddr};

use polypath_wire::{Duration, Instant};

use crate::paths::Locators;

/// Where to find a peer, for whoever begins the association.
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
    /// The number of its link to the peer: of each link, the first pair that works is used.
    pub link: usize,
    /// It leads to another link of the peer than its own does: it is used while no other pair of the link works.
    pub spare: bool,
    /// The peer lists its address, or lists none.
    pub listed: bool,
    /// Not before this instant.
    pub at: Instant,
    /// Since when.
    pub since: Instant,
    /// Attempts that failed in a row.
    tries: u32,
    /// An attempt is under way.
    pub asked: bool,
}

impl Wanted {
    pub fn new(Pair { locators, link, spare, listed }: Pair, now: Instant) -> Self {
        Self { locators, link, spare, listed, at: now, since: now, tries: 0, asked: false }
    }

    /// The same in the place of `pair`.
    pub fn placed(self, Pair { link, spare, listed, .. }: Pair) -> Self {
        Self { link, spare, listed, ..self }
    }

    /// The attempt failed: the next one follows after `retry`, and later each time unless data `flows` to the peer.
    pub fn fail(&mut self, now: Instant, retry: Duration, flows: bool) {
        self.at = now + retry.times(if flows { 1 } else { 1 << self.tries.min(4) });
        self.tries += 1;
        self.asked = false;
    }

    /// The association is over: attempts begin anew with the next one.
    pub fn reset(&mut self, now: Instant) {
        (self.at, self.tries, self.asked) = (now, 0, false);
    }

    /// There is a path.
    pub fn succeed(&mut self) {
        self.tries = 0;
        self.asked = false;
    }
}

/// A pair of locators and the number of its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pair {
    pub locators: Locators,
    pub link: usize,
    /// To another link of the peer than the one that this link leads to.
    pub spare: bool,
    /// The peer lists its address, or lists none.
    pub listed: bool,
}

/// An address of ours and the link that it is on.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub address: SocketAddr,
    pub link: OwnLink,
}

/// A link of ours: an interface, or an address whose interface is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnLink {
    Interface(u32),
    Address(usize),
}

impl Reach {
    /// The pairs for our addresses `locals`, in the order in which they are tried: first one for each link, then other
    /// pairs over the same links, then pairs from our end of a link to all other addresses of the peer, as the one that was chosen may be
    /// out of reach from there. An address that the peer `announced` counts like a configured one once a path has proved
    /// it; before, it is tried beside the others, if it is on a link that none of them is on. Of pairs over one link those go first that the
    /// peer lists: it may have left the others.
    pub(super) fn pairs(
        &self,
        locals: &[End],
        announced: &[SocketAddr],
        is_proven: impl Fn(&SocketAddr) -> bool,
    ) -> Vec<Pair> {
        let told = match self {
            Self::Pairs(pairs) => {
                let pair = |(link, &locators)| Pair { locators, link, spare: false, listed: true };
                return pairs.iter().enumerate().map(pair).collect();
            }
            Self::Addresses(remotes) => remotes,
        };
        let news = announced.iter().filter(|a| told.iter().all(|r| r.ip() != a.ip()));
        let (proven, fresh): (Vec<SocketAddr>, Vec<SocketAddr>) = news.copied().partition(is_proven);
        let known = [told.as_slice(), &proven].concat();
        let all = candidates(locals, &number(locals, &[known.as_slice(), &fresh].concat()));
        let (tried, sure): (Vec<Candidate>, Vec<Candidate>) =
            all.into_iter().partition(|c| fresh.contains(&c.locators.remote));
        let mut links = choose(&sure);
        for remote in fresh {
            let nearest = tried.iter().find(|c| {
                let taken =
                    links.iter().any(|l| l.ours == c.ours) && links.iter().any(|l| l.theirs == c.theirs);
                c.locators.remote == remote && !taken
            });
            links.extend(nearest);
        }
        let listed = |c: &Candidate| {
            announced.is_empty() || announced.iter().any(|a| a.ip() == c.locators.remote.ip())
        };
        let pair = |c: &Candidate, link, spare| Pair { locators: c.locators, link, spare, listed: listed(c) };
        let stands_for = |c: &Candidate, spare: bool| {
            let same = links.iter().position(|l| (l.ours, l.theirs) == (c.ours, c.theirs));
            let link = if spare { links.iter().position(|l| l.ours == c.ours) } else { same }?;
            let new = if spare { same.is_none() } else { links[link].locators != c.locators };
            new.then(|| pair(c, link, spare))
        };
        let others = |spare| sure.iter().chain(&tried).filter_map(move |c| stands_for(c, spare));
        let first = links.iter().enumerate().map(|(link, c)| pair(c, link, false));
        let mut pairs: Vec<Pair> = first.chain(others(false)).chain(others(true)).collect();
        pairs.sort_by_key(|pair| (pair.spare, !pair.listed));
        pairs
    }
}

/// A pair that may be a path, and the link of either end that it is over.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    locators: Locators,
    ours: OwnLink,
    theirs: usize,
}

/// The number of the link of each address of the peer: neighbours on one interface of ours are on one link; of others, the
/// first of either family are taken for one link, the second for another.
fn number(locals: &[End], remotes: &[SocketAddr]) -> Vec<(SocketAddr, usize)> {
    let interface = |remote: SocketAddr| locals.iter().find(|end| end.is_beside(remote)).map(|end| end.link);
    let mut numbered: Vec<(SocketAddr, usize)> = Vec::new();
    for &remote in remotes {
        let beside = |(other, _): &&(SocketAddr, usize)| {
            interface(remote).is_some() && interface(*other) == interface(remote)
        };
        let before = numbered.iter().filter(|(other, _)| other.is_ipv4() == remote.is_ipv4()).count();
        let number = numbered.iter().find(beside).map_or(before, |(_, number)| *number);
        numbered.push((remote, number));
    }
    numbered
}

impl End {
    /// Whether `remote` is a neighbour on our interface: their addresses share the usual length of a prefix.
    fn is_beside(&self, remote: SocketAddr) -> bool {
        let pair = Locators { local: self.address, remote };
        let prefix = if remote.is_ipv4() { 24 } else { 64 };
        matches!(self.link, OwnLink::Interface(_)) && usable(&pair) && likeness(&pair) >= prefix
    }
}

/// All pairs; addresses that look alike, as those on one link do, first, then those that everybody reaches.
fn candidates(locals: &[End], remotes: &[(SocketAddr, usize)]) -> Vec<Candidate> {
    let pair = |end: &End, (remote, theirs): (SocketAddr, usize)| Candidate {
        locators: Locators { local: end.address, remote },
        ours: end.link,
        theirs,
    };
    let mut all: Vec<_> = locals
        .iter()
        .flat_map(|end| remotes.iter().map(move |&remote| pair(end, remote)))
        .filter(|c| usable(&c.locators))
        .collect();
    all.sort_by_key(|c| std::cmp::Reverse((network(&c.locators), is_public(c.locators.remote.ip()))));
    all
}

/// Length of the common prefix, bits; 0 if it is too short for one network.
fn network(pair: &Locators) -> u32 {
    let least = if pair.remote.is_ipv4() { 16 } else { 32 };
    Some(likeness(pair)).filter(|bits| *bits >= least).unwrap_or(0)
}

/// Whether the address is not of a private or shared network (RFC 1918, 4193, 6598).
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let is_shared = ip.to_bits() >> 22 == u32::from_be_bytes([100, 64, 0, 0]) >> 22;
            !ip.is_private() && !is_shared
        }
        IpAddr::V6(ip) => !ip.is_unique_local(),
    }
}

/// Every link of either side in at least one pair, and no more pairs than that takes: paths that share a link gain
/// nothing and take more than one connection's part of it.
fn choose(all: &[Candidate]) -> Vec<Candidate> {
    let mut chosen: Vec<Candidate> = Vec::new();
    for both in [true, false] {
        for c in all {
            let ours = chosen.iter().all(|k| k.ours != c.ours);
            let theirs = chosen.iter().all(|k| k.theirs != c.theirs);
            if ours && theirs || !both && (ours || theirs) {
                chosen.push(*c);
            }
        }
    }
    chosen
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
        shown(&Reach::Addresses(parse(remotes)).pairs(&ends(&parse(locals)), &[], |_| false))
    }

    /// Without those that are spare.
    fn shown(pairs: &[Pair]) -> Vec<String> {
        let used = pairs.iter().filter(|p| !p.spare);
        used.map(|p| format!("{} {}", p.locators.local.ip(), p.locators.remote.ip())).collect()
    }

    /// Each on a link of its own.
    fn ends(locals: &[SocketAddr]) -> Vec<End> {
        let end = |(n, &address): (usize, _)| End { address, link: OwnLink::Address(n) };
        locals.iter().enumerate().map(end).collect()
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
            shown(&reach.pairs(&ends(&locals), &announced, |_| proven))
        };
        assert_eq!(pairs(false), ["192.0.2.9 192.0.2.1", "10.0.0.9 192.0.2.1", "10.0.0.9 10.0.0.1"]);
        assert_eq!(pairs(true), ["192.0.2.9 192.0.2.1", "10.0.0.9 10.0.0.1"]);
    }

    #[test]
    fn a_neighbour_that_lists_another_address_is_sought_there_first() {
        let parse = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|a| format!("{a}:1").parse().unwrap()).collect()
        };
        let end = |address| End { address, link: OwnLink::Interface(1) };
        let locals: Vec<End> = parse(&["10.1.0.1"]).into_iter().map(end).collect();
        let reach = Reach::Addresses(parse(&["10.1.0.2"]));
        let pairs = |listed: &[&str]| reach.pairs(&locals, &parse(listed), |_| false);
        assert_eq!(shown(&pairs(&[])), ["10.1.0.1 10.1.0.2"]);
        assert_eq!(shown(&pairs(&["10.1.0.9"])), ["10.1.0.1 10.1.0.9", "10.1.0.1 10.1.0.2"]);
        assert_eq!(pairs(&["10.1.0.9"]).iter().map(|pair| pair.listed).collect::<Vec<_>>(), [true, false]);
        assert_eq!(shown(&pairs(&["10.1.0.2", "10.1.0.9"])), ["10.1.0.1 10.1.0.2", "10.1.0.1 10.1.0.9"]);
    }

    #[test]
    fn a_link_may_lead_to_every_address_of_the_peer() {
        let at = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), 1);
        let locals: Vec<SocketAddr> = ["198.51.100.2", "192.168.8.2", "100.64.5.2"].iter().map(at).collect();
        let remotes: Vec<SocketAddr> = ["10.50.0.1", "203.0.113.5"].iter().map(at).collect();
        let pairs = Reach::Addresses(remotes.clone()).pairs(&ends(&locals), &[], |_| false);
        assert_eq!(shown(&pairs)[0], "198.51.100.2 203.0.113.5", "whom everybody reaches first");
        for local in locals {
            let to: Vec<_> = pairs.iter().filter(|p| p.locators.local == local).collect();
            assert!(remotes.iter().all(|r| to.iter().any(|p| p.locators.remote == *r)), "{pairs:?}");
            assert_eq!(to.iter().filter(|p| !p.spare).count(), 1);
            assert!(to.iter().all(|p| p.link == to[0].link));
        }
    }

    #[test]
    fn addresses_of_private_networks_are_not_public() {
        let public = |ip: &&str| is_public(ip.parse().unwrap());
        assert!(["203.0.113.5", "100.63.0.1", "100.128.0.1", "172.32.0.1", "2001:db8::1"].iter().all(public));
        assert!(!["10.0.0.1", "100.64.0.1", "100.127.0.1", "192.168.1.1", "fd00::1"].iter().any(public));
    }

    /// Addresses of interfaces, `1 10.1.0.1`, and of the peer: the pairs of addresses, each with its link.
    fn links(locals: &[&str], remotes: &[&str]) -> Vec<(usize, String)> {
        let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 1);
        let end = |text: &&str| {
            let (interface, ip) = text.split_once(' ').unwrap();
            End { address: at(ip), link: OwnLink::Interface(interface.parse().unwrap()) }
        };
        let locals: Vec<End> = locals.iter().map(end).collect();
        let pairs =
            Reach::Addresses(remotes.iter().map(|ip| at(ip)).collect()).pairs(&locals, &[], |_| false);
        pairs.iter().filter(|p| !p.spare).map(|p| p.link).zip(shown(&pairs)).collect()
    }

    #[test]
    fn addresses_of_one_interface_are_one_link() {
        let one = |n: usize, pair: &str| (n, pair.to_owned());
        assert_eq!(
            links(&["1 10.1.0.1", "1 10.1.0.9"], &["10.1.0.2"]),
            [one(0, "10.1.0.1 10.1.0.2"), one(0, "10.1.0.9 10.1.0.2")]
        );
        assert_eq!(
            links(&["1 10.1.0.1", "1 fd00::1"], &["10.1.0.2", "fd00::2"]),
            [one(0, "fd00::1 fd00::2"), one(0, "10.1.0.1 10.1.0.2")],
            "both families, and one that may stand for the other"
        );
        let both =
            links(&["1 10.1.0.1", "1 fd00:1::1", "2 10.2.0.1", "2 fd00:2::1"], &["192.0.2.1", "2001:db8::1"]);
        assert_eq!(both.iter().filter(|(link, _)| *link == 0).count(), 2);
        assert_eq!(both.iter().map(|(link, _)| *link).max(), Some(1), "{both:?}");
        assert_eq!(
            links(&["1 10.1.0.1", "2 fd00::1"], &["192.0.2.1", "fd00::2"]),
            [one(0, "fd00::1 fd00::2"), one(1, "10.1.0.1 192.0.2.1")],
            "each interface reaches one address"
        );
        assert_eq!(
            links(&["1 10.1.0.1"], &["192.0.2.1", "198.51.100.1"]),
            [one(0, "10.1.0.1 192.0.2.1"), one(1, "10.1.0.1 198.51.100.1")],
            "the peer's links count too"
        );
        assert_eq!(
            links(&["1 10.0.0.1", "2 10.1.0.1", "2 fd00::1"], &["10.0.0.2", "fd00::2", "10.1.0.2"])[..3],
            [one(0, "fd00::1 fd00::2"), one(1, "10.0.0.1 10.0.0.2"), one(0, "10.1.0.1 10.1.0.2")],
            "neighbours on one interface are on one link, however the peer lists them"
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
