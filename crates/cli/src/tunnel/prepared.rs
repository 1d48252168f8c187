//! What `polypath up` begins with: the configuration and what it names, which `polypath check` looks at too.

use std::path::Path;

use nix::unistd::{Group, User};
use polypath_daemon::control::ControlError;
use polypath_daemon::{Config, ConfigError, Place};
use polypath_hip::Identity;

use super::privileges;
use crate::failure::{Failure, Status};
use crate::keys;

/// A configuration, and the key, the user and the group that it names.
pub struct Prepared {
    pub config: Config,
    pub identity: Identity,
    /// Who the daemon becomes.
    pub user: Option<User>,
    /// Whose members may ask it.
    pub group: Option<Group>,
}

impl Prepared {
    /// Reads `file`. Without a user in it the daemon becomes `user`.
    pub fn read(file: &Path, user: Option<&str>) -> Result<Self, Failure> {
        let key = Config::load(file).map_err(wrong)?.identity.key;
        let place = |keys| move |failure| placed(file, Place::Value(keys), failure);
        let identity = own(&key).map_err(place(["identity", "key"]))?;
        let config = Config::load_as(file, identity.hit()).map_err(wrong)?;
        let user = match (&config.daemon.user, user) {
            (Some(name), _) => Some(privileges::user(name).map_err(place(["daemon", "user"]))?),
            (None, name) => {
                name.map(privileges::user).transpose().map_err(|failure| failure.about("--user"))?
            }
        };
        let group = config.control.group.as_deref().map(privileges::group).transpose();
        let group = group.map_err(place(["control", "group"]))?;
        Ok(Self { config, identity, user, group })
    }
}

/// The key in `file`. That a configuration names no file is its mistake.
fn own(file: &Path) -> Result<Identity, Failure> {
    if file.try_exists().is_ok_and(|there| !there) {
        let name = file.display();
        return Err(Failure::usage(format!("there is no file {name}")).help(format!(
            "put the key back, or make another one: polypath keygen --out {name}; it prints this host's new tag, \
             which each peer needs as `hit`"
        )));
    }
    keys::file::load(file)
}

/// What is wrong with a configuration, or why it cannot be read.
pub fn wrong(error: Box<ConfigError>) -> Failure {
    let status = if error.refused { Status::System } else { Status::Usage };
    Failure::with(status, error.to_string())
}

/// The same failure, of a value of the configuration in `file`.
pub fn placed(file: &Path, place: Place, failure: Failure) -> Failure {
    let (status, help) = (failure.status, failure.remedy().map(str::to_owned));
    Failure::with(status, ConfigError::refused(file, &place, failure.message().to_owned(), help).to_string())
}

/// Why a daemon with the configuration in `file` has no control socket.
pub fn no_socket(file: &Path, error: &ControlError) -> Failure {
    let failure = match error {
        ControlError::Taken(_) => Failure::system("cannot start", error),
        ControlError::Os { path, source } => Failure::system(path.display(), source),
        _ => Failure::with(Status::System, error.to_string()),
    };
    let failure = error.help().into_iter().fold(failure, Failure::help);
    match error {
        ControlError::Taken(_) => failure,
        _ => placed(file, Place::Value(["control", "socket"]), failure),
    }
}
