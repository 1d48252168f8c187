//! What was counted by when: counters read at a few instants of a run, from which every number over
//! a part of the run is a difference, and the courses that figures draw.

use std::collections::BTreeSet;

use polypath_wire::{Duration, Instant};

use crate::counters::{FlowLevel, Snapshot};
use crate::metric::{FlowPart, LinkPart, Read};
use crate::spec::{Capacity, Spec, What, ends};

/// How often windows and queues are looked at, if anybody asks for them.
pub const SAMPLE: Duration = Duration::from_millis(10);

/// What of a spec turns counters into numbers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout {
    flows: Vec<FlowLayout>,
    hops: Vec<(String, String)>,
    measured: (Duration, Duration),
}

/// A flow's name, its capacity, and of each of its paths the payload of a full segment (bytes).
#[derive(Clone, PartialEq, Debug, Default)]
struct FlowLayout {
    name: String,
    /// A TCP that has something to send.
    competes: bool,
    capacity: Capacity,
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
    /// The value of each bin, per series. A bin without a value is NaN; so are the bins before the flow starts.
    pub series: Vec<Vec<f64>>,
}

impl Layout {
    /// Of `spec`; `packet(flow, path)` is the payload of a full segment, bytes.
    pub fn of(spec: &Spec, packet: impl Fn(usize, usize) -> f64) -> Self {
        let flows = spec.flow.iter().enumerate().map(|(n, f)| FlowLayout {
            name: f.name.clone(),
            competes: f.competes(),
            capacity: spec.capacity(f),
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

    /// The number `what` of what happened between `a` and `b`, which were taken at `times`.
    pub fn value(&self, what: &What, a: &Snapshot, b: &Snapshot, times: (Duration, Duration)) -> Option<f64> {
        let def = what.metric.def();
        match def.read {
            Read::Link(read) => read(&self.at_link(what, (a, b), times)?),
            Read::Rivals => self.at_bottleneck(what, (a, b)),
            Read::Alone(..) | Read::Elsewhere => None,
            Read::Flow(read) => {
                let of = |name: &String| read(&self.of_flow(name, what.path, (a, b), times)?);
                let all: Vec<f64> = what.flows.iter().map(of).collect::<Option<_>>()?;
                def.several.of(&all)
            }
        }
    }

    /// Whether one of the flows of `what`, which begin at `starts`, has begun by `now`; a link always has.
    pub(crate) fn has_begun(&self, what: &What, starts: &[Instant], now: Instant) -> bool {
        let mut meant = self.flows.iter().zip(starts).filter(|(flow, _)| what.flows.contains(&flow.name));
        what.flows.is_empty() || meant.any(|(_, start)| *start < now)
    }

    fn at_link<'a>(
        &self,
        what: &What,
        (a, b): (&Snapshot, &'a Snapshot),
        (from, to): (Duration, Duration),
    ) -> Option<LinkPart<'a>> {
        let n = self.hop(what)?;
        let (before, after) = (a.hops.get(n).copied().unwrap_or_default(), b.hops.get(n)?);
        Some(LinkPart { before, after, samples: b.samples - a.samples, seconds: (to - from).as_secs_f64() })
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
            *n != ours && flow.competes && flow.ways.iter().any(|way| way.contains(&hop))
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

    fn of_flow<'a>(
        &'a self,
        name: &str,
        path: Option<usize>,
        (a, b): (&'a Snapshot, &'a Snapshot),
        (from, to): (Duration, Duration),
    ) -> Option<FlowPart<'a>> {
        const NONE: &FlowLevel = &FlowLevel::NONE;
        let n = self.flows.iter().position(|f| f.name == name)?;
        let (before, after) = (a.flows.get(n).unwrap_or(NONE), b.flows.get(n)?);
        let only = |p: &usize| path.is_none_or(|path| path == *p);
        let paths: Vec<usize> = (0..after.paths.len()).filter(only).collect();
        let FlowLayout { packets, capacity, .. } = &self.flows[n];
        let (whole, capacity) = (path.is_none(), capacity.mean(from, to));
        let seconds = (to - from).as_secs_f64();
        let part = FlowPart { before, after, paths, whole, packets, capacity, seconds };
        Some(part).filter(|part| !part.paths.is_empty())
    }
}

impl Timeline {
    /// The number `what`; `None` if the run has none or its instants were not watched.
    pub fn value(&self, what: &What) -> Option<f64> {
        let (from, to) =
            (what.from.unwrap_or(self.layout.measured.0), what.to.unwrap_or(self.layout.measured.1));
        let at = |time: Duration| self.marks.iter().find(|(t, _)| *t == time).map(|(_, s)| s);
        self.layout.value(what, at(from)?, at(to)?, (from, to))
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
