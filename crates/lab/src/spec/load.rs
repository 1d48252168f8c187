//! From text to experiment: syntax, version, types, sense, and the cells of the grid.

use std::path::Path;

use polypath_transport::ConnectionConfig;
use serde::Serialize;
use toml::de::DeTable;
use toml::{Table, Value};

use super::connection::{in_bytes, merge, read_connection};
use super::error::{Problem, at, suggestion};
use super::read::read;
use super::{
    Assignment, Cell, Expect, Measure, Number, Series, Spec, SpecError, Supplied, Traffic, VERSION, aims,
    beside, chosen, grid, nulls, validate,
};
use crate::document::{Key, dotted};
use crate::place::{Place, Unknown};

/// An experiment: the spec as written, and one spec per cell of its grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// `<group>/<name>` of the file, or what else names it.
    pub name: String,
    /// What errors call the file.
    pub file: String,
    /// Where the files are that it names.
    pub place: Place,
    /// In TOML, as written; with assignments, as they leave it.
    pub text: String,
    /// What replaces values of the file, in order.
    pub set: Vec<Assignment>,
    /// The same, read.
    pub spec: Spec,
    /// One per combination of the grid, at least one.
    pub cells: Vec<Cell>,
}

/// Why there is no experiment.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is none of this name.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The file does not say what it should.
    #[error(transparent)]
    Spec(#[from] Box<SpecError>),
}

/// Reads the experiment in `file`.
pub fn load(file: &Path) -> Result<Experiment, LoadError> {
    let shown = file.display().to_string();
    let text =
        std::fs::read_to_string(file).map_err(|source| LoadError::Read { file: shown.clone(), source })?;
    let dir = file.parent().unwrap_or(Path::new(""));
    let place = Place::Dir(dir.to_owned());
    let source = Source { root: dir.parent(), ..Source::new(&text, &shown, &place) };
    let experiment = source.read()?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let group = file.parent().and_then(Path::file_name).map(|g| g.to_string_lossy().into_owned());
    Ok(Experiment { name: group.map_or(stem.to_string(), |g| format!("{g}/{stem}")), ..experiment })
}

/// Reads the experiment in `text`; errors call it `file`, in whose directory the files are that it names. Nulls in other
/// files are not looked at.
pub fn parse(text: &str, file: &str) -> Result<Experiment, Box<SpecError>> {
    parse_at(text, file, &Place::Dir(Path::new(file).parent().unwrap_or(Path::new("")).to_owned()))
}

/// The same; the files that it names are at `place`.
pub fn parse_at(text: &str, file: &str, place: &Place) -> Result<Experiment, Box<SpecError>> {
    Source::new(text, file, place).read()
}

/// The experiment `name` that `doc` describes; errors show the line of its text as TOML.
pub fn from_document(
    doc: &Table,
    name: &str,
    place: &Place,
    supplied: &Supplied,
) -> Result<Experiment, Box<SpecError>> {
    let text = toml::to_string(doc).expect("a table of TOML values can be written");
    Source { supplied, ..Source::new(&text, name, place) }.read()
}

impl Experiment {
    /// The same with these values in place of the file's. Nulls in other files, which have the file's, are not looked at.
    pub fn with(self, set: &[Assignment]) -> Result<Self, Box<SpecError>> {
        let source =
            Source { supplied: &self.spec.supplied, set, ..Source::new(&self.text, &self.file, &self.place) };
        let Self { text, set, spec, cells, .. } = source.read()?;
        Ok(Self { text, set: [self.set, set].concat(), spec, cells, ..self })
    }
}

/// The text of an experiment, and what else it takes to read it.
struct Source<'a> {
    text: &'a str,
    file: &'a str,
    place: &'a Place,
    /// Below it are the nulls of other groups.
    root: Option<&'a Path>,
    supplied: &'a Supplied,
    set: &'a [Assignment],
}

impl<'a> Source<'a> {
    fn new(text: &'a str, file: &'a str, place: &'a Place) -> Self {
        const NONE: &Supplied = &Supplied::NONE;
        Self { text, file, place, root: None, supplied: NONE, set: &[] }
    }

