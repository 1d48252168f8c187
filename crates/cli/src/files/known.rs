//! Rates and round trips of paths, kept from one `send` to the next in a small file beside the key. It may be missing or damaged.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polypath_endpoint::PathName;
use polypath_node::Node;
use polypath_transport::KnownPath;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// Largest file that is read, bytes. A larger one was not written by us.
const LONGEST: u64 = 1 << 20;

/// One path in the file.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    name: PathName,
    #[serde(flatten)]
    path: KnownPath,
    /// When it was measured, seconds since 1970.
    at: u64,
}

/// The file that belongs to the key file `key`.
pub fn beside(key: &Path) -> PathBuf {
    key.with_file_name("paths.json")
}

/// Passes the paths in `file` to `node`.
pub fn recall(node: &Node, file: &Path) {
    let now = now();
    for entry in read(file) {
        let age = Duration::from_secs(now.abs_diff(entry.at));
        node.recall(entry.name, entry.path, age.into());
    }
}

/// Writes the paths that `node` knows to `file`. If that fails, the next transfer starts without them.
pub fn keep(node: &Node, file: &Path) {
    let now = now();
    let entry = |(name, path, age): (PathName, KnownPath, polypath_wire::Duration)| Entry {
        name,
        path,
        at: now.saturating_sub(age.as_secs_f64() as u64),
    };
    let known: Vec<Entry> = node.known_paths().into_iter().map(entry).collect();
    if !known.is_empty() {
        let _ = write(file, &merged(known, read(file), now));
    }
}

/// The paths `known` now, and the others of `before` that are young enough.
fn merged(mut known: Vec<Entry>, before: Vec<Entry>, now: u64) -> Vec<Entry> {
    let life = KnownPath::LIFE.as_secs_f64() as u64;
    let others = before.into_iter().filter(|e| now.abs_diff(e.at) < life);
    let others: Vec<Entry> = others.filter(|e| known.iter().all(|k| k.name != e.name)).collect();
    known.extend(others);
    known
}

fn read(file: &Path) -> Vec<Entry> {
    let small = fs::metadata(file).is_ok_and(|m| m.is_file() && m.len() <= LONGEST);
    let text = if small { fs::read(file).unwrap_or_default() } else { Vec::new() };
    serde_json::from_slice(&text).unwrap_or_default()
}

fn write(file: &Path, known: &[Entry]) -> io::Result<()> {
    let mut temporary = NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    temporary.write_all(&serde_json::to_vec(known)?)?;
    temporary.persist(file)?;
    Ok(())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use polypath_wire::Rate;

    use super::*;

    fn entry(last: u8, at: u64) -> Entry {
        let ip = |n| [10, 0, n, last].into();
        let path = KnownPath { rate: Rate::from_mbps(80), rtt: polypath_wire::Duration::from_millis(40) };
        Entry { name: PathName { peer: ip(1), local: ip(2), remote: ip(3) }, path, at }
    }

    #[test]
    fn what_is_kept_is_read_again_and_what_is_wrong_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = beside(&dir.path().join("identity.pem"));
        assert_eq!(read(&file), []);
        write(&file, &[entry(1, 5), entry(2, 6)]).unwrap();
        assert_eq!(read(&file), [entry(1, 5), entry(2, 6)]);
        for wrong in ["", "[", "{}", "[{\"peer\":\"x\"}]", "[1]"] {
            fs::write(&file, wrong).unwrap();
            assert_eq!(read(&file), [], "{wrong}");
        }
    }

    #[test]
    fn paths_to_others_stay_known_as_long_as_they_count() {
        let before = vec![entry(1, 1000), entry(2, 1000), entry(3, 100)];
        assert_eq!(merged(vec![entry(1, 1100)], before, 1100), [entry(1, 1100), entry(2, 1000)]);
    }
}
