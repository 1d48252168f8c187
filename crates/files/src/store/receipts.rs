//! What was stored for whom since the program began: a sender whose verdict was lost need not send again.

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::hip::Hit;
use rustix::fs::Stat;

use crate::digest::Digest;
use crate::name::SafePath;

/// Bytes of receipts that are kept at most, about; the oldest are forgotten.
const MOST: usize = 8 << 20;
/// Bytes of a receipt beside its paths, about.
const FIXED: usize = 256;

#[derive(Debug, Default)]
pub struct Receipts {
    by_name: BTreeMap<(Hit, SafePath), Receipt>,
    order: VecDeque<(Hit, SafePath)>,
    bytes: usize,
}

#[derive(Debug)]
pub struct Receipt {
    /// Where it is, below the directory.
    pub stored: String,
    pub stamp: Stamp,
    pub digest: Digest,
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

    pub fn keep(&mut self, from: Hit, path: SafePath, stored: String, stamp: Stamp, digest: Digest) {
        let key = (from, path);
        if self.by_name.insert(key.clone(), Receipt { stored, stamp, digest }).is_none() {
            self.bytes += size(&key);
            self.order.push_back(key);
        }
        while self.bytes > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_name.remove(&oldest);
            self.bytes -= size(&oldest);
        }
    }
}

/// What a receipt takes, about: its path is there three times.
fn size((_, path): &(Hit, SafePath)) -> usize {
    3 * path.as_str().len() + FIXED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_take_no_more_than_their_share() {
        let mut receipts = Receipts::default();
        let stamp = Stamp { size: 0, device: 0, inode: 0, changed: (0, 0) };
        let path = |n: u32| SafePath::new(&format!("{}{n}", "long/".repeat(50)), false).unwrap();
        for n in 0..20_000 {
            receipts.keep(Hit([1; 16]), path(n), String::new(), stamp, [0; 32]);
        }
        assert!(receipts.bytes <= MOST && receipts.by_name.len() == receipts.order.len());
        assert!(receipts.find(Hit([1; 16]), &path(0)).is_none());
        assert!(receipts.find(Hit([1; 16]), &path(19_999)).is_some());
        assert!(receipts.find(Hit([2; 16]), &path(19_999)).is_none(), "each sender has its own");
    }
}
