//! Unfinished files. They are hidden, only their owner reads them, and their names follow from a sender and a path.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use polypath_node::{Hashed, Sha256, hex};
use polypath_wire::hip::Hit;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::Store;
use crate::digest::{Hasher, hash_front};
use crate::name::{SafePath, shortened};

/// Names tried for an unfinished file that can be resumed: something else may be in the place of the first.
const RESUMABLE: u32 = 4;
/// Names tried for one that cannot be resumed.
const FRESH: u32 = 10_000;

/// An unfinished file, which nobody else writes.
#[derive(Debug)]
pub struct Part {
    /// Dropped before the file, whose lock ends when it is closed.
    pub(super) entry: Entry,
    pub file: File,
    pub(super) path: SafePath,
    pub(super) from: Hit,
}

/// The name of an unfinished file.
#[derive(Debug)]
pub struct Entry {
    pub parent: OwnedFd,
    pub name: String,
    pub when_dropped: WhenDropped,
}

/// What becomes of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenDropped {
    /// It goes.
    Remove,
    /// It stays for the next attempt, unless the file is empty.
    Resume,
    /// It is not there any more: the file has its final name.
    Settled,
}

impl Store {
    /// The unfinished file `path` of `from`: the one of an earlier transfer, or a new one. `None` if a transfer that is not
    /// over writes it and `patient` says to wait for that; if not, a file of another name.
    pub(crate) fn resume(&self, from: Hit, path: &SafePath, patient: bool) -> io::Result<Option<Part>> {
        let parent = self.parent(path)?;
        for number in 0..RESUMABLE {
            let name = part_name(path, from, number);
            match lock(&parent, &name) {
                Ok(Some(file)) => {
                    let entry = Entry { parent, name, when_dropped: WhenDropped::Resume };
                    return Ok(Some(Part { file, entry, path: path.clone(), from }));
                }
                Ok(None) if patient => return Ok(None),
                Ok(None) => {}
                Err(error) if is_in_the_way(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.fresh(from, path).map(Some)
    }

    /// A new unfinished file for `path`.
    pub(crate) fn fresh(&self, from: Hit, path: &SafePath) -> io::Result<Part> {
        let parent = self.parent(path)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in RESUMABLE..FRESH {
            let name = part_name(path, from, number);
            match openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    let entry = Entry { parent, name, when_dropped: WhenDropped::Remove };
                    return Ok(Part { file: file.into(), entry, path: path.clone(), from });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Part {
    /// Hashes the first bytes, at most `most`; how many they are. The rest is cut off, and what is written goes there.
    pub fn have(mut self, most: u64) -> io::Result<(Hashed<Self, Hasher>, u64)> {
        let have = self.file.metadata()?.len().min(most);
        let mut hash = Hasher::default();
        let hashed = hash_front(&mut self.file, have, &mut hash)?;
        self.begin_at(hashed)?;
        Ok((Hashed { file: self, hash }, hashed))
    }

    /// Without its bytes, to be written from the start.
    pub fn emptied(mut self) -> io::Result<Self> {
        self.begin_at(0)?;
        Ok(self)
    }

    /// Cuts off what is behind `at`, where writing goes on.
    fn begin_at(&mut self, at: u64) -> io::Result<()> {
        self.file.set_len(at)?;
        self.file.seek(SeekFrom::Start(at)).map(drop)
    }

    /// Whether it is the unfinished file of that path.
    pub fn is_for(&self, path: &SafePath) -> bool {
        self.path == *path
    }

    /// Removes it.
    pub fn discard(mut self) {
        self.entry.when_dropped = WhenDropped::Remove;
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let empty = || {
            let stat = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| stat.st_size == 0)
        };
        let remove = match self.when_dropped {
            WhenDropped::Remove => true,
            WhenDropped::Resume => empty(),
            WhenDropped::Settled => false,
        };
        if remove {
            let _ = unlinkat(&self.parent, &self.name, AtFlags::empty());
        }
    }
}

/// Opens a regular file of that name, or makes it, and locks it; `None` if it is locked. Anything else of that name is in
/// the way.
fn lock(parent: &OwnedFd, name: &str) -> io::Result<Option<File>> {
    // Neither a pipe nor a device makes us wait.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    // Whoever had it may have finished it meanwhile: then it has another name.
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let same = named.is_ok_and(|named| (named.st_dev, named.st_ino) == (stat.st_dev, stat.st_ino));
    Ok(same.then(|| file.into()))
}

fn is_in_the_way(error: &io::Error) -> bool {
    let known = [Errno::LOOP, Errno::ISDIR, Errno::NXIO, Errno::ACCESS, Errno::PERM, Errno::EXIST];
    error.kind() == io::ErrorKind::AlreadyExists
        || known.iter().any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

/// The name of an unfinished file. Only transfers from `from` use it.
fn part_name(path: &SafePath, from: Hit, number: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(from.0);
    hash.update(number.to_be_bytes());
    hash.update(path.as_str());
    format!(".{}.{}.part", shortened(path.name(), 23), hex(&hash.finalize()[..8]))
}