    fn read(self) -> Result<Experiment, Box<SpecError>> {
        let Self { text, file, place, .. } = self;
        let doc = DeTable::parse(text).map_err(|e| SpecError::syntax(file, text, &e))?;
        let written: Table = toml::from_str(text).map_err(|e| SpecError::syntax(file, text, &e))?;
        let mut table = written.clone();
        let places = self.set.iter().map(|one| one.apply(&mut table)).collect::<Result<Vec<_>, _>>()?;
        let (spec, cells) = build(table.clone(), place, self.supplied)
            .and_then(|(spec, cells)| compare_nulls(&spec, &cells, self.root).map(|()| (spec, cells)))
            .map_err(|p| match self.blamed(&places, &p, &written) {
                Some(assignment) => assignment.blamed(p),
                None => p.locate(file, text, doc.get_ref()),
            })?;
        for (assignment, at) in self.set.iter().zip(&places) {
            grid::replaced_by(&table, &spec.grid, at)
                .map_or(Ok(()), |n| Err(assignment.blamed(without_effect(at, n))))?;
        }
        let text = match self.set {
            [] => text.to_owned(),
            _ => toml::to_string(&table).expect("a table of TOML values can be written"),
        };
        let (name, file) = (file.to_owned(), file.to_owned());
        Ok(Experiment { name, file, place: place.clone(), text, set: self.set.to_vec(), spec, cells })
    }

    /// The assignment whose fault `problem` is: it lies in what that set, or else in what that made on the way there.
    fn blamed(&self, places: &[Vec<Key>], problem: &Problem, written: &Table) -> Option<&'a Assignment> {
        let written = Value::Table(written.clone());
        let made = |at: &[Key]| (1..at.len()).find(|n| Key::find(&written, &at[..*n]).is_none());
        let made = |at: &[Key]| made(at).is_some_and(|n| problem.at.starts_with(&at[..n]));
        let last = |is: &dyn Fn(&[Key]) -> bool| self.set.iter().zip(places).rev().find(|(_, at)| is(at));
        last(&|at| problem.at.starts_with(at)).or_else(|| last(&made)).map(|(assignment, _)| assignment)
    }
}

/// Axis `n` of the grid sets what is at `at`.
fn without_effect(at: &[Key], n: usize) -> Problem {
    let problem = Problem::new(at.to_vec(), format!("axis {n} of the grid sets this in every cell"));
    let help = format!("--cell chooses one of its values; grid.{n}.values=[…] replaces them");
    Problem { on_key: true, ..problem.help(help) }
}

fn build(doc: Table, place: &Place, supplied: &Supplied) -> Result<(Spec, Vec<Cell>), Problem> {
    check_version(&doc)?;
    let spec = read_spec(doc.clone(), place, supplied)?;
    grid::check(&spec.grid, spec.seeds)?;
    let mut cells = Vec::new();
    for (values, doc) in grid::documents(&doc, &spec.grid)? {
        let label = values.join(",");
        let spec = read_spec(doc, place, supplied).map_err(|p| in_cell(&label, p))?;
        cells.push(Cell { label, values, spec });
    }
    aims::hosts(&spec, &cells)?;
    aims::expectations(&spec, &cells)?;
    aims::measures(&spec, &cells)?;
    aims::figures(&spec, &cells, place)?;
    Ok((spec, cells))
}

/// Every null differs from the cells of its claim in nothing but the transport.
fn compare_nulls(spec: &Spec, cells: &[Cell], root: Option<&Path>) -> Result<(), Problem> {
    for (n, expect) in spec.expect.iter().enumerate() {
        let Some(name) = expect.null.as_deref() else { continue };
        let elsewhere = match (name.contains('/'), root) {
            (true, None) => continue,
            (true, Some(root)) => Some(elsewhere(root, name).map_err(|why| {
                Problem::new(at!["expect", n, "null"], why).help("name group/name, or group/name:cell")
            })?),
            (false, _) => None,
        };
        for cell in chosen(cells, expect.of.cell.as_deref()) {
            let Some(null) = elsewhere.as_ref().or_else(|| beside(cells, cell, name)) else { continue };
            nulls::matched((expect, n), &spec.connection, cell, null, name)?;
        }
    }
    Ok(())
}

