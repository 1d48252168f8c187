//! What a run counts.

use polypath_sim::{Delays, Reordering};
use polypath_transport::{Blocking, PathStats};
use polypath_wire::Duration;

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
    /// How long that held up what came after it.
    pub blocking: Blocking,
    /// How long data was under way, if the run watches it.
    pub delays: Delays,
    /// In the order of the spec; UDP has one.
    pub paths: Vec<PathLevel>,
}

impl FlowLevel {
    /// Of a flow that has not begun.
    pub const NONE: Self = Self {
        bytes: 0,
        out_of_order: 0,
        timeouts: 0,
        reordering: Reordering { arrived: 0, reordered: 0, extent_sum: 0, extent_max: 0 },
        blocking: Blocking::NONE,
        delays: Delays::NONE,
        paths: Vec::new(),
    };

    /// The sum of both, with the paths of `other` after its own.
    pub(crate) fn and(self, other: Self) -> Self {
        let (a, b) = (self.reordering, other.reordering);
        let mut delays = self.delays;
        delays += &other.delays;
        Self {
            bytes: self.bytes + other.bytes,
            out_of_order: self.out_of_order + other.out_of_order,
            timeouts: self.timeouts + other.timeouts,
            reordering: Reordering {
                arrived: a.arrived + b.arrived,
                reordered: a.reordered + b.reordered,
                extent_sum: a.extent_sum + b.extent_sum,
                extent_max: a.extent_max.max(b.extent_max),
            },
            blocking: self.blocking + other.blocking,
            delays,
            paths: [self.paths, other.paths].concat(),
        }
    }
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
    /// What was looked at.
    pub sampled: PathSums,
}

/// Sums over the samples of a path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathSums {
    /// How often the connection was looked at while it had not ended.
    pub samples: u64,
    /// Of the window, bytes.
    pub window: u64,
    /// Of the smoothed round trip time, ns.
    pub srtt_ns: u64,
    /// How often that was known.
    pub srtts: u64,
}

impl PathSums {
    /// One more sample, without `path` where the connection has no such path yet.
    pub(crate) fn add(&mut self, path: Option<&PathStats>) {
        self.samples += 1;
        let Some(path) = path else { return };
        self.window += path.cwnd;
        self.srtt_ns += path.srtt.map_or(0, Duration::as_nanos);
        self.srtts += u64::from(path.srtt.is_some());
    }
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
