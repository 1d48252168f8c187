//! What is due when a timer expires.

use polypath_wire::{Instant, PathId};

use super::PacketFlow;
use crate::engine::timeouts::Overdue;
use crate::engine::timers::Timer;
use crate::facts::PathState;
use crate::loss::policy::Unordered;

impl PacketFlow {
    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Calling early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.engine.timers.pop_due(now) {
            match timer {
                Timer::GAP => self.resequencer.on_timeout(now),
                Timer::FORGET => self.forget(now),
                Timer::Recheck => _ = self.engine.judge(now, &Unordered),
                Timer::Congestion => self.engine.on_congestion_timeout(now),
                Timer::Tail(path) => self.engine.on_tail_timeout(path),
                Timer::Rto(path) => self.on_rto(now, path),
                Timer::Probe(path) => self.on_probe(now, path),
                Timer::Pacing | Timer::Owner(_) => {} // what is due leaves when it is asked for
            }
        }
        self.take_facts();
        self.arm_gap();
        let due = self.paths.iter().filter_map(|path| path.receipts.due()).filter(|due| *due > now).min();
        due.into_iter().for_each(|at| self.engine.timers.set_earlier(Timer::REPORT, at));
    }

    /// The path sends less, and if others work it may fail.
    fn on_rto(&mut self, now: Instant, path: PathId) {
        if self.engine.lanes()[path].is_outstanding() {
            let overdue = Overdue { reneged: false, doubtful: false, beyond_window: false };
            self.engine.on_rto(now, path, overdue, &Unordered);
        }
    }

    /// A path that failed is asked whether it works again.
    fn on_probe(&mut self, now: Instant, path: PathId) {
        if self.engine.path_state(path) == PathState::Failed {
            self.paths[path].ask = true;
            let at = now + self.engine.probe_interval(path);
            self.engine.timers.set(Timer::Probe(path), at);
        }
    }
}
