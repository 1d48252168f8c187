//! What was sent, on which path, and what became of it (mechanism only: policies judge).
//!
//! All paths share one sequence space; each path also numbers its own transmissions. The order of
//! these numbers is the path's *lane*, the virtual queue in which reordering between paths does
//! not exist: a packet is overtaken only by later packets of the same lane.

mod lane;

use std::collections::{BTreeSet, VecDeque};

use polypath_wire::{Instant, PathId};

use crate::path::bandwidth::DeliveryMark;
use crate::ranges::Ranges;
pub use lane::Delivery;
use lane::{GONE, Lane};

/// Our timestamps count milliseconds, in nanoseconds.
pub const TIMESTAMP_TICK: u64 = 1_000_000;

/// What is known of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// On its way.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Judged lost and not sent again yet.
    Lost,
}

/// One segment that is not yet acknowledged cumulatively.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    /// Offset in sequence space.
    pub offset: u64,
    /// Length in sequence space (a FIN counts 1).
    pub len: u32,
    /// Path of its last transmission.
    pub path: PathId,
    /// Number of its last transmission within the path's lane.
    pub tx: u64,
    /// When it was sent last.
    pub sent_at: Instant,
    /// The path's delivery state at that moment.
    pub mark: DeliveryMark,
    /// What is known of it.
    pub status: Status,
    /// Whether that was its first.
    pub history: History,
}

/// How often a segment was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// Once.
    Once,
    /// More often.
    Again,
    /// More often, and the transmission before bore an older timestamp (of 1 ms): an echo tells which is
    /// answered.
    AgainLater,
}

impl Sent {
    /// Sent more than once.
    pub fn retransmitted(&self) -> bool {
        self.history != History::Once
    }

    /// Offset after its last byte.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// Name of a segment in the scoreboard; it stays until the segment is acknowledged.
pub type SentId = u64;

/// The segments in flight of one connection.
#[derive(Debug, Default)]
pub struct Scoreboard {
    base: SentId,
    segments: VecDeque<Sent>,
    una: u64,
    nxt: u64,
    /// Below this, segments may have been sent again, later than those that follow them.
    orderly_from: u64,
    lanes: Vec<Lane>,
    lost: BTreeSet<SentId>,
    sacked: Ranges,
    dupacks: u32,
    /// Some lane has credit.
    credited: bool,
    gaps: Vec<(u64, u64)>,
}

impl Scoreboard {
    /// Adds the lane of the next path. An only lane is told of by its own acknowledgments alone, so all
    /// it hears is evidence at once.
    pub fn add_lane(&mut self) {
        for lane in self.lanes.iter_mut().filter(|l| l.told == u64::MAX) {
            lane.told = lane.highest_delivered.map_or(0, |tx| tx + 1);
        }
        let told = if self.lanes.is_empty() { u64::MAX } else { 0 };
        self.lanes.reserve_exact(1);
        self.lanes.push(Lane { told, ..Lane::default() });
    }

    /// First offset not acknowledged cumulatively (SND.UNA).
    pub fn una(&self) -> u64 {
        self.una
    }

    /// First offset not sent (SND.NXT).
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Duplicate acknowledgments since `una` moved.
    pub fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// Bytes on their way on `path`, as far as acknowledgments tell.
    pub fn in_flight(&self, path: PathId) -> u64 {
        let lane = &self.lanes[path.index()];
        lane.in_flight.saturating_sub(lane.credit)
    }

    /// FlightSize of `path` (RFC 5681): bytes sent, not judged lost, and not delivered in the order
    /// of the lane; `size` is the usual size of a segment.
    pub fn flight_size(&self, path: PathId, size: u32) -> u64 {
        let lane = &self.lanes[path.index()];
        lane.in_flight + u64::from(lane.delivered) * u64::from(size)
    }

    /// Whether anything is on its way on `path`.
    pub fn is_outstanding(&self, path: PathId) -> bool {
        self.lanes[path.index()].in_flight > 0
    }

    /// Whether nothing is outstanding on any path.
    pub fn is_idle(&self) -> bool {
        self.segments.is_empty()
    }

    /// The oldest segment.
    pub fn head(&self) -> Option<(SentId, &Sent)> {
        self.segments.front().map(|s| (self.base, s))
    }

    /// The segment `id`.
    pub fn segment(&self, id: SentId) -> Option<&Sent> {
        self.segments.get(id.checked_sub(self.base)? as usize)
    }

    /// Whether nothing is known yet of the last transmission of the segment `id`.
    pub fn is_in_flight(&self, id: SentId) -> bool {
        self.in_flight_segment(id).is_some()
    }

    /// Whether the byte at `offset` was acknowledged, cumulatively or selectively.
    pub fn is_delivered(&self, offset: u64) -> bool {
        offset < self.una || self.sacked.containing(offset).is_some()
    }

