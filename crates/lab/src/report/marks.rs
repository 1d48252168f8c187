//! What stands for a line of a chart: a curve over its band, or points with bars where places are no numbers.

use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;

use super::chart::{Chart, colour};

/// Lines through the points over their bands.
pub(super) fn curves<'a, X, Y>(
    chart: &Chart,
    context: &mut ChartContext<'a, SVGBackend<'_>, Cartesian2d<X, Y>>,
) -> Result<(), Box<dyn std::error::Error + 'a>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (n, line) in chart.lines.iter().enumerate() {
        let edges = || line.points.iter().zip(&line.band);
        let upper = edges().map(|((x, _), (_, high))| (*x, *high));
        let outline: Vec<_> = upper.chain(edges().rev().map(|((x, _), (low, _))| (*x, *low))).collect();
        if outline.len() > 2 {
            context.draw_series([Polygon::new(outline, colour(n).mix(0.22))])?;
        }
    }
    for (n, line) in chart.lines.iter().enumerate() {
        context.draw_series(LineSeries::new(line.points.iter().copied(), colour(n).stroke_width(2)))?;
    }
    Ok(())
}

/// The bands of points that nothing joins, beside one another.
pub(super) fn bars<'a, X, Y>(
    chart: &Chart,
    context: &mut ChartContext<'a, SVGBackend<'_>, Cartesian2d<X, Y>>,
) -> Result<(), Box<dyn std::error::Error + 'a>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for (n, line) in chart.lines.iter().enumerate() {
        let bars = line.points.iter().zip(&line.band).map(|((x, _), (low, high))| {
            let x = x + aside(chart, n);
            PathElement::new([(x, *low), (x, *high)], colour(n).stroke_width(2))
        });
        context.draw_series(bars)?;
    }
    Ok(())
}

/// How far from its place line `n` stands, so that lines do not hide one another.
pub(super) fn aside(chart: &Chart, n: usize) -> f64 {
    match chart.places.is_empty() {
        true => 0.0,
        false => (n as f64 - (chart.lines.len() as f64 - 1.0) / 2.0) * (0.5 / chart.lines.len() as f64),
    }
}
