//! One chart as SVG. Colours are CSS variables of the page, so that it can be light or dark.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::chart::{Chart, Line, Mark};
use super::colours::{COLOURS, GRID, TEXT, colour};
use super::marks::{Hit, aside, bars, boxes, curves, squares, violins};
use crate::check::short;

/// Lines of no more points than this have their points marked.
pub const MARKED: usize = 40;
/// Width and height of a drawing.
pub const SIZE: (u32, u32) = (680, 360);
/// From where to where both axes reach.
type Ranges = ((f64, f64), (f64, f64));

/// The chart as an SVG element that takes the width it is given. Empty if there is nothing to draw.
pub fn svg(chart: &Chart) -> String {
    let Some(ranges) = ranges(chart) else { return String::new() };
    let ((x0, x1), (y0, y1)) = ranges;
    let mut text = String::new();
    let hits = {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let (x, y) = (x0..x1, y0..y1);
        let drawn = match chart.log {
            (false, false) => draw(chart, ranges, &root, x, y),
            (true, false) => draw(chart, ranges, &root, x.log_scale(), y),
            (false, true) => draw(chart, ranges, &root, x, y.log_scale()),
            (true, true) => draw(chart, ranges, &root, x.log_scale(), y.log_scale()),
        };
        drawn.expect("drawing into a string does not fail")
    };
    let hits: String = hits.iter().map(Hit::svg).collect();
    themed(&text.replace("</svg>", &format!("{hits}</svg>")), &alternative(chart))
}

fn draw<X, Y>(
    chart: &Chart,
    ((left, right), _): Ranges,
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    x: X,
    y: Y,
) -> Result<Vec<Hit>, Box<dyn std::error::Error>>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut builder = ChartBuilder::on(root);
    let mut context = builder
        .margin(12)
        .margin_right(28)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)?;
    let text = ("sans-serif", 15).into_font().color(&TEXT);
    let named = |names: &[String], v: &f64| {
        let is_one = (v - v.round()).abs() < 1e-6 && *v > -0.5;
        names.get(v.round() as usize).filter(|_| is_one).cloned().unwrap_or_default()
    };
    let rows: Vec<String> = chart.rows().map(str::to_owned).collect();
    let (place, row) = (|v: &f64| named(&chart.places, v), |v: &f64| named(&rows, v));
    let number = |v: &f64| short(*v);
    let mut mesh = context.configure_mesh();
    mesh.label_style(text.clone()).axis_desc_style(text);
    mesh.bold_line_style(GRID).light_line_style(TRANSPARENT).axis_style(TEXT);
    mesh.x_desc(&chart.x_label).y_desc(&chart.y_label).y_label_formatter(&number);
    if chart.mark == Mark::Heat {
        mesh.y_label_formatter(&row).y_labels(rows.len() + 1).disable_y_mesh();
    }
    match chart.places.len() {
        0 => mesh.x_label_formatter(&number).x_labels(9).draw()?,
        n => mesh.x_label_formatter(&place).x_labels(n + 1).disable_x_mesh().draw()?,
    }
    if let Some(level) = chart.level {
        context.draw_series(DashedLineSeries::new([(left, level), (right, level)], 6, 5, TEXT.into()))?;
    }
    match chart.mark {
        Mark::Box => boxes(chart, &mut context)?,
        Mark::Violin => violins(chart, &mut context)?,
        Mark::Heat => return squares(chart, &mut context),
        Mark::Line | Mark::Step if chart.places.is_empty() => curves(chart, &mut context)?,
        Mark::Line | Mark::Step => bars(chart, &mut context)?,
    }
    let mut hits = Vec::new();
    for (n, line) in chart.lines.iter().enumerate() {
        let few = if line.points.len() <= MARKED { &line.points[..] } else { &[] };
        let at = |(x, y): &(f64, f64)| (x + aside(chart, n), *y);
        let dots = if chart.mark == Mark::Box { &[] } else { few };
        context.draw_series(dots.iter().map(|p| Circle::new(at(p), 3, colour(n).filled())))?;
        let paper = line.published.iter();
        context.draw_series(paper.map(|p| TriangleMarker::new(at(p), 6, colour(n).stroke_width(2))))?;
        let hit = |(k, p)| Hit { at: context.backend_coord(&at(p)), half: (9, 9), text: chart.tip(line, k) };
        hits.extend(few.iter().enumerate().map(hit));
    }
    root.present()?;
    Ok(hits)
}

