//! Every number that was asked of an ensemble, run by run: a row a number.

use arrow_array::RecordBatch;
use polypath_wire::Duration;

use crate::check::{Ensemble, value};
use crate::columns::{Column, Of, table};
use crate::metric::Read;
use crate::results::Run;
use crate::spec::{Cell, Experiment, Metric, Selector, What};

/// A number of a run.
struct Value<'a> {
    run: &'a Run,
    cell: &'a Cell,
    claim: &'a str,
    selector: Selector,
    value: f64,
}

/// A number that is wanted of every run, and the claim of the expectation that asks for it.
#[derive(Debug)]
struct Wanted<'a> {
    claim: &'a str,
    selector: Selector,
    /// Of which cells, if not of all.
    cell: Option<&'a str>,
}

/// The table of all numbers of an ensemble, with the columns `run`, `cell`, one for each axis of the grid (numbers
/// if all its labels are), `seed`, `claim` (of what is expected or measured; null for what every flow has), `metric`, `flow`, `path`,
/// `link`, `from_s` and `to_s` (the measured time), `over` (what it is divided by), `value` and `unit`. Rates are in bit/s. What
/// a run does not have has no row.
pub fn values((experiment, runs): Ensemble<'_>) -> RecordBatch {
    let wanted = wanted(experiment);
    let mut rows = Vec::new();
    for run in runs {
        let Some(cell) = experiment.cells.iter().find(|c| c.label == run.cell) else { continue };
        let here = wanted.iter().filter(|w| w.cell.is_none_or(|asked| cell.matches(asked)));
        rows.extend(here.filter_map(|Wanted { claim, selector, .. }| {
            let value = value(selector, run, cell, (experiment, runs))?;
            Some(Value { run, cell, claim, selector: selector.clone(), value })
        }));
    }
    table(&columns(experiment), &rows)
}

/// What decides rows and columns of the values beside the runs.
pub(crate) fn shape(experiment: &Experiment) -> String {
    format!("{:?} {:?}", table(&columns(experiment), &[]).schema(), wanted(experiment))
}

/// What every flow has, then what is expected or measured. What an expectation compares with another cell stands
/// there undivided too, so that runs of one cell alone can be compared later.
fn wanted(experiment: &Experiment) -> Vec<Wanted<'_>> {
    let mut all = Vec::new();
    for flow in &experiment.spec.flow {
        let of = |metric, path| {
            plain(What {
                metric,
                flows: vec![flow.name.clone()],
                path,
                link: None,
                solo: None,
                from: None,
                to: None,
            })
        };
        let all_metrics = || Metric::ALL.iter().copied();
        all.extend(all_metrics().filter(|m| m.def().of_each_flow).map(|metric| of(metric, None)));
        let paths = experiment.cells.iter().flat_map(|c| &c.spec.flow).filter(|f| f.name == flow.name);
        let paths = paths.map(|f| f.paths.len()).max().unwrap_or(0);
        let several = if paths > 1 { paths } else { 0 };
        let of_path =
            |path| all_metrics().filter(|m| m.def().of_each_path).map(move |metric| of(metric, Some(path)));
        all.extend((0..several).flat_map(of_path));
    }
    let expected = experiment.spec.expect.iter().map(|e| (e.claim.as_str(), e.selector(), None));
    let measured =
        experiment.spec.measure.iter().map(|m| (m.claim.as_str(), m.selector(), m.of.cell.as_deref()));
    for (claim, selector, cell) in expected.chain(measured) {
        if selector.over_cell.is_some() {
            all.extend(selector.whats().cloned().map(plain));
        }
        if let Read::Alone(_, metric) = selector.what.metric.def().read {
            all.push(plain(What { metric, solo: None, ..selector.what.clone() }));
        }
        all.push(Wanted { claim, selector, cell });
    }
    let mut unique: Vec<Wanted<'_>> = Vec::new();
    for one in all {
        if !unique.iter().any(|u| (u.claim, &u.selector, u.cell) == (one.claim, &one.selector, one.cell)) {
            unique.push(one);
        }
    }
    unique
}

