//! When which connection wants to be called.

use std::collections::BTreeSet;

use polypath_wire::Instant;

/// One deadline per slot. Moving a deadline later, which every acknowledgment does, leaves the
/// queue alone: the entry is put right when it comes up.
#[derive(Debug)]
pub(crate) struct Timers {
    queue: BTreeSet<(Instant, u32)>,
    /// The first of the queue; `MAX` if it is empty.
    first: Instant,
    slots: Vec<Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// When the slot wants to be called.
    due: Instant,
    /// Where it stands in the queue: not after `due`; `MAX` if it is not there.
    queued: Instant,
}

const NEVER: Deadline = Deadline { due: Instant::MAX, queued: Instant::MAX };

impl Default for Timers {
    fn default() -> Self {
        Self { queue: BTreeSet::new(), first: Instant::MAX, slots: Vec::new() }
    }
}

impl Timers {
    /// Sets the deadline of slot `index`.
    #[inline]
    pub fn set(&mut self, index: u32, due: Option<Instant>) {
        let i = index as usize;
        if i >= self.slots.len() {
            self.slots.resize(i + 1, NEVER);
        }
        let slot = &mut self.slots[i];
        slot.due = due.unwrap_or(Instant::MAX);
        if slot.due < slot.queued {
            self.enqueue(index);
        }
    }

    /// Puts a slot's entry where its deadline says.
    fn enqueue(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        self.queue.remove(&(slot.queued, index));
        slot.queued = slot.due;
        self.queue.insert((slot.queued, index));
        self.look();
    }

    /// When to ask for due slots: never late, sometimes early.
    pub fn next(&self) -> Option<Instant> {
        Some(self.first).filter(|at| *at != Instant::MAX)
    }

    fn look(&mut self) {
        self.first = self.queue.first().map_or(Instant::MAX, |(at, _)| *at);
    }

    /// A slot whose deadline is not after `now`. It is told once.
    pub fn pop_due(&mut self, now: Instant) -> Option<u32> {
        loop {
            if self.first > now {
                return None;
            }
            let (_, index) = self.queue.pop_first()?;
            self.look();
            let slot = &mut self.slots[index as usize];
            slot.queued = Instant::MAX;
            if slot.due <= now {
                slot.due = Instant::MAX;
                return Some(index);
            }
            let due = slot.due;
            self.set(index, Some(due).filter(|d| *d < Instant::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_is_told_once_and_not_before_its_latest_deadline() {
        let mut timers = Timers::default();
        timers.set(0, Some(Instant(10)));
        timers.set(1, Some(Instant(20)));
        timers.set(0, Some(Instant(30)));
        timers.set(1, Some(Instant(15)));
        timers.set(2, Some(Instant(12)));
        timers.set(2, None);
        assert_eq!(timers.next(), Some(Instant(10)));
        assert_eq!(timers.pop_due(Instant(14)), None);
        assert_eq!(timers.next(), Some(Instant(15)));
        assert_eq!(timers.pop_due(Instant(30)), Some(1));
        assert_eq!(timers.pop_due(Instant(30)), Some(0));
        assert_eq!(timers.pop_due(Instant(30)), None);
        assert_eq!(timers.next(), None);
    }
}
