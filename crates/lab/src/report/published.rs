//! The points that a paper published, beside the lines of their names.

use super::chart::{Chart, Mark};
use crate::spec::Point;

/// On an axis whose values stand side by side they are at `places`; those whose cell or line was not run are left out.
pub(super) fn add_published(chart: &mut Chart, points: &[Point], places: Option<&[String]>) {
    if chart.mark == Mark::Heat {
        return;
    }
    for point in points {
        let x = match places {
            Some(places) => places.iter().position(|place| *place == point.x).map(|n| n as f64),
            None => point.x.parse().ok(),
        };
        let line = chart.lines.iter_mut().find(|l| l.label == point.series);
        if let (Some(line), Some(x)) = (line, x) {
            line.published.push((x, point.y));
        }
    }
}
