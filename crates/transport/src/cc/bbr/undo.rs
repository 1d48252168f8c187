//! A loss that was none (§5.5.11).

use polypath_wire::Instant;

use super::{Bbr, State};
use crate::facts::Episode;

/// What was before a loss.
#[derive(Debug, Default)]
pub(super) struct Undo {
    pub episode: Option<Episode>,
    /// When it was saved.
    pub at: Option<Instant>,
    /// The state that the loss ended.
    pub state: Option<State>,
    short: (f64, f64),
    long: f64,
}

impl Bbr {
    /// SaveStateUponLoss: what was before the first of all that is heard of a loss at an instant.
    pub(super) fn save_for_undo(&mut self, now: Instant) {
        if self.undo.at.replace(now) == Some(now) {
            return;
        }
        self.save_cwnd();
        self.undo.state = None;
        self.undo.short = (self.short.bw, self.short.inflight);
        self.undo.long = self.long.inflight;
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn undo(&mut self) {
        self.restore_cwnd();
        self.timed_out = None;
        self.latest.lost_in_round = false;
        self.pipe.reset(0.0);
        self.short.bw = self.short.bw.max(self.undo.short.0);
        self.short.inflight = self.short.inflight.max(self.undo.short.1);
        self.long.inflight = self.long.inflight.max(self.undo.long);
        let rests = self.state == State::ProbeRtt;
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.pipe.reached = false;
                if !rests {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && !rests => self.start_refill(),
            _ => {}
        }
    }
}
