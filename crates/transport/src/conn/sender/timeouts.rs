//! What the sending half does when a timer of the engine expires.

use polypath_wire::{Instant, PathId};

use super::Sender;
use crate::engine::Engine;
use crate::engine::config::TimeoutTakes;
use crate::engine::timeouts::Overdue;

impl Sender {
    /// The retransmission timer of `path` expired. Returns whether the path failed.
    pub(crate) fn on_rto(&mut self, now: Instant, path: PathId, engine: &mut Engine) -> bool {
        let reneged = self.reneged(engine).is_some();
        if !engine.lanes()[path].is_outstanding() && !reneged {
            return false;
        }
        let takes = engine.timeout_takes();
        if takes == TimeoutTakes::Head && self.map.oldest_is_elsewhere(path) {
            engine.rearm(now, path);
            return false;
        }
        self.exceptions.urgent += u32::from(takes == TimeoutTakes::Segment); // the others fill the window
        if reneged {
            self.map.renege(engine);
        }
        let overdue = Overdue {
            reneged,
            doubtful: !reneged && !self.map.has_lost(),
            beyond_window: self.lies_beyond_window(path, engine),
        };
        let failed = engine.on_rto(now, path, overdue, &self.map);
        self.follow(engine);
        failed
    }

    /// Whether all that is in flight on `path` lies beyond the peer's window, which was larger when it left.
    fn lies_beyond_window(&self, path: PathId, engine: &Engine) -> bool {
        let flight = &engine.lanes()[path].flight;
        flight.is_outstanding() && flight.iter().all(|(_, sent)| sent.cargo.key >= self.window.edge)
    }

    /// The path of the oldest segment, if the peer may have taken back that it arrived. Any path, if that one is gone.
    pub(super) fn reneged(&self, engine: &Engine) -> Option<PathId> {
        engine.there(self.map.reneged()?)
    }

    /// `path` was silent for too long: its tail is probed, unless something must be sent again anyway.
    pub(crate) fn on_tail_timeout(&self, path: PathId, engine: &mut Engine) {
        if !self.map.has_lost() {
            engine.on_tail_timeout(path);
        }
    }
}
