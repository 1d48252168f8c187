//! A chart as a file of its own: with title, legend and the colours of light pages, for documents.

use maud::html;

use super::chart::{Chart, Mark};
use super::colours::COLOURS;
use super::svg::{SIZE, svg};

/// Ink and lines of the axes, then the colours of the lines: as in `style.css`.
const INK: &str = "#1d232a";
const GRID: &str = "#d9dee4";
const LINES: [&str; COLOURS] =
    ["#0072b2", "#d55e00", "#007a5a", "#a8488a", "#8a6d00", "#56606b", "#c1121f", "#3a3fb5", "#5f8f00"];
/// Height of the title and of a row of the legend.
const TITLE: u32 = 30;
const ROW: u32 = 22;
/// Widths of a letter and of a swatch with its margins.
const LETTER: usize = 8;
const SWATCH: usize = 44;

/// A label of the legend: the number of its line, and where it stands.
struct Entry<'a> {
    line: usize,
    label: &'a str,
    x: usize,
    row: u32,
}

/// `chart` as an SVG file. Empty if there is nothing to draw.
pub fn drawing(chart: &Chart) -> String {
    let plot = svg(chart);
    let Some((_, inner)) = plot.split_once('>') else { return String::new() };
    let inner = coloured(inner.trim_end().trim_end_matches("</svg>"));
    let entries = legend(chart);
    let key = wrapped(&chart.key);
    let (width, plot_height) = SIZE;
    let rows = entries.last().map_or(0, |e| e.row) + 1;
    let height = TITLE + plot_height + ROW * (rows + key.len() as u32) + 6;
    let title = html! { (chart.title) }.into_string();
    let below = TITLE + plot_height + ROW / 2;
    let entry = |e: &Entry<'_>| {
        let (y, colour, label) =
            (below + ROW * e.row, LINES[e.line % COLOURS], html! { (e.label) }.into_string());
        format!(
            "<rect x=\"{}\" y=\"{}\" width=\"22\" height=\"5\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{INK}\">{label}</text>\n",
            e.x,
            y - 2,
            e.x + 28,
            y + 5
        )
    };
    let legend: String = entries.iter().map(entry).collect();
    let under = |(n, line): (usize, &String)| {
        let (y, line) = (below + ROW * (rows + n as u32) + 5, html! { (line) }.into_string());
        format!("<text x=\"{SWATCH}\" y=\"{y}\" fill=\"{INK}\">{line}</text>\n")
    };
    let key: String = key.iter().enumerate().map(under).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"15\" font-weight=\"bold\" fill=\"{INK}\">{title}</text>\n\
         <g transform=\"translate(0,{TITLE})\">{inner}</g>\n{legend}{key}</svg>\n",
        width / 2
    )
}

/// Colours instead of the page's variables.
fn coloured(text: &str) -> String {
    let mut text = text.replace("var(--ink)", INK).replace("var(--grid)", GRID);
    for (n, colour) in LINES.iter().enumerate() {
        text = text.replace(&format!("var(--c{n})"), colour);
    }
    text
}

/// The labels of `chart` in rows that fit its width.
fn legend(chart: &Chart) -> Vec<Entry<'_>> {
    let (mut x, mut row) = (SWATCH, 0);
    let mut entries = Vec::new();
    let named = if chart.mark == Mark::Heat { &[] } else { &chart.lines[..] };
    for (line, label) in named.iter().map(|l| l.label.as_str()).enumerate() {
        let wide = SWATCH + LETTER * label.chars().count();
        if x + wide > SIZE.0 as usize && x > SWATCH {
            (x, row) = (SWATCH, row + 1);
        }
        entries.push(Entry { line, label, x, row });
        x += wide;
    }
    entries
}

/// `text` in lines that fit the width.
fn wrapped(text: &str) -> Vec<String> {
    let most = (SIZE.0 as usize - 2 * SWATCH) / LETTER;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= most) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Line;

    #[test]
    fn a_drawing_has_its_title_its_legend_and_colours_of_its_own() {
        let line = |label: &str| Line {
            label: label.into(),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
            ..Line::default()
        };
        let long = "a label that needs most of a row of the legend, and a bit more than that";
        let lines = vec![line("one & two"), line(long), line("three")];
        let text = drawing(&Chart { title: "FF < 1".into(), lines, ..Chart::default() });
        assert!(
            text.contains("FF &lt; 1") && text.contains("one &amp; two") && !text.contains("var("),
            "{text}"
        );
        assert_eq!(text.matches("<svg").count(), 1);
        assert!(text.trim_end().ends_with("</svg>") && text.contains(LINES[2]));
        assert_eq!(legend(&Chart { lines: vec![line(long), line(long)], ..Chart::default() })[1].row, 1);
        assert_eq!(drawing(&Chart::default()), "");
    }
}
