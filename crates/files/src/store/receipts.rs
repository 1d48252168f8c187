//! What was stored for whom: a sender whose verdict was lost, or who begins again, need not send it again.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

use polypath_wire::hip::Hit;

use super::ledger::{Ledger, Line};
use super::receipt::{Receipt, Stamp};
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
    /// Where the next run of the program finds them.
    ledger: Option<Ledger>,
}

impl Receipts {
    pub fn find(&self, from: Hit, path: &SafePath) -> Option<&Receipt> {
        self.by_name.get(&(from, path.clone()))
    }

    /// Those of `file`, where later ones are kept too.
    pub fn load(&mut self, file: &Path) -> io::Result<()> {
        let (ledger, lines) = Ledger::open(file)?;
        lines.into_iter().filter_map(Line::receipt).for_each(|(key, receipt)| self.insert(key, receipt));
        self.ledger = Some(ledger);
        Ok(())
    }

    pub fn keep(&mut self, from: Hit, path: SafePath, stored: String, stamp: Stamp, digest: Digest) {
        let (key, receipt) = ((from, path), Receipt { stored, stamp, digest });
        let line = Line::new(&key, &receipt);
        self.insert(key, receipt);
        if let Some(ledger) = &mut self.ledger {
            let known = || self.order.iter().filter_map(|key| Some(Line::new(key, self.by_name.get(key)?)));
            // What cannot be written is sent again after a restart.
            let _ = if ledger.is_long() { ledger.renew(known()) } else { ledger.add(&line) };
        }
    }

    fn insert(&mut self, key: (Hit, SafePath), receipt: Receipt) {
        if self.by_name.insert(key.clone(), receipt).is_none() {
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
        let stamp = Stamp::default();
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
