//! What was counted by when: counters read at a few instants of a run, from which every number over
//! a part of the run is a difference, and the courses that figures draw.

use std::collections::BTreeSet;

use polypath_sim::Reordering;
use polypath_wire::Duration;

use crate::spec::{Metric, Spec, Traffic, What, ends};

/// How often windows and queues are looked at, if anybody asks for them.
pub const SAMPLE: Duration = Duration::from_millis(10);

/// Everything counted since the start of the run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// In the order of the spec.
    pub flows: Vec<FlowLevel>,
    /// Each link there and back, in the order of the spec.
    pub hops: Vec<HopLevel>,
    /// How often windows and queues were looked at.
    pub samples: u64,
}

/// Counters of a flow.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlowLevel {
    /// Stream bytes that arrived, each once, those included that wait for earlier ones; UDP: arrived.
    pub bytes: u64,
    /// Data segments that arrived out of order.
    pub out_of_order: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// How far out of order.
    pub reordering: Reordering,
    /// In the order of the spec; UDP has one.
    pub paths: Vec<PathLevel>,
}

/// Counters and state of a path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathLevel {
    /// Payload bytes that arrived, duplicates included.
    pub arrived: u64,
    /// Bytes acknowledged over it, each once.
    pub delivered: u64,
    /// Data segments sent.
    pub sent: u64,
    /// Those sent again.
    pub retransmissions: u64,
    /// Smoothed round trip time now, ms.
    pub srtt_ms: Option<f64>,
    /// Estimated rate now, bit/s.
    pub rate_bps: Option<f64>,
    /// Sum of the window over the samples, bytes.
    pub window_sum: u64,
}

/// Counters of a direction of a link.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct HopLevel {
    /// Packets dropped.
    pub drops: u64,
    /// Bytes that reached the far end.
    pub bytes: u64,
    /// Sum of those that wait over the samples.
    pub queue_sum: u64,
}

/// What of a spec turns counters into numbers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout {
    flows: Vec<FlowLayout>,
    hops: Vec<(String, String)>,
    measured: (Duration, Duration),
}

/// A flow's name, its capacity (bit/s), and of each of its paths the payload of a full segment (bytes).
#[derive(Clone, PartialEq, Debug, Default)]
struct FlowLayout {
    name: String,
    is_tcp: bool,
    capacity: f64,
    packets: Vec<f64>,
    /// The hops of each path, by their places in [`Layout::hops`].
    ways: Vec<Vec<usize>>,
}

/// One run's counters at the instants that matter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timeline {
    /// Names and sizes.
    pub layout: Layout,
    /// In the order of time.
    pub marks: Vec<(Duration, Snapshot)>,
    /// What figures draw over time.
    pub courses: Vec<Course>,
}

/// A figure's lines in one run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// Number of the figure in the spec.
    pub figure: usize,
    /// Per series the value of each bin; NaN where there is none.
    pub series: Vec<Vec<f64>>,
}

impl Layout {
    /// Of `spec`; `packet(flow, path)` is the payload of a full segment, bytes.
    pub fn of(spec: &Spec, packet: impl Fn(usize, usize) -> f64) -> Self {
        let flows = spec.flow.iter().enumerate().map(|(n, f)| FlowLayout {
            name: f.name.clone(),
            is_tcp: f.traffic == Traffic::Tcp,
            capacity: spec.capacity(f).0 as f64,
            packets: (0..f.paths.len()).map(|p| packet(n, p)).collect(),
            ways: f.paths.iter().map(|via| spec.hops_of(f, via)).collect(),
        });
        let ends = |l: &crate::spec::Link| [(l.from.clone(), l.to.clone()), (l.to.clone(), l.from.clone())];
        Self {
            flows: flows.collect(),
            hops: spec.link.iter().flat_map(ends).collect(),
            measured: (spec.measure_from.0, spec.duration.0),
        }
    }

