//! What acknowledgments deliver, and what cumulative ones say.

use polypath_wire::PathId;

use super::{Sent, Status, StreamMap};
use crate::engine::Engine;

impl StreamMap {
    /// Begins the account of a new acknowledgment.
    pub(crate) fn begin_ack(&mut self, engine: &mut Engine) {
        self.stranded = 0;
        engine.begin_account();
    }

    /// Whether nothing is missing nor was lately: on the only path everything in flight went once and in order.
    #[inline]
    pub(crate) fn is_orderly(&self) -> bool {
        self.una >= self.orderly_from && self.dupacks == 0 && self.lost.is_empty() && self.sacked.is_empty()
    }

    /// Bytes that the present acknowledgment delivered of what was sent last on paths that are gone.
    pub(crate) fn stranded(&self) -> u64 {
        self.stranded
    }

    /// What [`ack_up_to`](Self::ack_up_to) comes to if all is in order on the only path.
    #[inline]
    pub(crate) fn ack_in_order(&mut self, una: u64, path: PathId, engine: &mut Engine) {
        let Some(flight) = engine.flight_mut(path) else { return };
        flight.begin_account_in_order();
        while let Some(front) = self.sent.pop_front_if(|s| s.end() <= una) {
            flight.deliver_in_order(front.number);
        }
        self.una = una;
        if let Some(&front) = self.sent.front().filter(|s| s.offset < una) {
            self.trim_head(front, engine);
        }
    }

    /// Everything below `una` arrived. Returns whether that is news.
    pub(crate) fn ack_up_to(&mut self, una: u64, engine: &mut Engine) -> bool {
        if una <= self.una || una > self.nxt {
            return false;
        }
        self.una = una;
        self.dupacks = 0;
        let mut head = true;
        while let Some(front) = self.sent.pop_front_if(|s| s.end() <= una) {
            self.deliver(&front, !head, engine);
            head = false;
        }
        if let Some(&front) = self.sent.front().filter(|s| s.offset < una) {
            self.trim_head(front, engine);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(una);
        }
        engine.trim();
        true
    }

    /// Part of the head segment arrived: a middlebox or a smaller segment size cut it.
    #[cold]
    fn trim_head(&mut self, front: Sent, engine: &mut Engine) {
        let gone = (self.una - front.offset) as u32;
        match engine.flight_mut(front.path) {
            _ if front.status == Status::Sacked => {}
            Some(flight) => flight.deliver_part(front.number, gone),
            None => self.stranded += u64::from(gone),
        }
        if let Some(mut transmission) = self.lost.remove(&front.offset) {
            transmission.cargo.key = self.una;
            transmission.cargo.len -= gone;
            self.lost.insert(self.una, transmission);
        }
        if let Some(head) = self.sent.front_mut() {
            head.offset = self.una;
            head.len -= gone;
        }
    }

    /// `sent` was delivered, which duplicates may have reported before.
    pub(super) fn deliver(&mut self, sent: &Sent, reported_before: bool, engine: &mut Engine) {
        if sent.status == Status::Sacked {
            return;
        }
        let given_up = match sent.status {
            Status::Lost => self.lost.remove(&sent.offset),
            _ => None,
        };
        match (engine.flight_mut(sent.path), given_up) {
            (Some(flight), Some(transmission)) => flight.deliver_late(sent.number, &transmission),
            (Some(flight), None) => _ = flight.deliver(sent.number, reported_before),
            (None, _) => self.stranded += u64::from(sent.len),
        }
    }
}
