//! The files that an experiment names: in its directory, or inside the program.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use crate::built_in;

/// There is nothing of this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no {what} is named \"{name}\"")]
pub struct Unknown {
    /// What was looked for: `experiment`, `group`, `cell`, `link`, `template`.
    pub what: &'static str,
    /// The name that nothing has.
    pub name: String,
    /// The nearest name, or all of them.
    pub help: String,
}

/// Where the files are that an experiment names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// The experiment is no file.
    #[default]
    Nowhere,
    /// In this directory.
    Dir(PathBuf),
    /// In this group of the built-in experiments.
    BuiltIn(String),
    /// Nowhere: these are their texts by their names.
    Texts(BTreeMap<String, String>),
}

impl Place {
    /// The text of the file `name` there.
    pub fn read(&self, name: &str) -> io::Result<String> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        match self {
            Self::Nowhere => std::fs::read_to_string(name),
            Self::Dir(dir) => std::fs::read_to_string(dir.join(name)),
            Self::BuiltIn(group) => {
                built_in::experiment(&format!("{group}/{name}")).map(str::to_owned).ok_or_else(missing)
            }
            Self::Texts(texts) => texts.get(name).cloned().ok_or_else(missing),
        }
    }

    /// What messages call the file `name` there.
    pub fn shown(&self, name: &str) -> String {
        match self {
            Self::Nowhere | Self::Texts(_) => name.to_owned(),
            Self::Dir(dir) => dir.join(name).display().to_string(),
            Self::BuiltIn(group) => format!("built-in {group}/{name}"),
        }
    }
}
