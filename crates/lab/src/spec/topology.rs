//! Questions about the topology that checks and runs both ask.

use polypath_wire::{Duration, Rate};

use super::{Flow, Link, Spec};

impl Spec {
    /// All nodes of a path, ends included.
    pub fn stations<'a>(&self, flow: &'a Flow, via: &'a [String]) -> Vec<&'a str> {
        let inner = via.iter().map(String::as_str);
        std::iter::once(flow.from.as_str()).chain(inner).chain([flow.to.as_str()]).collect()
    }

    /// The link that carries packets from `a` to `b`: its place in the file, and itself.
    pub fn link_between(&self, a: &str, b: &str) -> Option<(usize, &Link)> {
        let carries = |l: &Link| (l.from == a && l.to == b) || (l.duplex && l.from == b && l.to == a);
        self.link.iter().enumerate().find(|(_, l)| carries(l))
    }

    /// The links of a path from sender to receiver.
    pub fn links_of<'a>(&'a self, flow: &'a Flow, via: &'a [String]) -> Vec<&'a Link> {
        let stations = self.stations(flow, via);
        stations.windows(2).filter_map(|pair| Some(self.link_between(pair[0], pair[1])?.1)).collect()
    }

    /// Smallest MTU of a path, bytes.
    pub fn path_mtu(&self, flow: &Flow, via: &[String]) -> u32 {
        self.links_of(flow, via).iter().map(|l| l.mtu).min().unwrap_or(u32::MAX)
    }

    /// Smallest rate of a path.
    pub fn path_rate(&self, flow: &Flow, via: &[String]) -> Rate {
        self.links_of(flow, via).iter().map(|l| l.rate.0).min().unwrap_or_default()
    }

    /// One-way propagation delay of a path.
    pub fn path_delay(&self, flow: &Flow, via: &[String]) -> Duration {
        self.links_of(flow, via).iter().fold(Duration::ZERO, |sum, l| sum + l.delay.0)
    }

    /// Sum of the rates of a flow's bottlenecks; one that several paths share counts once.
    pub fn capacity(&self, flow: &Flow) -> Rate {
        let mut bottlenecks: Vec<&Link> = Vec::new();
        for via in &flow.paths {
            let slowest = self.links_of(flow, via).into_iter().min_by_key(|l| l.rate);
            bottlenecks.extend(slowest.filter(|l| !bottlenecks.iter().any(|seen| std::ptr::eq(*seen, *l))));
        }
        Rate(bottlenecks.iter().map(|l| l.rate.0.0).sum())
    }
}
