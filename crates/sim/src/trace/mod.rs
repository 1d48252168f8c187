//! What happened, as rows: the observations of all connections and the events of all hops, on the
//! simulation's clock. Rows become columns, as CSV and with the feature `columns` as Arrow, and one hash.

#[cfg(feature = "columns")]
mod arrow;
mod filter;
mod rows;
mod write;

use std::hash::Hasher;

use polypath_hip::State as HipState;
use polypath_transport::facts::{LossCause, PathState, Why};
use polypath_transport::{DropReason, Observation, Record};
use polypath_wire::Instant;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::topology::{HopId, NodeId};
pub use filter::TraceFilter;
use polypath_hop::Drop;
use rows::Rows;

/// The rows of a run, or only their hash.
#[derive(Debug)]
pub struct Trace {
    kept: Kept,
    count: u64,
    filter: TraceFilter,
    /// Names of nodes and hops, in the order in which rows refer to them.
    names: Vec<String>,
    nodes: Vec<u32>,
    hops: Vec<u32>,
}

/// What becomes of rows.
#[derive(Debug)]
enum Kept {
    Rows(Rows),
    Hash(SipHasher13),
}

/// Columns with numbers. Times in nanoseconds, the rest in bytes or as the name says.
pub(crate) const NUMBERS: [&str; 10] = [
    "offset",
    "len",
    "cwnd",
    "ssthresh",
    "in_flight",
    "srtt_ns",
    "rtt_ns",
    "rate_bps",
    "episode",
    "occupancy",
];
const ABSENT: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Row {
    time: Instant,
    source: u32,
    flow: Option<u32>,
    path: Option<u32>,
    event: Kind,
    detail: Option<Detail>,
    numbers: [u64; NUMBERS.len()],
}

/// Bytes of a row, as the hash reads it.
const ROW_LEN: usize = 8 + 3 * 4 + 2 + 8 * NUMBERS.len();

impl Row {
    /// All of it, for the hash: one write costs less than one for each column.
    fn bytes(&self) -> [u8; ROW_LEN] {
        let mut bytes = [0; ROW_LEN];
        let (start, numbers) = bytes.split_at_mut(ROW_LEN - 8 * NUMBERS.len());
        start[..8].copy_from_slice(&self.time.0.to_le_bytes());
        start[8..12].copy_from_slice(&self.source.to_le_bytes());
        start[12..16].copy_from_slice(&self.flow.unwrap_or(u32::MAX).to_le_bytes());
        start[16..20].copy_from_slice(&self.path.unwrap_or(u32::MAX).to_le_bytes());
        start[20..].copy_from_slice(&[self.event as u8, self.detail.map_or(0, |d| d.number() as u8 + 1)]);
        for (out, number) in numbers.as_chunks_mut().0.iter_mut().zip(self.numbers) {
            *out = number.to_le_bytes();
        }
        bytes
    }
}

/// The column `event`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Picked,
    Sent,
    Acked,
    Lost,
    Undone,
    Window,
    Estimate,
    Reorder,
    Delivered,
    Dropped,
    PathState,
    HipState,
    HopLeft,
    HopDropped,
    Bottleneck,
}

/// The column `detail`: why, or to what state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Detail {
    Retransmission,
    Why(Why),
    Loss(LossCause),
    Drop(DropReason),
    Path(PathState),
    Hip(HipState),
    Hop(Drop),
}

/// What happens to a packet at a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HopEvent {
    Left,
    Dropped(Drop),
}

impl Trace {
    /// A trace that keeps its rows, or else only their number and hash.
    pub(crate) fn new(keep: bool) -> Self {
        let kept = if keep { Kept::Rows(Rows::default()) } else { Kept::Hash(unkeyed()) };
        let (names, nodes, hops) = Default::default();
        Self { kept, count: 0, filter: TraceFilter::default(), names, nodes, hops }
    }

    /// Has no other rows from now on.
    pub(crate) fn filter(&mut self, filter: TraceFilter) {
        self.filter = filter;
    }

    /// Number of rows.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Hash over all rows: equal runs have equal hashes, on every machine.
    pub fn hash(&self) -> u128 {
        match &self.kept {
            Kept::Hash(hash) => hash.finish128().as_u128(),
            Kept::Rows(rows) => {
                let mut hash = unkeyed();
                rows.iter().for_each(|row| hash.write(&row.bytes()));
                hash.finish128().as_u128()
            }
        }
    }

