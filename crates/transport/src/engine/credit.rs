//! After an acknowledgment: what left the network though nobody says which, and the retransmission timers.

use polypath_wire::{Instant, PathId};

use super::Engine;
use super::timers::Timer;

impl Engine {
    /// Some segment of the largest size left the network on `path`, nobody says which.
    pub(crate) fn add_credit(&mut self, path: PathId) {
        if let Some(view) = self.views.get(path) {
            self.lanes[path].flight.add_credit(view.mss.into());
            self.credited = true;
        }
    }

    /// What was reported so is in ordinary acknowledgments now.
    #[inline]
    pub(crate) fn clear_credit(&mut self) {
        if std::mem::take(&mut self.credited) {
            self.lanes.iter_mut().for_each(|lane| lane.flight.clear_credit());
        }
    }

    /// How many duplicates let a new segment leave each (RFC 3042).
    pub(crate) fn limited_transmit(&self) -> u32 {
        self.policy.limited_transmit()
    }

    /// The retransmission timers of paths on which something was delivered begin anew: once the policy has judged, which may
    /// hold a timer, or just have let it go.
    pub(crate) fn restart_rtos(&mut self, now: Instant) {
        for i in 0..self.lanes.len() {
            let path = self.lanes.id_at(i);
            if self.lanes[path].flight.fresh().bytes > 0 {
                self.restart_rto(now, path);
            }
        }
    }

    /// RFC 6298 §5.2 and 5.3.
    #[inline(always)]
    pub(crate) fn restart_rto(&mut self, now: Instant, path: PathId) {
        let lane = &self.lanes[path];
        let timeout = now + lane.estimator.rtt.rto();
        if !lane.is_outstanding() {
            self.timers.stop(Timer::Rto(path));
            self.timers.stop(Timer::Tail(path));
            return;
        }
        self.arm_tail(now, path);
        if !self.policy.holds_timer(path) {
            self.timers.set(Timer::Rto(path), timeout);
        }
    }
}
