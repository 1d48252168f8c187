//! What is due when a timer expires.

use polypath_wire::{Instant, PathId};

use super::connection::{CloseReason, Connection, State};
use super::sender::Acked;
use super::timers::Timer;
use crate::facts::PathState;

impl Connection {
    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Calling early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.burst = 0;
        while let Some(timer) = self.engine.timers.pop_due(now) {
            match timer {
                Timer::HANDSHAKE => self.on_handshake_timeout(now),
                Timer::DELAYED_ACK => self.receiver.on_delayed_ack(now, &mut self.engine.timers),
                Timer::PERSIST => self.on_persist(now),
                Timer::KEEP_ALIVE => self.on_keep_alive(now),
                Timer::TIME_WAIT => self.finish(State::Closed),
                Timer::Recheck => {
                    let mut acked = Acked::default();
                    self.sender.judge(now, &mut self.engine, &mut acked);
                    self.count_episodes(&acked);
                    self.observe_losses(now);
                }
                Timer::Pacing => {}
                Timer::Congestion => self.engine.on_congestion_timeout(now),
                Timer::HEARTBEAT => self.on_heartbeat_due(now),
                Timer::Tail(path) => self.sender.on_tail_timeout(path, &mut self.engine),
                Timer::Rto(path) => self.on_rto(now, path),
                Timer::Probe(path) => self.on_probe(now, path),
                Timer::Owner(_) => {}
            }
        }
    }

    fn on_rto(&mut self, now: Instant, path: PathId) {
        self.stats.timeouts += 1;
        let failed = self.sender.on_rto(now, path, &mut self.engine);
        self.observe_losses(now);
        if failed {
            self.observe_path(now, path, PathState::Failed);
        }
        if self.sender.window.left(self.sender.map.una()) == 0 {
            self.count_window_probe();
        }
        let paths = self.engine.views().len() as u32;
        if self.engine.stalled() >= self.config.max_timeouts.saturating_mul(paths.max(1)) {
            self.lose(CloseReason::TimedOut);
        }
    }

    /// What goes again while the peer's window is closed probes it: as long as such probes are answered, the
    /// connection stays (RFC 9293 §3.8.6.1).
    #[cold]
    fn count_window_probe(&mut self) {
        if self.unanswered == 0 {
            self.engine.goes_on();
        }
        self.unanswered += 1;
    }

    fn on_probe(&mut self, now: Instant, path: PathId) {
        if self.engine.path_state(path) == PathState::Failed {
            match self.engine.is_silent(path) {
                _ if self.state == State::SynSent => {} // there is nothing to acknowledge yet, and SYNs go on each path
                true => self.ask_silent(now, path),
                false => self.send_probe(now, path),
            }
            self.engine.timers.set(Timer::Probe(path), now + self.engine.probe_interval(path));
        } else if self.receiver.paths.get(path).is_some_and(|p| !p.heard) {
            self.announce(now, path);
        }
    }

    /// While only the peer's window holds data back, it is probed (RFC 9293 §3.8.6.1).
    #[inline]
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let open =
            matches!(self.state, State::Established | State::CloseWait | State::FinWait1 | State::LastAck);
        match self.sender.window_blocked() && open {
            true => self.await_window(now),
            false => self.engine.timers.stop(Timer::PERSIST),
        }
    }

    #[cold]
    fn await_window(&mut self, now: Instant) {
        if !self.engine.timers.is_set(Timer::PERSIST) {
            let path = self.engine.path_for_control(self.last_path);
            let wait = self.engine.rto(path).times(1 << self.persists.min(10)).min(self.config.max_rto);
            self.engine.timers.set(Timer::PERSIST, now + wait);
        }
    }

    fn on_persist(&mut self, now: Instant) {
        if !self.sender.window_blocked() {
            return;
        }
        if self.sender.window.edge > self.sender.map.nxt() {
            self.sender.exceptions.small = true;
            return;
        }
        if self.unanswered >= self.config.max_timeouts {
            self.send_reset();
            return self.lose(CloseReason::TimedOut); // RFC 1122 §4.2.2.17
        }
        self.persists += 1;
        self.unanswered += 1;
        let path = self.engine.path_for_control(self.last_path);
        self.send_probe(now, path);
    }

    fn on_keep_alive(&mut self, now: Instant) {
        if self.unanswered >= self.config.max_timeouts {
            self.send_reset();
            return self.lose(CloseReason::TimedOut);
        }
        self.unanswered += 1;
        self.rest(now);
        let path = self.engine.path_for_control(self.last_path);
        self.send_probe(now, path);
        self.engine.timers.set(Timer::KEEP_ALIVE, now + self.config.keep_alive);
    }
}
