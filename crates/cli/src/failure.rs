//! Errors as a user meets them: what went wrong, what to do, and the exit status.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

/// The exit status of the program. 0 is success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It ran, and what came out is not what should: an expectation failed, a file arrived changed.
    Unmet = 1,
    /// The arguments, or what is written in a file, make no sense (clap uses the same for arguments).
    Usage = 2,
    /// The system did not allow it: a file that cannot be read or written, a socket, a privilege.
    System = 3,
    /// SIGHUP: the terminal is gone.
    HungUp = 129,
    /// SIGINT: Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Status {
    /// Whether a signal ended it.
    pub fn is_interruption(self) -> bool {
        matches!(self, Self::HungUp | Self::Interrupted | Self::Terminated)
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

/// Why the program ends without success.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub status: Status,
    message: String,
    help: Option<String>,
}

impl Failure {
    /// A result that is not as it should be.
    pub fn unmet(message: impl Into<String>) -> Self {
        Self { status: Status::Unmet, message: message.into(), help: None }
    }

    /// Arguments, or what is written in a file, that make no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { status: Status::Usage, message: message.into(), help: None }
    }

    /// Something the system refused; `what` was to be done.
    pub fn system(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self { status: Status::System, message: format!("{what}: {error}"), help: None }
    }

    /// The same where the error says itself what was to be done.
    pub fn refused(error: impl fmt::Display) -> Self {
        Self::with(Status::System, error.to_string())
    }

    /// A file that the system does not let us write.
    pub fn unwritten(file: &Path, error: &io::Error) -> Self {
        let said = error.to_string();
        // `tempfile` appends the name of its draft.
        let cause = said.split(" at path ").next().unwrap_or(&said);
        let failure = Self::system(format!("cannot write {}", file.display()), cause);
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                failure.help("run it as root, or name a file in a directory of yours")
            }
            _ => failure,
        }
    }

    /// A signal, with its status.
    pub fn interrupted(status: Status) -> Self {
        Self::with(status, "interrupted")
    }

    /// The same of a command that a signal is to end: then there is nothing to say.
    #[cfg(feature = "daemon")]
    #[must_use]
    pub fn unless_told(self) -> Self {
        if self.status.is_interruption() { Self::with(self.status, "") } else { self }
    }

    /// Any other.
    pub fn with(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), help: None }
    }

    /// The same about `what`, which the message names first.
    #[cfg(feature = "daemon")]
    #[must_use]
    pub fn about(self, what: impl fmt::Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// What went wrong, without what to do about it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, if that is known.
    #[cfg(feature = "daemon")]
    pub fn remedy(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// What to do about it.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Another hint in its place, if there is one.
    #[cfg(feature = "daemon")]
    pub fn help_instead(self, help: &str) -> Self {
        Self { help: self.help.map(|_| help.to_owned()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "\nhelp: {help}"))
    }
}

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(value).map_err(|e| Failure::system("cannot write JSON", e))?;
    printed(writeln!(io::stdout(), "{json}"))
}

/// Writing to a closed pipe (`polypath lab schema | head`) is no failure of ours.
pub fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::system("cannot write the output", e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named_and_no_other() {
        let nowhere = tempfile::NamedTempFile::new_in("/nowhere").unwrap_err();
        let missing = Failure::unwritten(Path::new("/nowhere/x"), &nowhere);
        assert_eq!(missing.message(), "cannot write /nowhere/x: No such file or directory (os error 2)");
        let denied = Failure::unwritten(Path::new("/x"), &io::ErrorKind::PermissionDenied.into());
        assert!(denied.help.is_some_and(|help| help.starts_with("run it as root")));
    }
}
