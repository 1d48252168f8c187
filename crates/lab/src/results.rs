//! What runs measured, and what an ensemble of them says.

use serde::Serialize;

use crate::metric::Metric;
use crate::spec::What;
use crate::timeline::Timeline;

pub use crate::flow_result::{FlowResult, PathResult};
pub use polypath_judge::Summary;

/// The numbers of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// Hash of the resolved spec and the seed.
    pub id: String,
    /// Label of the grid's cell; empty without a grid.
    pub cell: String,
    /// The seed.
    pub seed: u64,
    /// In the order of the spec.
    pub flows: Vec<FlowResult>,
    /// What was counted by when.
    #[serde(skip)]
    pub timeline: Timeline,
}

impl Run {
    /// One number of it.
    pub fn value(&self, what: &What) -> Option<f64> {
        let [flow] = &what.flows[..] else { return self.timeline.value(what) };
        let flow = self.flows.iter().find(|f| f.name == *flow)?;
        let whole = what.path.is_none() && what.from.is_none() && what.to.is_none();
        let finished = || what.metric.def().result?(flow);
        finished().filter(|_| whole).or_else(|| self.timeline.value(what))
    }

    /// One number of the flow `flow` in the measured time.
    pub fn metric(&self, metric: Metric, flow: &str) -> Option<f64> {
        let flows = vec![flow.to_owned()];
        self.value(&What { metric, flows, path: None, link: None, solo: None, from: None, to: None })
    }
}
