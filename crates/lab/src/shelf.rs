//! Where experiments are found by name: below a directory, or inside the program.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::built_in;
pub use crate::place::{Place, Unknown};
use crate::scenarios;
use crate::spec::{Cell, Experiment, LoadError, load, parse_at, suggestion};

/// The program's version, and after a `+` a hash of the sources that decide what a run gives.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("POLYPATH_SOURCES"));

/// Where experiments are looked for by name.
pub const DIR: &str = "experiments";

/// Experiments with names `group/name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shelf {
    /// The files `group/name.toml` below a directory.
    Dir(PathBuf),
    /// Those that are part of the program.
    BuiltIn,
}

impl Shelf {
    /// `dir`; without one [`DIR`] if there is such a directory here, otherwise the built-in experiments.
    pub fn at(dir: Option<&Path>) -> Self {
        match dir {
            Some(dir) => Self::Dir(dir.to_owned()),
            None if Path::new(DIR).is_dir() => Self::Dir(DIR.into()),
            None => Self::BuiltIn,
        }
    }

    /// The names of all experiments, in order.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = match self {
            Self::BuiltIn => built_in::experiments().filter_map(|(file, _)| name_of(file)).collect(),
            Self::Dir(dir) => names_below(dir)?,
        };
        names.sort();
        Ok(names)
    }

    /// The names of the experiments of the group `name`, in order.
    pub fn group(&self, name: &str) -> Result<Vec<String>, Unknown> {
        let all = self.names().unwrap_or_default();
        let own: Vec<String> = all.iter().filter(|n| group_of(n) == Some(name)).cloned().collect();
        if !own.is_empty() {
            return Ok(own);
        }
        if name.contains('/') || name.ends_with(".toml") {
            let help = format!(
                "a group is a directory of experiments; of one, `polypath lab run {name}` answers the expectations, \
                 and `polypath lab report {name}` writes the page"
            );
            return Err(Unknown { what: "group", name: name.to_owned(), help });
        }
        Err(unknown("group", name, &groups(&all)))
    }

    /// That neither a group is called `name` nor an experiment, nor is it the random scenarios: no page can be of it.
    pub fn nothing_to_report(&self, name: &str) -> Unknown {
        let all = self.names().unwrap_or_default();
        let what = "group or experiment";
        so_called(&all, what, name).unwrap_or_else(|| {
            let mut known = groups(&all);
            known.push(scenarios::GROUP);
            Unknown { what, name: name.to_owned(), help: suggestion("group", name, &known) }
        })
    }

    /// The experiment `name`, which is `group/name`; `frontier/17` is a scenario that is drawn.
    pub fn load(&self, name: &str) -> Result<Experiment, LoadError> {
        let drawn = name.strip_prefix(scenarios::GROUP).and_then(|rest| rest.strip_prefix('/')?.parse().ok());
        if let Some(number) = drawn {
            return Ok(scenarios::experiment(number));
        }
        match self {
            Self::Dir(dir) => {
                let file = dir.join(format!("{name}.toml"));
                if file.exists() { load(&file) } else { Err(self.unknown(name).into()) }
            }
            Self::BuiltIn => {
                let text = built_in::experiment(&format!("{name}.toml")).ok_or_else(|| self.unknown(name))?;
                let group = name.split_once('/').map_or("", |(group, _)| group);
                let place = Place::BuiltIn(group.to_owned());
                let experiment = parse_at(text, &format!("built-in {name}.toml"), &place)?;
                Ok(Experiment { name: name.to_owned(), ..experiment })
            }
        }
    }

    fn unknown(&self, name: &str) -> Unknown {
        let all = self.names().unwrap_or_default();
        if group_of(name) == Some(scenarios::GROUP) {
            let help = format!("random scenarios have numbers: {}/17", scenarios::GROUP);
            return Unknown { what: "experiment", name: name.to_owned(), help };
        }
        so_called(&all, "experiment", name).unwrap_or_else(|| {
            unknown("experiment", name, &all.iter().map(String::as_str).collect::<Vec<_>>())
        })
    }
}

/// The group of the experiment `name`.
fn group_of(name: &str) -> Option<&str> {
    name.split_once('/').map(|(group, _)| group)
}

/// The groups of experiments that are in order.
fn groups(all: &[String]) -> Vec<&str> {
    let mut groups: Vec<&str> = all.iter().filter_map(|name| group_of(name)).collect();
    groups.dedup();
    groups
}