    /// Number that the next transmission on `path` will have.
    pub fn next_tx(&self, path: PathId) -> u64 {
        self.lanes[path.index()].next_tx()
    }

    /// Highest transmission number delivered on `path`.
    pub fn highest_delivered(&self, path: PathId) -> Option<u64> {
        self.lanes[path.index()].highest_delivered
    }

    /// The oldest transmission on `path` of which nothing is known.
    pub fn oldest_in_flight(&self, path: PathId) -> Option<&Sent> {
        self.in_lane(path).next().map(|(_, sent)| sent)
    }

    /// Segments in flight on `path` with at least `threshold` later ones of the same lane delivered,
    /// as [`vouch`](Self::vouch) was told; oldest first.
    pub fn overtaken(&self, path: PathId, threshold: u32) -> impl Iterator<Item = (SentId, &Sent)> {
        let lane = &self.lanes[path.index()];
        let mut later = lane.vouched;
        lane.order
            .iter()
            .map_while(move |id| {
                if later < threshold.max(1) {
                    return None;
                }
                match self.in_flight_segment(*id) {
                    Some(sent) => Some(Some((*id, sent))),
                    None => {
                        later -= u32::from(*id != GONE);
                        Some(None)
                    }
                }
            })
            .flatten()
    }

    /// The segments in flight on `path`, oldest transmission first.
    pub fn in_lane(&self, path: PathId) -> impl Iterator<Item = (SentId, &Sent)> {
        let order = self.lanes[path.index()].order.iter();
        order.filter_map(|id| self.in_flight_segment(*id).map(|sent| (*id, sent)))
    }

    /// Acknowledgments on `path` itself have told of everything delivered below this transmission.
    pub fn told(&self, path: PathId) -> u64 {
        self.lanes[path.index()].told
    }

    /// Segments delivered after the oldest that is not, as [`vouch`](Self::vouch) was told.
    pub fn vouched(&self, path: PathId) -> u32 {
        self.lanes[path.index()].vouched
    }

    /// Whether any segment is acknowledged selectively and not yet cumulatively.
    pub fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
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

    /// What the present acknowledgment delivered on `path`.
    pub fn fresh(&self, path: PathId) -> &Delivery {
        &self.lanes[path.index()].fresh
    }

    /// New data of `len` was sent on `path`.
    #[inline]
    pub fn send_new(&mut self, now: Instant, path: PathId, len: u32, mark: DeliveryMark) {
        let id = self.base + self.segments.len() as u64;
        let tx = self.lanes[path.index()].push(id, len);
        self.segments.push_back(Sent {
            offset: self.nxt,
            len,
            path,
            tx,
            sent_at: now,
            mark,
            status: Status::InFlight,
            history: History::Once,
        });
        self.nxt += u64::from(len);
    }

    /// The lost segment `id` was sent again on `path`.
    pub fn send_again(&mut self, now: Instant, path: PathId, id: SentId, mark: DeliveryMark) {
        if !self.lost.remove(&id) {
            return;
        }
        let sent = &mut self.segments[(id - self.base) as usize];
        let tx = self.lanes[path.index()].push(id, sent.len);
        self.orderly_from = self.nxt;
        let later = now.0 / TIMESTAMP_TICK > sent.sent_at.0 / TIMESTAMP_TICK;
        let history = if later { History::AgainLater } else { History::Again };
        let status = Status::InFlight;
        *sent = Sent { path, tx, sent_at: now, mark, status, history, ..*sent };
    }

    /// Begins the account of a new acknowledgment.
    pub fn begin_ack(&mut self) {
        for lane in &mut self.lanes {
            lane.fresh = Delivery::default();
            lane.passed = lane.told.min(lane.highest_delivered.map_or(0, |tx| tx + 1));
        }
    }

    /// The present acknowledgment, which came on `path`, reports a duplicate.
    pub fn note_duplicate(&mut self, path: PathId) {
        self.lanes[path.index()].fresh.duplicate = true;
    }

    /// Whether nothing is missing nor was lately: on the only path everything in flight went once and in order.
    #[inline]
    pub fn is_orderly(&self) -> bool {
        self.lanes.len() == 1
            && self.una >= self.orderly_from
            && self.dupacks == 0
            && !self.credited
            && self.lost.is_empty()
            && self.sacked.is_empty()
    }

    /// What [`ack_up_to`](Self::ack_up_to) comes to if all is in order, with what it delivered.
    #[inline]
    pub fn ack_in_order(&mut self, una: u64) -> Delivery {
        let lane = &mut self.lanes[PathId::FIRST.index()];
        let mut fresh = Delivery::default();
        while let Some(front) = self.segments.pop_front_if(|s| s.end() <= una) {
            lane.deliver(front.tx, u64::from(front.len));
            fresh.bytes += u64::from(front.len);
            fresh.segments += 1;
            fresh.newest = Some(front);
            self.base += 1;
        }
        lane.fresh = fresh;
        self.una = una;
        if let Some(&front) = self.segments.front().filter(|s| s.offset < una) {
            self.trim_head(front, una);
            return *self.fresh(PathId::FIRST);
        }
        fresh
    }

