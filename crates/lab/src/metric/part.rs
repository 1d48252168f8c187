//! What was counted between two instants, and what metrics read of it.

use crate::counters::{FlowLevel, HopLevel, PathLevel};

/// The counters of a flow at two instants, and of which of its paths.
#[derive(Clone, Debug)]
pub struct FlowPart<'a> {
    /// The first.
    pub before: &'a FlowLevel,
    /// The last.
    pub after: &'a FlowLevel,
    /// Its paths that are meant.
    pub paths: Vec<usize>,
    /// Whether the flow is meant, and not one path.
    pub whole: bool,
    /// The payload of a full segment of each path, bytes.
    pub packets: &'a [f64],
    /// The sum of the rates of its bottlenecks, bit/s.
    pub capacity: f64,
    /// How long it took.
    pub seconds: f64,
}

impl FlowPart<'_> {
    fn old(&self, path: usize) -> PathLevel {
        self.before.paths.get(path).copied().unwrap_or_default()
    }

    fn packet(&self, path: usize) -> f64 {
        self.packets.get(path).copied().unwrap_or(1.0)
    }

    /// The paths that are meant, at the last instant.
    pub(super) fn now(&self) -> impl Iterator<Item = &PathLevel> {
        self.paths.iter().map(|path| &self.after.paths[*path])
    }

    /// What was counted of the flow in between.
    pub(super) fn counted(&self, count: fn(&FlowLevel) -> u64) -> f64 {
        count(self.after).saturating_sub(count(self.before)) as f64
    }

    /// What was counted of the paths.
    pub(super) fn on_paths(&self, count: fn(&PathLevel) -> u64) -> f64 {
        let of = |p: &usize| count(&self.after.paths[*p]).saturating_sub(count(&self.old(*p)));
        self.paths.iter().map(of).sum::<u64>() as f64
    }

    pub(super) fn rate(&self, bytes: f64) -> f64 {
        bytes * 8.0 / self.seconds
    }

    pub(super) fn goodput(&self) -> f64 {
        self.rate(if self.whole { self.counted(|f| f.bytes) } else { self.on_paths(|p| p.delivered) })
    }

    pub(super) fn srtt(&self) -> Option<f64> {
        let known: Vec<f64> = self.now().filter_map(|p| p.srtt_ms).collect();
        Some(known.iter().sum::<f64>() / known.len() as f64).filter(|mean| mean.is_finite())
    }

    pub(super) fn mean_srtt(&self) -> Option<f64> {
        let times = self.on_paths(|p| p.sampled.srtts);
        (times > 0.0).then(|| self.on_paths(|p| p.sampled.srtt_ns) / times / 1e6)
    }

    pub(super) fn window(&self) -> Option<f64> {
        let of = |p: &usize| {
            let (old, new) = (self.old(*p).sampled, self.after.paths[*p].sampled);
            Some(ratio(new.window - old.window, new.samples - old.samples)? / self.packet(*p))
        };
        self.paths.iter().map(of).sum()
    }

    pub(super) fn sequence(&self) -> Option<f64> {
        Some(self.paths.iter().map(|p| self.after.paths[*p].arrived as f64 / self.packet(*p)).sum())
    }

    pub(super) fn reordering_extent(&self) -> Option<f64> {
        let (a, b) = (self.before.reordering, self.after.reordering);
        match b.reordered == a.reordered {
            true => Some(0.0),
            false => ratio(b.extent_sum - a.extent_sum, b.reordered - a.reordered),
        }
    }

    pub(super) fn blocked(&self) -> f64 {
        (self.after.blocking.time - self.before.blocking.time).as_secs_f64()
    }

    pub(super) fn out_of_order_delay(&self) -> Option<f64> {
        let byte_ns = self.after.blocking.byte_ns - self.before.blocking.byte_ns;
        let bytes = self.counted(|f| f.bytes);
        (bytes > 0.0).then(|| byte_ns as f64 / bytes / 1e6)
    }

    pub(super) fn delay(&self, share: f64) -> Option<f64> {
        self.after.delays.quantile_since(&self.before.delays, share)
    }

    pub(super) fn reordered_ratio(&self) -> Option<f64> {
        let (a, b) = (self.before.reordering, self.after.reordering);
        ratio(b.reordered - a.reordered, b.arrived - a.arrived)
    }
}

/// The counters of a direction of a link at two instants.
#[derive(Clone, Copy, Debug)]
pub struct LinkPart<'a> {
    /// The first.
    pub before: HopLevel,
    /// The last.
    pub after: &'a HopLevel,
    /// How often queues were looked at in between.
    pub samples: u64,
    /// How long it took.
    pub seconds: f64,
}

pub(super) fn ratio(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}
