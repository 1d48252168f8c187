//! Files in the directory of state: read whole, replaced at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;
use thiserror::Error;

/// Why a file says nothing.
#[derive(Debug, Error)]
pub(crate) enum Unread {
    /// The system does not let it be read.
    #[error(transparent)]
    Os(#[from] io::Error),
    /// It cannot be understood, and was renamed.
    #[error("{why}: it is {} now", aside.display())]
    Broken {
        /// What is wrong with it.
        why: serde_json::Error,
        /// Its name now.
        aside: PathBuf,
    },
}

/// Reads `file`; one that does not exist reads as the default.
pub(crate) fn load<T: DeserializeOwned + Default>(file: &Path) -> Result<T, Unread> {
    let Some(text) = text(file)? else { return Ok(T::default()) };
    serde_json::from_slice(&text).map_err(|why| {
        let aside = file.with_extension("broken");
        match fs::rename(file, &aside) {
            Ok(()) => Unread::Broken { why, aside },
            Err(error) => error.into(),
        }
    })
}

/// The same, but one that cannot be understood stays, and reads as the default.
pub(crate) fn peek<T: DeserializeOwned + Default>(file: &Path) -> io::Result<T> {
    Ok(text(file)?.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default())
}

fn text(file: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

/// Replaces `file` at once, or leaves it as it is. Its directory may be another user's: no link in it is followed, and what root
/// writes there is that user's.
pub(crate) fn store(file: &Path, value: &impl Serialize) -> io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let new = NamedTempFile::new_in(dir)?;
    let text = serde_json::to_vec_pretty(value)?;
    // Errors of `new` itself would name it.
    new.as_file().write_all(&[&text, &b"\n"[..]].concat())?;
    if geteuid().is_root() {
        let owner = fs::metadata(dir)?;
        fchown(new.as_file(), Some(owner.uid()), Some(owner.gid()))?;
    }
    new.as_file().sync_all()?;
    new.persist(file)?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_stored_is_loaded_and_a_link_that_waits_there_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("a.json"), dir.path().join("other"));
        fs::write(&other, "precious").unwrap();
        symlink(&other, file.with_extension("new")).unwrap();
        assert_eq!(load::<Vec<u8>>(&file).unwrap(), Vec::<u8>::new());
        store(&file, &[1, 2]).unwrap();
        assert_eq!(load::<Vec<u8>>(&file).unwrap(), [1, 2]);
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
    }

    #[test]
    fn what_root_stores_belongs_to_the_owner_of_the_directory() {
        if !geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(dir.path(), Some(12_345), Some(12_346)).unwrap();
        let file = dir.path().join("a.json");
        store(&file, &[1]).unwrap();
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (12_345, 12_346, 0o600));
    }

    #[test]
    fn a_file_that_is_broken_is_put_aside_and_one_that_cannot_be_read_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        fs::write(&file, "{").unwrap();
        assert_eq!(peek::<Vec<u8>>(&file).unwrap(), Vec::<u8>::new());
        assert!(matches!(load::<Vec<u8>>(&file), Err(Unread::Broken { .. })));
        assert!(!file.exists() && dir.path().join("a.broken").exists());
        fs::create_dir(&file).unwrap();
        assert!(matches!(load::<Vec<u8>>(&file), Err(Unread::Os(_))) && peek::<Vec<u8>>(&file).is_err());
        assert!(file.exists());
    }
}
