//! Selective acknowledgments: what they deliver, for which lane they are evidence, and what if they are taken back.

use polypath_wire::PathId;

use super::lane::GONE;
use super::{Scoreboard, Status};

impl Scoreboard {
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

    /// The present acknowledgment, which came on `path`, reports a duplicate.
    pub fn note_duplicate(&mut self, path: PathId) {
        if let Some(lane) = self.lanes.get_mut(path) {
            lane.fresh.duplicate = true;
        }
    }

    /// An acknowledgment of everything below `una` and of `blocks` came on `path`. Whatever arrived there
    /// before what it tells of has been acknowledged there before, so it is evidence about the ones
    /// in between. What only faster paths told of so far is not: the news of those is still on its way.
    #[inline]
    pub fn vouch(&mut self, path: PathId, una: u64, blocks: &[(u64, u64)]) {
        if self.lanes.get(path).is_some_and(|lane| lane.told != u64::MAX) {
            self.weigh(path, una, blocks);
        }
    }

    fn weigh(&mut self, path: PathId, una: u64, blocks: &[(u64, u64)]) {
        let lane = &self.lanes[path];
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
        let lane = &mut self.lanes[path];
        (lane.told, lane.vouched) = (told, vouched);
    }

    /// The peer took back what it had acknowledged selectively (RFC 2018 §8), as a timeout with the
    /// head selectively acknowledged shows: all of it counts as lost.
    pub fn renege(&mut self) {
        self.sacked.clear();
        for (i, sent) in self.segments.iter_mut().enumerate().filter(|(_, s)| s.status == Status::Sacked) {
            sent.status = Status::Lost;
            self.lost.insert(self.base + i as u64);
            // what was judged lost before it was acknowledged is not counted as delivered
            if let Some(lane) = self.lanes.get_mut(sent.path)
                && lane.forget(sent.tx)
            {
                lane.delivered -= 1;
                lane.vouched -= u32::from(sent.tx < lane.told);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Instant;

    use super::*;
    use crate::path::bandwidth::DeliveryMark;

    const LANE: PathId = PathId::FIRST;

    /// Five segments of ten bytes, sent.
    fn five() -> Scoreboard {
        let mut board = Scoreboard::default();
        board.add_lane(LANE);
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
    fn what_is_taken_back_is_in_flight_where_it_was() {
        let mut board = five();
        (0..5).for_each(|id| assert!(board.mark_lost(id).is_some()));
        board.send_again(Instant(2), LANE, 0, DeliveryMark::default());
        assert!(board.mark_lost(0).is_some());
        board.send_again(Instant(3), LANE, 0, DeliveryMark::default());
        assert_eq!(board.in_flight(LANE), 10);
        board.begin_ack();
        assert!(board.ack_up_to(10));
        board.take_back(LANE, Instant(1));
        assert_eq!((board.in_flight(LANE), board.has_lost(), board.fresh(LANE).newest), (40, false, None));
        assert_eq!(board.in_flight_ids(LANE), [1, 2, 3, 4]);
        board.begin_ack();
        assert!(board.sack(30, 40) && board.ack_up_to(30));
        assert_eq!((board.in_flight(LANE), board.flight_size(LANE, 10)), (10, 10));
        assert!(board.ack_up_to(50) && board.is_idle());
        assert_eq!((board.in_flight(LANE), board.flight_size(LANE, 10), board.next_tx(LANE)), (0, 0, 7));
    }

    #[test]
    fn what_a_faster_path_tells_first_is_no_evidence_yet() {
        let (fast, slow) = (PathId(0), PathId(1));
        let mut board = Scoreboard::default();
        [fast, slow].into_iter().for_each(|path| board.add_lane(path));
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
