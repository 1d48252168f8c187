//! That a file was stored, and what tells whether it is still the same.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

#[derive(Debug)]
pub struct Receipt {
    /// Where it is, below the directory.
    pub stored: String,
    pub stamp: Stamp,
    pub digest: Digest,
}

/// What changes when a file is changed or replaced.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Stamp {
    pub size: u64,
    device: u64,
    inode: u64,
    changed: (i64, u64),
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between architectures")]
    pub fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}
