//! Connections over the same paths: each counts what the others have under way when it chooses a path.

use polypath_wire::Instant;

use super::Endpoint;
use super::recall::name_of;

impl Endpoint {
    /// Records what a connection has under way on its paths, and what it lost there, for the connections beside it.
    #[inline]
    pub(super) fn hear_paths(&mut self, now: Instant, index: u32) {
        self.count_under_way(now, index);
        self.hear_losses(now, index);
    }

    /// Counts what a connection has under way on its paths, and keeps what it measured there together with others.
    #[inline]
    fn count_under_way(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.at(index).filter(|slot| !slot.retired) else { return };
        let (cover, known, connection) = (&self.cover, &mut self.known, &slot.connection);
        for (path, locators, counted) in slot.paths.counted() {
            let after = connection.under_way(path);
            let before = std::mem::replace(counted, after);
            let at = || known.at(now, &name_of(cover, locators)?);
            let rtts = || [connection.path_stats(path).min_rtt, at().map(|known| known.rtt)];
            let rate = || at().map(|known| known.rate);
            let measured = self.shared.count(now, locators, [before, after], rate, rtts);
            if let Some((measured, name)) = measured.zip(name_of(cover, locators))
                && let Some(known) = known.measured_together(now, name, measured)
            {
                self.shared.learn(locators, known.rate);
            }
        }
    }

    /// Tells a connection with several paths what others have under way there.
    #[inline]
    pub(super) fn tell_beside(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.at(index).filter(|slot| slot.paths.len() > 1) else { return };
        for (path, locators, counted) in slot.paths.counted() {
            slot.connection.path_beside(now, path, self.shared.beside(now, locators, counted.in_flight));
        }
    }

    /// Gives a connection that asks the turns in first flights that end soonest; whether it got one.
    #[inline]
    pub(super) fn give_turns(&mut self, now: Instant, index: u32) -> bool {
        let asked = self.slots.at(index).and_then(|slot| slot.connection.asks());
        asked.is_some_and(|bytes| self.give_turns_for(now, index, bytes))
    }

    #[inline(never)]
    fn give_turns_for(&mut self, now: Instant, index: u32, bytes: u64) -> bool {
        let Some(slot) = self.slots.at(index) else { return false };
        let (cover, known, connection) = (&self.cover, &mut self.known, &mut slot.connection);
        let turn = |(path, locators)| {
            let (name, start) = (name_of(cover, &locators)?, connection.starts(path)?);
            Some((known.next_turn(now, &name)?, path, name, start))
        };
        let mut turns: Vec<_> = slot.paths.iter().filter_map(turn).collect();
        turns.sort_unstable();
        let mut left = bytes;
        for (_, path, name, start) in turns {
            let Some(first) = known.start(now, &name, left, start) else { continue };
            connection.start_path(now, path, first);
            left -= first.bytes;
        }
        left < bytes
    }

    /// Hears whether first flights of a connection lost something.
    #[inline]
    fn hear_losses(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.at(index) else { return };
        let lost = slot.connection.take_lost_starts();
        if lost.is_empty() {
            return;
        }
        for (_, locators) in slot.paths.iter().filter(|(path, _)| lost.contains(*path)) {
            name_of(&self.cover, &locators).into_iter().for_each(|name| self.known.lost(now, &name));
        }
    }
}
