//! What is sent: files, directories with all that is in them, standard input.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::FileError;
use crate::message::{Modified, Offer};
use crate::name::SafePath;

/// One thing to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The path that is offered.
    pub name: String,
    /// Bytes when it was found; `None` if not known before the end.
    pub size: Option<u64>,
    from: From,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum From {
    /// A file; `named` if the user named it: then a symbolic link is followed.
    File { path: PathBuf, named: bool },
    /// A directory, which may be empty.
    Directory { mode: u16, modified: Modified },
    /// Standard input.
    Input,
    /// What the system does not let us look at, in its words: it fails when it is its turn.
    Unreadable(String),
    /// What no receiver would take, and why: it fails likewise.
    Misnamed(&'static str),
}

/// What is not sent, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    /// What.
    pub path: PathBuf,
    /// Why.
    pub why: &'static str,
}

/// All that is sent, in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Plan {
    /// What.
    pub entries: Vec<Entry>,
    /// What was found in directories and is not sent.
    pub skipped: Vec<Skipped>,
}

impl Plan {
    /// Adds a file, or a directory and what is in it. Links in it are not followed.
    pub fn add(&mut self, path: &Path) -> Result<(), FileError> {
        let failed = |source| FileError::File { path: path.to_owned(), source };
        let meta = fs::metadata(path).map_err(failed)?;
        let name = name_of(path).map_err(failed)?;
        if let Some(why) = refused(&name) {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        if meta.is_dir() {
            self.walk(path, name, &meta);
            return Ok(());
        }
        if !meta.is_file() {
            let why = "is neither a file nor a directory; `-` sends standard input";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let from = From::File { path: path.to_owned(), named: true };
        self.entries.push(Entry { name, size: Some(meta.len()), from });
        Ok(())
    }

    /// Adds standard input, as a file called `name`.
    pub fn add_input(&mut self, name: &str) {
        self.entries.push(Entry { name: name.to_owned(), size: None, from: From::Input });
    }

    /// Bytes of all entries whose length is known.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().filter_map(|entry| entry.size).sum()
    }

    fn walk(&mut self, path: &Path, name: String, meta: &Metadata) {
        let found = fs::read_dir(path).and_then(Iterator::collect);
        let mut found: Vec<fs::DirEntry> = match found {
            Ok(found) => found,
            Err(error) => return self.unreadable(name, &error),
        };
        found.sort_by_key(fs::DirEntry::file_name);
        let from = From::Directory { mode: mode(meta), modified: modified(meta) };
        self.entries.push(Entry { name: name.clone(), size: Some(0), from });
        for entry in found {
            self.found(&entry, &name);
        }
    }

    fn unreadable(&mut self, name: String, error: &io::Error) {
        self.entries.push(Entry { name, size: Some(0), from: From::Unreadable(error.to_string()) });
    }

    fn found(&mut self, entry: &fs::DirEntry, above: &str) {
        let (path, raw) = (entry.path(), entry.file_name());
        let name = format!("{above}/{}", raw.to_string_lossy());
        let bad = if raw.to_str().is_some() { refused(&name) } else { Some("its name is not UTF-8") };
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            Err(error) => return self.unreadable(name, &error),
        };
        let from = match bad {
            _ if meta.is_symlink() => return self.skipped.push(Skipped { path, why: "is a symbolic link" }),
            Some(why @ UNFINISHED) => return self.skipped.push(Skipped { path, why }),
            Some(why) => From::Misnamed(why),
            None if meta.is_dir() => return self.walk(&path, name, &meta),
            None if meta.is_file() => From::File { path, named: false },
            None => return self.skipped.push(Skipped { path, why: "is neither a file nor a directory" }),
        };
        self.entries.push(Entry { name, size: Some(meta.len()), from });
    }
}

const UNFINISHED: &str = "is an unfinished file";

/// Why no receiver takes such a name. Whether it takes hidden ones is its own choice.
fn refused(name: &str) -> Option<&'static str> {
    use crate::name::BadName as B;
    match SafePath::new(name, true).err()? {
        B::Outside => Some("has no name of its own"),
        B::Part => Some(UNFINISHED),
        B::Invisible => Some("its name has invisible characters"),
        B::Long => Some("its path is too long"),
        B::Hidden => None,
    }
}

/// The last part of a path; `.` and `..` have the names of their directories.
fn name_of(path: &Path) -> io::Result<String> {
    let name = match path.file_name() {
        Some(name) => name.to_owned(),
        None => path.canonicalize()?.file_name().unwrap_or_default().to_owned(),
    };
    name.into_string().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"))
}

fn mode(meta: &Metadata) -> u16 {
    (meta.permissions().mode() & 0o777) as u16
}

pub(crate) fn modified(meta: &Metadata) -> Modified {
    Modified { seconds: meta.mtime(), nanos: u32::try_from(meta.mtime_nsec()).unwrap_or_default() }
}

/// An entry that is open.
pub(crate) enum Opened {
    File(File),
    Directory,
    Input,
}

impl Entry {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.from, From::Directory { .. })
    }

    /// Whether it can be sent only once.
    pub fn is_input(&self) -> bool {
        self.from == From::Input
    }

    /// Opens it; what to offer. Blocks, but not for a pipe in the place of a file.
    pub(crate) fn open(&self) -> io::Result<(Opened, Offer)> {
        let offer = |size, mode, modified| Offer {
            path: self.name.clone(),
            directory: self.is_directory(),
            size,
            asks: false,
            mode,
            modified,
        };
        let (path, named) = match &self.from {
            From::Directory { mode, modified } => {
                return Ok((Opened::Directory, offer(Some(0), *mode, *modified)));
            }
            From::Unreadable(why) => return Err(io::Error::other(why.clone())),
            From::Misnamed(why) => return Err(io::Error::new(io::ErrorKind::InvalidFilename, *why)),
            From::Input => return Ok((Opened::Input, offer(None, 0o666, now()))),
            From::File { path, named } => (path, *named),
        };
        let follow = if named { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | follow;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no file any more"));
        }
        Ok((Opened::File(file), offer(Some(meta.len()), mode(&meta), modified(&meta))))
    }
}

fn now() -> Modified {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Modified { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() }
}