/// The cell that `name` means, `group/name:cell`, below `root`.
fn elsewhere(root: &Path, name: &str) -> Result<Cell, String> {
    let (experiment, label) = name.split_once(':').unwrap_or((name, ""));
    let file = root.join(experiment).with_extension("toml");
    let text = std::fs::read_to_string(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let other = parse(&text, &file.display().to_string()).map_err(|e| e.message)?;
    let cells = chosen(&other.cells, Some(label).filter(|l| !l.is_empty()));
    cells.first().map(|c| Cell::clone(c)).ok_or_else(|| format!("{experiment} has no cell \"{label}\""))
}

/// Before all else: a file of another version has other keys.
fn check_version(doc: &Table) -> Result<(), Problem> {
    match doc.get("version") {
        Some(Value::Integer(v)) if *v == i64::from(VERSION) => Ok(()),
        Some(other) => {
            Err(Problem::new(at!["version"], format!("this program reads version {VERSION}, not {other}"))
                .help("see CHANGELOG.md for what changed between versions"))
        }
        None => Err(Problem::new(vec![], "the key `version` is missing")
            .help(format!("add version = {VERSION} at the top"))),
    }
}

/// One document without its grid's values; every flow's connection complete, every trace read.
fn read_spec(doc: Table, place: &Place, supplied: &Supplied) -> Result<Spec, Problem> {
    let mut spec: Spec = read(Value::Table(doc.clone()), vec![]).map_err(|p| in_number(&doc, p))?;
    spec.supplied = supplied.clone();
    for (n, link) in spec.link.iter_mut().enumerate() {
        link.rate.read(place, &["link".into(), n.into(), "rate".into()])?;
        link.back.rate.as_mut().map_or(Ok(()), |rate| {
            rate.read(place, &["link".into(), n.into(), "back".into(), "rate".into()])
        })?;
    }
    let mut shared = spec.connection.clone();
    in_bytes(&mut shared, Some(1), at!["connection"])?;
    read_connection(&shared, at!["connection"])?;
    for (n, flow) in spec.flow.iter_mut().enumerate() {
        let own = std::mem::take(&mut flow.connection);
        if flow.traffic != Traffic::Tcp && !own.is_empty() {
            return Err(
                Problem::new(at!["flow", n, "connection"], "UDP has no connection").help("leave it out")
            );
        }
        flow.connection = merge(spec.connection.clone(), own);
        let packet = if flow.traffic == Traffic::Tcp { flow.mss } else { Some(1) }; // UDP has no use for it
        in_bytes(&mut flow.connection, packet, at!["flow", n, "connection"])?;
        read_connection(&flow.connection, at!["flow", n, "connection"])?;
    }
    validate::spec(&spec)?;
    spec.flow.iter().enumerate().try_for_each(|(n, _)| check_connection(&spec, n))?;
    Ok(spec)
}

/// The parameters of flow `n`'s connection mean something on its paths.
fn check_connection(spec: &Spec, n: usize) -> Result<(), Problem> {
    let flow = &spec.flow[n];
    let rtt = flow.paths.iter().map(|via| spec.path_rtt(flow, via)).min();
    let connection = spec.connection_of(flow);
    let Err(error) = connection.check(rtt) else {
        if let Some((key, why, help)) = without_effect_here(&connection) {
            return Err(Problem::new(where_written(spec, n, key), why).help(help));
        }
        let has_one = flow.apart || flow.paths.len() == 1;
        let coupled = connection.cc.coupled_by().filter(|_| has_one);
        return coupled.map_or(Ok(()), |coupled| Err(coupled_over_one(spec, n, coupled)));
    };
    let at = where_written(spec, n, error.key);
    let help = match (connection.check(None), rtt) {
        (Ok(()), Some(rtt)) => {
            format!("the smallest round trip of \"{}\" is {} ms", flow.name, rtt.as_millis_f64())
        }
        _ => error.remedy.to_owned(),
    };
    Err(Problem::new(at, error.reason).help(help))
}

/// A key that means something to a host and changes nothing in the simulator: the key, why, and what to do instead.
fn without_effect_here(connection: &ConnectionConfig) -> Option<(&'static str, &'static str, &'static str)> {
    let ConnectionConfig { send_buffer, receive_buffer, .. } = *connection;
    let ready = "the application of a simulated flow has data at any time, and it takes no room";
    let unread = connection.unread_window.is_some_and(|window| window > receive_buffer);
    [
        (connection.early_data, "early_data", "no host of the simulator takes it", "leave it out"),
        (connection.send_ahead.is_some(), "send_ahead", ready, "leave it out"),
        (connection.grow_window, "grow_window", "the application of a simulated flow opens no window", "leave it out"),
        (
            send_buffer < receive_buffer,
            "send_buffer",
            "smaller than receive_buffer: the application of a simulated flow has data at any time, and it takes no room",
            "a host would be limited by it: write receive_buffer no larger than send_buffer",
        ),
        (unread, "unread_window", "larger than receive_buffer, which limits first", "leave it out, or write less"),
    ]
    .into_iter()
    .find_map(|(is, key, why, help)| is.then_some((key, why, help)))
}

/// What couples paths and has one.
fn coupled_over_one(spec: &Spec, n: usize, (key, value): (&str, &str)) -> Problem {
    let name = &spec.flow[n].name;
    let help = match key {
        "algorithm" => "give the flow more paths, or a law of one path: \"newreno\" or \"cubic\"",
        _ => "give the flow more paths, or leave this key out",
    };
    let why = format!("\"{value}\" couples the windows of several paths, and \"{name}\" has one");
    Problem::new(where_written(spec, n, &format!("cc.{key}")), why).help(help)
}

/// Where `key` of flow `n`'s connection stands: with the experiment's, if that is all the flow has of it.
fn where_written(spec: &Spec, n: usize, key: &str) -> Vec<Key> {
    let section = key.split('.').next().unwrap_or_default();
    let written = |table: &Table| table.get(section).map(Value::to_string); // so that nan is nan
    let mut connection = spec.connection.clone();
    let _ = in_bytes(&mut connection, spec.flow[n].mss, vec![]); // what is no size was refused before
    let shared = written(&connection) == written(&spec.flow[n].connection);
    let mut at = if shared { at!["connection"] } else { at!["flow", n, "connection"] };
    at.extend(key.split('.').map(Key::from));
    at
}

/// In a struct with flattened keys serde names neither the key of a bad value nor the keys there are.
fn in_number(doc: &Table, problem: Problem) -> Problem {
    let at: Vec<&str> = problem.at.iter().filter_map(Key::name).collect();
    let (known, rest) = match at[..] {
        ["expect", ref rest @ ..] => (keys::<Expect>(), rest),
        ["measure", ref rest @ ..] => (keys::<Measure>(), rest),
        ["figure", "series", ref rest @ ..] => (keys::<Series>(), rest),
        _ => return problem,
    };
    match rest {
        [key] if problem.on_key => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Problem { help: Some(suggestion("key", key, &known)), ..problem }
        }
        [] => {
            let doc = Value::Table(doc.clone());
            let table = Key::find(&doc, &problem.at).and_then(Value::as_table).cloned();
            let alone = |(key, value)| {
                let one = Table::from_iter([(key, value)]);
                read::<Number>(Value::Table(one), problem.at.clone()).err()
            };
            table.unwrap_or_default().into_iter().find_map(alone).unwrap_or(problem)
        }
        _ => problem,
    }
}

/// The keys of a table with a default for each.
fn keys<T: Default + Serialize>() -> Vec<String> {
    let all = serde_json::json!(T::default());
    all.as_object().into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// An error that a value of the grid brings points at the grid unless the file has it anyway.
fn in_cell(label: &str, problem: Problem) -> Problem {
    if label.is_empty() {
        return problem;
    }
    let key = dotted(&problem.at);
    Problem {
        at: at!["grid"],
        on_key: false,
        message: format!("in cell {label}, {key}: {}", problem.message),
        ..problem
    }
}

impl Spec {
    /// The connection of `flow`, complete.
    pub fn connection_of(&self, flow: &super::Flow) -> ConnectionConfig {
        self.supplied.to(read_connection(&flow.connection, vec![]).expect("read_spec has read it before"))
    }
}
