//! Questions about the topology that checks and runs both ask.

use polypath_wire::{Duration, Rate};

use super::validate::{HEADERS, SECURE_HEADERS};
use super::{Change, Flow, Link, LinkRate, Queue, Spec};

impl Spec {
    /// All nodes of a path, ends included.
    pub fn stations<'a>(&self, flow: &'a Flow, via: &'a [String]) -> Vec<&'a str> {
        let inner = via.iter().map(String::as_str);
        std::iter::once(flow.from.as_str()).chain(inner).chain([flow.to.as_str()]).collect()
    }

    /// The link that joins `a` and `b`, and whether it was written from `a` to `b`.
    pub fn link_between(&self, a: &str, b: &str) -> Option<(&Link, bool)> {
        let joins = |l: &Link| match (l.from.as_str(), l.to.as_str()) {
            ends if ends == (a, b) => Some(true),
            ends if ends == (b, a) => Some(false),
            _ => None,
        };
        self.link.iter().find_map(|l| Some((l, joins(l)?)))
    }

    /// The links of a path, each with whether it is used the way it was written.
    pub fn links_of<'a>(&'a self, flow: &'a Flow, via: &'a [String]) -> Vec<(&'a Link, bool)> {
        let stations = self.stations(flow, via);
        stations.windows(2).filter_map(|pair| self.link_between(pair[0], pair[1])).collect()
    }

    /// The hops of a path by number: each link there and back, in the order of the spec.
    pub fn hops_of(&self, flow: &Flow, via: &[String]) -> Vec<usize> {
        let number = |link: &Link| self.link.iter().position(|l| std::ptr::eq(l, link));
        let links = self.links_of(flow, via).into_iter();
        links.filter_map(|(link, there)| Some(2 * number(link)? + usize::from(!there))).collect()
    }

    /// Whether a path of `flow` leads through the link from `from` to `to`.
    pub fn leads_through(&self, flow: &Flow, link: (&str, &str)) -> bool {
        let leads =
            |via: &Vec<String>| self.stations(flow, via).windows(2).any(|pair| (pair[0], pair[1]) == link);
        flow.paths.iter().any(leads)
    }

    /// Smallest MTU of a path, bytes.
    pub fn path_mtu(&self, flow: &Flow, via: &[String]) -> u32 {
        self.links_of(flow, via).iter().map(|(l, _)| l.mtu).min().unwrap_or(u32::MAX)
    }

    /// Smallest rate of a path towards the receiver.
    pub fn path_rate(&self, flow: &Flow, via: &[String]) -> Rate {
        self.links_of(flow, via).iter().map(|(l, there)| l.rate(*there)).min().unwrap_or_default()
    }

    /// One-way propagation delay of a path towards the receiver.
    pub fn path_delay(&self, flow: &Flow, via: &[String]) -> Duration {
        self.links_of(flow, via).iter().fold(Duration::ZERO, |sum, (l, there)| sum + l.delay(*there))
    }

    /// Round trip time of a path without queueing and transmission.
    pub fn path_rtt(&self, flow: &Flow, via: &[String]) -> Duration {
        let both = |sum: Duration, (l, _): &(&Link, bool)| sum + l.delay(true) + l.delay(false);
        self.links_of(flow, via).iter().fold(Duration::ZERO, both)
    }

    /// Bits that the flows of a run carry at most: what a run costs, roughly.
    pub fn work(&self) -> u128 {
        let mean = |flow| self.capacity(flow).mean(Duration::ZERO, self.duration.0);
        let rates: f64 = self.flow.iter().map(mean).sum();
        rates as u128 * u128::from(self.duration.0.0 / 1_000_000_000)
    }
}

impl Flow {
    /// Headers of a TCP segment without options, bytes.
    pub(crate) fn headers(&self) -> u32 {
        if self.secure { SECURE_HEADERS } else { HEADERS }
    }
}

impl Link {
    /// Rate from `from` to `to`, or back; of a trace its mean.
    pub fn rate(&self, there: bool) -> Rate {
        self.rate_of(there).mean()
    }

    /// The same with the trace that it may follow.
    pub fn rate_of(&self, there: bool) -> &LinkRate {
        self.back.rate.as_ref().filter(|_| !there).unwrap_or(&self.rate)
    }

    /// The queue before it from `from` to `to`, or back.
    pub fn queue_of(&self, there: bool) -> Queue {
        self.back.queue.filter(|_| !there).unwrap_or(self.queue)
    }

    /// Rate × 2 · delay from `from` to `to`, or back, bytes.
    pub fn bdp(&self, there: bool) -> u64 {
        self.rate(there).bytes_in(self.delay(there).times(2))
    }

    /// One-way delay from `from` to `to`, or back.
    pub fn delay(&self, there: bool) -> Duration {
        self.back.delay.filter(|_| !there).unwrap_or(self.delay).0
    }

    /// Loss probability from `from` to `to`, or back.
    pub fn loss(&self, there: bool) -> f64 {
        self.back.loss.filter(|_| !there).unwrap_or(self.loss)
    }

    /// The rate that `change` sets from `from` to `to`, or back.
    pub fn changed_rate(&self, change: &Change, there: bool) -> Option<Rate> {
        Some(changed(there, change.rate, change.back.rate, self.back.rate.is_some())?.0)
    }

    /// The delay that `change` sets from `from` to `to`, or back.
    pub fn changed_delay(&self, change: &Change, there: bool) -> Option<Duration> {
        Some(changed(there, change.delay, change.back.delay, self.back.delay.is_some())?.0)
    }

    /// The loss probability that `change` sets from `from` to `to`, or back.
    pub fn changed_loss(&self, change: &Change, there: bool) -> Option<f64> {
        changed(there, change.loss, change.back.loss, self.back.loss.is_some())
    }
}

/// The way back has the `first` direction's value, but where `back` has a value or the link's `back` names one.
fn changed<T>(there: bool, first: Option<T>, back: Option<T>, named: bool) -> Option<T> {
    if there { first } else { back.or(first.filter(|_| !named)) }
}
