//! The directory of what the daemon must know after a restart.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use nix::unistd::User;
use polypath_daemon::Config;

use crate::failure::Failure;

/// An error if it is there, and the daemon's user could not write there, or strangers could.
pub fn check(config: &Config, user: Option<&User>) -> Result<(), Failure> {
    is_there(config, user).map(drop)
}

/// Makes it for the daemon's user, unless it is there: then that user must be able to write there, and strangers not. None that is there is
/// given away.
pub fn prepare(config: &Config, user: Option<&User>) -> Result<(), Failure> {
    let dir = &config.daemon.state;
    let failed = |e| failed(dir, e);
    match is_there(config, user)? {
        None => return Ok(()),
        Some(true) => {}
        Some(false) => {
            fs::create_dir_all(dir).map_err(failed)?;
            fs::set_permissions(dir, Permissions::from_mode(0o750)).map_err(failed)?;
            user.map_or(Ok(()), |user| chown(dir, Some(user.uid.as_raw()), Some(user.gid.as_raw())))
                .map_err(failed)?;
        }
    }
    tempfile::tempfile_in(dir).map(drop).map_err(failed)
}

fn failed(dir: &Path, error: io::Error) -> Failure {
    Failure::system(dir.display(), error).help("name a directory that the daemon's user may read and write")
}

/// Whether it is there and can be used; `None` if nothing must be known after a restart.
fn is_there(config: &Config, user: Option<&User>) -> Result<Option<bool>, Failure> {
    let dir = &config.daemon.state;
    if !config.keeps_state() {
        return Ok(None);
    }
    match fs::metadata(dir) {
        Ok(found) => usable(dir, &found, user).map(|()| Some(true)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(false)),
        Err(error) => Err(failed(dir, error)),
    }
}

fn usable(dir: &Path, found: &fs::Metadata, user: Option<&User>) -> Result<(), Failure> {
    let (shown, mode) = (dir.display(), found.mode());
    if !found.is_dir() {
        return Err(Failure::usage(format!("{shown} is no directory")).help("name a directory"));
    }
    if let Some(user) = user.filter(|user| found.uid() != user.uid.as_raw()) {
        let other = Failure::usage(format!("{shown} belongs to another user than {}", user.name));
        return Err(
            other.help(format!("name a directory that does not exist yet, or: chown {} {shown}", user.name))
        );
    }
    // Strangers may replace files there, unless it is sticky as /tmp is.
    if mode & 0o1002 == 0o002 {
        let open = Failure::usage(format!("{shown} can be changed by others (mode {:04o})", mode & 0o777));
        return Err(open.help(format!("chmod o-w {shown}")));
    }
    Ok(())
}
