//! Links: rate, delay, queue, and everything that can go wrong.

use polypath_wire::{Duration, Rate};
use serde::{Deserialize, Serialize};

use super::queue::Queue;
use super::rate::LinkRate;
use crate::units::Human;

/// A link between two nodes, with the same values in both directions but for those in `back`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Node at one end.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Rate, or a file with its delivery opportunities.
    pub rate: LinkRate,
    /// One-way propagation delay.
    pub delay: Human<Duration>,
    /// How much may wait before it, and under which discipline. Default: 100 packets, drop-tail.
    #[serde(default)]
    pub queue: Queue,
    /// What is different from `to` to `from`.
    #[serde(default)]
    pub back: Back,
    /// Probability that a packet is lost on the wire, 0 to 1. Default: 0.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub loss: f64,
    /// Probability that a packet arrives twice, 0 to 1. Default: 0.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub duplication: f64,
    /// Packets held back while later ones pass. Default: none.
    #[serde(default)]
    pub reordering: Option<Reordering>,
    /// Probability that bits of a packet flip, 0 to 1. Default: 0.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub corruption: f64,
    /// Largest packet with its headers, bytes. Default: 1500.
    #[serde(default = "ethernet")]
    pub mtu: u32,
    /// Whether it is up at the start. Default: true.
    #[serde(default = "yes")]
    pub up: bool,
    /// Changes while it runs, in the order of their times.
    #[serde(default)]
    pub change: Vec<Change>,
}

/// Values of the other direction of a link; what it does not name is as in the first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Back {
    /// Rate, or a file with its delivery opportunities.
    #[serde(default)]
    pub rate: Option<LinkRate>,
    /// One-way propagation delay.
    #[serde(default)]
    pub delay: Option<Human<Duration>>,
    /// The queue.
    #[serde(default)]
    pub queue: Option<Queue>,
    /// Probability that a packet is lost on the wire, 0 to 1.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub loss: Option<f64>,
}

/// Packets held back while later ones pass.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Probability, 0 to 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub probability: f64,
    /// For how long.
    pub delay: Human<Duration>,
}

/// A change of a link at some time; what it does not name stays. On the way back, what the link's `back` names stays, too, unless
/// the change has a `back` that names it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, from the start of the run.
    pub at: Human<Duration>,
    /// New rate.
    #[serde(default)]
    pub rate: Option<Human<Rate>>,
    /// New one-way delay.
    #[serde(default)]
    pub delay: Option<Human<Duration>>,
    /// New loss probability, 0 to 1.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub loss: Option<f64>,
    /// Up or down, both ways.
    #[serde(default)]
    pub up: Option<bool>,
    /// New values of the way back.
    #[serde(default, skip_serializing_if = "ChangeBack::is_none")]
    pub back: ChangeBack,
}

/// New values of the other direction of a link.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeBack {
    /// New rate.
    #[serde(default)]
    pub rate: Option<Human<Rate>>,
    /// New one-way delay.
    #[serde(default)]
    pub delay: Option<Human<Duration>>,
    /// New loss probability, 0 to 1.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub loss: Option<f64>,
}

impl ChangeBack {
    /// Whether it names nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The ends of a direction of a link, `r->b`.
pub fn ends(link: &str) -> Option<(&str, &str)> {
    link.split_once("->").map(|(from, to)| (from.trim(), to.trim()))
}

fn yes() -> bool {
    true
}

fn ethernet() -> u32 {
    1500
}
