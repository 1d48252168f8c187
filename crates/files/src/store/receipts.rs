//! What was stored for whom since the program began: a sender whose verdict was lost need not send again.

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::hip::Hit;
use rustix::fs::Stat;

use crate::message::Sha;
use crate::name::SafePath;

/// Most receipts kept; the oldest are forgotten.
const MOST: usize = 16_384;

#[derive(Debug, Default)]
pub struct Receipts {
    by_name: BTreeMap<(Hit, SafePath), Receipt>,
    order: VecDeque<(Hit, SafePath)>,
}

#[derive(Debug)]
pub struct Receipt {
    /// Where it is, below the directory.
    pub stored: String,
    pub stamp: Stamp,
    pub sha256: Sha,
}

/// What changes when a file is changed or replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

impl Receipts {
    pub fn find(&self, from: Hit, path: &SafePath) -> Option<&Receipt> {
        self.by_name.get(&(from, path.clone()))
    }

    pub fn keep(&mut self, from: Hit, path: SafePath, stored: String, stamp: Stamp, sha256: Sha) {
        let key = (from, path);
        if self.by_name.insert(key.clone(), Receipt { stored, stamp, sha256 }).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_name.remove(&oldest);
        }
    }
}