    /// Everything below `una` arrived. Returns whether that is news.
    pub fn ack_up_to(&mut self, una: u64) -> bool {
        if una <= self.una || una > self.nxt {
            return false;
        }
        self.una = una;
        self.dupacks = 0;
        let mut head = true;
        while let Some(front) = self.segments.pop_front_if(|s| s.end() <= una) {
            self.deliver(self.base, &front, !head);
            self.base += 1;
            head = false;
        }
        if let Some(&front) = self.segments.front().filter(|s| s.offset < una) {
            self.trim_head(front, una);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(una);
        }
        self.lanes.iter_mut().for_each(|l| l.trim(self.base, &self.segments));
        true
    }

    /// The peer holds `start..end`. Returns whether the block can be true.
    pub fn sack(&mut self, start: u64, end: u64) -> bool {
        if start >= end || end > self.nxt {
            return false;
        }
        let start = start.max(self.una);
        if start >= end {
            return true; // a duplicate reported (RFC 2883), or an old acknowledgment
        }
        let mut gaps = std::mem::take(&mut self.gaps);
        let mut from = start;
        while let Some(gap) = self.sacked.first_gap(from, end) {
            gaps.push(gap);
            from = gap.1;
        }
        if !gaps.is_empty() {
            let known = self.sacked.insert(start, end);
            for gap in gaps.drain(..) {
                self.sack_gap(gap, known);
            }
            self.lanes.iter_mut().for_each(|l| l.trim(self.base, &self.segments));
        }
        self.gaps = gaps;
        true
    }

    /// An acknowledgment of everything below `una` and of `blocks` came on `path`. Whatever arrived there
    /// before what it tells of has been acknowledged there before, so it is evidence about the ones
    /// in between. What only faster paths told of so far is not: the news of those is still on its way.
    #[inline]
    pub fn vouch(&mut self, path: PathId, una: u64, blocks: &[(u64, u64)]) {
        if self.lanes[path.index()].told != u64::MAX {
            self.weigh(path, una, blocks);
        }
    }

    fn weigh(&mut self, path: PathId, una: u64, blocks: &[(u64, u64)]) {
        let lane = &self.lanes[path.index()];
        let (mut told, mut vouched, mut delivered) = (lane.told, lane.vouched, 0);
        for tx in told.max(lane.first)..lane.next_tx() {
            let id = lane.order[(tx - lane.first) as usize];
            if lane.highest_delivered.is_none_or(|highest| tx > highest) {
                break;
            }
            if id == GONE {
                continue;
            }
            let covered = match id.checked_sub(self.base) {
                None => una == self.una,
                Some(i) if self.segments[i as usize].status == Status::Sacked => {
                    let sent = &self.segments[i as usize];
                    blocks.iter().any(|b| b.0 <= sent.offset && sent.end() <= b.1)
                }
                _ => continue,
            };
            delivered += 1;
            if covered {
                told = tx + 1;
                vouched += std::mem::take(&mut delivered);
            }
        }
        let lane = &mut self.lanes[path.index()];
        (lane.told, lane.vouched) = (told, vouched);
    }

    /// A duplicate acknowledgment arrived.
    pub fn count_dupack(&mut self) {
        self.dupacks += 1;
    }

    /// Without SACK: some segment of `size` bytes left the network on `path`.
    pub fn add_credit(&mut self, path: PathId, size: u32) {
        self.lanes[path.index()].credit += u64::from(size);
        self.credited = true;
    }

    /// What duplicate acknowledgments reported is in the cumulative one now.
    #[inline]
    pub fn clear_credit(&mut self) {
        if std::mem::take(&mut self.credited) {
            self.lanes.iter_mut().for_each(|l| l.credit = 0);
        }
    }

    /// Judges the segment `id` lost, if it is in flight.
    pub fn mark_lost(&mut self, id: SentId) -> Option<Sent> {
        let sent = self.segments.get_mut(id.checked_sub(self.base)? as usize)?;
        if sent.status != Status::InFlight {
            return None;
        }
        sent.status = Status::Lost;
        let sent = *sent;
        self.lost.insert(id);
        let lane = &mut self.lanes[sent.path.index()];
        lane.lose(sent.tx, u64::from(sent.len));
        lane.trim(self.base, &self.segments);
        Some(sent)
    }

    /// Names of the segments in flight on `path`, oldest transmission first.
    pub fn in_flight_ids(&self, path: PathId) -> Vec<SentId> {
        self.in_lane(path).map(|(id, _)| id).collect()
    }

