//! What stands around the lines of a figure: titles, units, the places of an axis.

use super::chart::{Chart, Mark};
use crate::spec::{Band, Figure, FigureKind, Series};

/// Characters for which there is room along an axis.
const AXIS_WIDTH: usize = 90;

/// What boxes and violins show.
const BOXES: &str = "Boxes: quartiles and median over the seeds; whiskers to the furthest run within 1.5 interquartile ranges; \
                     circles: runs beyond";
const VIOLINS: &str = "Width: density of the seeds' runs (Gaussian kernel); dot: median; bar: quartiles";

/// The chart of `figure` without its lines.
pub(super) fn blank(figure: &Figure) -> Chart {
    let (unit, _) = figure.series.first().map_or(("", 1.0), |s| unit(s, figure));
    let metric = metrics(figure);
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let ratio = figure.series.first().is_some_and(|s| s.selector(figure).is_ratio());
    let y_label = if ratio { format!("ratio of {metric}") } else { format!("{metric}{unit}") };
    Chart {
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        x_label: figure.x_label.clone().unwrap_or_else(|| "time, s".into()),
        y_label: figure.y_label.clone().unwrap_or(y_label),
        log: (figure.log_x, figure.log_y),
        y_max: figure.y_max,
        level: figure.line,
        band: match (figure.kind, figure.band) {
            (FigureKind::Box, _) => BOXES,
            (FigureKind::Violin, _) => VIOLINS,
            (_, Band::Ci95) => "95 % confidence interval of the mean",
            (_, Band::Sd) => "one standard deviation to either side",
            (_, Band::Range) => "from the smallest to the largest",
        },
        mark: match figure.kind {
            FigureKind::Time | FigureKind::Sweep => Mark::Line,
            FigureKind::Cdf => Mark::Step,
            FigureKind::Box => Mark::Box,
            FigureKind::Violin => Mark::Violin,
            FigureKind::Heat => Mark::Heat,
        },
        ..Chart::default()
    }
}

/// What its series show; each once.
fn metrics(figure: &Figure) -> String {
    let mut names: Vec<String> = Vec::new();
    for series in &figure.series {
        let name = series.selector(figure).what.metric.name().replace('_', " ");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" and ")
}

/// The unit of `series` in `figure`, and what its values are multiplied by for that.
pub(super) fn unit(series: &Series, figure: &Figure) -> (&'static str, f64) {
    let selector = series.selector(figure);
    let bare = selector.is_ratio() || series.of.statistic.is_bare();
    if bare { ("", 1.0) } else { selector.what.metric.unit() }
}

/// What stands at the places of an axis: the labels if there is room for them; otherwise numbers, and
/// what they mean.
pub(super) fn places(labels: &[String]) -> (Vec<String>, String) {
    let longest = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    if longest * labels.len() <= AXIS_WIDTH {
        return (labels.to_vec(), String::new());
    }
    let numbered = labels.iter().enumerate().map(|(n, label)| format!("{} {label}", n + 1));
    let key = format!("Across: {}.", numbered.collect::<Vec<_>>().join(", "));
    ((1..=labels.len()).map(|n| n.to_string()).collect(), key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_numbered() {
        let of = |labels: [&str; 2]| places(&labels.map(str::to_owned));
        assert_eq!(of(["a", "b"]), (vec!["a".to_owned(), "b".to_owned()], String::new()));
        let long = "x".repeat(60);
        let (places, key) = of(["a", &long]);
        assert_eq!((places, key), (vec!["1".to_owned(), "2".to_owned()], format!("Across: 1 a, 2 {long}.")));
    }
}
