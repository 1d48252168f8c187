//! Algorithms that the program around the transport supplies: prototypes, in experiments only.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::about::About;
use crate::facts::ConfigError;

/// An algorithm by name. Who runs the connection supplies what makes it, of type `M`; name and version stand for what it
/// does wherever configurations are compared.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct External<M: ?Sized> {
    /// Its name, not empty.
    pub name: String,
    /// Its version; empty if nobody counts.
    #[serde(default)]
    pub version: String,
    /// What makes one; none until it is supplied.
    #[serde(skip)]
    pub maker: Option<Arc<M>>,
}

impl<M: ?Sized> External<M> {
    /// Name and help.
    pub(crate) const ABOUT: About = About { name: "external", help: "Supplied by the program, by name" };

    /// Whether it is there; `key` is where its name stands.
    pub(crate) fn check(&self, key: &'static str) -> Result<(), ConfigError> {
        let missing = ConfigError::new(
            key,
            "this program has no algorithm of this name",
            "one that is written in Python runs only from Python: docs/python.md",
        );
        ConfigError::first(&[(self.maker.is_none(), missing)])
    }
}

impl<M: ?Sized> Clone for External<M> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), version: self.version.clone(), maker: self.maker.clone() }
    }
}

impl<M: ?Sized> PartialEq for External<M> {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.version) == (&other.name, &other.version)
    }
}

impl<M: ?Sized> Eq for External<M> {}

impl<M: ?Sized> fmt::Debug for External<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "External({} {})", self.name, self.version)
    }
}
