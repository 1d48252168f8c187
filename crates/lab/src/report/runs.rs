//! Figures of all runs of cells: distributions, and squares over two axes.

use super::chart::{Chart, Line};
use super::frame::{blank, places, unit};
use super::spread::distribution;
use crate::check::{Ensemble, statistic, values};
use crate::spec::{Cell, Figure, Series, chosen, labels};

/// The distribution over the seeds: a line for each series and each of its cells.
pub(super) fn distributions(figure: &Figure, ensemble: Ensemble<'_>) -> Chart {
    let cells =
        |series: &Series| chosen(&ensemble.0.cells, series.of.cell.as_deref().or(figure.cell.as_deref()));
    let line = |series: &Series, cell: &Cell| {
        let label = series.line(figure, cells(series).len() > 1, &cell.label);
        Line { label, points: distribution(&numbers(series, figure, cell, ensemble)), ..Line::default() }
    };
    let of_series = |series| cells(series).into_iter().map(move |cell| line(series, cell));
    let across = blank(figure);
    Chart {
        lines: figure.series.iter().flat_map(of_series).collect(),
        x_label: figure.x_label.clone().unwrap_or(across.y_label.clone()),
        y_label: figure.y_label.clone().unwrap_or_else(|| "share of runs".to_owned()),
        ..across
    }
}

/// A statistic over two axes of the grid; a row for each value of the second.
pub(super) fn heat(figure: &Figure, ensemble: Ensemble<'_>) -> Chart {
    let experiment = ensemble.0;
    let axis = |name| Figure::axis(&experiment.spec, name);
    let (across, up) = (axis(figure.axis.as_deref()), axis(figure.rows.as_deref()));
    let (Some((across, up)), Some(series)) = (across.zip(up), figure.series.first()) else {
        return blank(figure);
    };
    let columns = labels(&experiment.cells, across);
    let cells = chosen(&experiment.cells, series.of.cell.as_deref());
    let square = |row: &String, (x, column): (usize, &String)| {
        let here = cells.iter().filter(|c| c.values[up] == *row && c.values[across] == *column);
        let pooled: Vec<f64> = here.flat_map(|cell| numbers(series, figure, cell, ensemble)).collect();
        Some((x as f64, statistic(series.of.statistic, None, &pooled)?.0))
    };
    let line = |row: String| {
        let points = columns.iter().enumerate().filter_map(|column| square(&row, column)).collect();
        Line { label: row, points, ..Line::default() }
    };
    let (places, key) = places(&columns);
    let drawn = blank(figure);
    let what = format!("Colour: {}.", drawn.y_label);
    Chart {
        lines: labels(&experiment.cells, up).into_iter().map(line).collect(),
        places,
        key: [what, key].join(" ").trim_end().to_owned(),
        x_label: figure.x_label.clone().unwrap_or_else(|| figure.axis.clone().unwrap_or_default()),
        y_label: figure.y_label.clone().unwrap_or_else(|| figure.rows.clone().unwrap_or_default()),
        ..drawn
    }
}

/// The number that `series` means of each run of `cell`, in the unit of the axes.
fn numbers(series: &Series, figure: &Figure, cell: &Cell, ensemble: Ensemble<'_>) -> Vec<f64> {
    let (_, factor) = unit(series, figure);
    values(&series.selector(figure), cell, ensemble).iter().map(|v| v * factor).collect()
}
