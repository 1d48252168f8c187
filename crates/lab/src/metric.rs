//! What can be measured, as one table: whoever expects, aims at, draws, stores or prints a metric asks its entry.

mod kind;
mod part;

use serde::{Deserialize, Serialize};

use crate::flow_result::FlowResult;
use kind::{BIT_RATE, MILLIS, NO_UNIT, PACKETS, SECONDS};
pub use kind::{Merge, Needs, Printed, Protocol, Scope, Several, Unit};
use part::ratio;
pub use part::{FlowPart, LinkPart};

/// One entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct Def {
    /// Of what it is.
    pub scope: Scope,
    /// Which flows have it.
    pub protocol: Protocol,
    /// Its unit.
    pub unit: Unit,
    /// Whether it is counted over a time, so that it can be measured over a part of the run.
    pub windowed: bool,
    /// How bins of its course over time make one; `None` if it has no course.
    pub drawable: Option<Merge>,
    /// What several flows have.
    pub several: Several,
    /// How it is read from counters.
    pub read: Read,
    /// What the finished run says of the whole flow, before counters are asked.
    pub result: Option<fn(&FlowResult) -> Option<f64>>,
    /// What a run must look at for it beside its counters.
    pub needs: Needs,
    /// Whether the values of a run have it of every flow.
    pub of_each_flow: bool,
    /// Whether they have it of every path of a flow with several.
    pub of_each_path: bool,
    /// Where `lab run` prints it.
    pub printed: Printed,
}

/// How a metric is read from the counters at two instants.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// From those of a flow.
    Flow(fn(&FlowPart<'_>) -> Option<f64>),
    /// From those of a link.
    Link(fn(&LinkPart<'_>) -> Option<f64>),
    /// From those of the flows that share a link.
    Rivals,
    /// From that metric of the flow, here and in the cell in which it is alone.
    Alone(fn(f64, f64) -> f64, Metric),
    /// Not from the counters of one run.
    Elsewhere,
}

/// A number of a flow, without a unit.
const FLOW: Def = Def {
    scope: Scope::Flow,
    protocol: Protocol::Any,
    unit: NO_UNIT,
    windowed: true,
    drawable: None,
    several: Several::Sum,
    read: Read::Elsewhere,
    result: None,
    needs: Needs::Nothing,
    of_each_flow: false,
    of_each_path: false,
    printed: Printed::No,
};
/// The same of flows of TCP.
const TCP: Def = Def { protocol: Protocol::Tcp, ..FLOW };
/// The same of one path.
const PATH: Def = Def { scope: Scope::Path, ..FLOW };
/// A time within which a part of the data arrives.
const DELAY: Def =
    Def { unit: MILLIS, drawable: Some(Merge::Mean), several: Several::Mean, needs: Needs::Delays, ..FLOW };
/// A number of a link that figures draw.
const LINK: Def = Def { scope: Scope::Link, drawable: Some(Merge::Mean), ..FLOW };

/// Makes the enum and its table of one list.
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:ident: $def:expr;)+) => {
        /// What is measured in one run, in the measured time unless it says otherwise.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Metric {
            /// All, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its entry in the table.
            pub fn def(self) -> Def {
                match self {
                    $(Self::$name => $def,)+
                }
            }
        }
    };
}

