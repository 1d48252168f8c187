//! The queue whose discipline decides when packets leave: into the [`Store`], and from there to the server.

use polypath_wire::{Duration, Instant};

use crate::discipline::Aqm;
use crate::hop::{Hop, Rare};
use crate::packet::{Chance, Departure};
use crate::stats::Drop;
use crate::store::{Store, Waiting};

impl<T> Hop<T> {
    pub(crate) fn in_store(&self) -> Option<&Store<T>> {
        match &self.rare.aqm {
            Some(Aqm::Store(store)) => Some(store),
            _ => None,
        }
    }

    /// Puts an admitted packet into the store. At a tie it comes before the server takes the next one.
    #[inline(never)]
    pub(crate) fn store(&mut self, now: Instant, packet: Waiting<T>) -> Result<(), Drop> {
        self.feed(now - Duration::from_nanos(1));
        let Rare { aqm: Some(Aqm::Store(store)), trace, .. } = &mut *self.rare else { return Ok(()) };
        let was_empty = store.is_empty();
        let at_once = was_empty && self.server.is_idle(now) && trace.is_none();
        if let Err(cause) = store.enqueue(now, packet, at_once) {
            self.count_drop(cause);
            return Err(cause);
        }
        if was_empty {
            store.next = self.server.start(trace, now);
        }
        self.feed(now);
        let waiting = self.in_store().map_or(0, |store| store.waiting().0);
        self.peak_waiting = self.peak_waiting.max(waiting as u32);
        self.due = self.upcoming();
        Ok(())
    }

    /// Lets the server take what it has time for until `now`.
    pub(crate) fn feed(&mut self, now: Instant) {
        while let Rare { aqm: Some(Aqm::Store(store)), trace, .. } = &mut *self.rare
            && !store.is_empty()
            && store.next <= now
        {
            let at = store.next;
            let taken = store.dequeue(at);
            let times = taken.as_ref().map(|packet| self.server.serve_from(trace, at, packet.label.size));
            if !store.is_empty() {
                store.next = self.server.follow(trace);
            }
            if let (Some(Waiting { item, label, marked, .. }), Some(times)) = (taken, times) {
                self.rare.stats.marked += u64::from(marked);
                let chance = if self.faulty { self.draw() } else { Chance::FINE };
                self.join(item, label.size, times, chance.with(Chance::MARKED, marked));
            }
        }
    }

    /// What the discipline dropped by `now` and nobody has heard of.
    #[inline(never)]
    pub(crate) fn take_dropped(&mut self, now: Instant) -> Option<Departure<T>> {
        self.feed(now);
        let Some(Aqm::Store(store)) = &mut self.rare.aqm else { return None };
        let (_, packet, cause) = store.dropped.pop_front()?;
        Some(self.lose(packet.item, packet.label.size, cause))
    }
}
