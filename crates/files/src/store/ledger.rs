//! Receipts on disk, for the next run of the program: a line of JSON for each, appended as files are stored. It may be
//! missing or damaged, and what cannot be written is forgotten.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use polypath_wire::hip::Hit;
use serde::{Deserialize, Serialize};

use super::receipt::{Receipt, Stamp};
use crate::digest::Digest;
use crate::name::SafePath;

/// Bytes of a ledger that is written anew, with what is still known.
const LONGEST: u64 = 16 << 20;

#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    bytes: u64,
}

/// A receipt on disk.
#[derive(Serialize, Deserialize)]
pub struct Line {
    pub from: [u8; 16],
    pub asked: String,
    pub stored: String,
    pub stamp: Stamp,
    pub digest: Digest,
}

impl Ledger {
    /// The ledger `path`, made if it is not there, and its lines, the oldest first. Only its owner reads it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Line>)> {
        if let Some(above) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        // A longer one was not written by us.
        let short = if bytes <= 2 * LONGEST { bytes } else { 0 };
        let lines = BufReader::new(io::Read::take(&file, short)).split(b'\n');
        let lines =
            lines.map_while(Result::ok).filter_map(|line| serde_json::from_slice(&line).ok()).collect();
        Ok((Self { path: path.to_owned(), file, bytes }, lines))
    }

    /// Whether it is time to write it [anew](Self::renew).
    pub fn is_long(&self) -> bool {
        self.bytes > LONGEST
    }

    /// Adds a line, in one write.
    pub fn add(&mut self, line: &Line) -> io::Result<()> {
        // What another program, killed while it wrote, left of a line ends here.
        let text = format!("\n{}\n", serde_json::to_string(line)?);
        self.bytes += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    /// Replaces everything by `lines`, at once.
    pub fn renew(&mut self, lines: impl Iterator<Item = Line>) -> io::Result<()> {
        self.bytes = 0; // whatever happens, not again at the next line
        let beside = self.path.with_extension("new");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        let mut out = io::BufWriter::new(file);
        for line in lines {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        out.flush()?;
        std::fs::rename(&beside, &self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.bytes = self.file.metadata()?.len();
        Ok(())
    }
}

impl Line {
    pub fn new((from, asked): &(Hit, SafePath), receipt: &Receipt) -> Self {
        let Receipt { stored, stamp, digest } = receipt;
        let (asked, stored) = (asked.as_str().to_owned(), stored.clone());
        Self { from: from.0, asked, stored, stamp: *stamp, digest: *digest }
    }

    /// Its name and its receipt, if neither leads out of the directory.
    pub fn receipt(self) -> Option<((Hit, SafePath), Receipt)> {
        let Self { from, asked, stored, stamp, digest } = self;
        SafePath::new(&stored, true).ok()?;
        Some(((Hit(from), SafePath::new(&asked, true).ok()?), Receipt { stored, stamp, digest }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str) -> Line {
        let stamp = Stamp::default();
        Line { from: [1; 16], asked: name.into(), stored: name.into(), stamp, digest: [7; 32] }
    }

    fn names(path: &Path) -> Vec<String> {
        Ledger::open(path).unwrap().1.into_iter().map(|line| line.asked).collect()
    }

    #[test]
    fn lines_are_read_again_and_what_is_damaged_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/ledger");
        let (mut ledger, none) = Ledger::open(&path).unwrap();
        assert!(none.is_empty());
        ledger.add(&line("a")).unwrap();
        ledger.file.write_all(b"{\"from\": cut").unwrap();
        ledger.add(&line("b")).unwrap();
        ledger.file.write_all(&[0xff, b'\n']).unwrap();
        assert_eq!(names(&path), ["a", "b"]);
        ledger.renew([line("c")].into_iter()).unwrap();
        ledger.add(&line("d")).unwrap();
        assert_eq!(names(&path), ["c", "d"]);
        assert!(line("../e").receipt().is_none() && line("e").receipt().is_some());
    }
}
