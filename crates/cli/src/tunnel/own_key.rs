//! Whether the key file still has the key of the running daemon, which may have become another user and not read it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use polypath_daemon::control::{Answer, Command};
use polypath_daemon::{Daemon, Place};
use polypath_wire::hip::Hit;

use super::placed;
use crate::failure::Failure;
use crate::keys;

/// The key file as the daemon read it.
pub struct OwnKey {
    file: PathBuf,
    hit: Hit,
    read: Option<Stamp>,
}

/// What tells one content of a file from a later one: file system, number, size and time of the last change.
#[derive(PartialEq, Eq)]
struct Stamp([i64; 5]);

impl Stamp {
    fn of(found: &Metadata) -> Self {
        let [device, number, size] = [found.dev(), found.ino(), found.size()].map(u64::cast_signed);
        Self([device, number, size, found.mtime(), found.mtime_nsec()])
    }
}

impl OwnKey {
    /// The key in `file`, which has just been read.
    pub fn new(file: &Path, hit: Hit) -> Self {
        let read = fs::metadata(file).ok().map(|found| Stamp::of(&found));
        Self { file: file.to_owned(), hit, read }
    }

    /// Has `daemon` read its configuration again, unless the file has another key now.
    pub async fn reload(&self, daemon: &Daemon, config: &Path) -> Answer {
        let doubt = match self.look() {
            Ok(doubt) => doubt,
            Err(other) => {
                let place = Place::Value(["identity", "key"]);
                let why = placed(config, place, other).message().to_owned();
                let help = "nothing was changed: put the former key back, or `polypath down` and `polypath up`, \
                            which resets all connections; the peers need the new tag then";
                return Answer::Refused { why, help: help.into() };
            }
        };
        let mut warnings = match daemon.answer(Command::Reload, config).await {
            Answer::Done => Vec::new(),
            Answer::DoneBut(warnings) => warnings,
            other => return other,
        };
        if let Some(doubt) = doubt.map(|doubt| format!("[identity] key: {doubt}")) {
            tracing::warn!("{doubt}");
            warnings.insert(0, doubt);
        }
        Answer::done(warnings)
    }

    /// What to say about the file; an error if it has another key.
    fn look(&self) -> Result<Option<String>, Failure> {
        let (name, hit) = (self.file.display(), self.hit);
        if self.is_closed() {
            let now = fs::metadata(&self.file).ok().map(|found| Stamp::of(&found));
            let changed = now.is_some() && now != self.read;
            return Ok(changed.then(|| {
                format!(
                    "{name} was changed after the start, and the daemon's user may not read it. The daemon keeps the \
                     key of {hit} until the next `polypath up`; `polypath hit {name}` prints the tag of the file"
                )
            }));
        }
        match keys::file::load(&self.file) {
            Ok(identity) if identity.hit() == hit => Ok(None),
            Ok(identity) => Err(Failure::usage(format!(
                "{name} has another key now: its tag is {}, and the daemon's is {hit}",
                identity.hit()
            ))),
            Err(failure) => Ok(Some(format!(
                "{}; the daemon keeps its key, and would not start again",
                failure.message()
            ))),
        }
    }

    /// Whether the daemon's user may not read it.
    fn is_closed(&self) -> bool {
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        match fs::metadata(&self.file) {
            Ok(found) if found.is_file() => File::open(&self.file).is_err_and(denied),
            other => other.is_err_and(denied),
        }
    }
}
