//! Checks figures: their series, axes and times must exist in the spec, and each published point must belong to one of the series.

use polypath_wire::Duration;

use super::super::cell::chosen;
use super::super::error::{Problem, at, suggestion};
use super::super::figure::DEFAULT_BIN;
use super::super::published::{Point, read};
use super::super::{Axis, Band, Cell, Figure, FigureKind, Metric, Spec};
use super::Aim;
use crate::place::Place;
use crate::units::Human;

pub(crate) fn figures(spec: &Spec, cells: &[Cell], place: &Place) -> Result<(), Problem> {
    for (n, figure) in spec.figure.iter().enumerate() {
        let aim = Aim { spec, cells, at: at!["figure", n] };
        if figure.series.is_empty() {
            return Err(Problem::new(aim.key("series"), "there is nothing to draw")
                .help("write for example series = [{ flow = \"…\" }], a line for each"));
        }
        own_keys(figure, &aim)?;
        match figure.kind {
            FigureKind::Time => time(spec, cells, figure, &aim)?,
            FigureKind::Sweep | FigureKind::Box | FigureKind::Violin => sweep(spec, figure, &aim)?,
            FigureKind::Heat => heat(spec, figure, &aim)?,
            FigureKind::Cdf => {}
        }
        for (m, series) in figure.series.iter().enumerate() {
            let aim = Aim { spec, cells, at: at!["figure", n, "series", m] };
            let cell = match figure.kind {
                FigureKind::Time => &figure.cell,
                FigureKind::Cdf if series.of.cell.is_none() => &figure.cell,
                _ => &series.of.cell,
            };
            aim.selector(&series.selector(figure), cell.as_deref(), &[])?;
        }
        published(spec, cells, figure, &aim, place)?;
    }
    Ok(())
}

/// Each of its keys means something to figures of its kind.
fn own_keys(figure: &Figure, aim: &Aim<'_>) -> Result<(), Problem> {
    use FigureKind::{Box, Cdf, Heat, Sweep, Time, Violin};
    let along = &[Sweep, Box, Violin, Heat][..];
    let keys: [(&str, bool, &[FigureKind]); 9] = [
        ("bin", figure.bin != DEFAULT_BIN, &[Time]),
        ("one_run", figure.one_run, &[Time]),
        ("from", figure.from.is_some(), &[Time]),
        ("to", figure.to.is_some(), &[Time]),
        ("cell", figure.cell.is_some(), &[Time, Cdf]),
        ("axis", figure.axis.is_some(), along),
        ("x", !figure.x.is_empty(), &[Sweep]),
        ("rows", figure.rows.is_some(), &[Heat]),
        ("band", figure.band != Band::default(), &[Time, Sweep]),
    ];
    let foreign =
        |(_, is_set, kinds): &&(&str, bool, &[FigureKind])| *is_set && !kinds.contains(&figure.kind);
    let Some((key, _, kinds)) = keys.iter().find(foreign) else { return Ok(()) };
    let name = |kind: &FigureKind| format!("\"{}\"", format!("{kind:?}").to_lowercase());
    let problem = format!("of no meaning to a figure of kind {}", name(&figure.kind));
    let kinds: Vec<String> = kinds.iter().map(name).collect();
    Err(Problem::new(aim.key(key), problem)
        .help(format!("leave it out; it is for kind {}", kinds.join(", "))))
}

fn time(spec: &Spec, cells: &[Cell], figure: &Figure, aim: &Aim<'_>) -> Result<(), Problem> {
    if figure.bin.0.0 == 0 {
        return Err(Problem::new(aim.key("bin"), "a bin of length zero holds nothing")
            .help("write for example bin = \"500ms\""));
    }
    if spec.duration.0.0 / figure.bin.0.0 > 1_000_000 {
        return Err(Problem::new(aim.key("bin"), "that makes more than a million bins")
            .help(format!("write a longer one: the run takes {}", spec.duration)));
    }
    if chosen(cells, figure.cell.as_deref()).is_empty() {
        return Err(aim.unknown_cell(figure.cell.as_deref().unwrap_or_default(), "cell"));
    }
    chosen(cells, figure.cell.as_deref()).into_iter().try_for_each(|cell| stretch(figure, cell, aim))?;
    let is_drawable = |m: &&Metric| m.def().drawable.is_some();
    for (m, series) in figure.series.iter().enumerate() {
        let at = aim.at.iter().cloned().chain(at!["series", m]).collect();
        if series.of.is_ratio() || series.of.cell.is_some() {
            return Err(Problem::new(at, "ratios and cells are for figures of other kinds than \"time\"")
                .help("name the cell of the figure itself, and a flow and its metric in the series"));
        }
        let metric = series.of.metric.unwrap_or(figure.metric);
        if !is_drawable(&&metric) {
            let known: Vec<String> = Metric::ALL.iter().filter(is_drawable).map(|m| m.name()).collect();
            let known = known.join(", ");
            return Err(Problem::new(at, "has no course over time").help(format!("these have: {known}")));
        }
    }
    Ok(())
}

