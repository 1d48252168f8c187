//! Segments judged lost, until they are sent again.

use polypath_wire::{Instant, PathId};

use super::{Status, StreamMap};
use crate::engine::Engine;
use crate::loss::policy::Departure;
use crate::path::transmission::Transmission;

/// A segment that waits to be sent again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Lost {
    /// Its offset.
    pub offset: u64,
    /// Its length in sequence space.
    pub len: u32,
    /// The path on which it was lost.
    pub path: PathId,
    /// When it left there.
    pub sent_at: Instant,
}

impl StreamMap {
    /// The segment that left as `what` says is lost; `transmission` is what the engine gave up.
    pub(crate) fn mark_lost(&mut self, what: &Departure, transmission: Transmission) {
        let Some(at) = self.position(what.cargo) else { return };
        let sent = &mut self.sent[at];
        if (sent.path, sent.number) == (what.path, what.number) && sent.status == Status::InFlight {
            sent.status = Status::Lost;
            self.lost.insert(sent.offset, transmission);
        }
    }

    /// The segment at `offset`, which left on `path` with this `number`, is to go again although nothing says that it is
    /// lost. None if it is not in flight.
    pub(crate) fn take_again(
        &mut self,
        path: PathId,
        number: u64,
        offset: u64,
        engine: &mut Engine,
    ) -> Option<()> {
        let transmission = engine.flight_mut(path)?.lose(number)?;
        self.mark_lost(&Departure { path, number, cargo: offset }, transmission);
        Some(())
    }

    /// Whether segments wait to be sent again.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lowest segment that waits to be sent again.
    pub(crate) fn next_lost(&self) -> Option<Lost> {
        self.lost.keys().next().and_then(|offset| self.lost_at(*offset))
    }

    /// The segment at `offset`, which waits to be sent again.
    pub(crate) fn lost_at(&self, offset: u64) -> Option<Lost> {
        let Transmission { sent_at, .. } = *self.lost.get(&offset)?;
        let sent = self.sent[self.position(offset)?];
        Some(Lost { offset, len: sent.len, path: sent.path, sent_at })
    }

    /// The lost segment at `offset` left again on `path` with this `number`. Returns whether it is the oldest of all.
    pub(crate) fn send_again(&mut self, offset: u64, path: PathId, number: u64) -> bool {
        let Some(at) = self.position(offset).filter(|_| self.lost.remove(&offset).is_some()) else {
            return false;
        };
        let sent = &mut self.sent[at];
        (sent.path, sent.number, sent.status) = (path, number, Status::InFlight);
        self.orderly_from = self.nxt;
        at == 0
    }

    /// What left on `path` before `since`, was judged lost and has not been sent again is in flight after all. What the present
    /// acknowledgment delivered there answers a transmission before its last, of which it tells nothing.
    pub(crate) fn take_back(&mut self, path: PathId, since: Instant, engine: &mut Engine) {
        let Some(flight) = engine.flight_mut(path) else { return };
        let sent = &mut self.sent;
        self.lost.retain(|offset, transmission| {
            let at = sent.partition_point(|s| s.offset < *offset);
            let Some(sent) = sent.get_mut(at).filter(|s| s.path == path && transmission.sent_at < since)
            else {
                return true;
            };
            let taken = flight.take_back(sent.number, *transmission);
            sent.status = if taken { Status::InFlight } else { Status::Lost };
            !taken
        });
        flight.doubt_newest();
    }

    /// Cuts the lost segment at `offset` after `len`, to fit a path with smaller segments.
    pub(crate) fn split(&mut self, offset: u64, len: u32) {
        let Some(at) = self.position(offset) else { return };
        let sent = self.sent[at];
        let Some(transmission) = self.lost.get_mut(&offset).filter(|_| len > 0 && len < sent.len) else {
            return;
        };
        let mut rest = *transmission;
        transmission.cargo.len = len;
        rest.cargo.key += u64::from(len);
        rest.cargo.len -= len;
        self.lost.insert(rest.cargo.key, rest);
        self.sent[at].len = len;
        let rest = super::Sent { offset: rest.cargo.key, len: rest.cargo.len, ..sent };
        self.sent.insert(at + 1, rest);
    }
}
