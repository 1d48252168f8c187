//! What the file of an algorithm says to the list of all (`config.rs`).

use polypath_wire::Instant;

use super::controller::Controller;
use crate::about::About;
use crate::facts::ConfigError;

/// What a controller may know when its connection begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Env {
    /// The present.
    pub now: Instant,
    /// For laws that throw dice: the same seed throws the same.
    pub seed: u64,
}

/// An algorithm of congestion control.
pub(crate) trait Law {
    /// Its parameters.
    type Config;
    /// Name and help.
    const ABOUT: About;
    /// The key and the value that couple the windows of several paths, if any do: over one path only it is another algorithm.
    fn coupled_by(_: &Self::Config) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Whether the parameters mean something together.
    fn check(config: &Self::Config) -> Result<(), ConfigError>;

    /// The same as today's hosts have it: paced, with a slow start that watches where the path is full.
    fn of_today(config: Self::Config) -> Self::Config {
        config
    }

    /// The controller of a connection.
    fn build(config: Self::Config, env: &Env) -> Box<dyn Controller>;
}
