//! An experiment as a file says it. Every struct refuses unknown keys; every default is stated.
//!
//! ```toml
//! version = 1
//! title = "One connection over two paths"
//! duration = "20s"
//! seeds = "1..20"
//!
//! [[link]]                 # a node exists once it is named
//! from = "a"
//! to = "r1"
//! rate = "8Mbit/s"
//! delay = "30ms"
//! queue = "144p"
//!
//! [[flow]]
//! name = "bulk"
//! from = "a"
//! to = "b"
//! paths = [["r1"], ["r2"]] # each path by the nodes it goes through
//! ```

mod aims;
mod assignment;
mod capacity;
mod cell;
mod connection;
mod error;
mod expect;
mod figure;
mod flow;
mod grid;
mod limit;
mod link;
mod load;
mod nulls;
mod published;
mod queue;
mod rate;
mod read;
#[cfg(test)]
mod schema;
mod select;
mod supplied;
mod topology;
mod validate;

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

pub use crate::metric::Metric;
pub use assignment::Assignment;
pub use capacity::Capacity;
pub use cell::{Cell, beside, chosen};
pub use error::SpecError;
pub(crate) use error::suggestion;
pub use expect::{Expect, Measure};
pub(crate) use figure::labels;
pub use figure::{Band, Figure, FigureKind, Series};
pub use flow::{Flow, Start, Traffic};
pub use grid::Axis;
pub use limit::Limit;
pub use link::{Back, Change, ChangeBack, Link, Reordering, ends};
pub use load::{Experiment, LoadError, from_document, load, parse, parse_at};
pub use nulls::in_null;
pub use published::Unreadable;
pub(crate) use published::{Point, read as published_points};
pub use queue::{Managed, Queue};
pub use rate::{LinkRate, TraceFile};
pub use select::{Number, Selector, Statistic, What};
pub use supplied::Supplied;

use crate::built_in;
use crate::seeds::SeedRange;
use crate::units::Human;

/// The version of the schema that this program reads.
pub const VERSION: u32 = 1;

/// The JSON Schema of spec files.
pub fn schema() -> &'static str {
    built_in::schema()
}

/// One experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, schemars(title = "Polypath experiment"))]
pub struct Spec {
    /// Version of the schema: 1.
    #[cfg_attr(test, schemars(range(min = 1, max = 1)))]
    pub version: u32,
    /// What is shown, in one line.
    pub title: String,
    /// Why, from where, and what was chosen.
    #[serde(default)]
    pub description: String,
    /// Virtual time of one run.
    pub duration: Human<Duration>,
    /// Throughput is measured from here to the end, so that the start can be left out. Default: the start.
    #[serde(default)]
    pub measure_from: Human<Duration>,
    /// Seeds of the ensemble, first and last: `"1..20"`. Default: `"1..1"`.
    #[serde(default)]
    pub seeds: SeedRange,
    /// Each link with its queue.
    pub link: Vec<Link>,
    /// Hosts that are not ideal; the others exist once they are named.
    #[serde(default)]
    pub host: Vec<Host>,
    /// What every TCP connection of the experiment has, unless its flow says otherwise.
    #[serde(default)]
    #[cfg_attr(test, schemars(schema_with = "schema::connection"))]
    pub connection: toml::Table,
    /// Traffic.
    pub flow: Vec<Flow>,
    /// Values to try: each combination of the axes is a cell, with an ensemble of its own.
    #[serde(default)]
    pub grid: Vec<Axis>,
    /// What must come out.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// What is measured beside that and what every flow has, whatever comes out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measure: Vec<Measure>,
    /// What is drawn.
    #[serde(default)]
    pub figure: Vec<Figure>,
    /// What makes the algorithms that it names and that are not ours.
    #[serde(skip)]
    pub supplied: Supplied,
}

/// What is not ideal about a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in links and flows.
    pub name: String,
    /// What its clock shows at the start of the run. Default: 0.
    #[serde(default)]
    pub clock_offset: Human<Duration>,
    /// How much its clock runs fast, parts per million, −500 to 500. Default: 0.
    #[serde(default)]
    pub clock_drift_ppm: f64,
    /// Every packet that its TCP flows send is delayed by a random time from 0 to this, in order (ns-2's `overhead_`); UDP
    /// leaves at once. Breaks the phase lock between equal links. Default: 0.
    #[serde(default)]
    pub jitter: Human<Duration>,
}
