//! What is remembered of packets is of use for a while: thousands of flows that ended leave nothing behind.

use polypath_wire::{Duration, Instant};

use super::PacketFlow;
use crate::engine::timers::Timer;

/// For at least so long it is remembered: the longest that a report of something may take, as of a connection (RFC 6298 §2.5).
const REMEMBERED: Duration = Duration::from_secs(60);

impl PacketFlow {
    /// Something is remembered from now on.
    pub(super) fn remember(&mut self, now: Instant) {
        self.engine.timers.start(Timer::FORGET, || now + REMEMBERED);
    }

    /// Forgets what is older, and gives back the memory that a larger flow took.
    pub(super) fn forget(&mut self, now: Instant) {
        let before = now - REMEMBERED;
        let mut some =
            self.numbering.forget(before) | self.resequencer.forget(before) | self.queue.forget(now);
        self.paths.iter_mut().for_each(|path| some |= path.sent.forget(before));
        self.again.shrink_to_fit();
        self.engine.rest(now);
        if some {
            self.remember(now);
        }
    }
}
