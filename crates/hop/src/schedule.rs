//! The schedule of a hop and the passing of time.

use std::cmp::Reverse;

use polypath_wire::{Duration, Instant};

use crate::config::{Change, Step};
use crate::discipline::Aqm;
use crate::hop::{Hop, Rare};
use crate::packet::Chance;
use crate::server::Server;
use crate::stats::Drop;

impl<T> Hop<T> {
    /// Counts those as served that are by `now`.
    pub(crate) fn settle_server(&mut self, now: Instant) {
        while let Some(packet) = self.line.get(self.served as usize).filter(|p| p.served_at <= now) {
            self.backlog -= u64::from(packet.size);
            self.served += 1;
        }
    }

    /// Does what the schedule says until `now`.
    pub(crate) fn apply_steps(&mut self, now: Instant) {
        let before = self.rare.next_step;
        while let Some(&Step { at, change }) = self.upcoming_step().filter(|s| s.at <= now) {
            self.rare.next_step += 1;
            self.feed(at);
            self.settle_server(at);
            match change {
                Change::Rate(rate) => self.reserve(at, |server| server.set_rate(rate)),
                Change::Delay(delay) => self.change_delay(at, delay),
                Change::Loss(p) => {
                    self.rare.config.loss = p;
                    self.faulty |= p > 0.0;
                }
                Change::Up => self.up = true,
                Change::Down => self.go_down(at),
            }
        }
        if self.rare.next_step > before {
            self.classify();
            self.due = self.upcoming();
        }
    }

    pub(crate) fn upcoming_step(&self) -> Option<&Step> {
        self.rare.config.schedule.get(self.rare.next_step)
    }

    /// When something happens next to what is in it.
    #[inline]
    pub(crate) fn upcoming(&self) -> Instant {
        match self.line.front() {
            _ if !self.plain => self.upcoming_otherwise(),
            Some(head) => head.arrives_at,
            None => Instant::MAX,
        }
    }

    #[inline(never)]
    fn upcoming_otherwise(&self) -> Instant {
        let head = self.line.front().map_or(Instant::MAX, |p| p.arrives_at);
        let held = if self.faulty { self.rare.held_back.peek() } else { None };
        let mut next = held.map_or(head, |Reverse(held)| head.min(held.until));
        if let Some(Aqm::Store(store)) = &self.rare.aqm {
            next = next.min(store.due());
        }
        match self.upcoming_step() {
            Some(step) if next < Instant::MAX => next.min(step.at),
            _ => next,
        }
    }

    fn change_delay(&mut self, at: Instant, delay: Duration) {
        if self.rare.trace.is_none() {
            return self.reserve(at, |server| server.delay = delay);
        }
        self.server.delay = delay;
        let last_arrival = self.last_arrival();
        let unserved = self.line.iter_mut().skip(self.served as usize);
        self.server.reschedule(last_arrival, unserved.map(|p| (p.served_at, &mut p.arrives_at)));
    }

    /// Serves again what is not yet served, after `change`.
    fn reserve(&mut self, at: Instant, change: impl FnOnce(&mut Server)) {
        let last_arrival = self.last_arrival();
        let in_service = self.line.get(self.served as usize).map(|p| p.served_at);
        let rest = self.server.interrupt(at, in_service, last_arrival);
        change(&mut self.server);
        for (i, packet) in self.line.iter_mut().skip(self.served as usize).enumerate() {
            let times = match i {
                0 => self.server.resume(at, rest),
                _ => self.server.serve_by(&mut self.rare.trace, at, packet.size),
            };
            (packet.served_at, packet.arrives_at) = times;
        }
        let Rare { aqm, trace, .. } = &mut *self.rare;
        if let Some(Aqm::Store(store)) = aqm {
            store.next = self.server.follow(trace);
        }
    }

    /// When the last packet that is served arrives.
    fn last_arrival(&self) -> Instant {
        self.served.checked_sub(1).map_or(Instant::ZERO, |i| self.line[i as usize].arrives_at)
    }

    fn go_down(&mut self, at: Instant) {
        (self.up, self.faulty) = (false, true);
        if let Some(Aqm::Store(store)) = &mut self.rare.aqm {
            store.clear(at, Drop::Down);
        }
        for packet in self.line.iter_mut().filter(|p| p.arrives_at > at) {
            packet.chance = Chance::DOWN;
            (packet.served_at, packet.arrives_at) = (packet.served_at.min(at), at);
        }
        let held = std::mem::take(&mut self.rare.held_back).into_iter().map(|Reverse(mut held)| {
            if held.until > at {
                held.until = at;
                held.packet.chance = Chance::DOWN;
            }
            Reverse(held)
        });
        self.rare.held_back = held.collect();
        self.server.reset(at);
        self.settle_server(at);
    }
}
