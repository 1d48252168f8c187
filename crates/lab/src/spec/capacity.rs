//! What the bottlenecks of a flow carry at most, over time.

use std::collections::BTreeSet;

use polypath_wire::{Duration, Rate};

use super::{Flow, Link, Spec};

/// The sum of the rates of a flow's bottlenecks: since when it is how much, bit/s. A link that is down counts with its rate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Capacity(Vec<(Duration, f64)>);

impl Capacity {
    /// Its mean between two instants, bit/s.
    pub fn mean(&self, from: Duration, to: Duration) -> f64 {
        let ends = self.0.iter().skip(1).map(|(at, _)| *at).chain([to]);
        let parts = self.0.iter().zip(ends).map(|((at, rate), end)| (*rate, *at.max(&from), end.min(to)));
        let parts = parts.filter(|(_, start, end)| start < end);
        let share = |(rate, start, end): (f64, Duration, Duration)| {
            rate * ((end - start).as_secs_f64() / (to - from).as_secs_f64())
        };
        parts.map(share).sum()
    }
}

impl Spec {
    /// What the bottlenecks of `flow` carry; one that several paths share counts once.
    pub fn capacity(&self, flow: &Flow) -> Capacity {
        let changes = self.link.iter().flat_map(|l| &l.change).map(|change| change.at.0);
        let times: BTreeSet<Duration> = changes.chain([Duration::ZERO]).collect();
        let mut parts: Vec<_> =
            times.into_iter().map(|at| (at, self.capacity_at(flow, at).0 as f64)).collect();
        parts.dedup_by_key(|(_, rate)| *rate);
        Capacity(parts)
    }

    fn capacity_at(&self, flow: &Flow, at: Duration) -> Rate {
        let mut bottlenecks: Vec<(&Link, bool)> = Vec::new();
        for via in &flow.paths {
            let slowest = self.links_of(flow, via).into_iter().min_by_key(|(l, there)| l.rate_at(*there, at));
            let is_new = |(l, there): &(&Link, bool)| {
                !bottlenecks.iter().any(|(seen, way)| std::ptr::eq(*seen, *l) && way == there)
            };
            bottlenecks.extend(slowest.filter(is_new));
        }
        Rate(bottlenecks.iter().map(|(l, there)| l.rate_at(*there, at).0).sum())
    }
}

impl Link {
    /// Rate from `from` to `to`, or back, after the changes until `at`; of a trace its mean.
    fn rate_at(&self, there: bool, at: Duration) -> Rate {
        let mut before = self.change.iter().rev().filter(|change| change.at.0 <= at);
        before.find_map(|change| self.changed_rate(change, there)).unwrap_or(self.rate(there))
    }
}
