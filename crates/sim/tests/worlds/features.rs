//! What can be taken out of a world to see whether a failure needs it.

use std::fmt;

/// Names of the features.
pub const NAMES: [&str; 24] = [
    "loss",
    "duplication",
    "reordering",
    "corruption",
    "flapping",
    "rates",
    "mtu",
    "paths",
    "drift",
    "window",
    "reader",
    "config",
    "bytes",
    "abort",
    "both-ways",
    "writer",
    "algorithms",
    "hosts",
    "knobs",
    "happenings",
    "links",
    "queues",
    "options",
    "proofs",
];

pub const LOSS: usize = 0;
pub const DUPLICATION: usize = 1;
pub const REORDERING: usize = 2;
pub const CORRUPTION: usize = 3;
pub const FLAPPING: usize = 4;
pub const RATES: usize = 5;
pub const MTU: usize = 6;
pub const PATHS: usize = 7;
pub const DRIFT: usize = 8;
pub const WINDOW: usize = 9;
pub const READER: usize = 10;
pub const CONFIG: usize = 11;
pub const BYTES: usize = 12;
pub const ABORT: usize = 13;
pub const BOTH_WAYS: usize = 14;
pub const WRITER: usize = 15;
pub const ALGORITHMS: usize = 16;
pub const HOSTS: usize = 17;
pub const KNOBS: usize = 18;
pub const HAPPENINGS: usize = 19;
pub const LINKS: usize = 20;
pub const QUEUES: usize = 21;
pub const OPTIONS: usize = 22;
pub const PROOFS: usize = 23;

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features(u32);

impl Features {
    pub const NONE: Self = Self(0);

    pub fn all() -> impl Iterator<Item = usize> {
        0..NAMES.len()
    }

    pub fn has(self, feature: usize) -> bool {
        self.0 >> feature & 1 == 1
    }

    pub fn with(self, feature: usize) -> Self {
        Self(self.0 | 1 << feature)
    }

    /// Names separated by commas.
    pub fn parse(names: &str) -> Self {
        let index =
            |name| NAMES.iter().position(|n| *n == name).unwrap_or_else(|| panic!("no feature {name}"));
        names.split(',').filter(|n| !n.is_empty()).fold(Self::NONE, |set, name| set.with(index(name)))
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Self::all().filter(|i| self.has(*i)).map(|i| NAMES[i]).collect();
        f.write_str(&names.join(","))
    }
}
