//! An experiment that was run, and what came out.

use serde_json::{Map, Value, json};

use crate::check::{Ensemble, Verdict};
use crate::metric::{Metric, Printed};
use crate::results::{Run, Summary};
use crate::seeds::SeedRange;
use crate::shelf::VERSION;
use crate::spec::Experiment;

/// An experiment and what came out.
#[derive(Debug)]
pub struct Done {
    /// The experiment.
    pub experiment: Experiment,
    /// The seeds it was run with.
    pub seeds: SeedRange,
    /// In the order of cells, then seeds.
    pub runs: Vec<Run>,
    /// The answers; none for experiments that are here only as nulls of others.
    pub verdicts: Vec<Verdict>,
    /// Whether it belongs to the group, and not only to a null.
    pub own: bool,
}

/// The runs of one cell, seen from one flow.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    /// Label of the cell; empty without a grid.
    pub cell: &'a str,
    /// Name of the flow.
    pub flow: &'a str,
    /// One for each seed that ended.
    pub runs: Vec<&'a Run>,
}

impl Done {
    /// The experiment with its runs.
    pub fn ensemble(&self) -> Ensemble<'_> {
        (&self.experiment, &self.runs)
    }

    /// Name without its group.
    pub fn short_name(&self) -> &str {
        self.experiment.name.rsplit('/').next().unwrap_or_default()
    }

    /// Every cell and flow with its runs.
    pub fn rows(&self) -> Vec<Rows<'_>> {
        let mut cells: Vec<&str> = self.runs.iter().map(|r| r.cell.as_str()).collect();
        cells.dedup();
        let flows = || self.experiment.spec.flow.iter().map(|f| f.name.as_str());
        let of = |cell| self.runs.iter().filter(|r| r.cell == cell).collect::<Vec<_>>();
        cells
            .into_iter()
            .flat_map(|cell| flows().map(move |flow| Rows { cell, flow, runs: of(cell) }))
            .collect()
    }

    /// Whether several seeds gave the same numbers in every cell: nothing in it is random.
    pub fn is_fixed(&self) -> bool {
        let cells: Vec<&[Run]> = self.runs.chunk_by(|a, b| a.cell == b.cell).collect();
        let numbers = |run: &Run| (run.flows.clone(), run.timeline.marks.clone());
        let same = |cell: &&[Run]| cell.windows(2).all(|two| numbers(&two[0]) == numbers(&two[1]));
        cells.iter().any(|cell| cell.len() > 1) && cells.iter().all(same)
    }

    /// All of it as one object: `results.json`, and what `lab run --json` prints.
    pub fn json(&self) -> Value {
        json!({
            "experiment": self.experiment.name,
            "title": self.experiment.spec.title,
            "version": VERSION,
            "set": self.experiment.set,
            "seeds": self.seeds,
            "summary": self.rows().iter().map(Rows::json).collect::<Vec<_>>(),
            "verdicts": self.verdicts,
            "runs": self.runs,
        })
    }
}

impl Rows<'_> {
    /// What the runs say of `metric`; `None` if no run measured it.
    pub fn summary(&self, metric: Metric) -> Option<Summary> {
        Summary::of(&self.runs.iter().filter_map(|r| r.metric(metric, self.flow)).collect::<Vec<_>>())
    }

    fn json(&self) -> Value {
        let printed = Metric::ALL.iter().filter(|metric| metric.def().printed != Printed::No);
        let metrics: Map<String, Value> = printed
            .filter_map(|metric| Some((json!(metric).as_str()?.to_owned(), json!(self.summary(*metric)?))))
            .collect();
        json!({ "cell": self.cell, "flow": self.flow, "metrics": metrics })
    }
}
