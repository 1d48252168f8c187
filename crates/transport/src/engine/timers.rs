//! A timer is an entry in a table; the next timeout is the table's minimum and nothing else.
//!
//! The minimum is kept as a lower bound: moving a timer later, which every acknowledgment does, costs
//! nothing, and whoever is called too early for it finds nothing due and learns the true one.

use polypath_wire::{Instant, PathId};

use crate::path_map::{OfPath, PathMap};

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// One of the owner's: of these it has six.
    Owner(u8),
    /// The loss policy wants to look again.
    Recheck,
    /// A paced path opens.
    Pacing,
    /// The controller's period.
    Congestion,
    /// Probe the tail of what was sent on a path (RFC 8985 §7).
    Tail(PathId),
    /// Retransmission (RFC 6298).
    Rto(PathId),
    /// Probe a failed path.
    Probe(PathId),
}

/// Those that are of no path.
const GLOBAL: [Timer; 9] = [
    Timer::Owner(0),
    Timer::Owner(1),
    Timer::Owner(2),
    Timer::Owner(3),
    Timer::Owner(4),
    Timer::Owner(5),
    Timer::Recheck,
    Timer::Pacing,
    Timer::Congestion,
];

/// Timers of one path: retransmission, probe, tail.
#[derive(Clone, Debug)]
struct PathTimers {
    path: PathId,
    at: [Instant; 3],
}

impl OfPath for PathTimers {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

/// The timers of one engine and of its owner.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Timers {
    /// Not after the earliest.
    bound: Instant,
    /// `Instant::MAX` is "not set".
    global: [Instant; GLOBAL.len()],
    paths: PathMap<PathTimers>,
}

impl Default for Timers {
    fn default() -> Self {
        Self { global: [Instant::MAX; GLOBAL.len()], paths: PathMap::default(), bound: Instant::MAX }
    }
}

impl Timers {
    /// `path` has timers, none of them set.
    pub(super) fn add_path(&mut self, path: PathId) {
        self.paths.insert(PathTimers { path, at: [Instant::MAX; 3] });
    }

    /// The path and its timers are gone.
    pub(super) fn remove_path(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// Sets or moves a timer.
    #[inline(always)]
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        *self.at(timer) = at;
        self.bound = self.bound.min(at);
    }

    /// Sets a timer that is not set.
    #[inline(always)]
    pub(crate) fn start(&mut self, timer: Timer, at: impl FnOnce() -> Instant) {
        let place = self.at(timer);
        if *place == Instant::MAX {
            let at = at();
            *place = at;
            self.bound = self.bound.min(at);
        }
    }

    /// Sets a timer, or moves it to an earlier instant.
    pub(crate) fn set_earlier(&mut self, timer: Timer, at: Instant) {
        let at = at.min(*self.at(timer));
        self.set(timer, at);
    }

    /// Stops a timer.
    #[inline(always)]
    pub(crate) fn stop(&mut self, timer: Timer) {
        *self.at(timer) = Instant::MAX;
    }

    /// Stops all.
    pub(crate) fn stop_all(&mut self) {
        self.global.fill(Instant::MAX);
        self.paths.iter_mut().for_each(|p| p.at.fill(Instant::MAX));
        self.bound = Instant::MAX;
    }

    /// Whether a timer is set.
    #[inline(always)]
    pub(crate) fn is_set(&mut self, timer: Timer) -> bool {
        *self.at(timer) != Instant::MAX
    }

    /// The earliest; sometimes an earlier instant, never a later one.
    pub(crate) fn next(&self) -> Option<Instant> {
        Some(self.bound).filter(|at| *at != Instant::MAX)
    }

    /// Stops and returns a timer that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        if self.bound > now {
            return None;
        }
        let timer = self.due(now);
        match timer {
            Some(timer) => self.stop(timer),
            None => self.bound = self.all().min().unwrap_or(Instant::MAX),
        }
        timer
    }

    fn due(&self, now: Instant) -> Option<Timer> {
        let due = |at: &Instant| *at <= now;
        if let Some(i) = self.global.iter().position(due) {
            return Some(GLOBAL[i]);
        }
        self.paths.iter().find_map(|PathTimers { path, at }| {
            let timers = [Timer::Rto(*path), Timer::Probe(*path), Timer::Tail(*path)];
            at.iter().position(due).map(|i| timers[i])
        })
    }

    fn all(&self) -> impl Iterator<Item = Instant> {
        self.global.iter().chain(self.paths.iter().flat_map(|p| &p.at)).copied()
    }

    #[inline(always)]
    fn at(&mut self, timer: Timer) -> &mut Instant {
        match timer {
            Timer::Owner(n) => &mut self.global[usize::from(n)],
            Timer::Recheck => &mut self.global[6],
            Timer::Pacing => &mut self.global[7],
            Timer::Congestion => &mut self.global[8],
            Timer::Rto(path) => &mut self.paths[path].at[0],
            Timer::Probe(path) => &mut self.paths[path].at[1],
            Timer::Tail(path) => &mut self.paths[path].at[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_what_is_due_under_the_name_it_was_set() {
        let mut t = Timers::default();
        (0..3).for_each(|p| t.add_path(PathId(p)));
        let paths =
            (0..3).flat_map(|p| [Timer::Rto(PathId(p)), Timer::Probe(PathId(p)), Timer::Tail(PathId(p))]);
        for timer in GLOBAL.into_iter().chain(paths) {
            t.set(timer, Instant(5));
            assert!(t.is_set(timer));
            assert_eq!((t.next(), t.pop_due(Instant(4))), (Some(Instant(5)), None));
            assert_eq!((t.pop_due(Instant(5)), t.pop_due(Instant(5))), (Some(timer), None));
            assert_eq!(t.next(), None);
        }
    }
}
