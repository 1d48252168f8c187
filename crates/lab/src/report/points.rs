//! What figures draw, as a table: a row a point.

use arrow_array::RecordBatch;

use super::chart::{Chart, Line};
use crate::columns::{Column, table};

/// A point of a line of a chart.
struct Point<'a> {
    number: usize,
    chart: &'a Chart,
    line: &'a Line,
    at: (f64, f64),
    band: Option<(f64, f64)>,
    source: &'static str,
}

/// Every point of `charts`, with the columns `figure` (from 0), `title`, `series`, `source` (`ours`, `published`, or
/// `run`: one of the runs that a box or a density shows), `x`, `place` (what stands at `x` where places are no numbers), `y`, `low` and `high` (the band), `x_label`, `y_label` and `band`
/// (what it is). Numbers are in the units of the axes.
pub fn points(charts: &[Chart]) -> RecordBatch {
    numbered(charts.iter().enumerate())
}

/// The same of charts that have these numbers.
pub(super) fn numbered<'a>(charts: impl Iterator<Item = (usize, &'a Chart)>) -> RecordBatch {
    let rows: Vec<Point<'_>> = charts.flat_map(|(n, chart)| of_chart(n, chart)).collect();
    type Col<'a> = Column<'a, Point<'a>>;
    let columns = [
        Col::whole("figure", |p| Some(p.number as u64)),
        Col::text("title", |p| Some(p.chart.title.clone())),
        Col::text("series", |p| Some(p.line.label.clone())),
        Col::text("source", |p| Some(p.source.to_owned())),
        Col::number("x", |p| Some(p.at.0)),
        Col::text("place", |p| p.chart.place(p.at.0)),
        Col::number("y", |p| Some(p.at.1)),
        Col::number("low", |p| Some(p.band?.0)),
        Col::number("high", |p| Some(p.band?.1)),
        Col::text("x_label", |p| Some(p.chart.x_label.clone())),
        Col::text("y_label", |p| Some(p.chart.y_label.clone())),
        Col::text("band", |p| p.band.map(|_| p.chart.band.to_owned())),
    ];
    table(&columns, &rows)
}

fn of_chart<'a>(number: usize, chart: &'a Chart) -> impl Iterator<Item = Point<'a>> {
    chart.lines.iter().flat_map(move |line| {
        let point = move |(at, band, source)| Point { number, chart, line, at, band, source };
        let ours = line.points.iter().enumerate().map(|(n, at)| (*at, line.band.get(n).copied(), "ours"));
        let of = |(at, values): (&(f64, f64), &'a Vec<f64>)| {
            let x = at.0;
            values.iter().map(move |y| ((x, *y), None, "run"))
        };
        let runs = line.points.iter().zip(&line.samples).flat_map(of);
        let published = line.published.iter().map(|at| (*at, None, "published"));
        ours.chain(runs).chain(published).map(point)
    })
}

impl Chart {
    /// The name of the place `x`, where places have names.
    pub(super) fn place(&self, x: f64) -> Option<String> {
        (x >= 0.0 && x.fract() == 0.0).then(|| self.places.get(x as usize).cloned())?
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn every_point_has_a_row_with_its_band_and_its_place() {
        let line = Line {
            label: "FF".into(),
            points: vec![(0.0, 1.5), (1.0, 2.5)],
            band: vec![(1.0, 2.0), (2.0, 3.0)],
            published: vec![(1.0, 2.0)],
            ..Line::default()
        };
        let places = vec!["simple".into(), "final".into()];
        let table = points(&[Chart { lines: vec![line], places, band: "range", ..Chart::default() }]);
        let mut csv = Vec::new();
        crate::columns::write_csv(&table, &mut csv).unwrap();
        let rows = ["0,,FF,ours,0,simple,1.5,1,2,,,range", "0,,FF,ours,1,final,2.5,2,3,,,range"];
        let published = "0,,FF,published,1,final,2,,,,,";
        let text = String::from_utf8(csv).unwrap();
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), [&rows[..], &[published]].concat());
        assert_eq!(table.column_by_name("source").unwrap().as_string::<i32>().value(2), "published");
    }

    #[test]
    fn a_chart_has_its_number_also_in_a_file_of_its_own() {
        let line = Line { points: vec![(0.0, 1.0)], ..Line::default() };
        let charts = [Chart::default(), Chart { lines: vec![line], ..Chart::default() }];
        let alone = numbered(std::iter::once((1, &charts[1])));
        assert_eq!(alone, points(&charts));
    }
}
