//! Where what arrived is kept: the file appears under its name when it is whole, and not before.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::NamedTempFile;

use crate::args::DemoArgs;
use crate::failure::Failure;

/// The file of `--output`, under another name in its directory until it is kept; dropped, it is gone.
#[derive(Debug)]
pub struct Output {
    /// Behind all symbolic links.
    path: PathBuf,
    name: String,
    temporary: NamedTempFile,
}

impl Output {
    /// Refuses what cannot be the file to write: above all the file to send.
    pub fn check(args: &DemoArgs) -> Result<(), Failure> {
        let Some(path) = &args.output else { return Ok(()) };
        let Ok(there) = fs::metadata(path) else { return Ok(()) };
        if !there.is_file() {
            return Err(Failure::usage(format!("{} is not a regular file", path.display()))
                .help("without --output the received data is checked too, and not kept"));
        }
        let source = args.file.as_ref().and_then(|file| fs::metadata(file).ok());
        let is_source = source.is_some_and(|s| (s.dev(), s.ino()) == (there.dev(), there.ino()));
        match is_source {
            true => Err(Failure::usage(format!("{} is the file to send", path.display()))
                .help("give --output another name")),
            false => Ok(()),
        }
    }

    /// Begins the file of `--output`, if there is one.
    pub fn begin(args: &DemoArgs) -> Result<Option<Self>, Failure> {
        let Some(path) = &args.output else { return Ok(None) };
        let name = path.display().to_string();
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let temporary = temporary(&path).map_err(|e| {
            // Not with the temporary name.
            let e = e.raw_os_error().map_or(e, io::Error::from_raw_os_error);
            refused(&name, e).help("--output names a file in an existing, writable directory")
        })?;
        Ok(Some(Self { path, name, temporary }))
    }

    /// Where to write until the file is whole.
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Writes it all.
    pub fn write(&mut self, pieces: &[Bytes]) -> Result<(), Failure> {
        let written = pieces.iter().try_for_each(|piece| self.temporary.write_all(piece));
        written.map_err(|e| self.refused(e))
    }

    /// What the system refused, by the name the user gave.
    pub fn refused(&self, error: impl fmt::Display) -> Failure {
        refused(&self.name, error)
    }

    /// It is whole: it gets its name, and takes the place of what had it.
    pub fn keep(self) -> Result<(), Failure> {
        let kept = self.temporary.persist(&self.path);
        kept.map(drop).map_err(|e| refused(&self.name, e.error))
    }
}

fn refused(name: &str, error: impl fmt::Display) -> Failure {
    Failure::system(format!("cannot write {name}"), error)
}

/// A file beside `path`, with the permissions of what is there or those of any new file.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let any_new = Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    let file = builder.prefix(".polypath-").suffix(".part").permissions(any_new).tempfile_in(dir)?;
    if let Ok(there) = fs::metadata(path) {
        file.as_file().set_permissions(there.permissions())?;
    }
    Ok(file)
}
