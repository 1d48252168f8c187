//! What a chart shows, before anything draws it.

use serde::Serialize;

use crate::check::short;

/// What is drawn.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// What the numbers stand for that `places` has for names too long for the axis.
    pub key: String,
    /// Under the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// Logarithmic scales.
    pub log: (bool, bool),
    /// Upper end of the y axis, if it is given.
    pub y_max: Option<f64>,
    /// A horizontal line.
    pub level: Option<f64>,
    /// Names of the places 0, 1, 2, … on the x axis, where these are no numbers.
    pub places: Vec<String>,
    /// What the bands are, in words.
    pub band: &'static str,
    /// What stands for the points of a line.
    pub mark: Mark,
    /// The lines.
    pub lines: Vec<Line>,
}

/// What stands for the points of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A curve over its band; points with bars where places are no numbers.
    #[default]
    Line,
    /// Stairs: the next value holds from the next point on.
    Step,
    /// Quartiles, median, whiskers.
    Box,
    /// The density of the runs.
    Violin,
    /// Squares whose colour is the value; each line is a row.
    Heat,
}

/// One line with its band and the points that were published for it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Line {
    /// What it is called.
    pub label: String,
    /// Our values, in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of the band at each of `points`; empty without a band.
    pub band: Vec<(f64, f64)>,
    /// The paper's.
    pub published: Vec<(f64, f64)>,
    /// The value of every run at each of `points`, where boxes or densities are drawn.
    pub samples: Vec<Vec<f64>>,
}

impl Chart {
    /// What the bands are, as a sentence without its full stop.
    pub fn band_text(&self) -> String {
        match self.mark {
            Mark::Box | Mark::Violin => self.band.to_owned(),
            Mark::Line | Mark::Step | Mark::Heat => format!("Band: {}", self.band),
        }
    }

    /// The names of the rows of squares.
    pub(super) fn rows(&self) -> impl Iterator<Item = &str> {
        let rows = if self.mark == Mark::Heat { &self.lines[..] } else { &[] };
        rows.iter().map(|line| line.label.as_str())
    }

    /// What point `k` of `line` says.
    pub(super) fn tip(&self, line: &Line, k: usize) -> String {
        let (x, y) = line.points[k];
        let x = self.place(x).unwrap_or_else(|| short(x));
        let band = line
            .band
            .get(k)
            .map_or(String::new(), |(low, high)| format!(" [{}, {}]", short(*low), short(*high)));
        let runs = line.samples.get(k).map_or(String::new(), |runs| format!(", {} runs", runs.len()));
        format!("{}: {x}: {}{band}{runs}", line.label, short(y))
    }
}