    /// The number `what` of what happened between `a` and `b`, which took `seconds`.
    pub fn value(&self, what: &What, a: &Snapshot, b: &Snapshot, seconds: f64) -> Option<f64> {
        if what.metric.is_of_link() {
            return self.at_link(what, (a, b), seconds);
        }
        if what.metric == Metric::FfBottleneck {
            return self.at_bottleneck(what, (a, b));
        }
        let of = |name: &String| {
            let n = self.flows.iter().position(|f| f.name == *name)?;
            let metric = if what.metric == Metric::Jain { Metric::Goodput } else { what.metric };
            self.of_flow(metric, n, what.path, (a, b), seconds)
        };
        let all: Vec<f64> = what.flows.iter().map(of).collect::<Option<_>>()?;
        let sum: f64 = all.iter().sum();
        match what.metric {
            Metric::Jain => jain(&all),
            Metric::Srtt | Metric::Utilisation | Metric::ReorderingExtent | Metric::ReorderedRatio => {
                Some(sum / all.len() as f64)
            }
            Metric::ReorderingExtentMax => all.into_iter().reduce(f64::max),
            _ => Some(sum),
        }
    }

    fn at_link(&self, what: &What, (a, b): (&Snapshot, &Snapshot), seconds: f64) -> Option<f64> {
        let n = self.hop(what)?;
        let (before, after) = (a.hops.get(n).copied().unwrap_or_default(), b.hops.get(n)?);
        match what.metric {
            Metric::Drops => Some((after.drops - before.drops) as f64),
            Metric::Carried => Some((after.bytes - before.bytes) as f64 * 8.0 / seconds),
            _ => ratio(after.queue_sum - before.queue_sum, b.samples - a.samples),
        }
    }

    fn hop(&self, what: &What) -> Option<usize> {
        let (from, to) = ends(what.link.as_deref()?)?;
        self.hops.iter().position(|hop| (hop.0.as_str(), hop.1.as_str()) == (from, to))
    }

    /// What a flow takes at a link over what another TCP flow has there.
    fn at_bottleneck(&self, what: &What, (a, b): (&Snapshot, &Snapshot)) -> Option<f64> {
        let hop = self.hop(what)?;
        let ours = self.flows.iter().position(|f| what.flows.contains(&f.name))?;
        let is_rival = |n: &usize| {
            let flow = &self.flows[*n];
            *n != ours && flow.is_tcp && flow.ways.iter().any(|way| way.contains(&hop))
        };
        let rivals: Vec<usize> = (0..self.flows.len()).filter(is_rival).collect();
        let theirs: u64 = rivals.iter().map(|n| self.through(hop, *n, (a, b))).sum();
        Some(self.through(hop, ours, (a, b)) as f64 * rivals.len() as f64 / theirs as f64)
            .filter(|ff| ff.is_finite())
    }

    /// Bytes that flow `n` delivered over its paths through `hop`.
    fn through(&self, hop: usize, n: usize, (a, b): (&Snapshot, &Snapshot)) -> u64 {
        let delivered = |s: &Snapshot, p: usize| {
            s.flows.get(n).and_then(|flow| flow.paths.get(p)).map_or(0, |path| path.delivered)
        };
        let ways = self.flows[n].ways.iter().enumerate().filter(|(_, way)| way.contains(&hop));
        ways.map(|(p, _)| delivered(b, p).saturating_sub(delivered(a, p))).sum()
    }

