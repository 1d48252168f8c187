//! Addresses for peers that are named without prefixes, out of one network, and the file that has a peer keep its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use polypath_wire::hip::Hit;
use thiserror::Error;
use tracing::warn;

use crate::config::{Config, Place};
use crate::state::{self, Unread};

/// Its file in the directory of state.
const FILE: &str = "leases.json";

/// The address of each peer. A peer that is removed from the configuration keeps its address while others are free.
type Leases = BTreeMap<Hit, IpAddr>;

/// Why a peer has no address.
#[derive(Debug, Error)]
pub enum LeaseError {
    /// All of the network's are taken.
    #[error("{network} has no address left for peer {peer}")]
    Exhausted {
        /// The network.
        network: IpNet,
        /// Who gets none.
        peer: Hit,
    },
    /// It would have another one after a restart.
    #[error("{file}, which stores the addresses of peers: {source}")]
    Unkept {
        /// Where addresses are kept.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LeaseError {
    /// What in the configuration it is about.
    pub fn place(&self) -> Place {
        match self {
            Self::Exhausted { .. } => Place::Value(["tunnel", "assign"]),
            Self::Unkept { .. } => Place::Value(["daemon", "state"]),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Exhausted { .. } => "name a larger network, or leave peers out",
            Self::Unkept { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "the disk is full: make room there, or name a directory on another one"
            }
            Self::Unkept { .. } => "name a directory that the daemon's user may read and write",
        }
    }
}

impl Config {
    /// Whether there is an address for each peer. Nothing is written.
    pub fn check_leases(&self) -> Result<(), LeaseError> {
        let Some(network) = self.tunnel.assign else { return Ok(()) };
        let file = self.daemon.state.join(FILE);
        let unkept = |source| LeaseError::Unkept { file: file.display().to_string(), source };
        give(self, network, state::peek(&file).map_err(unkept)?).map(drop)
    }
}

/// The configuration with a prefix for each peer that has none: an address of its own, the same as ever.
pub(crate) fn assign(config: &Config) -> Result<Config, LeaseError> {
    let Some(network) = config.tunnel.assign else { return Ok(config.clone()) };
    let file = config.daemon.state.join(FILE);
    let unkept = |source| LeaseError::Unkept { file: file.display().to_string(), source };
    let before = load(&file).map_err(unkept)?;
    let leases = give(config, network, before.clone())?;
    if leases != before {
        fs::create_dir_all(&config.daemon.state).map_err(unkept)?;
        state::store(&file, &leases).map_err(unkept)?;
    }
    let mut config = config.clone();
    for peer in config.peers.iter_mut().filter(|peer| peer.prefixes.is_empty()) {
        peer.prefixes.extend(leases.get(&peer.hit).copied().map(IpNet::from));
    }
    Ok(config)
}

/// `leases`, with an address for each peer that has no prefix and no lease yet.
fn give(config: &Config, network: IpNet, mut leases: Leases) -> Result<Leases, LeaseError> {
    let named = || config.peers.iter().flat_map(|peer| &peer.prefixes);
    let others: Vec<&IpNet> = named().filter(|prefix| network.contains(*prefix)).collect();
    let ours: BTreeSet<IpAddr> = config.tunnel.addresses.iter().map(IpNet::addr).collect();
    // In IPv6 the first address of a network is the anycast address of its routers (RFC 4291 §2.6.1).
    let is_a_hosts = |ip: &IpAddr| ip.is_ipv4() || *ip != network.network();
    let is_free = |ip: &IpAddr| {
        is_a_hosts(ip) && !ours.contains(ip) && !others.iter().any(|prefix| prefix.contains(ip))
    };
    leases.retain(|_, ip| network.contains(&*ip) && is_free(ip));
    let asking: BTreeSet<Hit> =
        config.peers.iter().filter(|peer| peer.prefixes.is_empty()).map(|peer| peer.hit).collect();
    let mut taken: BTreeSet<IpAddr> = leases.values().copied().collect();
    let mut left: Vec<Hit> = leases.keys().filter(|hit| !asking.contains(hit)).copied().collect();
    let mut free = network.hosts().filter(is_free);
    for peer in asking {
        if leases.contains_key(&peer) {
            continue;
        }
        let unused = free.find(|ip| !taken.contains(ip));
        let ip = unused.or_else(|| leases.remove(&left.pop()?));
        let ip = ip.ok_or(LeaseError::Exhausted { network, peer })?;
        taken.insert(ip);
        leases.insert(peer, ip);
    }
    Ok(leases)
}

/// What was kept. A file that cannot be understood is put aside; one that cannot be read is an error, or it would be replaced.
fn load(file: &Path) -> io::Result<Leases> {
    match state::load(file) {
        Ok(leases) => Ok(leases),
        Err(Unread::Os(error)) => Err(error),
        Err(broken) => {
            warn!("{}: {broken}; peers may get other addresses", file.display());
            Ok(Leases::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(n: u8) -> String {
        format!("2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9{n:02x}")
    }

    /// A server with those peers, of which number 0 has an address of its own.
    fn config(network: &str, state: &Path, peers: &[u8]) -> Config {
        let mut text = format!(
            "[tunnel]\naddresses = [\"10.99.0.1/24\"]\nassign = \"{network}\"\n[daemon]\nstate = {state:?}\n"
        );
        for n in peers {
            text += &format!("[[peer]]\nhit = \"{}\"\n", hit(*n));
            text += if *n == 0 { "prefixes = [\"10.99.0.2/32\"]\n" } else { "" };
        }
        Config::parse("a", &text).unwrap()
    }

    /// What is behind the peers now, and kept.
    fn given(network: &str, state: &Path, peers: &[u8]) -> Result<Vec<String>, String> {
        let config = config(network, state, peers);
        let checked = config.check_leases().map_err(|error| error.to_string());
        let config = assign(&config).map_err(|error| error.to_string());
        assert_eq!(checked.as_ref().err(), config.as_ref().err());
        let config = config?;
        Ok(config.prefixes().iter().map(IpNet::to_string).collect())
    }

    #[test]
    fn each_peer_keeps_its_address_and_nobody_elses_is_given_away() {
        let dir = tempfile::tempdir().unwrap();
        let given = |peers: &[u8]| given("10.99.0.0/24", &dir.path().join("new"), peers).unwrap();
        assert_eq!(given(&[0, 1, 2]), ["10.99.0.2/32", "10.99.0.3/32", "10.99.0.4/32"]);
        assert_eq!(given(&[2, 3]), ["10.99.0.4/32", "10.99.0.2/32"], "while 1 is away");
        assert_eq!(given(&[1, 2]), ["10.99.0.3/32", "10.99.0.4/32"]);
    }

    #[test]
    fn where_none_is_left_those_who_are_gone_lose_theirs_and_then_it_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let given = |peers: &[u8]| given("10.99.0.0/29", dir.path(), peers);
        assert_eq!(given(&[1, 2, 3, 4, 5]).unwrap().len(), 5);
        assert_eq!(given(&[1, 2, 3, 4, 6]).unwrap()[4], "10.99.0.6/32");
        let said = given(&[1, 2, 3, 4, 5, 6]).unwrap_err();
        assert!(said.contains("10.99.0.0/29 has no address left for peer"), "{said}");
    }

    #[test]
    fn a_network_of_ipv6_is_not_counted_through() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(given("fd99::/64", dir.path(), &[1, 2]).unwrap(), ["fd99::1/128", "fd99::2/128"]);
    }

    #[test]
    fn what_cannot_be_read_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FILE)).unwrap();
        let said = given("10.99.0.0/24", dir.path(), &[1]).unwrap_err();
        assert!(said.contains("leases.json, which stores"), "{said}");
    }

    #[test]
    fn a_full_disk_is_answered_with_what_to_do() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let error = LeaseError::Unkept { file: "leases.json".into(), source: full };
        assert_eq!(error.place(), Place::Value(["daemon", "state"]));
        assert!(error.help().starts_with("the disk is full"));
    }

    #[test]
    fn a_file_that_is_broken_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "{").unwrap();
        assert_eq!(given("10.99.0.0/24", dir.path(), &[1]).unwrap(), ["10.99.0.2/32"]);
        assert!(dir.path().join("leases.broken").exists() && dir.path().join(FILE).exists());
    }
}
