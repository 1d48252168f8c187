//! The directory that files are received into. Everything here blocks.
//!
//! No name leads out of it: directories are opened one by one and no symbolic link is followed. No file in it is
//! replaced, and a peer learns only of files that it sent itself.

mod ledger;
mod part;
mod receipt;
mod receipts;
mod settle;

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use polypath_wire::hip::Hit;
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fstatvfs, mkdirat, open, openat, statat,
    utimensat,
};
use rustix::io::Errno;

use crate::digest::Digest;
use crate::message::{Modified, Offer};
use crate::name::{BadName, SafePath};
pub(crate) use part::Part;
use receipt::Stamp;
use receipts::Receipts;
pub(crate) use settle::Stored;

/// How a directory is opened to be walked through.
const WALK: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that files are received into.
#[derive(Debug)]
pub struct Store {
    root: OwnedFd,
    dir: PathBuf,
    hidden: bool,
    umask: u32,
    receipts: Mutex<Receipts>,
    sync: Sync,
}

/// How the bytes of a whole file are brought to the disk.
type Sync = fn(&File) -> io::Result<()>;

impl Store {
    /// Opens `dir`, and makes it if it is not there. `hidden` takes names that begin with a dot.
    pub fn open(dir: &Path, hidden: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o777).create(dir).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                io::Error::new(io::ErrorKind::NotADirectory, "it is no directory")
            }
            _ => error,
        })?;
        let root = open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let (dir, receipts) = (dir.to_owned(), Mutex::default());
        Ok(Self { root, dir, hidden, umask: umask(), receipts, sync: File::sync_all })
    }

    /// The same, with what was stored here on earlier occasions, as `file` says; from now on it says what is stored. If it
    /// cannot be used, only what is stored from now on is known.
    #[must_use]
    pub fn remembering(self, file: &Path) -> Self {
        let _ = self.receipts.lock().unwrap_or_else(PoisonError::into_inner).load(file);
        self
    }

    /// The same, with another function in the place of fsync(2).
    #[must_use]
    pub fn synced_by(self, sync: fn(&File) -> io::Result<()>) -> Self {
        Self { sync, ..self }
    }

    /// The path of an offer, if it is one that we take.
    pub(crate) fn path(&self, offer: &Offer) -> Result<SafePath, BadName> {
        SafePath::new(&offer.path, self.hidden)
    }

    /// Makes the directory `path`, and those above it, unless they are there.
    pub(crate) fn make_directory(&self, path: &SafePath, mode: u16) -> io::Result<PathBuf> {
        let parent = self.parent(path)?;
        descend(&parent, path.name(), u32::from(mode & 0o777) | 0o700)?;
        Ok(self.dir.join(path.as_str()))
    }

    /// Gives the directory `path` the time of its last change, if it can be given.
    pub(crate) fn date_directory(&self, path: &SafePath, modified: Modified) {
        let time = Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanos.into() };
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let times = Timestamps { last_access: omit, last_modification: time };
        if let Ok(parent) = self.parent(path) {
            let _ = utimensat(&parent, path.name(), &times, AtFlags::SYMLINK_NOFOLLOW);
        }
    }

    /// The directory that `path` is in, made if need be.
    fn parent(&self, path: &SafePath) -> io::Result<OwnedFd> {
        let mut at = self.root.try_clone()?;
        for name in path.directories() {
            at = descend(&at, name, 0o777)?;
        }
        Ok(at)
    }

    /// Whether the disk has room for `bytes` more; yes if that cannot be found out.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        fstatvfs(&self.root).map_or(true, |fs| fs.f_bavail.saturating_mul(fs.f_frsize) >= bytes)
    }

    /// Digest and place of the file `path` of `size` bytes that `from` sent, if it is unchanged since.
    pub(crate) fn receipt(&self, from: Hit, path: &SafePath, size: u64) -> Option<(Digest, PathBuf)> {
        let receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        let receipt = receipts.find(from, path).filter(|receipt| receipt.stamp.size == size)?;
        let now = statat(&self.root, &receipt.stored, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (Stamp::of(&now) == receipt.stamp).then(|| (receipt.digest, self.dir.join(&receipt.stored)))
    }

    fn remember(&self, from: Hit, path: &SafePath, stored: String, file: &File, digest: Digest) {
        let Ok(stat) = rustix::fs::fstat(file) else { return };
        let mut receipts = self.receipts.lock().unwrap_or_else(PoisonError::into_inner);
        receipts.keep(from, path.clone(), stored, Stamp::of(&stat), digest);
    }
}

/// Opens a directory in a directory; makes it with that mode if it is not there.
fn descend(at: &OwnedFd, name: &str, mode: u32) -> io::Result<OwnedFd> {
    match mkdirat(at, name, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    match openat(at, name, WALK, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => {
            Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{name} is there and is no directory")))
        }
        opened => Ok(opened?),
    }
}

/// The permissions that this process withholds from what it makes.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0o022)
}
