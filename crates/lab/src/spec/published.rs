//! The points that a paper published, from the file beside the spec.

use crate::place::Place;

/// One of them.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Point {
    /// Where it stands in its file, from 1.
    pub line: usize,
    /// The line of the figure to which it belongs.
    pub series: String,
    /// A number, or a label of the axis.
    pub x: String,
    /// In the unit of the axis.
    pub y: f64,
}

/// What is wrong with a file of them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct Unreadable {
    /// The file.
    pub file: String,
    /// From 1; 0 is the file itself.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// Reads `series,x,y` lines; lines that begin with `#` are remarks.
pub(crate) fn read(place: &Place, name: &str) -> Result<Vec<Point>, Unreadable> {
    let wrong = |line: usize, reason: String| Unreadable { file: place.shown(name), line, reason };
    let text = place.read(name).map_err(|e| wrong(0, e.to_string()))?;
    let mut points = Vec::new();
    let lines = (1..).zip(text.lines()).filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
    for (n, (line, written)) in lines.enumerate() {
        let fields: Vec<&str> = written.rsplitn(3, ',').map(|f| f.trim().trim_matches('"')).collect();
        let [y, x, series] = fields[..] else {
            return Err(wrong(line, "needs the columns series,x,y".into()));
        };
        if n == 0 && (series, x, y) == ("series", "x", "y") {
            continue;
        }
        let y = y.parse().ok().filter(|y: &f64| y.is_finite());
        let y = y.ok_or_else(|| wrong(line, format!("{} is no finite number", fields[0])))?;
        points.push(Point { line, series: series.to_owned(), x: x.to_owned(), y });
    }
    if points.is_empty() {
        return Err(wrong(text.lines().count(), "has no points: add lines of series,x,y".into()));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_points_are_read_or_refused_with_their_line() {
        let read = |text: &str| read(&Place::Texts([("f.csv".to_owned(), text.to_owned())].into()), "f.csv");
        let points = read("# read off the plot\nseries,x,y\nFF, n=2,25,0.4\nTCP,small,2\n").unwrap();
        let point = |line, series: &str, x: &str, y| Point { line, series: series.into(), x: x.into(), y };
        assert_eq!(points, [point(3, "FF, n=2", "25", 0.4), point(4, "TCP", "small", 2.0)]);
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(said("series,x,y\nFF,25,o.4\n"), "f.csv:2: o.4 is no finite number");
        assert_eq!(said("FF,25,nan\n"), "f.csv:1: nan is no finite number");
        for empty in ["", "# nothing read off yet\nseries,x,y\n"] {
            assert!(said(empty).contains("has no points"), "{}", said(empty));
        }
    }
}