    /// The peer took back what it had acknowledged selectively (RFC 2018 §8), as a timeout with the
    /// head selectively acknowledged shows: all of it counts as lost.
    pub fn renege(&mut self) {
        self.sacked.clear();
        for (i, sent) in self.segments.iter_mut().enumerate().filter(|(_, s)| s.status == Status::Sacked) {
            sent.status = Status::Lost;
            self.lost.insert(self.base + i as u64);
            let lane = &mut self.lanes[sent.path.index()];
            // what was judged lost before it was acknowledged is not counted as delivered
            if lane.forget(sent.tx) {
                lane.delivered -= 1;
                lane.vouched -= u32::from(sent.tx < lane.told);
            }
        }
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

    fn in_flight_segment(&self, id: SentId) -> Option<&Sent> {
        self.segment(id).filter(|s| s.status == Status::InFlight)
    }

    /// Part of the head segment arrived: a middlebox or a smaller segment size cut it.
    #[cold]
    fn trim_head(&mut self, front: Sent, una: u64) {
        let gone = (una - front.offset) as u32;
        let lane = &mut self.lanes[front.path.index()];
        if front.status == Status::InFlight {
            lane.in_flight -= u64::from(gone);
        }
        if front.status != Status::Sacked {
            lane.fresh.bytes += u64::from(gone);
        }
        if let Some(head) = self.segments.front_mut() {
            head.offset = una;
            head.len -= gone;
        }
    }

    fn sack_gap(&mut self, gap: (u64, u64), known: (u64, u64)) {
        let mut i = self.segments.partition_point(|s| s.end() <= gap.0);
        while let Some(sent) = self.segments.get(i).copied()
            && sent.offset < gap.1
        {
            if known.0 <= sent.offset && sent.end() <= known.1 {
                self.deliver(self.base + i as u64, &sent, false);
                self.segments[i].status = Status::Sacked;
            }
            i += 1;
        }
    }

    fn deliver(&mut self, id: SentId, sent: &Sent, reported_before: bool) {
        let lane = &mut self.lanes[sent.path.index()];
        let len = u64::from(sent.len);
        match sent.status {
            Status::Sacked => return,
            Status::Lost => drop(self.lost.remove(&id)),
            Status::InFlight => {
                lane.deliver(sent.tx, len);
                if reported_before {
                    lane.credit = lane.credit.saturating_sub(len);
                }
            }
        }
        lane.fresh.bytes += len;
        lane.fresh.segments += 1;
        lane.fresh.reordered |= sent.tx < lane.passed && !sent.retransmitted();
        if lane.fresh.newest.is_none_or(|n| n.tx < sent.tx) {
            lane.fresh.newest = Some(*sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: PathId = PathId::FIRST;

    /// Five segments of ten bytes, sent.
    fn five() -> Scoreboard {
        let mut board = Scoreboard::default();
        board.add_lane();
        (0..5).for_each(|_| board.send_new(Instant::ZERO, LANE, 10, DeliveryMark::default()));
        board
    }

    #[test]
    fn reneging_takes_back_what_was_counted_and_no_more() {
        let mut board = five();
        assert!(board.mark_lost(2).is_some());
        assert!(board.sack(20, 30) && board.sack(30, 40) && board.sack(0, 10));
        assert_eq!((board.in_flight(LANE), board.flight_size(LANE, 10)), (20, 30));
        board.renege();
        assert_eq!((board.in_flight(LANE), board.flight_size(LANE, 10)), (20, 20));
        assert_eq!(board.next_lost().map(|(id, _)| id), Some(0));
    }

    #[test]
    fn what_a_faster_path_tells_first_is_no_evidence_yet() {
        let (fast, slow) = (PathId(0), PathId(1));
        let mut board = Scoreboard::default();
        (0..2).for_each(|_| board.add_lane());
        (0..6).for_each(|_| board.send_new(Instant::ZERO, slow, 10, DeliveryMark::default()));
        let acked = |board: &mut Scoreboard, path, block: (u64, u64)| {
            board.begin_ack();
            assert!(board.sack(block.0, block.1));
            board.vouch(path, 0, &[block]);
            board.overtaken(slow, 3).map(|(id, _)| id).collect::<Vec<_>>()
        };
        // The acknowledgments of 0 to 20 are still on the slow path when the fast one tells of 30 to 60.
        assert!(acked(&mut board, fast, (30, 60)).is_empty());
        assert!(acked(&mut board, slow, (0, 20)).is_empty());
        // On the slow path 20 to 30 was overtaken indeed.
        assert!(acked(&mut board, slow, (30, 40)).is_empty());
        assert_eq!(acked(&mut board, slow, (30, 60)), [2]);
    }
}
