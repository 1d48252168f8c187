//! Flows: who sends what to whom, over which paths.

use polypath_wire::{Duration, Rate};
use serde::{Deserialize, Serialize};

use super::Metric;
use crate::metric::Protocol;
use crate::units::{Bytes, Human};

/// One source of traffic and its destination.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name in grids, expectations and results.
    pub name: String,
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// Each path by the nodes it goes through, in order. Default: one path, the direct link.
    #[serde(default = "direct")]
    pub paths: Vec<Vec<String>>,
    /// When it starts: a time, or a pair between which each seed draws one. Default: 0.
    #[serde(default)]
    pub start: Start,
    /// When it stops sending. Default: at the end.
    #[serde(default)]
    pub stop: Option<Human<Duration>>,
    /// What it sends. Default: TCP.
    #[serde(default)]
    pub traffic: Traffic,
    /// TCP only: bytes to carry, then close. Default: without end.
    #[serde(default)]
    pub size: Option<Human<Bytes>>,
    /// TCP only: largest payload of one segment with its TCP options, bytes: timestamps take 12 of them. Default: MTU of the path
    /// less 40.
    #[serde(default)]
    pub mss: Option<u32>,
    /// TCP only: the rate and the one-way delay of each path are configured, as a daemon's may be. Default: false, the
    /// connection measures them.
    #[serde(default)]
    pub configured: bool,
    /// TCP only: the sender always sees the queues of its paths, and needs `configured`. No real host does: this is the upper bound
    /// of what any estimate of the queues can give. Default: false.
    #[serde(default)]
    pub oracle: bool,
    /// TCP only: each path carries a TCP connection of its own, independent of the others. Numbers of the flow are sums over these
    /// connections; numbers of a path are its connection's. Not with `size`. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// TCP only: base exchanges between the two hosts, and ESP with one SPI per path and direction. All TCP
    /// flows of either host must be secure too. With `configured`, the sender advertises the first link and the receiver the last in
    /// the base exchange. Default: false.
    #[serde(default)]
    pub secure: bool,
    /// TCP only: keys of the connection that differ from the experiment's `[connection]`.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "super::schema::connection"))]
    pub connection: toml::Table,
}

/// What a flow sends.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(test, schemars(transform = super::schema::describe_variants))]
pub enum Traffic {
    /// A TCP connection that always has something to send.
    #[default]
    Tcp,
    /// UDP packets at a constant bit rate.
    Cbr {
        /// Rate on the wire, headers included.
        rate: Human<Rate>,
        /// Size of a packet on the wire, headers included.
        packet: Human<Bytes>,
    },
    /// UDP packets at a constant bit rate in bursts; on and off times are exponential.
    OnOff {
        /// Rate on the wire while on, headers included.
        rate: Human<Rate>,
        /// Size of a packet on the wire, headers included.
        packet: Human<Bytes>,
        /// Mean time on.
        on: Human<Duration>,
        /// Mean time off.
        off: Human<Duration>,
    },
}

/// When a flow starts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Start {
    /// At this time.
    At(Human<Duration>),
    /// At a time drawn uniformly between the two, by each seed anew.
    Between(Human<Duration>, Human<Duration>),
}

impl Default for Start {
    fn default() -> Self {
        Self::At(Human(Duration::ZERO))
    }
}

impl Flow {
    /// Whether it is a TCP that has something to send.
    pub(crate) fn competes(&self) -> bool {
        self.traffic == Traffic::Tcp && self.size.is_none_or(|size| size.0.0 > 0)
    }

    /// Why it can never have `metric`, and what to ask instead.
    pub(super) fn lacks(&self, metric: Metric) -> Option<(&'static str, &'static str)> {
        let is_tcp = self.traffic == Traffic::Tcp;
        match metric.def().protocol {
            Protocol::Udp if is_tcp => Some(("only UDP has it", "ask for retransmissions")),
            Protocol::Tcp if !is_tcp => {
                Some(("it is UDP", "ask for goodput, throughput, sent, out_of_order or loss_rate"))
            }
            _ if metric == Metric::Completion && self.size.is_none() => {
                Some(("it sends without end", "give the flow a size"))
            }
            _ => None,
        }
    }
}

fn direct() -> Vec<Vec<String>> {
    vec![vec![]]
}
