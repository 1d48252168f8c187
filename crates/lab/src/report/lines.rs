//! From an ensemble and a figure's description to charts.

use super::chart::{Chart, Line};
use super::frame::{blank, places, unit};
use super::published::add_published;
use super::runs::{distributions, heat};
use super::spread::spread;
use crate::check::{Ensemble, statistic, values};
use crate::metric::Merge;
use crate::results::{Run, Summary};
use crate::spec::{Band, Cell, Figure, FigureKind, Series, Unreadable, chosen, labels, published_points};

/// Most points of a line over time.
const POINTS: usize = 500;
/// Every figure of an experiment; a figure over time has one chart per cell. One without data is an error.
pub fn charts(ensemble: Ensemble<'_>) -> Result<Vec<Chart>, FigureError> {
    drawn(ensemble)?.into_iter().map(|(chart, in_full)| in_full.map(|()| chart)).collect()
}

/// Those that have data: where some cells were not run, or not to their end.
pub fn charts_with_data(ensemble: Ensemble<'_>) -> Result<Vec<Chart>, FigureError> {
    let with_data = |(chart, in_full): Drawn| in_full.is_ok().then_some(chart);
    Ok(drawn(ensemble)?.into_iter().filter_map(with_data).collect())
}

/// A chart, and whether each of its series has data.
type Drawn = (Chart, Result<(), FigureError>);

/// Every chart with what the paper published.
fn drawn(ensemble: Ensemble<'_>) -> Result<Vec<Drawn>, FigureError> {
    let mut all = Vec::new();
    for (n, figure) in ensemble.0.spec.figure.iter().enumerate() {
        let published = match &figure.published {
            Some(file) => published_points(&ensemble.0.place, file)?,
            None => Vec::new(),
        };
        let places = figure.named_places(&ensemble.0.spec, &ensemble.0.cells);
        let drawn = match figure.kind {
            FigureKind::Time => over_time(n, figure, ensemble),
            FigureKind::Sweep | FigureKind::Box | FigureKind::Violin => vec![over_axis(figure, ensemble)],
            FigureKind::Cdf => vec![distributions(figure, ensemble)],
            FigureKind::Heat => vec![heat(figure, ensemble)],
        };
        all.extend(drawn.into_iter().map(|mut chart| {
            let in_full = drawn_in_full(&chart, figure, ensemble);
            add_published(&mut chart, &published, places.as_deref());
            (chart, in_full)
        }));
    }
    Ok(all)
}

/// Every series of `figure` has data in `chart`.
fn drawn_in_full(
    chart: &Chart,
    figure: &Figure,
    (experiment, runs): Ensemble<'_>,
) -> Result<(), FigureError> {
    let empty = chart.lines.iter().find(|line| line.points.is_empty());
    let missing = chart.lines.len() < figure.series.len();
    let series = match (empty, missing) {
        (Some(line), _) => line.label.clone(),
        (None, true) => "a series".to_owned(),
        (None, false) => return Ok(()),
    };
    Err(FigureError::Empty {
        experiment: experiment.name.clone(),
        title: chart.title.clone(),
        series,
        runs: runs.len(),
    })
}

fn over_time(n: usize, figure: &Figure, (experiment, runs): Ensemble<'_>) -> Vec<Chart> {
    let cells = chosen(&experiment.cells, figure.cell.as_deref());
    let several = cells.len() > 1;
    let mut charts = Vec::new();
    for cell in cells {
        let drawn = |r: &&Run| r.cell == cell.label && r.timeline.courses.iter().any(|c| c.figure == n);
        let most = if figure.one_run { 1 } else { usize::MAX };
        let runs: Vec<&Run> = runs.iter().filter(drawn).take(most).collect();
        let lines = figure
            .series
            .iter()
            .enumerate()
            .map(|(k, series)| Line { label: series.name(), ..course(n, k, series, figure, cell, &runs) });
        let chart = Chart { lines: lines.collect(), ..blank(figure) };
        let title = if several { format!("{} – {}", figure.title, cell.label) } else { chart.title };
        charts.push(Chart { title, ..chart });
    }
    charts
}