fn plain<'a>(what: What) -> Wanted<'a> {
    Wanted { claim: "", selector: Selector { what, over: None, over_cell: None }, cell: None }
}

fn columns<'a>(experiment: &'a Experiment) -> Vec<Column<'a, Value<'a>>> {
    type Col<'a> = Column<'a, Value<'a>>;
    let what = |v: &Value<'_>| v.selector.what.clone();
    let seconds = |time: Duration| Some(time.as_secs_f64());
    let window = |v: &Value<'_>| match v.selector.what.metric.def().windowed {
        true => v.selector.what.window(&v.cell.spec),
        false => (Duration::ZERO, v.cell.spec.duration.0),
    };
    let present = |text: String| Some(text).filter(|t| !t.is_empty());
    let mut columns = vec![
        Col::text("run", |v| Some(v.run.id.clone())),
        Col::text("cell", |v| Some(v.run.cell.clone())),
        Col::whole("seed", |v| Some(v.run.seed)),
        Col::text("claim", move |v| present(v.claim.to_owned())),
        Col::text("metric", |v| Some(v.selector.what.metric.name())),
        Col::text("flow", move |v| present(what(v).flows.join("+"))),
        Col::whole("path", move |v| what(v).path.map(|p| p as u64)),
        Col::text("link", move |v| what(v).link),
        Col::number("from_s", move |v| seconds(window(v).0)),
        Col::number("to_s", move |v| seconds(window(v).1)),
        Col::text("over", |v| over(&v.selector)),
        Col::number("value", |v| Some(v.value)),
        Col::text("unit", |v| Some(if v.selector.is_ratio() { "" } else { what_unit(v) }.to_owned())),
    ];
    let axes: Vec<_> = (0..experiment.spec.grid.len()).map(|n| axis(experiment, n, &columns)).collect();
    columns.splice(2..2, axes);
    columns
}

fn what_unit(value: &Value<'_>) -> &'static str {
    value.selector.what.metric.def().unit.base
}

/// The column of axis `n`, called as the axis is; `grid.` stands before a name that another column has.
fn axis<'a>(experiment: &'a Experiment, n: usize, others: &[Column<'_, Value<'_>>]) -> Column<'a, Value<'a>> {
    let called = experiment.spec.grid[n].called();
    let taken = |name: &str| others.iter().any(|c| c.name() == name);
    let called = match called {
        "" => format!("grid.{n}"),
        name if taken(name) => format!("grid.{name}"),
        name => name.to_owned(),
    };
    let label = move |v: &Value<'_>| v.cell.values.get(n).cloned();
    let labels = || experiment.cells.iter().filter_map(|c| c.values.get(n));
    let of = if labels().all(|l| l.parse::<i64>().is_ok()) {
        Of::Integer(Box::new(move |v: &Value<'_>| label(v)?.parse().ok()))
    } else if labels().all(|l| l.parse::<f64>().is_ok_and(f64::is_finite)) {
        Of::Number(Box::new(move |v: &Value<'_>| label(v)?.parse().ok()))
    } else {
        Of::Text(Box::new(label))
    };
    Column::new(called, of)
}

/// What a ratio has below its line, in words: `throughput of tcp path 1 in cell x`.
fn over(selector: &Selector) -> Option<String> {
    let below = selector.over.as_ref()?;
    let of = below.link.clone().unwrap_or_else(|| below.flows.join("+"));
    let path = below.path.map_or(String::new(), |p| format!(" path {p}"));
    let cell = selector.over_cell.as_ref().map_or(String::new(), |c| format!(" in cell {c}"));
    let another_time = (below.from, below.to) != (selector.what.from, selector.what.to);
    let seconds =
        |t: Option<Duration>, open: &str| t.map_or(open.to_owned(), |t| format!("{} s", t.as_secs_f64()));
    let time = match another_time {
        true => format!(" from {} to {}", seconds(below.from, "measure_from"), seconds(below.to, "the end")),
        false => String::new(),
    };
    Some(format!("{} of {of}{path}{cell}{time}", below.metric.name()))
}
