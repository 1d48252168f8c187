//! Each chart as files of its own: a drawing for pages (SVG), one for papers (PDF), and its numbers (CSV).

use std::path::Path;
use std::{fs, io};

use super::chart::Chart;
use super::drawing::drawing;
use super::pdf::pdf;
use super::points::numbered;
use crate::columns::write_csv;

/// Writes `NAME-1.svg`, `NAME-1.pdf`, `NAME-1.csv` for the first of `charts`, and so on, into `dir`.
pub fn files(charts: &[Chart], name: &str, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    charts.iter().enumerate().try_for_each(|(n, chart)| {
        let write = |kind: &str, content: &[u8]| {
            let file = dir.join(format!("{name}-{}.{kind}", n + 1));
            fs::write(&file, content)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.display())))
        };
        let svg = drawing(chart);
        write("svg", svg.as_bytes())?;
        write("pdf", &pdf(&svg).map_err(io::Error::other)?)?;
        let mut csv = Vec::new();
        write_csv(&numbered(std::iter::once((n, chart))), &mut csv)?;
        write("csv", &csv)
    })
}
