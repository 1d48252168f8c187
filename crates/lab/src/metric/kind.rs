//! What a metric is of, its unit, and what else tells metrics apart.

/// Of what a metric is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Of a flow, or of one of its paths.
    Path,
    /// Of a flow.
    Flow,
    /// Of several flows, compared.
    Flows,
    /// Of a flow, against the cell in which it is alone.
    Alone,
    /// Of a flow beside others at a link.
    Rivals,
    /// Of a direction of a link.
    Link,
}

/// Flows of which protocol have a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// All flows.
    Any,
    /// TCP flows only.
    Tcp,
    /// UDP flows only.
    Udp,
}

/// A unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Unit {
    /// Of the values as runs have them.
    pub base: &'static str,
    /// For people.
    pub shown: &'static str,
    /// What to multiply by to get there.
    pub factor: f64,
}

/// How bins of a course make one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// Their mean.
    Mean,
    /// The last one, at its end: a count since the start.
    Last,
    /// Their sum.
    Sum,
}

/// What several flows have together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Several {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The largest.
    Max,
    /// Jain's index.
    Jain,
}

/// What a run must look at beside its counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Windows and queues, every 10 ms.
    Samples,
    /// The order in which packets arrive.
    Reordering,
    /// How long data is under way.
    Delays,
}

/// Where `lab run` prints a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Printed {
    /// Nowhere.
    No,
    /// In JSON.
    Json,
    /// In JSON and in a column of the table, under this header.
    Column(&'static str),
}

pub(super) const NO_UNIT: Unit = Unit { base: "", shown: "", factor: 1.0 };
pub(super) const BIT_RATE: Unit = Unit { base: "bit/s", shown: "Mbit/s", factor: 1e-6 };
pub(super) const SECONDS: Unit = Unit { base: "s", shown: "s", factor: 1.0 };
pub(super) const MILLIS: Unit = Unit { base: "ms", shown: "ms", factor: 1.0 };
pub(super) const PACKETS: Unit = Unit { base: "packets", shown: "packets", factor: 1.0 };

impl Several {
    /// What they have who have `all`.
    pub fn of(self, all: &[f64]) -> Option<f64> {
        let sum: f64 = all.iter().sum();
        match self {
            Self::Sum => Some(sum),
            Self::Mean => Some(sum / all.len() as f64),
            Self::Max => all.iter().copied().reduce(f64::max),
            Self::Jain => jain(all),
        }
    }
}

/// (Σx)² / (n Σx²), Jain's fairness index.
pub(super) fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    Some(sum * sum / (values.len() as f64 * squares)).filter(|index| index.is_finite())
}
