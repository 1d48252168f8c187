//! What acknowledgments deliver, and what cumulative ones say.

use polypath_wire::PathId;

use super::{Delivery, Scoreboard, Sent, SentId, Status};

impl Scoreboard {
    /// Begins the account of a new acknowledgment.
    pub fn begin_ack(&mut self) {
        self.stranded = 0;
        for lane in self.lanes.iter_mut() {
            lane.fresh = Delivery::default();
            lane.passed = lane.told.min(lane.highest_delivered.map_or(0, |tx| tx + 1));
        }
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

    /// What [`ack_up_to`](Self::ack_up_to) comes to if all is in order on the only path, with what it delivered.
    #[inline]
    pub fn ack_in_order(&mut self, path: PathId, una: u64) -> Delivery {
        let lane = &mut self.lanes[path];
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
            return *self.fresh(path);
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

    /// Part of the head segment arrived: a middlebox or a smaller segment size cut it.
    #[cold]
    fn trim_head(&mut self, front: Sent, una: u64) {
        let gone = (una - front.offset) as u32;
        match self.lanes.get_mut(front.path) {
            _ if front.status == Status::Sacked => {}
            Some(lane) => {
                lane.in_flight -= if front.status == Status::InFlight { u64::from(gone) } else { 0 };
                lane.fresh.bytes += u64::from(gone);
            }
            None => self.stranded += u64::from(gone),
        }
        if let Some(head) = self.segments.front_mut() {
            head.offset = una;
            head.len -= gone;
        }
    }

    /// The segment `id` was delivered, which duplicates may have reported before.
    pub(super) fn deliver(&mut self, id: SentId, sent: &Sent, reported_before: bool) {
        if sent.status == Status::Sacked {
            return;
        }
        if sent.status == Status::Lost {
            self.lost.remove(&id);
        }
        let len = u64::from(sent.len);
        let Some(lane) = self.lanes.get_mut(sent.path) else {
            self.stranded += len;
            return;
        };
        if sent.status == Status::InFlight {
            lane.deliver(sent.tx, len);
            if reported_before {
                lane.credit = lane.credit.saturating_sub(len);
            }
        }
        lane.fresh.bytes += len;
        lane.fresh.segments += 1;
        lane.fresh.reordered |= sent.tx < lane.passed && !sent.retransmitted();
        if lane.fresh.newest.is_none_or(|n| n.tx < sent.tx) {
            lane.fresh.newest = Some(*sent);
        }
    }

    /// A duplicate acknowledgment arrived.
    pub fn count_dupack(&mut self) {
        self.dupacks += 1;
    }

    /// Without SACK: some segment of `size` bytes left the network on `path`.
    pub fn add_credit(&mut self, path: PathId, size: u32) {
        self.lanes[path].credit += u64::from(size);
        self.credited = true;
    }

    /// What duplicate acknowledgments reported is in the cumulative one now.
    #[inline]
    pub fn clear_credit(&mut self) {
        if std::mem::take(&mut self.credited) {
            self.lanes.iter_mut().for_each(|l| l.credit = 0);
        }
    }
}
