//! Connections over the same paths: each counts what the others have under way when it chooses a path.

use polypath_wire::Instant;

use super::Endpoint;
use super::recall::name_of;

impl Endpoint {
    /// Counts what a connection has under way on each of several paths; with one path there is nothing to choose.
    #[inline]
    pub(super) fn count_under_way(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.at(index).filter(|slot| !slot.retired) else { return };
        let (cover, known, several) = (&self.cover, &self.known, slot.paths.len() > 1);
        for (path, locators, counted) in slot.paths.counted() {
            if !several {
                self.shared.leave(locators, std::mem::take(counted));
                continue;
            }
            let after = slot.connection.under_way(path);
            let before = std::mem::replace(counted, after);
            let rate = || Some(known.at(now, &name_of(cover, locators)?)?.rate);
            self.shared.count(now, locators, [before, after], rate);
        }
    }

    /// Tells a connection which of its windows may start with more than they have, and, if it has several paths, what others have under
    /// way there.
    #[inline]
    pub(super) fn tell_beside(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.at(index) else { return };
        let (connection, paths) = (&mut slot.connection, slot.paths.len());
        for (path, locators, counted) in slot.paths.counted() {
            if connection.starts(path) {
                let (waiting, window) =
                    (connection.unsent() / paths as u64, connection.path_stats(path).cwnd);
                let name = name_of(&self.cover, locators);
                let first = name.and_then(|name| self.known.start(now, &name, waiting, window));
                connection.start_path(now, path, first);
            }
            if paths > 1 {
                connection.path_beside(now, path, self.shared.beside(now, locators, counted.in_flight));
            }
        }
    }
}
