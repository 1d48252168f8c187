//! Timeouts for nothing. The first acknowledgment after a timeout that bears an older timestamp than what was sent again
//! answers the transmission before (RFC 3522): nothing shows that anything was lost. Then what the timeout changed is undone
//! (RFC 4015).
//!
//! Deviations from its §3.1: the round trip that the timestamp tells goes into the timeout at once, which step 11 does with that
//! of the next new data; behind a long queue that takes as long again. The window is restored (step 9 begins with what is
//! in flight): what is in flight fills it, since nothing counts as lost any more.

use polypath_wire::Instant;

use super::Sender;
use super::ack::{Ack, Acked};
use crate::engine::Engine;

impl Sender {
    /// Undoes the last timeout of the path of `ack` if that shows that it was for nothing.
    pub(super) fn doubt_timeout(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        engine: &mut Engine,
        result: &mut Acked,
    ) {
        let path = ack.route;
        let delivers = |engine: &Engine| engine.lanes().get(path).is_some_and(|l| l.flight.fresh().bytes > 0);
        if !result.advanced || !delivers(engine) {
            return;
        }
        let Some(doubt) = engine.take_doubt(path) else { return };
        // one that reports a duplicate answers what was sent again, after those before it were lost; of a peer that does not
        // report them, so may one of everything (RFC 3522 §3.2, step 5)
        let tells = |echo: &Instant| *echo < doubt.since && !ack.reports_duplicate() && !self.map.is_idle();
        let Some(echo) = ack.echo.filter(tells) else { return };
        self.map.take_back(path, doubt.since, engine);
        engine.undo_timeout(now, path, doubt.episode, now.since(echo));
        result.undone += 1;
    }
}
