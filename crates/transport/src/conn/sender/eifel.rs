//! Timeouts for nothing. The first acknowledgment after a timeout that bears an older timestamp than what was sent again
//! answers the transmission before (RFC 3522): nothing shows that anything was lost. Then what the timeout changed is undone
//! (RFC 4015).
//!
//! Deviations from its §3.1: the round trip that the timestamp tells goes into the timeout at once, which step 11 does with that
//! of the next new data; behind a long queue that takes as long again. The window is restored (step 9 begins with what is
//! in flight): what is in flight fills it, since nothing counts as lost any more.

use polypath_wire::{Instant, PathId};

use super::Sender;
use super::ack::{Ack, Acked};
use crate::facts::Episode;

/// A timeout that may have been for nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// What was sent before this was in flight.
    pub since: Instant,
    /// What the controller calls it.
    pub episode: Episode,
}

impl Sender {
    /// Whether all that a timeout of `path` takes for lost may be in flight: nothing there was lost before.
    pub(super) fn may_doubt(&self, path: PathId) -> bool {
        self.rules.undoes_timeouts && self.paths[path].recovering.is_none() && !self.board.has_lost()
    }

    /// Undoes the last timeout of the path of `ack` if that shows that it was for nothing.
    pub(super) fn doubt_timeout(&mut self, now: Instant, ack: &Ack<'_>, result: &mut Acked) {
        let path = ack.route;
        let Some(p) = self.paths.get_mut(path).filter(|p| p.doubt.is_some()) else { return };
        if !result.advanced || self.board.fresh(path).bytes == 0 {
            return;
        }
        let Some(Doubt { since, episode }) = p.doubt.take() else { return };
        // one that reports a duplicate answers what was sent again, after those before it were lost; of a peer that does not
        // report them, so may one of everything (RFC 3522 §3.2, step 5)
        let Some(echo) =
            ack.echo.filter(|echo| *echo < since && !ack.reports_duplicate() && !self.board.is_idle())
        else {
            return;
        };
        self.board.take_back(path, since);
        self.policy.on_undo(path);
        self.controller.on_undo(now, path, episode);
        self.paths[path].estimator.rtt.was_late(now.since(echo));
        result.undone += 1;
    }
}
