//! Errors of a configuration: the place in the file, what is wrong, and the remedy.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::{fmt, fs};

use ipnet::IpNet;
use polypath_lab::document::{Key, Wrong, dotted, find};
use polypath_lab::excerpt::Excerpt;
use toml::Spanned;
use toml::de::DeTable;

use super::{Config, wording};

/// What is wrong with a configuration, where, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ConfigError {
    /// Name of the file.
    pub file: String,
    /// Where in the file; none if it could not be read.
    pub place: Option<Excerpt>,
    /// Where in the document, `peer[0].hit`; empty for the document itself.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Whether the system refused to read it: what is written may be right.
    pub refused: bool,
}

/// What is wrong, and where in the document.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    at: Vec<Key>,
    message: String,
    help: Option<String>,
    refused: bool,
}

/// What in a configuration the system refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The value of a key in a table.
    Value([&'static str; 2]),
    /// The prefix of a peer, in any of its files, to which this is a route.
    Prefix(IpNet),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}", self.message)?,
            key => write!(f, "{key}: {}", self.message)?,
        }
        self.place.iter().try_for_each(|place| write!(f, "\n{}", place.below(&self.file)))?;
        self.help.iter().try_for_each(|help| write!(f, "\nhelp: {help}"))
    }
}

impl Problem {
    /// Of the value at `keys`.
    pub fn new(keys: &[&str], message: impl Into<String>) -> Self {
        let at = keys.iter().map(|key| Key::from(*key)).collect();
        Self { at, message: message.into(), help: None, refused: false }
    }

    /// Of value `index` of the list at `keys`.
    pub fn item(keys: &[&str], index: usize) -> Self {
        Self::at(keys, index, "")
    }

    /// Of the value `key` in table `index` of the list at `keys`, or of the whole table if that is empty.
    pub fn at(keys: &[&str], index: usize, key: &str) -> Self {
        let mut problem = Self::new(keys, "");
        let key = Some(key).filter(|key| !key.is_empty()).map(Key::from);
        problem.at.extend([Key::from(index)].into_iter().chain(key));
        problem
    }

    /// Value `index` of the list that it is about.
    pub fn nth(mut self, index: usize) -> Self {
        self.at.push(index.into());
        self
    }

    /// What is wrong with it.
    pub fn says(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// What to do about it.
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The system refused it.
    pub fn refused(self) -> Self {
        Self { refused: true, ..self }
    }

    /// The number of the peer that it is about.
    pub fn peer(&mut self) -> Option<&mut usize> {
        match self.at.as_mut_slice() {
            [Key::Name(key), Key::Index(index), ..] if key == "peer" => Some(index),
            _ => None,
        }
    }

    /// Finds the place in `text`.
    pub fn locate(self, file: &str, text: &str) -> Box<ConfigError> {
        let document = DeTable::parse(text).ok();
        let span = document.and_then(|document| find(document.get_ref(), &self.at, false)).unwrap_or(0..0);
        let error = ConfigError::new(file, text, span, dotted(&self.at), self.message, self.help);
        Box::new(ConfigError { refused: self.refused, ..*error })
    }
}

impl ConfigError {
    /// What the system has against the value at `place` of the configuration in `file`. Without a line if a default applies.
    pub fn refused(file: &Path, place: &Place, message: String, help: Option<String>) -> Box<Self> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let problem = match place {
            Place::Value(keys) => Problem::new(keys, message),
            Place::Prefix(to) => match Config::prefix(file, &text, to) {
                Some((problem, sources)) => {
                    return sources.locate(Problem { help, refused: true, ..problem.says(message) });
                }
                None => Problem::new(&["peer"], message),
            },
        };
        let document = DeTable::parse(&text).ok();
        let is_written =
            document.is_some_and(|document| find(document.get_ref(), &problem.at, false).is_some());
        let error = Problem { help, refused: true, ..problem }.locate(&file.display().to_string(), &text);
        Box::new(Self { place: error.place.filter(|_| is_written), ..*error })
    }

    /// The same about a text of which only the first `written` lines are in the file: the others have no number.
    #[must_use]
    pub fn without_line_after(self, written: usize) -> Box<Self> {
        let place = self.place.filter(|place| place.line <= written);
        Box::new(Self { place, ..self })
    }

    pub(super) fn unreadable(file: &str, source: &io::Error) -> Box<Self> {
        let help = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                "run it as root; or let the group of the daemon's user read it, and enter its directory: chgrp, chmod g+rX"
            }
            io::ErrorKind::InvalidData => "it is no text: save it as UTF-8",
            _ => "`polypath init` writes a configuration",
        };
        let error = Self::whole(file, format!("cannot read {file}: {source}"), help.into());
        Box::new(Self { refused: true, ..*error })
    }

    pub(super) fn loose(file: &str, mode: u32) -> Box<Self> {
        let message = format!("{file} can be changed by others (mode {mode:04o})");
        Self::whole(file, message, format!("chmod go-w {file}"))
    }

    pub(super) fn of_another(file: &str) -> Box<Self> {
        let message = format!("{file} belongs to another user, who may change it");
        Self::whole(file, message, format!("chown root {file}"))
    }

    pub(super) fn long(file: &str, most: u64) -> Box<Self> {
        let help = "it is no configuration: name another file".into();
        Self::whole(file, format!("{file} is longer than {} MiB", most >> 20), help)
    }

    pub(super) fn no_file(file: &str) -> Box<Self> {
        let help = match Path::new(file).is_dir() {
            true => format!("name a file in it, for example {}/polypath.toml", file.trim_end_matches('/')),
            false => format!("remove it, or write a configuration there: ls -lL {file}"),
        };
        Self::whole(file, format!("{file} is no regular file"), help)
    }

    /// Of the file itself, not of what is in it.
    fn whole(file: &str, message: String, help: String) -> Box<Self> {
        let error = Self::new(file, "", 0..0, String::new(), message, Some(help));
        Box::new(Self { place: None, ..*error })
    }

    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Box<Self> {
        let (message, help) = wording::of_syntax(error.message());
        let mut span = error.span().unwrap_or(0..0);
        if message.contains("missing comma") {
            // It is missed where something else begins, which may be lines below.
            span.start = text.get(..span.start).unwrap_or_default().trim_end().len();
            span.end = span.start;
        }
        Self::new(file, text, span, String::new(), message, Some(help))
    }

    pub(super) fn of_serde(
        file: &str,
        text: &str,
        document: &Spanned<DeTable<'_>>,
        wrong: &Wrong,
    ) -> Box<Self> {
        let Wrong { at, on_key, said } = wrong;
        let span = find(document.get_ref(), at, *on_key).unwrap_or(document.span());
        let named = at.iter().filter(|key| key.name().is_some());
        let written = text.get(span.clone()).unwrap_or_default();
        let (message, help) = wording::of(said, &dotted(named), written);
        Self::new(file, text, span, dotted(at), message, help)
    }

    fn new(
        file: &str,
        text: &str,
        span: Range<usize>,
        key: String,
        message: String,
        help: Option<String>,
    ) -> Box<Self> {
        let place = Some(Excerpt::of(text, span));
        Box::new(Self { file: file.to_owned(), place, key, message, help, refused: false })
    }
}