metrics! {
    /// Stream bytes that arrived, each once (UDP: bytes that arrived), bit/s; of a flow that finished, over
    /// its life. Of one path: stream bytes acknowledged over it, each once.
    Goodput: Def {
        unit: BIT_RATE,
        drawable: Some(Merge::Mean),
        read: Read::Flow(|f| Some(f.goodput())),
        result: Some(|r| Some(r.goodput_bps)),
        of_each_flow: true,
        of_each_path: true,
        printed: Printed::Column("goodput,\nMbit/s"),
        ..PATH
    };
    /// Payload bytes that arrived, duplicates included, headers not, bit/s. UDP: with headers.
    Throughput: Def {
        unit: BIT_RATE,
        drawable: Some(Merge::Mean),
        read: Read::Flow(|f| Some(f.rate(f.on_paths(|p| p.arrived)))),
        of_each_flow: true,
        of_each_path: true,
        ..PATH
    };
    /// Goodput over the sum of the rates of the flow's bottlenecks.
    Utilisation: Def {
        several: Several::Mean,
        read: Read::Flow(|f| Some(f.goodput() / f.capacity)),
        result: Some(|r| Some(r.utilisation)),
        of_each_flow: true,
        printed: Printed::Column("utilisation"),
        ..FLOW
    };
    /// From start to the last byte that the receiver reads, s; missing if the flow was not done. Of the whole run.
    Completion: Def {
        unit: SECONDS,
        windowed: false,
        result: Some(|r| r.completion_s),
        of_each_flow: true,
        printed: Printed::Column("completion,\ns"),
        ..TCP
    };
    /// Data segments sent, retransmissions included.
    Sent: Def { read: Read::Flow(|f| Some(f.on_paths(|p| p.sent))), of_each_path: true, ..PATH };
    /// Data segments sent again.
    Retransmissions: Def {
        protocol: Protocol::Tcp,
        read: Read::Flow(|f| Some(f.on_paths(|p| p.retransmissions))),
        of_each_flow: true,
        of_each_path: true,
        printed: Printed::Column("sent\nagain"),
        ..PATH
    };
    /// Data segments that arrived above the next expected byte; UDP: after a later one.
    OutOfOrder: Def {
        read: Read::Flow(|f| Some(f.counted(|l| l.out_of_order))),
        of_each_flow: true,
        printed: Printed::Column("out of\norder"),
        ..FLOW
    };
    /// Retransmission timeouts.
    Timeouts: Def {
        read: Read::Flow(|f| Some(f.counted(|l| l.timeouts))),
        of_each_flow: true,
        printed: Printed::Column("timeouts"),
        ..TCP
    };
    /// Smoothed round trip time at the end of the measured time, mean over the paths, ms.
    Srtt: Def {
        protocol: Protocol::Tcp,
        unit: MILLIS,
        drawable: Some(Merge::Mean),
        several: Several::Mean,
        read: Read::Flow(|f| f.srtt()),
        of_each_flow: true,
        of_each_path: true,
        printed: Printed::Json,
        ..PATH
    };
    /// Smoothed round trip time, ms: its mean over the paths and the measured time, sampled every 10 ms.
    MeanSrtt: Def {
        protocol: Protocol::Tcp,
        unit: MILLIS,
        drawable: Some(Merge::Mean),
        several: Several::Mean,
        read: Read::Flow(|f| f.mean_srtt()),
        needs: Needs::Samples,
        ..PATH
    };
    /// Packets of which no copy arrived over packets sent (UDP), 0 to 1; those on their way at the end of the run count as
    /// neither. Of the whole run.
    LossRate: Def {
        protocol: Protocol::Udp,
        windowed: false,
        result: Some(|r| r.loss_rate),
        of_each_flow: true,
        printed: Printed::Json,
        ..FLOW
    };
    /// Mean congestion window, packets (segments of the path's size), sampled every 10 ms from the flow's start to its end; the
    /// sum over the paths if none is named.
    Window: Def {
        protocol: Protocol::Tcp,
        unit: PACKETS,
        drawable: Some(Merge::Mean),
        read: Read::Flow(|f| f.window()),
        needs: Needs::Samples,
        ..PATH
    };
    /// The connection's estimate of the path's rate at the end of the measured time, bit/s; the sum
    /// over the paths if none is named.
    EstimatedRate: Def {
        protocol: Protocol::Tcp,
        unit: BIT_RATE,
        drawable: Some(Merge::Mean),
        read: Read::Flow(|f| f.now().map(|p| p.rate_bps).sum()),
        ..PATH
    };
    /// Mean number of packets that wait in the queue of `link`, without the one in service, sampled
    /// every 10 ms.
    Queue: Def {
        unit: PACKETS,
        read: Read::Link(|l| ratio(l.after.queue_sum - l.before.queue_sum, l.samples)),
        needs: Needs::Samples,
        ..LINK
    };
    /// Packets dropped at `link`, for any reason.
    Drops: Def {
        drawable: Some(Merge::Sum),
        read: Read::Link(|l| Some((l.after.drops - l.before.drops) as f64)),
        ..LINK
    };
    /// What `link` delivered to its far end, headers included, bit/s.
    Carried: Def {
        unit: BIT_RATE,
        read: Read::Link(|l| Some((l.after.bytes - l.before.bytes) as f64 * 8.0 / l.seconds)),
        ..LINK
    };
    /// Jain's index of the goodput of `flows`: 1 if all have the same, 1/n if one has all.
    Jain: Def {
        scope: Scope::Flows,
        several: Several::Jain,
        read: Read::Flow(|f| Some(f.goodput())),
        ..FLOW
    };
    /// Mean reordering extent of the reordered packets (RFC 4737 §4.2), in the order in which they
    /// were sent, packets; 0 without reordering.
    ReorderingExtent: Def {
        unit: PACKETS,
        several: Several::Mean,
        read: Read::Flow(|f| f.reordering_extent()),
        needs: Needs::Reordering,
        ..TCP
    };
    /// Largest reordering extent so far, packets.
    ReorderingExtentMax: Def {
        unit: PACKETS,
        several: Several::Max,
        read: Read::Flow(|f| Some(f.after.reordering.extent_max as f64)),
        needs: Needs::Reordering,
        ..TCP
    };
    /// Data packets that arrived after one sent later, over all that arrived (RFC 4737 §3.5).
    ReorderedRatio: Def {
        several: Several::Mean,
        read: Read::Flow(|f| f.reordered_ratio()),
        needs: Needs::Reordering,
        ..TCP
    };
    /// Head-of-line blocking: time during which the receiver holds data that its program cannot read, since an earlier
    /// byte is missing, s.
    HolBlocking: Def {
        unit: SECONDS,
        drawable: Some(Merge::Sum),
        read: Read::Flow(|f| Some(f.blocked())),
        ..TCP
    };
    /// Mean time that a byte which arrived waits for earlier ones, ms; 0 for what arrives in order.
    OutOfOrderDelay: Def {
        unit: MILLIS,
        drawable: Some(Merge::Mean),
        several: Several::Mean,
        read: Read::Flow(|f| f.out_of_order_delay()),
        ..TCP
    };
    /// One-way delay within which half of the data arrives, ms: of a byte from its first transmission to its delivery in order
    /// (so with the wait for earlier bytes and with what is sent again), of UDP of a packet. To within 0.4 %.
    DelayP50: Def { read: Read::Flow(|f| f.delay(0.5)), ..DELAY };
    /// The same within which 95 % of it arrives.
    DelayP95: Def { read: Read::Flow(|f| f.delay(0.95)), ..DELAY };
    /// The same within which 99 % of it arrives.
    DelayP99: Def { read: Read::Flow(|f| f.delay(0.99)), ..DELAY };
    /// Payload that arrived since the start of the run, packets (segments of the path's size): for
    /// sequence plots.
    Sequence: Def {
        unit: PACKETS,
        drawable: Some(Merge::Last),
        read: Read::Flow(|f| f.sequence()),
        ..PATH
    };
    /// Share of its goodput that the flow loses beside the others: 1 − its goodput over that in the cell `solo`, where
    /// they send nothing (Ware, Mukerjee, Seshan and Sherry, "Beyond Jain's Fairness Index", HotNets 2019).
    Harm: Def {
        scope: Scope::Alone,
        read: Read::Alone(|beside, alone| 1.0 - beside / alone, Self::Goodput),
        ..FLOW
    };
    /// Share of its round trip that the others cause: 1 − its mean smoothed round trip in the cell `solo`, where they send
    /// nothing, over that beside them (harm of a metric for which less is better, in the same paper).
    HarmDelay: Def {
        scope: Scope::Alone,
        read: Read::Alone(|beside, alone| 1.0 - alone / beside, Self::MeanSrtt),
        needs: Needs::Samples,
        ..TCP
    };
    /// Friendliness factor at a bottleneck: goodput of those paths of the flow that lead through `link`, over the mean
    /// goodput that another TCP flow has through it.
    FfBottleneck: Def { scope: Scope::Rivals, read: Read::Rivals, ..FLOW };
}

impl Metric {
    /// Whether it is of a link and not of a flow.
    pub fn is_of_link(self) -> bool {
        self.def().scope == Scope::Link
    }

    /// Whether it is taken at a link.
    pub fn needs_link(self) -> bool {
        matches!(self.def().scope, Scope::Link | Scope::Rivals)
    }

    /// The unit for people, and what to multiply by to get there.
    pub fn unit(self) -> (&'static str, f64) {
        let unit = self.def().unit;
        (unit.shown, unit.factor)
    }

    /// Its name in spec files: `goodput`.
    pub fn name(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests;
