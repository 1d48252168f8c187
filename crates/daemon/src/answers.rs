//! What a daemon answers to what it is asked on its socket.

use std::path::Path;

use crate::config::{Config, ConfigError, Place};
use crate::control::{Answer, Command};
use crate::daemon::Daemon;
use crate::paths::PathsError;
use crate::reload::ReloadError;

impl Daemon {
    /// Does what is asked for. `file` is the configuration.
    pub async fn answer(&self, command: Command, file: &Path) -> Answer {
        match command {
            Command::Status => Answer::Status(Box::new(self.status())),
            Command::Down => Answer::Ending,
            Command::Reload => self.read_again(file).await,
            Command::Paths(change) => done(self.change_paths(&change), PathsError::help),
            // The lines are its process's, not the daemon's.
            Command::Log(_) => Answer::Unknown,
        }
    }

    async fn read_again(&self, file: &Path) -> Answer {
        match Config::load_as(file, self.view.lane.outer.hit().unwrap_or_default()) {
            Ok(config) => self.reload(&config).await.map_or_else(|error| refused(file, &error), Answer::done),
            Err(error) => done(Err(error), |_| "nothing was changed".into()),
        }
    }
}

/// Why the configuration in `file` is not followed, and where in it that stands.
fn refused(file: &Path, error: &ReloadError) -> Answer {
    let placed = |place: Place| ConfigError::refused(file, &place, error.to_string(), None).to_string();
    Answer::Refused { why: error.place().map_or_else(|| error.to_string(), placed), help: error.help() }
}

/// What became of a change; `help` says of an error what to do about it.
fn done<E: ToString>(result: Result<(), E>, help: impl Fn(&E) -> String) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Refused { why: error.to_string(), help: help(&error) },
    }
}
