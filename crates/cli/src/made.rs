//! Directories that are made for a file, and go again if it does not come.

use std::fs::{DirBuilder, remove_dir};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Directories that were not there before, the innermost first. Dropping it removes those that are empty.
#[derive(Debug)]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// Makes the directory of `file` and those around it, with `mode`; those that are there stay as they are.
    pub fn around(file: &Path, mode: u32) -> io::Result<Self> {
        let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) else {
            return Ok(Self(vec![]));
        };
        let missing = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists());
        let made = Self(missing.map(Path::to_owned).collect());
        DirBuilder::new().recursive(true).mode(mode).create(dir)?;
        Ok(made)
    }

    /// They stay.
    pub fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for dir in &self.0 {
            let _ = remove_dir(dir); // what is in use stays
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_goes_unless_it_is_kept_or_used() {
        let dir = tempfile::tempdir().unwrap();
        let (there, file) = (dir.path().join("a"), dir.path().join("a/b/c/file"));
        drop(Made::around(&file, 0o700).unwrap());
        assert!(!there.exists());
        Made::around(&file, 0o700).unwrap().keep();
        assert!(file.parent().unwrap().is_dir());
        let made = Made::around(&there.join("d/e/file"), 0o700).unwrap();
        std::fs::write(there.join("d/other"), "").unwrap();
        drop(made);
        assert!(there.join("d/other").exists() && !there.join("d/e").exists());
    }
}