/// That `name` lacks its group, if experiments of a group are called so.
fn so_called(all: &[String], what: &'static str, name: &str) -> Option<Unknown> {
    let found = all.iter().filter(|n| n.rsplit('/').next() == Some(name));
    let found: Vec<String> = found.map(|n| format!("\"{n}\"")).collect();
    let help = || format!("did you mean {}?", found.join(" or "));
    (!found.is_empty()).then(|| Unknown { what, name: name.to_owned(), help: help() })
}

/// The experiment in the file `spec`, or the one of this name on `shelf`.
pub fn find(spec: &Path, shelf: &Shelf) -> Result<Experiment, LoadError> {
    let is_file = spec.exists() || spec.extension().is_some_and(|e| e == "toml");
    if is_file { load(spec) } else { shelf.load(&spec.to_string_lossy()) }
}

/// The cell labelled `label`.
pub fn cell<'a>(experiment: &'a Experiment, label: &str) -> Result<&'a Cell, Unknown> {
    let labels: Vec<&str> = experiment.cells.iter().map(|c| c.label.as_str()).collect();
    let found = experiment.cells.iter().find(|c| c.label == label);
    found.ok_or_else(|| match labels[..] {
        [""] => Unknown {
            what: "cell",
            name: label.to_owned(),
            help: "it has no grid, and so no cells: leave the cell out".to_owned(),
        },
        _ => unknown("cell", label, &labels),
    })
}

/// The text of the template `name`.
pub fn template(name: &str) -> Result<&'static str, Unknown> {
    let known: Vec<&str> = templates().map(|(name, _)| name).collect();
    let found = templates().find(|(n, _)| *n == name).map(|(_, text)| text);
    found.ok_or_else(|| unknown("template", name, &known))
}

/// All templates: names and texts.
pub fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    built_in::templates().map(|(file, text)| (file.trim_end_matches(".toml"), text))
}

/// Nothing of `known` is called `name`.
pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> Unknown {
    Unknown { what, name: name.to_owned(), help: suggestion(what, name, known) }
}

fn name_of(file: &str) -> Option<String> {
    Some(file.strip_suffix(".toml")?.to_owned())
}

/// All `<group>/<name>.toml`, without their ending.
fn names_below(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for group in std::fs::read_dir(dir)? {
        let group = group?;
        if !group.path().is_dir() {
            continue;
        }
        for file in std::fs::read_dir(group.path())? {
            let name = format!("{}/{}", group.file_name().display(), file?.file_name().display());
            names.extend(name_of(&name));
        }
    }
    Ok(names)
}

impl fmt::Display for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dir(dir) => write!(f, "{}", dir.display()),
            Self::BuiltIn => f.write_str("the built-in experiments"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_experiment_loads_with_its_published_points() {
        let names = Shelf::BuiltIn.names().unwrap();
        assert!(names.len() > 20, "{names:?}");
        for name in names {
            let experiment = Shelf::BuiltIn.load(&name).unwrap_or_else(|e| panic!("{e}"));
            for file in experiment.spec.figure.iter().filter_map(|f| f.published.as_ref()) {
                assert!(experiment.place.read(file).unwrap().contains("series,x,y"), "{name}: {file}");
            }
        }
    }

    #[test]
    fn names_that_nothing_has_are_answered_with_the_nearest() {
        let told = |e: LoadError| match e {
            LoadError::Unknown(e) => format!("{e}: {}", e.help),
            other => panic!("{other}"),
        };
        let text = told(Shelf::BuiltIn.load("foundation/two_path").unwrap_err());
        let nearest =
            "no experiment is named \"foundation/two_path\": did you mean \"foundation/two_paths\"?";
        assert!(text.starts_with(nearest), "{text}");
        let text = told(Shelf::BuiltIn.load("one_link").unwrap_err());
        assert!(text.ends_with("did you mean \"foundation/one_link\"?"), "{text}");
        let file = Shelf::BuiltIn.group("three.toml").unwrap_err();
        assert!(file.help.contains("lab run three.toml") && file.help.contains("lab report three.toml"));
        let group = Shelf::BuiltIn.group("mhpi").unwrap_err();
        assert!(group.help.starts_with("did you mean \"mhip\"?"), "{group:?}");
        assert!(template("two_pats").unwrap_err().help.starts_with("did you mean \"two_paths\"?"));
    }
}
