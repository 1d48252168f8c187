//! A running daemon is asked, by `polypath reload` and `down` among others.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use polypath_daemon::control::{Answer, Command, ControlError, ask, ended};
use polypath_daemon::{Status, kill_switch};

use super::{in_force, service};
use crate::args::{DownArgs, ReloadArgs};
use crate::failure::{Failure, printed};

/// How long a daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the daemon is that answers at `socket`.
pub(super) fn current(socket: &Path) -> Result<Status, Failure> {
    match answer(socket, &Command::Status)? {
        Answer::Status(status) => Ok(*status),
        _ => Err(other()),
    }
}

/// Has a daemon end.
pub fn down(args: &DownArgs) -> Result<(), Failure> {
    if args.lift_kill_switch {
        return lift(&args.socket);
    }
    match answer(&args.socket, &Command::Down)? {
        Answer::Ending => {
            ended(&args.socket, PATIENCE).map_err(|e| {
                Failure::unmet(e.to_string()).help("`kill -9` ends it; what it says is in its log")
            })?;
            match kill_switch::is_armed() {
                true => Err(Failure::unmet("the daemon has ended, and a kill switch stands")
                    .help("`polypath down --lift-kill-switch` lifts it")),
                false => Ok(()),
            }
        }
        _ => Err(other()),
    }
}

/// Takes away what daemons left that ended otherwise than by `down`.
fn lift(socket: &Path) -> Result<(), Failure> {
    match ask(socket, &Command::Status) {
        Err(ControlError::Nobody(_)) => {}
        Err(error @ ControlError::Os { .. }) => {
            return Err(Failure::system("cannot lift it", error).help("only root may"));
        }
        _ => {
            return Err(Failure::usage(format!("a daemon is running: it answers on {}", socket.display()))
                .help("`polypath down` ends it and lifts its kill switch"));
        }
    }
    let failed = |e| Failure::system("cannot lift it", e).help("only root may");
    match kill_switch::lift_left_behind().map_err(failed)? {
        true => eprintln!("the kill switch is lifted"),
        false => eprintln!("there is no kill switch"),
    }
    Ok(())
}

/// Has a daemon read its configuration again, and says what is in force.
pub fn reload(args: &ReloadArgs) -> Result<(), Failure> {
    order(&args.socket, &Command::Reload)?;
    printed(writeln!(io::stdout(), "{}", in_force::of_configuration(&current(&args.socket)?)))
}

/// Has a daemon do something.
pub(super) fn order(socket: &Path, command: &Command) -> Result<(), Failure> {
    match answer(socket, command)? {
        Answer::Done => Ok(()),
        Answer::DoneBut(warnings) => {
            warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            Ok(())
        }
        Answer::Refused { why, help } => Err(Failure::usage(why).help(help)),
        _ => Err(other()),
    }
}

pub(super) fn answer(socket: &Path, command: &Command) -> Result<Answer, Failure> {
    explained(ask(socket, command))
}

/// An answer, or why there is none and what to do about it.
pub(super) fn explained(asked: Result<Answer, ControlError>) -> Result<Answer, Failure> {
    asked.map_err(|error| {
        let failure = Failure::refused(&error);
        match error {
            ControlError::Nobody(socket) => failure.help(nobody(&socket)),
            ControlError::Occupied(_) => failure.help("--socket names the daemon's [control] socket"),
            ControlError::Silent(_) => failure.help(
                "it is busy, stopped or hangs: systemd starts a service again that hangs for 30 s; without systemd, `kill -9` ends it",
            ),
            ControlError::Os { ref source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
                failure.help("--socket names the daemon's [control] socket, 107 bytes at most")
            }
            ControlError::Os { .. } => failure.help("only root may ask, the daemon's user, and members of [control] group"),
            _ => failure,
        }
    })
}

/// What to do where no daemon answers.
fn nobody(socket: &Path) -> String {
    let (up, log) = match service::answers(socket) {
        true => ("systemctl start polypath", "; `journalctl -u polypath` says why the service ended"),
        false => ("polypath up", ""),
    };
    match kill_switch::is_armed() {
        true => format!(
            "its kill switch stands: `{up}` continues behind it, `polypath down --lift-kill-switch` lifts it{log}"
        ),
        false => format!("`{up}` starts one{log}; --socket names another one's [control] socket"),
    }
}

pub(super) fn other() -> Failure {
    Failure::refused(ControlError::Language)
}
