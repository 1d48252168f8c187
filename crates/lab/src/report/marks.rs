//! What stands for a line of a chart: a curve over its band, or points with bars where places are no numbers.

use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Chart, Mark};
use super::colours::colour;
use super::spread::{Spread, density, spread};
use crate::check::short;

/// What a drawing may fail with.
type Failed<'a> = Box<dyn std::error::Error + 'a>;
/// What a chart is drawn on.
type Context<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;
/// An axis of numbers.
pub(super) trait Axis: Ranged<ValueType = f64> {}
impl<T: Ranged<ValueType = f64>> Axis for T {}

/// Half the width of a box, and of a violin at its thickest; the room of a place is 1.
const HALF_BOX: f64 = 0.16;
/// Values of a violin's outline.
const OUTLINE: usize = 60;

/// Part of a drawing that says what it is where a pointer stands on it.
pub(super) struct Hit {
    /// Middle and half the size, in pixels.
    pub at: (i32, i32),
    pub half: (i32, i32),
    pub text: String,
}

impl Hit {
    /// As an element of SVG that says it when the pointer stands there.
    pub(super) fn svg(&self) -> String {
        let ((x, y), (wide, high)) = (self.at, self.half);
        let text = maud::html! { (self.text) }.into_string();
        format!(
            "<rect class=\"hit\" fill=\"none\" pointer-events=\"all\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">\
             <title>{text}</title></rect>\n",
            x - wide,
            y - high,
            2 * wide,
            2 * high
        )
    }
}

/// Lines through the points over their bands.
pub(super) fn curves<'a, X: Axis, Y: Axis>(
    chart: &Chart,
    context: &mut Context<'a, '_, X, Y>,
) -> Result<(), Failed<'a>> {
    for (n, line) in chart.lines.iter().enumerate() {
        let edges = || line.points.iter().zip(&line.band);
        let upper = edges().map(|((x, _), (_, high))| (*x, *high));
        let outline: Vec<_> = upper.chain(edges().rev().map(|((x, _), (low, _))| (*x, *low))).collect();
        if outline.len() > 2 {
            context.draw_series([Polygon::new(outline, colour(n).mix(0.22))])?;
        }
    }
    for (n, line) in chart.lines.iter().enumerate() {
        let points = if chart.mark == Mark::Step { stairs(&line.points) } else { line.points.clone() };
        context.draw_series(LineSeries::new(points, colour(n).stroke_width(2)))?;
    }
    Ok(())
}

/// A corner before each of `points` but the first: a value holds until the next.
fn stairs(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    points.first().copied().into_iter().chain(corners).collect()
}

/// The bands of points that nothing joins, beside one another.
pub(super) fn bars<'a, X: Axis, Y: Axis>(
    chart: &Chart,
    context: &mut Context<'a, '_, X, Y>,
) -> Result<(), Failed<'a>> {
    for (n, line) in chart.lines.iter().enumerate() {
        let bars = line.points.iter().zip(&line.band).map(|((x, _), (low, high))| {
            let x = x + aside(chart, n);
            PathElement::new([(x, *low), (x, *high)], colour(n).stroke_width(2))
        });
        context.draw_series(bars)?;
    }
    Ok(())
}

/// Quartiles with the median; whiskers to the furthest run within 1.5 of their distance; circles are runs beyond.
pub(super) fn boxes<'a, X: Axis, Y: Axis>(
    chart: &Chart,
    context: &mut Context<'a, '_, X, Y>,
) -> Result<(), Failed<'a>> {
    let half = HALF_BOX.min(0.4 / chart.lines.len() as f64);
    for (n, x, runs) in of_runs(chart) {
        let Some(Spread { low, q1, median, q3, high, beyond }) = spread(runs) else { continue };
        let (thin, thick) = (colour(n).stroke_width(1), colour(n).stroke_width(3));
        let (left, right) = (x - half, x + half);
        context.draw_series([Rectangle::new([(left, q1), (right, q3)], colour(n).mix(0.22).filled())])?;
        let lines = [
            (vec![(left, q1), (right, q1), (right, q3), (left, q3), (left, q1)], thin),
            (vec![(x, q3), (x, high)], thin),
            (vec![(x, q1), (x, low)], thin),
            (vec![(x - half / 2.0, high), (x + half / 2.0, high)], thin),
            (vec![(x - half / 2.0, low), (x + half / 2.0, low)], thin),
            (vec![(left, median), (right, median)], thick),
        ];
        context.draw_series(lines.map(|(points, style)| PathElement::new(points, style)))?;
        context.draw_series(beyond.iter().map(|y| Circle::new((x, *y), 3, thin)))?;
    }
    Ok(())
}

