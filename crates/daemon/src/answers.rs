//! What a daemon answers to what it is asked on its socket.

use std::path::Path;

use crate::config::Config;
use crate::control::{Answer, Command};
use crate::daemon::Daemon;

impl Daemon {
    /// Does what is asked for. `file` is the configuration.
    pub async fn answer(&self, command: Command, file: &Path) -> Answer {
        match command {
            Command::Status => Answer::Status(Box::new(self.status())),
            Command::Down => Answer::Ending,
            Command::Reload => self.read_again(file).await,
            Command::Paths(change) => match self.change_paths(&change) {
                Ok(()) => Answer::Done,
                Err(error) => Answer::Refused { why: error.to_string(), help: error.help() },
            },
        }
    }

    async fn read_again(&self, file: &Path) -> Answer {
        let config = match Config::load(file) {
            Ok(config) => config,
            Err(error) => {
                return Answer::Refused { why: error.to_string(), help: "nothing was changed".into() };
            }
        };
        match self.reload(&config).await {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Refused { why: error.to_string(), help: error.help() },
        }
    }
}
