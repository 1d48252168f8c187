//! Parameters of an engine and of its paths.

use polypath_wire::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::facts::KnownPath;
use crate::path::knowledge::KnowledgeConfig;
use crate::path::rtt::RtoLimits;

/// What holds for the life of an engine, beside its controller, its scheduler and its loss policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct EngineConfig {
    /// Bounds of the retransmission timeout.
    pub rto: RtoLimits,
    /// Timeouts in a row that fail a path; none never does.
    pub fail_after: Option<u32>,
    /// Silence fails a path while others deliver (`silence.rs`).
    pub fail_silent: bool,
    /// Each path has its share of what the peer lets the owner have outstanding (Arshad and Mian, §3.2).
    pub divide_window: bool,
    /// How paths are watched beside what deliveries tell of them.
    pub knowledge: KnowledgeConfig,
    /// What packets of late waited behind those of others counts as delay of the path (`path/others.rs`).
    pub others: bool,
    /// What a timeout takes for lost.
    pub timeout_takes: TimeoutTakes,
    /// Whether segments leave together.
    pub segmentation: Segmentation,
}

/// What a retransmission timeout takes for lost, and so what starts over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeoutTakes {
    /// All that is in flight on its path.
    #[default]
    Path,
    /// All that is in flight on any path, as of a TCP that does not know of paths (ns-2: go-back-N).
    Connection,
    /// The oldest segment of its path.
    Segment,
    /// All that is in flight on the path of the oldest segment, and only the timer of that path counts: a TCP has one timer.
    Head,
}

/// How the data of a connection is cut into segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Segmentation {
    /// Segment by segment: each leaves as the window has room for it.
    #[default]
    Standard,
    /// By the network card: segments leave together, as many as the rate carries in a millisecond (at most 64 KiB), as of Linux.
    Offload,
}

/// One path of a connection as its owner knows it when it is added.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathConfig {
    /// Largest payload of one segment on this path, bytes, without options (RFC 6691).
    pub mss: u32,
    /// What of that the path is known to carry: `mss` is asked of the peer, this is sent.
    pub carried: Option<u32>,
    /// Rate of the bottleneck, bit/s, if configured or advertised by the peer.
    pub rate: Option<Rate>,
    /// One-way delay without queueing, if configured or advertised by the peer; nanoseconds.
    pub one_way: Option<Duration>,
    /// Smallest round trip that heartbeats or another connection had there; nanoseconds. Schedulers use it until this
    /// connection has one of its own.
    pub round_trip: Option<Duration>,
    /// What a packet and its answer take there now, by heartbeats or other connections; nanoseconds. The first timeout is what it would
    /// be after such a round trip, and never longer than without (RFC 9040).
    pub last_round_trip: Option<Duration>,
    /// What a connection measured here not long ago.
    pub known: Option<KnownPath>,
    /// Number of our link that it leaves by, if that is known: paths over one link share a bottleneck until measurements
    /// say otherwise.
    pub link: Option<u32>,
    /// The bottleneck that another connection found here: paths with the same share it until measurements say otherwise.
    pub bottleneck: Option<u32>,
    /// Bytes that headers add to each segment on the wire, where a configured rate counts them
    /// (IPv4 and TCP: 40, with timestamps 52).
    pub overhead: u32,
    /// What data sent here never exceeds, `overhead` included, bit/s, above 0. Bare acknowledgments and probes do not wait for it.
    pub max_rate: Option<Rate>,
    /// Data leave here only for want of room on paths without this mark, or of any that works.
    pub spill: bool,
}

impl PathConfig {
    /// Largest payload of a segment that we send, bytes, without options.
    pub fn segment_size(&self) -> u32 {
        self.carried.map_or(self.mss, |carried| carried.min(self.mss))
    }
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            mss: 1460,
            carried: None,
            rate: None,
            one_way: None,
            round_trip: None,
            last_round_trip: None,
            known: None,
            link: None,
            bottleneck: None,
            overhead: 40,
            max_rate: None,
            spill: false,
        }
    }
}