/// The density of the runs to either side, and their quartiles.
pub(super) fn violins<'a, X: Axis, Y: Axis>(
    chart: &Chart,
    context: &mut Context<'a, '_, X, Y>,
) -> Result<(), Failed<'a>> {
    let half = 2.0 * HALF_BOX.min(0.4 / chart.lines.len() as f64);
    for (n, x, runs) in of_runs(chart) {
        let outline = density(runs, OUTLINE);
        let side = |sign: f64| outline.iter().map(move |(y, share)| (x + sign * half * share, *y));
        let around: Vec<_> = side(-1.0).chain(side(1.0).rev()).collect();
        if around.len() > 2 {
            context.draw_series([Polygon::new(around, colour(n).mix(0.3))])?;
        }
        let Some(Spread { q1, q3, .. }) = spread(runs) else { continue };
        context.draw_series([PathElement::new([(x, q1), (x, q3)], colour(n).stroke_width(2))])?;
    }
    Ok(())
}

/// The runs of every point: number of its line, where it stands, their values.
fn of_runs(chart: &Chart) -> impl Iterator<Item = (usize, f64, &[f64])> {
    let lines = chart.lines.iter().enumerate();
    lines.flat_map(move |(n, line)| {
        let x = move |p: &(f64, f64)| p.0 + aside(chart, n);
        line.points.iter().zip(&line.samples).map(move |(p, runs)| (n, x(p), &runs[..]))
    })
}

/// A square for each value, with its number, darker where it is larger.
pub(super) fn squares<'a, X: Axis, Y: Axis>(
    chart: &Chart,
    context: &mut Context<'a, '_, X, Y>,
) -> Result<Vec<Hit>, Failed<'a>> {
    let values = || chart.lines.iter().flat_map(|l| &l.points).map(|p| p.1);
    let (least, most) = values().fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    let mut hits = Vec::new();
    for (row, line) in chart.lines.iter().enumerate() {
        for (k, (x, value)) in line.points.iter().enumerate() {
            let y = row as f64;
            let share = if most > least { (value - least) / (most - least) } else { 0.5 };
            let (fill, ink) = shade(share);
            context.draw_series([Rectangle::new([(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)], fill.filled())])?;
            let middle = Pos::new(HPos::Center, VPos::Center);
            let style = ("sans-serif", 14).into_font().color(&ink).pos(middle);
            context.draw_series([Text::new(short(*value), (*x, y), style)])?;
            let (left, top) = context.backend_coord(&(x - 0.5, y + 0.5));
            let at = context.backend_coord(&(*x, y));
            hits.push(Hit { at, half: (at.0 - left, at.1 - top), text: chart.tip(line, k) });
        }
    }
    Ok(hits)
}

/// A colour from pale to dark by `share`, 0 to 1, and one that is read on it.
fn shade(share: f64) -> (RGBColor, RGBColor) {
    const STOPS: [[f64; 3]; 3] = [[237.0, 246.0, 234.0], [65.0, 172.0, 190.0], [10.0, 42.0, 98.0]];
    let (from, to, part) = match share < 0.5 {
        true => (STOPS[0], STOPS[1], share * 2.0),
        false => (STOPS[1], STOPS[2], share * 2.0 - 1.0),
    };
    let of = |n: usize| (from[n] + (to[n] - from[n]) * part) as u8;
    (RGBColor(of(0), of(1), of(2)), if share < 0.6 { RGBColor(0, 0, 0) } else { RGBColor(255, 255, 255) })
}

/// How far from its place line `n` stands, so that lines do not hide one another.
pub(super) fn aside(chart: &Chart, n: usize) -> f64 {
    match chart.places.is_empty() {
        true => 0.0,
        false => (n as f64 - (chart.lines.len() as f64 - 1.0) / 2.0) * (0.5 / chart.lines.len() as f64),
    }
}
