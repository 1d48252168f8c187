//! Which TCP connections travel as packets because the configuration says so.

use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError, RwLock};

use ipnet::IpNet;
use polypath_endpoint::inner::InnerPacket;
use polypath_node::Exclude;

use crate::config::LaneConfig;

/// Addresses and ports. Clones share them, and they may change: connections that are there stay what they are.
#[derive(Clone, Debug)]
pub(crate) struct Exclusion(Arc<RwLock<Excluded>>);

#[derive(Debug)]
struct Excluded {
    prefixes: Vec<IpNet>,
    ports: Vec<RangeInclusive<u16>>,
}

impl Exclusion {
    pub fn of(config: &LaneConfig) -> Self {
        Self(Arc::new(RwLock::new(Excluded::of(config))))
    }

    pub fn replace(&self, config: &LaneConfig) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Excluded::of(config);
    }

    /// Says of a packet of TCP whether it is excluded.
    pub fn rule(&self) -> Exclude {
        let all = self.0.clone();
        Box::new(move |packet| all.read().unwrap_or_else(PoisonError::into_inner).contains(packet))
    }
}

impl Excluded {
    fn of(config: &LaneConfig) -> Self {
        let ports = config.exclude_ports.iter().map(|ports| ports.0.clone()).collect();
        Self { prefixes: config.exclude.clone(), ports }
    }

    fn contains(&self, packet: &InnerPacket) -> bool {
        let by_address = |ip| self.prefixes.iter().any(|prefix| prefix.contains(&ip));
        let is_excluded = |port| self.ports.iter().any(|ports| ports.contains(&port));
        let by_port = packet.ports.is_some_and(|(src, dst)| is_excluded(src) || is_excluded(dst));
        by_address(packet.src) || by_address(packet.dst) || by_port
    }
}
