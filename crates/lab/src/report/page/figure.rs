//! A figure of a page: the drawing, and the same numbers for the script that draws them with zoom and tooltips.

use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value, json};

use crate::report::chart::{Chart, Line, Mark};
use crate::report::colours::COLOURS;
use crate::report::svg::{MARKED, svg};

/// The figure of `chart`.
pub fn figure(chart: &Chart) -> Markup {
    let has_band = chart.lines.iter().any(|l| !l.band.is_empty());
    let has_published = chart.lines.iter().any(|l| !l.published.is_empty());
    html! {
        figure {
            h3 { (chart.title) }
            div.chart { div.scroll { (PreEscaped(svg(chart))) } }
            @if let Some(numbers) = numbers(chart) { script type="application/json" { (PreEscaped(numbers)) } }
            figcaption {
                @if chart.mark != Mark::Heat {
                    ul.legend {
                        @for (n, line) in chart.lines.iter().enumerate() {
                            li { span.swatch style={ "background:var(--c" (n % COLOURS) ")" } {} (line.label) }
                        }
                    }
                }
                @if has_published { p { "Triangles: published." } }
                @if has_band { p { (chart.band_text()) "." } }
                @if !chart.key.is_empty() { p { (chart.key) } }
                @if !chart.caption.is_empty() { p { (chart.caption) } }
            }
        }
    }
}

/// What the script needs, as JSON that may stand in HTML; none of a chart whose places are no numbers: it stays as it is.
fn numbers(chart: &Chart) -> Option<String> {
    let drawn = matches!(chart.mark, Mark::Line | Mark::Step) && chart.places.is_empty();
    let any = chart.lines.iter().any(|l| !l.points.is_empty());
    (drawn && any).then(|| {
        let mut xs: Vec<f64> =
            chart.lines.iter().flat_map(|l| l.points.iter().chain(&l.published)).map(|p| p.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let lines: Vec<Value> = chart.lines.iter().map(|l| line(l, &xs)).collect();
        let all = json!({
            "x": xs.iter().map(|x| rounded(*x)).collect::<Vec<_>>(), "lines": lines, "xLabel": chart.x_label,
            "yLabel": chart.y_label, "log": [chart.log.0, chart.log.1], "step": chart.mark == Mark::Step,
            "level": chart.level, "yMax": chart.y_max,
        });
        all.to_string().replace('<', "\\u003c")
    })
}

/// A line at each of `xs`; null where it has no point.
fn line(line: &Line, xs: &[f64]) -> Value {
    let at = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut found = vec![Value::Null; xs.len()];
        for (x, y) in points {
            let n = xs.binary_search_by(|known| known.total_cmp(&x)).expect("every x is among them");
            found[n] = rounded(y);
        }
        Value::Array(found)
    };
    let mut all = Map::from_iter([
        ("label".to_owned(), json!(line.label)),
        ("points".to_owned(), json!(line.points.len() <= MARKED)),
        ("y".to_owned(), at(&mut line.points.iter().copied())),
    ]);
    if !line.band.is_empty() {
        let edge =
            |of: fn(&(f64, f64)) -> f64| line.points.iter().zip(&line.band).map(move |(p, b)| (p.0, of(b)));
        all.insert("low".to_owned(), at(&mut edge(|b| b.0)));
        all.insert("high".to_owned(), at(&mut edge(|b| b.1)));
    }
    if !line.published.is_empty() {
        all.insert("paper".to_owned(), at(&mut line.published.iter().copied()));
    }
    Value::Object(all)
}

/// Six significant digits.
fn rounded(value: f64) -> Value {
    json!(format!("{value:.5e}").parse::<f64>().ok().filter(|v| v.is_finite()))
}
