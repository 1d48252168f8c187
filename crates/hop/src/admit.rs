//! Which packets a hop accepts.

use polypath_wire::{Duration, Instant};

use crate::aqm::{Found, Verdict};
use crate::discipline::Aqm;
use crate::hop::Hop;
use crate::limit::QueueLimit;
use crate::packet::Label;
use crate::stats::Drop;

impl<T> Hop<T> {
    #[inline(never)]
    pub(crate) fn admit(&mut self, now: Instant, label: Label) -> Result<Verdict, Drop> {
        if !self.up {
            return Err(Drop::Down);
        }
        if label.size > self.mtu {
            return Err(Drop::TooBig);
        }
        match &self.rare.aqm {
            None => self.find_room(now, label.size).map(|()| Verdict::Pass),
            Some(Aqm::Judge(_)) => self.judge(now, label),
            Some(Aqm::Store(_)) => Ok(Verdict::Pass),
        }
    }

    /// Drop-tail.
    #[inline(always)]
    pub(crate) fn find_room(&mut self, now: Instant, size: u32) -> Result<(), Drop> {
        // At a tie the newcomer comes first: what brought it was under way before (ns-2 does so).
        let before = now - Duration::from_nanos(1);
        if self.server.is_idle(before) {
            (self.served, self.backlog) = (self.line.len() as u32, 0);
        } else if !self.has_room(size) || self.unserved() > u64::from(self.peak_waiting) {
            self.settle_server(before);
            if !self.has_room(size) && !self.server.is_idle(now) {
                return Err(Drop::QueueFull);
            }
            self.peak_waiting = self.peak_waiting.max(self.unserved() as u32);
        }
        Ok(())
    }

    /// What the discipline says of a packet that finds the queue as it is.
    #[inline(never)]
    fn judge(&mut self, now: Instant, label: Label) -> Result<Verdict, Drop> {
        self.settle_server(now - Duration::from_nanos(1));
        let found = Found {
            packets: self.unserved().saturating_sub(1),
            bytes: self.waiting_bytes(),
            idle: now.since(self.server.free_at()),
            rate: self.server.rate(),
        };
        let Some(Aqm::Judge(judge)) = &mut self.rare.aqm else { return Ok(Verdict::Pass) };
        let verdict = judge.judge(&found, label.ecn_capable);
        if verdict == Verdict::Drop {
            return Err(Drop::Aqm);
        }
        self.find_room(now, label.size)?;
        self.rare.stats.marked += u64::from(verdict == Verdict::Mark);
        Ok(verdict)
    }

    /// Whether a packet of `size` bytes may wait behind those that are not known to be served.
    fn has_room(&self, size: u32) -> bool {
        match self.queue {
            QueueLimit::Packets(limit) => self.unserved() <= u64::from(limit),
            QueueLimit::Bytes(limit) => self.waiting_bytes() + u64::from(size) <= limit,
        }
    }

    /// Packets not known to be served: at most one more than wait.
    pub(crate) fn unserved(&self) -> u64 {
        (self.line.len() - self.served as usize) as u64
    }

    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.line.get(self.served as usize).map_or(0, |in_service| self.backlog - u64::from(in_service.size))
    }
}
