//! Associations by name, and when each wants to be called: what one of them costs is the same beside a thousand others.

use std::collections::{BTreeMap, BTreeSet};

use polypath_wire::Instant;
use polypath_wire::deadlines::Named;
use polypath_wire::hip::Hit;

use crate::association::Association;

/// Associations by name with their deadlines.
#[derive(Default)]
pub(super) struct Associations {
    by_name: BTreeMap<Hit, Association>,
    due: Named<Hit>,
    /// How many were looked at.
    #[cfg(test)]
    pub looks: std::cell::Cell<usize>,
}

impl Associations {
    pub fn get(&self, name: &Hit) -> Option<&Association> {
        self.look();
        self.by_name.get(name)
    }

    pub fn contains(&self, name: &Hit) -> bool {
        self.get(name).is_some()
    }

    /// Takes one out, to be changed and put back.
    pub fn take(&mut self, name: &Hit) -> Option<Association> {
        self.look();
        self.due.set(*name, None);
        self.by_name.remove(name)
    }

    pub fn put(&mut self, name: Hit, association: Association) {
        self.due.set(name, association.timeout());
        self.by_name.insert(name, association);
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Hit, &Association)> {
        self.by_name.iter().inspect(|_| self.look())
    }

    /// Those whose deadline is not after `now`.
    pub fn due(&self, now: Instant) -> BTreeSet<Hit> {
        self.due.due(now)
    }

    /// The first deadline.
    pub fn next(&self) -> Option<Instant> {
        self.due.next()
    }

    fn look(&self) {
        #[cfg(test)]
        self.looks.update(|looks| looks + 1);
    }
}