    fn of_flow(
        &self,
        metric: Metric,
        n: usize,
        path: Option<usize>,
        (a, b): (&Snapshot, &Snapshot),
        seconds: f64,
    ) -> Option<f64> {
        let none = FlowLevel::default();
        let (before, after) = (a.flows.get(n).unwrap_or(&none), b.flows.get(n)?);
        let only = |p: &usize| path.is_none_or(|path| path == *p);
        let chosen: Vec<usize> = (0..after.paths.len()).filter(only).collect();
        if chosen.is_empty() {
            return None;
        }
        let old = |p: usize| before.paths.get(p).copied().unwrap_or_default();
        let packet = |p: usize| self.flows[n].packets.get(p).copied().unwrap_or(1.0);
        let counted = |count: fn(&PathLevel) -> u64| {
            chosen.iter().map(|p| count(&after.paths[*p]).saturating_sub(count(&old(*p)))).sum::<u64>() as f64
        };
        let (ra, rb) = (before.reordering, after.reordering);
        Some(match metric {
            Metric::Utilisation => {
                after.bytes.saturating_sub(before.bytes) as f64 * 8.0 / seconds / self.flows[n].capacity
            }
            Metric::Goodput if path.is_none() => {
                after.bytes.saturating_sub(before.bytes) as f64 * 8.0 / seconds
            }
            Metric::Goodput => counted(|p| p.delivered) * 8.0 / seconds,
            Metric::Throughput => counted(|p| p.arrived) * 8.0 / seconds,
            Metric::Sent => counted(|p| p.sent),
            Metric::Retransmissions => counted(|p| p.retransmissions),
            Metric::OutOfOrder => (after.out_of_order - before.out_of_order) as f64,
            Metric::Timeouts => (after.timeouts - before.timeouts) as f64,
            Metric::ReorderingExtent if rb.reordered == ra.reordered => 0.0,
            Metric::ReorderingExtent => ratio(rb.extent_sum - ra.extent_sum, rb.reordered - ra.reordered)?,
            Metric::ReorderingExtentMax => rb.extent_max as f64,
            Metric::ReorderedRatio => ratio(rb.reordered - ra.reordered, rb.arrived - ra.arrived)?,
            Metric::Sequence => chosen.iter().map(|p| after.paths[*p].arrived as f64 / packet(*p)).sum(),
            Metric::Window => {
                let samples = Some(b.samples - a.samples).filter(|n| *n > 0)? as f64;
                let of = |p: &usize| (after.paths[*p].window_sum - old(*p).window_sum) as f64 / packet(*p);
                chosen.iter().map(of).sum::<f64>() / samples
            }
            Metric::Srtt => {
                let known: Vec<f64> = chosen.iter().filter_map(|p| after.paths[*p].srtt_ms).collect();
                Some(known.iter().sum::<f64>() / known.len() as f64).filter(|mean| mean.is_finite())?
            }
            Metric::EstimatedRate => chosen.iter().map(|p| after.paths[*p].rate_bps).sum::<Option<f64>>()?,
            Metric::Completion | Metric::LossRate | Metric::Jain => return None,
            Metric::Queue | Metric::Drops | Metric::Carried => return None,
            Metric::Harm | Metric::FfBottleneck => return None,
        })
    }
}

impl Timeline {
    /// The number `what`; `None` if the run has none or its instants were not watched.
    pub fn value(&self, what: &What) -> Option<f64> {
        let (from, to) =
            (what.from.unwrap_or(self.layout.measured.0), what.to.unwrap_or(self.layout.measured.1));
        let at = |time: Duration| self.marks.iter().find(|(t, _)| *t == time).map(|(_, s)| s);
        self.layout.value(what, at(from)?, at(to)?, (to - from).as_secs_f64())
    }

    /// Counters of flow `n` where the measured time begins, and where it ends.
    pub(crate) fn measured(&self, n: usize) -> (&FlowLevel, &FlowLevel) {
        let (from, to) = self.layout.measured;
        let at = |time: Duration| self.marks.iter().find(|(t, _)| *t == time).map(|(_, s)| &s.flows[n]);
        at(from).zip(at(to)).expect("the measured time's ends are always watched")
    }
}

/// The instants at which counters are read for `whats`, in order: the whole run and its parts.
pub fn instants<'a>(spec: &Spec, whats: impl Iterator<Item = &'a What>) -> Vec<Duration> {
    let mut all = BTreeSet::from([Duration::ZERO, spec.measure_from.0, spec.duration.0]);
    for what in whats {
        let (from, to) = what.window(spec);
        all.extend([from, to].into_iter().filter(|t| *t <= spec.duration.0));
    }
    all.into_iter().collect()
}

fn ratio(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// (Σx)² / (n Σx²), Jain's fairness index.
fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    Some(sum * sum / (values.len() as f64 * squares)).filter(|index| index.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equals_and_a_share_for_one_who_has_all() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