/// A bin or more of each run is drawn.
fn stretch(figure: &Figure, cell: &Cell, aim: &Aim<'_>) -> Result<(), Problem> {
    let (from, end) = (figure.from.map_or(Duration::ZERO, |t| t.0), cell.spec.duration.0);
    let to = figure.to.map_or(end, |t| t.0);
    let within = if cell.label.is_empty() { String::new() } else { format!(" in cell {}", cell.label) };
    let run = format!("the run takes {}{within}", Human(end));
    if from >= end {
        return Err(Problem::new(aim.key("from"), format!("not before the end of the run{within}")).help(run));
    }
    if to <= from {
        let problem =
            Problem::new(aim.key("to"), format!("not after {}, from where it is drawn", Human(from)));
        return Err(problem.help(run));
    }
    if figure.bin.0 > to.min(end) - from {
        let drawn = format!("longer than what is drawn, {} to {}{within}", Human(from), Human(to.min(end)));
        return Err(Problem::new(aim.key("bin"), drawn).help("write a shorter one"));
    }
    Ok(())
}

/// The points of the paper stand at places that there are, on lines that there are.
fn published(
    spec: &Spec,
    cells: &[Cell],
    figure: &Figure,
    aim: &Aim<'_>,
    place: &Place,
) -> Result<(), Problem> {
    let Some(file) = &figure.published else { return Ok(()) };
    let refused = |message: String, help: String| Err(Problem::new(aim.key("published"), message).help(help));
    if figure.kind == FigureKind::Heat {
        return refused("squares have no published points".into(), "leave it out, or draw a sweep".into());
    }
    let points = match read(place, file) {
        Ok(points) => points,
        Err(e) => return refused(e.to_string(), "write lines of series,x,y (docs/experiments.md)".into()),
    };
    let (lines, places) = (figure.lines(spec, cells), figure.named_places(spec, cells));
    for Point { line, series, x, .. } in points {
        let at = format!("{}:{line}", place.shown(file));
        if !lines.contains(&series) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            return refused(
                format!("{at}: no line is named \"{series}\""),
                suggestion("line", &series, &lines),
            );
        }
        match &places {
            Some(places) if !places.contains(&x) => {
                let places: Vec<&str> = places.iter().map(String::as_str).collect();
                return refused(
                    format!("{at}: no value of the axis is named \"{x}\""),
                    suggestion("value of the axis", &x, &places),
                );
            }
            None if !x.parse().is_ok_and(f64::is_finite) => {
                return refused(
                    format!("{at}: {x} is no finite number"),
                    "x stands on an axis of numbers".into(),
                );
            }
            _ => {}
        }
    }
    Ok(())
}

/// The axis of the grid that `key` names.
fn axis<'a>(spec: &'a Spec, key: &str, name: Option<&str>, aim: &Aim<'_>) -> Result<&'a Axis, Problem> {
    let names: Vec<&str> = spec.grid.iter().map(|a| a.called()).collect();
    let Some(name) = name else {
        let problem = Problem::new(aim.at.clone(), format!("the key `{key}` is missing"));
        return Err(problem.help(match names[..] {
            [] => "add a [[grid]] and name its axis here, or draw kind = \"time\" or \"cdf\"".to_owned(),
            _ => format!("add {key} = \"…\"; axes of the grid are: {}", names.join(", ")),
        }));
    };
    let found = spec.grid.iter().find(|a| a.called() == name || a.key.as_deref() == Some(name));
    found.ok_or_else(|| Problem::unknown(aim.key(key), "axis of the grid", name, &names))
}

fn heat(spec: &Spec, figure: &Figure, aim: &Aim<'_>) -> Result<(), Problem> {
    let across = axis(spec, "axis", figure.axis.as_deref(), aim)?;
    let up = axis(spec, "rows", figure.rows.as_deref(), aim)?;
    if std::ptr::eq(across, up) {
        return Err(Problem::new(aim.key("rows"), "the rows are the axis that is drawn across")
            .help("name another axis of the grid, or draw a sweep"));
    }
    if figure.series.len() > 1 {
        return Err(Problem::new(aim.key("series"), "a square has one colour: one series")
            .help("draw each of the others in a [[figure]] of its own"));
    }
    Ok(())
}

fn sweep(spec: &Spec, figure: &Figure, aim: &Aim<'_>) -> Result<(), Problem> {
    let found = axis(spec, "axis", figure.axis.as_deref(), aim)?;
    if !figure.x.is_empty() && figure.x.len() != found.values.len() {
        let (places, values) = (figure.x.len(), found.values.len());
        return Err(Problem::new(
            aim.key("x"),
            format!("not one place for each value of the axis: {places} for {values}"),
        )
        .help(
            "write one place for each value, or leave x out: values that are numbers are their own places",
        ));
    }
    Ok(())
}
