//! A file that replaces another whole, or not at all.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf, absolute};

use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::made::Made;

/// What is written beside a file, on the disk already. Dropping it leaves nothing behind.
pub struct Draft {
    text: NamedTempFile,
    /// Where to write it.
    file: PathBuf,
    made: Made,
}

impl Draft {
    /// Writes `text` beside `file`. The target of a link is replaced, not the link.
    pub fn write(file: &Path, text: &str) -> Result<Self, Failure> {
        Self::new(file, text).map_err(|e| Failure::unwritten(file, &e))
    }

    /// It becomes the file `named`.
    pub fn keep(self, named: &Path) -> Result<(), Failure> {
        self.persist().map_err(|e| Failure::unwritten(named, &e))
    }

    fn new(file: &Path, text: &str) -> io::Result<Self> {
        // The daemon refuses a directory that others may change, whatever the umask.
        let made = Made::around(file, 0o750)?;
        let before = file.metadata().ok();
        let file = if before.is_some() { file.canonicalize()? } else { absolute(file)? };
        let mut new = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o640))
            .tempfile_in(directory(&file))?;
        if let Some(before) = before {
            let made = new.as_file().metadata()?;
            if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
                fchown(new.as_file(), Some(before.uid()), Some(before.gid()))?;
            }
            new.as_file().set_permissions(before.permissions())?;
        }
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        Ok(Self { text: new, file, made })
    }

    fn persist(self) -> io::Result<()> {
        self.text.persist(&self.file)?;
        self.made.keep();
        File::open(directory(&self.file))?.sync_all()
    }
}

fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}
