//! Associations by name, and when each wants to be called: what one of them costs is the same beside a thousand others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use polypath_wire::Instant;
use polypath_wire::deadlines::Named;
use polypath_wire::hip::Hit;

use super::Host;
use crate::association::Association;
use crate::event::DropReason;

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

impl Host {
    /// Makes room for one more association: at the limit, the one of least [`worth`](Association::worth) is removed.
    pub(super) fn make_room(&mut self, now: Instant) -> Result<(), DropReason> {
        if self.peers.len() < self.config.max_associations {
            return Ok(());
        }
        let mut from: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.associations()
            .filter_map(Association::guest_from)
            .for_each(|ip| *from.entry(ip).or_default() += 1);
        let guests = self.peers.iter().filter_map(|(name, a)| {
            let crowd = from[&a.guest_from()?];
            Some((a.worth(now, crowd), *name))
        });
        let (_, name) = guests.min().filter(|(worth, _)| worth.is_low()).ok_or(DropReason::Policy)?;
        self.with(now, name, |a, ctx| a.evict(ctx));
        Ok(())
    }
}
