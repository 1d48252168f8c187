//! The directory of what the daemon must know after a restart.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use nix::unistd::User;
use polypath_daemon::Config;

use crate::failure::Failure;

/// Makes it for the daemon's user, unless it is there: then that user must be able to write there, and strangers not. None that is there is
/// given away.
pub fn prepare(config: &Config, user: Option<&User>) -> Result<(), Failure> {
    let dir = &config.daemon.state;
    if !config.keeps_state() {
        return Ok(());
    }
    let failed = |e: io::Error| {
        Failure::system(dir.display(), e).help("name a directory that the daemon's user may read and write")
    };
    match fs::metadata(dir) {
        Ok(found) => check(dir, &found, user)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir).map_err(failed)?;
            fs::set_permissions(dir, Permissions::from_mode(0o750)).map_err(failed)?;
            user.map_or(Ok(()), |user| chown(dir, Some(user.uid.as_raw()), Some(user.gid.as_raw())))
                .map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    tempfile::tempfile_in(dir).map(drop).map_err(failed)
}

fn check(dir: &Path, found: &fs::Metadata, user: Option<&User>) -> Result<(), Failure> {
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
