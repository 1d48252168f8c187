//! What an algorithm says of itself, in its own file.

/// Name and meaning of an algorithm: the help of the command line, the schema of specs and the tables of the docs are
/// made of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// Name in specs and on the command line.
    pub name: &'static str,
    /// One line of help, without a full stop.
    pub help: &'static str,
}

/// Algorithms distinguished by name: the enum of their parameters.
pub trait Registry {
    /// The key that holds the name.
    const TAG: &'static str;
    /// Every algorithm, in the order of the enum.
    const ALL: &'static [About];
}
