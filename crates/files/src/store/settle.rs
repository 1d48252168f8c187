//! A finished file gets its name.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polypath_wire::hip::Hit;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::Store;
use super::part::{Entry, Part, WhenDropped};
use crate::digest::{Digest, Hasher, digest, hash_front};
use crate::message::{Modified, Offer};
use crate::name::{SafePath, shortened};

/// Files of one name that are kept beside each other.
const MOST_COPIES: u32 = 10_000;
/// Files of one name that a new one is compared with.
const COMPARED: u32 = 16;

/// A file that is stored.
#[derive(Debug)]
pub struct Stored {
    /// Where it is.
    pub path: PathBuf,
    /// The directory, and the name it had.
    entry: Entry,
    /// Its path as the sender said it.
    asked: SafePath,
    from: Hit,
    /// How many files of its name were there before.
    number: u32,
    file: File,
    digest: Digest,
}

impl Store {
    /// Gives the whole file `part` its name, or one like it if that is taken, with the mode and the time of `offer`.
    pub(crate) fn settle(&self, part: Part, offer: &Offer, digest: Digest) -> io::Result<Stored> {
        let mode = u32::from(offer.mode) & 0o777 & !self.umask;
        // File systems without modes or times keep the bytes all the same.
        let _ = part.file.set_permissions(Permissions::from_mode(mode));
        let _ = offer.modified.system().map(|time| part.file.set_modified(time));
        (self.sync)(&part.file)?;
        let number = rename(&part.entry.parent, &part.entry.name, part.path.name())?;
        let Part { file, mut entry, path: asked, from } = part;
        entry.when_dropped = WhenDropped::Settled;
        let stored = relative(&asked, number);
        self.remember(from, &asked, stored.clone(), &file, digest);
        Ok(Stored { path: self.dir.join(stored), entry, asked, from, number, file, digest })
    }

    /// Removes the stored file if one of the same name and bytes was there before; where the bytes are now. The sender has
    /// its verdict by then, so it does not learn of the other file.
    pub(crate) fn without_copies(&self, stored: Stored) -> PathBuf {
        let same = (0..stored.number.min(COMPARED)).find_map(|number| {
            let there = stored.same(number).ok().flatten()?;
            Some((number, there))
        });
        let ours = numbered(stored.asked.name(), stored.number);
        match same {
            Some((number, there)) if unlinkat(&stored.entry.parent, &ours, AtFlags::empty()).is_ok() => {
                let path = relative(&stored.asked, number);
                self.remember(stored.from, &stored.asked, path.clone(), &there, stored.digest);
                self.dir.join(path)
            }
            _ => stored.path,
        }
    }
}

impl Stored {
    /// The file of that number, if it has the same bytes.
    fn same(&self, number: u32) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let name = numbered(self.asked.name(), number);
        let mut there = File::from(openat(&self.entry.parent, name, flags, Mode::empty())?);
        let (theirs, ours) = (there.metadata()?, self.file.metadata()?);
        if !theirs.is_file() || theirs.len() != ours.len() {
            return Ok(None);
        }
        let mut hash = Hasher::default();
        hash_front(&mut there, u64::MAX, &mut hash)?;
        Ok((digest(&hash) == self.digest).then_some(there))
    }
}

impl Modified {
    /// As the system counts; `None` if it cannot.
    pub(crate) fn system(self) -> Option<SystemTime> {
        let seconds = Duration::from_secs(self.seconds.unsigned_abs());
        let whole = match self.seconds {
            0.. => UNIX_EPOCH.checked_add(seconds),
            _ => UNIX_EPOCH.checked_sub(seconds),
        };
        whole?.checked_add(Duration::from_nanos(self.nanos.into()))
    }
}

/// Renames `part` to the first of the names of `name` that is free; its number.
fn rename(parent: &OwnedFd, part: &str, name: &str) -> io::Result<u32> {
    for number in 0..MOST_COPIES {
        let to = numbered(name, number);
        match renameat_with(parent, part, parent, &to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(number),
            Err(Errno::EXIST) => continue,
            Err(Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        // The file system cannot rename so. An empty file of ours takes the name first, and is replaced.
        let claim = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(parent, &to, claim, Mode::RUSR | Mode::WUSR) {
            Ok(_) => {
                renameat(parent, part, parent, &to)?;
                return Ok(number);
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn numbered(name: &str, number: u32) -> String {
    if number == 0 { name.to_owned() } else { format!("{}.{number}", shortened(name, 5)) }
}

fn relative(asked: &SafePath, number: u32) -> String {
    let directories = asked.as_str().len() - asked.name().len();
    format!("{}{}", &asked.as_str()[..directories], numbered(asked.name(), number))
}