/// The line of series `k` of figure `n`. A point is the mean and band over the runs that have a value there; where no run has one, there is no point.
fn course(n: usize, k: usize, series: &Series, figure: &Figure, cell: &Cell, runs: &[&Run]) -> Line {
    let merge = series.of.metric.unwrap_or(figure.metric).def().drawable.unwrap_or(Merge::Mean);
    let (_, factor) = unit(series, figure);
    let bin = figure.bin.0.as_secs_f64();
    let from = figure.from.map_or(0.0, |t| t.0.as_secs_f64());
    let to = figure.to.map_or(cell.spec.duration.0, |t| t.0).as_secs_f64();
    let all: Vec<&[f64]> = runs
        .iter()
        .flat_map(|r| r.timeline.courses.iter().filter(|c| c.figure == n))
        .map(|c| &c.series[k][..])
        .collect();
    let bins = all.iter().map(|line| line.len()).max().unwrap_or(0);
    let (first, last) = ((from / bin).round() as usize, ((to / bin).round() as usize).min(bins));
    let merged = (last.saturating_sub(first)).div_ceil(POINTS).max(1);
    let mut line = Line::default();
    for start in (first..last).step_by(merged) {
        let end = (start + merged).min(last);
        let of = |run: &&[f64]| {
            let known: Vec<f64> =
                run.get(start..end.min(run.len()))?.iter().copied().filter(|v| v.is_finite()).collect();
            let (last, sum) = (*known.last()?, known.iter().sum::<f64>());
            let value = match merge {
                Merge::Last => last,
                Merge::Sum => sum,
                Merge::Mean => sum / known.len() as f64,
            };
            Some(value * factor)
        };
        let values: Vec<f64> = all.iter().filter_map(of).collect();
        let Some(summary) = Summary::of(&values) else { continue };
        let at = if merge == Merge::Last { end as f64 } else { (start + end) as f64 / 2.0 };
        line.points.push((at * bin, summary.mean));
        if all.len() > 1 {
            line.band.push(edges(figure.band, &summary, summary.mean, summary.ci95));
        }
    }
    line
}

fn edges(band: Band, s: &Summary, value: f64, ci95: Option<f64>) -> (f64, f64) {
    // No metric is below zero, whatever the normal distribution says.
    let around = |half: f64| ((value - half).max(0.0_f64.min(value)), value + half);
    match band {
        Band::Ci95 => around(ci95.unwrap_or(0.0)),
        Band::Sd => around(s.sd),
        Band::Range => (s.min, s.max),
    }
}

fn over_axis(figure: &Figure, ensemble: Ensemble<'_>) -> Chart {
    let (experiment, _) = ensemble;
    let name = figure.axis.as_deref().unwrap_or_default();
    let Some(axis) = Figure::axis(&experiment.spec, figure.axis.as_deref()) else { return blank(figure) };
    let labels = labels(&experiment.cells, axis);
    let numbers = figure.numbers(&labels);
    let (places, key) = if numbers.is_none() { places(&labels) } else { Default::default() };
    let at = |label: &str| {
        let n = labels.iter().position(|l| l == label).unwrap_or(0);
        numbers.as_ref().map_or(n as f64, |x| x[n])
    };
    let lines = figure.series.iter().flat_map(|series| sweep(series, figure, axis, &at, ensemble));
    let x_label = figure.x_label.clone().unwrap_or_else(|| name.to_owned());
    Chart { lines: lines.collect(), places, x_label, key, ..blank(figure) }
}

/// A series along an axis: one line for every combination of values of the other axes.
fn sweep(
    series: &Series,
    figure: &Figure,
    axis: usize,
    at: &dyn Fn(&str) -> f64,
    ensemble: Ensemble<'_>,
) -> Vec<Line> {
    let selector = series.selector(figure);
    let (_, factor) = unit(series, figure);
    let mut lines: Vec<(String, Line)> = Vec::new();
    for cell in chosen(&ensemble.0.cells, series.of.cell.as_deref()) {
        let values: Vec<f64> = values(&selector, cell, ensemble).iter().map(|v| v * factor).collect();
        let Some((value, ci95)) = statistic(series.of.statistic, None, &values) else { continue };
        let summary = Summary::of(&values).expect("there is a statistic of them");
        let other = cell.beside(Some(axis));
        let known = lines.iter().position(|(o, _)| *o == other);
        let n = known.unwrap_or_else(|| {
            lines.push((other, Line::default()));
            lines.len() - 1
        });
        let line = &mut lines[n].1;
        let x = at(&cell.values[axis]);
        if matches!(figure.kind, FigureKind::Box | FigureKind::Violin) {
            let of = spread(&values).expect("there is a statistic of them");
            line.points.push((x, of.median));
            line.band.push((of.q1, of.q3));
            line.samples.push(values);
            continue;
        }
        line.points.push((x, value));
        if values.len() > 1 {
            line.band.push(edges(figure.band, &summary, value, ci95));
        }
    }
    let several = lines.len() > 1;
    lines
        .into_iter()
        .map(|(other, line)| Line { label: series.line(figure, several, &other), ..line })
        .collect()
}

/// A figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// A file of published points is no good.
    #[error(transparent)]
    Published(#[from] Unreadable),
    /// A line has no points.
    #[error(
        "{experiment}: figure \"{title}\" has no data for {series} in {runs} runs; see that its cell was run, \
         that its time lies within the run, and that its flow begins before the end of it"
    )]
    Empty {
        /// The experiment.
        experiment: String,
        /// Of the figure.
        title: String,
        /// The line.
        series: String,
        /// How many runs there were.
        runs: usize,
    },
}