/// The ends of both axes; `None` if there is nothing to draw.
fn ranges(chart: &Chart) -> Option<Ranges> {
    let points = || chart.lines.iter().flat_map(|l| l.points.iter().chain(&l.published));
    let xs: Vec<f64> = points().map(|(x, _)| *x).collect();
    let bands = chart.lines.iter().flat_map(|l| &l.band).flat_map(|(low, high)| [*low, *high]);
    let runs = chart.lines.iter().flat_map(|l| &l.samples).flatten().copied();
    let mut ys: Vec<f64> = points().map(|(_, y)| *y).chain(bands).chain(runs).chain(chart.level).collect();
    ys.retain(|y| y.is_finite() && (!chart.log.1 || *y > 0.0));
    let ends = |all: &[f64]| {
        let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        (low <= high).then_some((low, high))
    };
    let ((x0, x1), (y0, y1)) = (ends(&xs)?, ends(&ys)?);
    let x = match chart.places.len() {
        0 if x0 == x1 => (x0 - 0.5, x1 + 0.5),
        0 => (x0, x1),
        n => (-0.5, n as f64 - 0.5),
    };
    if chart.mark == Mark::Heat {
        return Some((x, (-0.5, chart.lines.len() as f64 - 0.5)));
    }
    if matches!(chart.mark, Mark::Box | Mark::Violin) && !chart.log.1 {
        // How runs scatter is the point, not how far from zero they are.
        let beside = if y1 > y0 { (y1 - y0) * 0.08 } else { y1.abs() * 0.08 + f64::MIN_POSITIVE };
        return Some((x, (y0 - beside, chart.y_max.unwrap_or(y1 + beside))));
    }
    let top = chart.y_max.unwrap_or(if y1 > 0.0 { y1 * 1.06 } else { y1 + 1.0 });
    let y = if chart.log.1 { (y0 / 1.1, top) } else { (y0.min(0.0), top) };
    Some((x, y))
}

/// The text for a reader who does not see the drawing.
fn alternative(chart: &Chart) -> String {
    let line = |l: &Line| {
        let (first, last) = (l.points.first()?.0, l.points.last()?.0);
        let mean = l.points.iter().map(|(_, y)| y).sum::<f64>() / l.points.len() as f64;
        let from_to = format!("from {} to {}", short(first), short(last));
        Some(format!("{}: {from_to} on average {}", l.label, short(mean)))
    };
    let lines: Vec<String> = chart.lines.iter().filter_map(line).collect();
    format!("{}. {} over {}. {}.", chart.title, chart.y_label, chart.x_label, lines.join("; "))
}

/// Takes the size and the colours from the page.
fn themed(text: &str, alternative: &str) -> String {
    let body = text.split_once('>').map_or("", |(_, rest)| rest);
    let hex = |c: RGBColor| format!("\"#{:02X}{:02X}{:02X}\"", c.0, c.1, c.2);
    let mut body = body.replace(&hex(TEXT), "\"var(--ink)\"").replace(&hex(GRID), "\"var(--grid)\"");
    for n in 0..COLOURS {
        body = body.replace(&hex(colour(n)), &format!("\"var(--c{n})\""));
    }
    let (width, height) = SIZE;
    let label = maud::html! { (alternative) }.into_string().replace('"', "&quot;");
    format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)]) -> Line {
        Line { label: "one \"and\" only".into(), points: points.to_vec(), ..Line::default() }
    }

    #[test]
    fn a_chart_takes_its_colours_from_the_page_and_tells_what_it_shows() {
        let band = vec![(0.5, 1.5), (1.5, 2.5)];
        let lines = vec![Line { band, published: vec![(1.0, 1.0)], ..line(&[(0.0, 1.0), (1.0, 2.0)]) }];
        for log in [(false, false), (false, true)] {
            let text = svg(&Chart { lines: lines.clone(), log, level: Some(1.0), ..Chart::default() });
            assert!(text.starts_with("<svg viewBox=") && text.trim_end().ends_with("</svg>"));
            assert!(text.contains("var(--c0)") && text.contains("var(--ink)") && !text.contains("\"#01"));
            assert!(text.contains("one &quot;and&quot; only: from 0 to 1 on average 1.5"), "{text}");
            assert_eq!(text.matches("<polygon").count(), 2, "a band and a published point");
        }
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(svg(&Chart::default()), "");
        assert_eq!(svg(&Chart { lines: vec![line(&[])], ..Chart::default() }), "");
    }

    #[test]
    fn places_have_names() {
        let places = vec!["small".to_owned(), "large".to_owned()];
        let text = svg(&Chart { places, lines: vec![line(&[(0.0, 1.0), (1.0, 3.0)])], ..Chart::default() });
        assert!(text.contains("small") && text.contains("large"));
    }
}
