//! Segments judged lost, until they are sent again.

use polypath_wire::{Instant, PathId};

use super::lane::GONE;
use super::{Scoreboard, Sent, SentId, Status};

impl Scoreboard {
    /// Judges the segment `id` lost, if it is in flight.
    pub fn mark_lost(&mut self, id: SentId) -> Option<Sent> {
        let sent = self.segments.get_mut(id.checked_sub(self.base)? as usize)?;
        if sent.status != Status::InFlight {
            return None;
        }
        sent.status = Status::Lost;
        let sent = *sent;
        self.lost.insert(id);
        let lane = &mut self.lanes[sent.path];
        lane.lose(sent.tx, u64::from(sent.len));
        lane.trim(self.base, &self.segments);
        Some(sent)
    }

    /// What left on `path` before `since`, was judged lost and has not been sent again is in flight after all. What the present
    /// acknowledgment delivered there answers a transmission before its last, of which it tells nothing.
    pub fn take_back(&mut self, path: PathId, since: Instant) {
        let lane = &mut self.lanes[path];
        let segments = &mut self.segments;
        let mut doubted = Vec::new();
        for id in &self.lost {
            let sent = &mut segments[(id - self.base) as usize];
            if sent.path == path && sent.sent_at < since {
                sent.status = Status::InFlight;
                lane.take_back(sent.tx, *id, u64::from(sent.len));
                doubted.push(*id);
            }
        }
        doubted.iter().for_each(|id| _ = self.lost.remove(id));
        lane.fresh.newest.take_if(|newest| newest.retransmitted());
    }

    /// Whether segments wait to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lowest segment that waits to be sent again.
    pub fn next_lost(&self) -> Option<(SentId, &Sent)> {
        let id = *self.lost.first()?;
        self.segment(id).map(|s| (id, s))
    }

    /// Cuts the lost segment `id` after `len`, to fit a path with smaller segments.
    pub fn split(&mut self, id: SentId, len: u32) {
        let i = (id - self.base) as usize;
        let sent = self.segments[i];
        if sent.status != Status::Lost || len == 0 || len >= sent.len {
            return;
        }
        self.segments[i].len = len;
        let rest = Sent { offset: sent.offset + u64::from(len), len: sent.len - len, ..sent };
        self.segments.insert(i + 1, rest);
        let moved = |old: SentId| if old > id && old != GONE { old + 1 } else { old };
        self.lost = self.lost.iter().map(|l| moved(*l)).chain([id + 1]).collect();
        for entry in self.lanes.iter_mut().flat_map(|l| l.order.iter_mut()) {
            *entry = moved(*entry);
        }
    }
}
