//! The points that a paper published, from the file beside the spec.

use std::collections::BTreeMap;

use super::chart::{Chart, Line, Mark};
use super::lines::FigureError;
use crate::shelf::Place;

/// Published points by the label of their series.
pub(super) type Published = BTreeMap<String, Vec<(f64, f64)>>;

/// Reads `series,x,y` lines; lines that begin with `#` are remarks.
pub(super) fn published(place: &Place, name: &str) -> Result<Published, FigureError> {
    let wrong =
        |line: usize, reason: String| FigureError::Published { file: place.shown(name), line, reason };
    let text = place.read(name).map_err(|e| wrong(0, e.to_string()))?;
    let mut points = Published::new();
    let lines = text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
    for (n, (number, line)) in lines.enumerate() {
        let fields: Vec<&str> = line.rsplitn(3, ',').map(|f| f.trim().trim_matches('"')).collect();
        let [y, x, series] = fields[..] else {
            return Err(wrong(number + 1, "needs the columns series,x,y".into()));
        };
        match (x.parse(), y.parse()) {
            (Ok(x), Ok(y)) => points.entry(series.to_owned()).or_default().push((x, y)),
            _ if n == 0 && (series, x, y) == ("series", "x", "y") => {}
            _ => return Err(wrong(number + 1, format!("{x} and {y} must be numbers"))),
        }
    }
    if points.is_empty() {
        return Err(wrong(text.lines().count(), "has no points: add lines of series,x,y".into()));
    }
    Ok(points)
}

/// Puts published points beside the line of their name; those of no line get one of their own.
pub(super) fn add_published(chart: &mut Chart, published: &Published) {
    if chart.mark == Mark::Heat {
        return;
    }
    for (series, points) in published {
        match chart.lines.iter_mut().find(|l| l.label == *series) {
            Some(line) => line.published.clone_from(points),
            None => {
                let label = format!("{series} (paper only)");
                chart.lines.push(Line { label, published: points.clone(), ..Line::default() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_points_are_read_or_refused_with_their_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.csv");
        std::fs::write(&file, "# read off the plot\nseries,x,y\nFF, n=2,25,0.4\nTCP,1,2\nFF, n=2,50,0.9\n")
            .unwrap();
        let place = Place::Dir(dir.path().to_owned());
        let points = published(&place, "f.csv").unwrap();
        assert_eq!(points["FF, n=2"], [(25.0, 0.4), (50.0, 0.9)]);
        assert_eq!(points.len(), 2);
        std::fs::write(&file, "series,x,y\nFF,25,o.4\n").unwrap();
        assert!(
            published(&place, "f.csv")
                .unwrap_err()
                .to_string()
                .ends_with("f.csv:2: 25 and o.4 must be numbers")
        );
        for empty in ["", "# nothing read off yet\nseries,x,y\n"] {
            std::fs::write(&file, empty).unwrap();
            let said = published(&place, "f.csv").unwrap_err().to_string();
            assert!(said.contains("f.csv:") && said.contains("has no points"), "{said}");
        }
    }
}