    /// Those that are kept.
    fn rows(&self) -> &Rows {
        static NONE: Rows = Rows::NONE;
        match &self.kept {
            Kept::Rows(rows) => rows,
            Kept::Hash(_) => &NONE,
        }
    }

    pub(crate) fn name_node(&mut self, name: &str) {
        self.nodes.push(self.names.len() as u32);
        self.names.push(name.to_owned());
    }

    pub(crate) fn name_hop(&mut self, name: &str) {
        self.hops.push(self.names.len() as u32);
        self.names.push(name.to_owned());
    }

    /// An observation of a connection of `flow` at `node`.
    pub(crate) fn record(&mut self, now: Instant, node: NodeId, flow: Option<u32>, record: &Record) {
        let (event, detail, numbers) = columns(&record.what);
        let path = record.path.map(|p| u32::from(p.0));
        self.push(Row { time: now, source: self.nodes[node.index()], flow, path, event, detail, numbers });
    }

    /// An association of `node` changed its state.
    pub(crate) fn hip(&mut self, now: Instant, node: NodeId, state: HipState) {
        let (source, numbers, detail) = (self.nodes[node.index()], row([]), Some(Detail::Hip(state)));
        self.push(Row { time: now, source, flow: None, path: None, event: Kind::HipState, detail, numbers });
    }

    /// An event of a hop.
    pub(crate) fn hop(&mut self, now: Instant, hop: HopId, size: u32, event: HopEvent) {
        let (event, detail) = match event {
            HopEvent::Left => (Kind::HopLeft, None),
            HopEvent::Dropped(cause) => (Kind::HopDropped, Some(Detail::Hop(cause))),
        };
        let (source, numbers) = (self.hops[hop.index()], row([(1, u64::from(size))]));
        self.push(Row { time: now, source, flow: None, path: None, event, detail, numbers });
    }

    fn push(&mut self, row: Row) {
        if !self.filter.admits(&row) {
            return;
        }
        self.count += 1;
        match &mut self.kept {
            Kept::Rows(rows) => rows.push(&row),
            Kept::Hash(hash) => hash.write(&row.bytes()),
        }
    }
}

fn unkeyed() -> SipHasher13 {
    SipHasher13::new_with_keys(0, 0)
}

/// A row of numbers, given by column.
fn row<const N: usize>(given: [(usize, u64); N]) -> [u64; NUMBERS.len()] {
    let mut numbers = [ABSENT; NUMBERS.len()];
    for (column, number) in given {
        numbers[column] = number;
    }
    numbers
}

fn columns(what: &Observation) -> (Kind, Option<Detail>, [u64; NUMBERS.len()]) {
    match *what {
        Observation::Picked { offset, why } => (Kind::Picked, Some(Detail::Why(why)), row([(0, offset)])),
        Observation::Sent { offset, len, retransmission } => {
            let detail = retransmission.then_some(Detail::Retransmission);
            (Kind::Sent, detail, row([(0, offset), (1, len.into())]))
        }
        Observation::Acked { una, newly } => (Kind::Acked, None, row([(0, una), (1, newly)])),
        Observation::Lost { offset, len, cause, episode } => {
            let numbers = row([(0, offset), (1, len.into()), (8, episode.0.into())]);
            (Kind::Lost, Some(Detail::Loss(cause)), numbers)
        }
        Observation::Undone { episode } => (Kind::Undone, None, row([(8, episode.0.into())])),
        Observation::Window { cwnd, ssthresh, in_flight } => {
            let numbers = row([(2, cwnd), (3, ssthresh.unwrap_or(ABSENT)), (4, in_flight)]);
            (Kind::Window, None, numbers)
        }
        Observation::Estimate { srtt, rtt, rate } => {
            let rate = rate.map_or(ABSENT, |r| r.0);
            (Kind::Estimate, None, row([(5, srtt.0), (6, rtt.0), (7, rate)]))
        }
        Observation::Reorder { occupancy } => (Kind::Reorder, None, row([(9, occupancy)])),
        Observation::Delivered { offset, len } => (Kind::Delivered, None, row([(0, offset), (1, len)])),
        Observation::Dropped { reason } => (Kind::Dropped, Some(Detail::Drop(reason)), row([])),
        Observation::Bottleneck { of } => (Kind::Bottleneck, None, row([(0, of.0.into())])),
        Observation::PathState { state } => (Kind::PathState, Some(Detail::Path(state)), row([])),
    }
}
