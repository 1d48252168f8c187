//! When each of many things is due: what is due costs what it is, however many there are.

use std::collections::{BTreeMap, BTreeSet};

use crate::Instant;

/// One deadline per key, and the first of them at any time.
#[derive(Clone, Debug)]
pub struct Deadlines<T: Table> {
    table: T,
    /// The first of the queue; `MAX` if it is empty.
    first: Instant,
    queue: BTreeSet<(Instant, T::Key)>,
}

/// Deadlines by names of any kind; [`next`](Deadlines::next) is exact.
pub type Named<K> = Deadlines<BTreeMap<K, Deadline>>;

/// Deadlines by small numbers, of things whose deadlines move with every packet, mostly to later: such a move leaves the
/// queue alone, and the entry is put right when it comes up. [`next`](Deadlines::next) is never late, sometimes early.
pub type Numbered = Deadlines<Vec<Deadline>>;

/// The deadline of one key.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    due: Instant,
    /// Where it stands in the queue: not after `due`; `MAX` if it is not there.
    queued: Instant,
}

const NEVER: Deadline = Deadline { due: Instant::MAX, queued: Instant::MAX };

/// Where deadlines are kept by their keys.
pub trait Table: Default {
    /// What has a deadline.
    type Key: Copy + Ord;
    /// Whether the queue follows each move at once.
    const EXACT: bool;

    /// The deadline of `key`.
    fn at(&mut self, key: Self::Key) -> &mut Deadline;

    /// `key` has none any more.
    fn forget(&mut self, key: Self::Key);
}

impl<K: Copy + Ord> Table for BTreeMap<K, Deadline> {
    type Key = K;
    const EXACT: bool = true;

    fn at(&mut self, key: K) -> &mut Deadline {
        self.entry(key).or_insert(NEVER)
    }

    fn forget(&mut self, key: K) {
        self.remove(&key);
    }
}

impl Table for Vec<Deadline> {
    type Key = u32;
    const EXACT: bool = false;

    #[inline]
    fn at(&mut self, key: u32) -> &mut Deadline {
        let i = key as usize;
        if i >= self.len() {
            self.resize(i + 1, NEVER);
        }
        &mut self[i]
    }

    fn forget(&mut self, _: u32) {}
}

impl<T: Table> Default for Deadlines<T> {
    fn default() -> Self {
        Self { queue: BTreeSet::new(), first: Instant::MAX, table: T::default() }
    }
}

impl<T: Table> Deadlines<T> {
    /// Sets the deadline of `key`.
    #[inline]
    pub fn set(&mut self, key: T::Key, due: Option<Instant>) {
        let deadline = self.table.at(key);
        deadline.due = due.unwrap_or(Instant::MAX);
        if deadline.due < deadline.queued || T::EXACT {
            self.enqueue(key);
        }
    }

    /// Puts the entry of `key` where its deadline says.
    fn enqueue(&mut self, key: T::Key) {
        let deadline = self.table.at(key);
        let before = std::mem::replace(&mut deadline.queued, deadline.due);
        let Deadline { due, .. } = *deadline;
        if before != due {
            self.queue.remove(&(before, key));
            if due < Instant::MAX {
                self.queue.insert((due, key));
            }
            self.look();
        }
        if due == Instant::MAX {
            self.table.forget(key);
        }
    }

    /// When to ask for what is due; see [`Named`] and [`Numbered`].
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        Some(self.first).filter(|at| *at != Instant::MAX)
    }

    fn look(&mut self) {
        self.first = self.queue.first().map_or(Instant::MAX, |(at, _)| *at);
    }

    /// A key whose deadline is not after `now`: it has none from now on.
    pub fn pop_due(&mut self, now: Instant) -> Option<T::Key> {
        while self.first <= now {
            let (_, key) = self.queue.pop_first()?;
            self.look();
            let deadline = self.table.at(key);
            deadline.queued = Instant::MAX;
            let Deadline { due, .. } = *deadline;
            if due <= now {
                deadline.due = Instant::MAX;
                self.table.forget(key);
                return Some(key);
            }
            self.set(key, Some(due).filter(|due| *due < Instant::MAX));
        }
        None
    }
}

impl<K: Copy + Ord> Named<K> {
    /// Everything whose deadline is not after `now`, in the order of its names; it stays so until it is set anew.
    pub fn due(&self, now: Instant) -> BTreeSet<K> {
        self.queue.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| *key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_told_once_and_not_before_its_latest_deadline() {
        let mut timers = Numbered::default();
        timers.set(0, Some(Instant(10)));
        timers.set(1, Some(Instant(20)));
        timers.set(0, Some(Instant(30)));
        timers.set(1, Some(Instant(15)));
        timers.set(2, Some(Instant(12)));
        timers.set(2, None);
        assert_eq!(timers.next(), Some(Instant(10)), "early: the move to 30 left the queue alone");
        assert_eq!(timers.pop_due(Instant(14)), None);
        assert_eq!(timers.next(), Some(Instant(15)));
        assert_eq!(timers.pop_due(Instant(30)), Some(1));
        assert_eq!(timers.pop_due(Instant(30)), Some(0));
        assert_eq!(timers.pop_due(Instant(30)), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn names_are_exact_and_leave_nothing_behind() {
        let mut timers = Named::<char>::default();
        timers.set('a', Some(Instant(10)));
        timers.set('a', Some(Instant(30)));
        timers.set('c', Some(Instant(20)));
        timers.set('b', Some(Instant(25)));
        timers.set('d', None);
        assert_eq!(timers.next(), Some(Instant(20)));
        assert_eq!(timers.due(Instant(25)), BTreeSet::from(['b', 'c']), "by name");
        assert_eq!(timers.pop_due(Instant(25)), Some('c'), "by time");
        timers.set('b', None);
        assert_eq!((timers.pop_due(Instant(29)), timers.next()), (None, Some(Instant(30))));
        timers.set('a', None);
        assert_eq!((timers.next(), timers.table.len()), (None, 0));
    }
}
