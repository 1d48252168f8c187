//! Heartbeats: HIP's signalling packets that probe the paths (Polishchuk and Gurtov, §III.B.2), as the transport
//! carries them: a bare acknowledgment with an option that asks, and one that answers at once.
//!
//! The same asks a path that fell silent while others deliver (`engine/silence.rs`).
//!
//! Those with high numbers ask for the host behind the peer (`keep_alive.rs`).
//!
//! They never reach the acknowledgment processing, so they are no duplicates of anything. A peer that
//! does not know the option answers nothing.

use polypath_wire::tcp::{TcpFlags, TcpOptions};
use polypath_wire::{Instant, PathId};

use super::connection::Connection;
use super::relaying::BEHIND;
use super::timers::Timer;
use crate::facts::PathState;
use crate::segment::{Segment, Transmit};

/// Kind 253 of RFC 4727 with an experiment identifier of its own (RFC 6994 §3.1), "PolH".
const HEADER: [u8; 6] = [253, 11, b'P', b'o', b'l', b'H'];

/// What a heartbeat says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beat {
    Ask(u32),
    Answer(u32),
}

impl Beat {
    fn option(self) -> Box<[u8]> {
        let (kind, number) = match self {
            Self::Ask(number) => (0, number),
            Self::Answer(number) => (1, number),
        };
        [&HEADER[..], &[kind], &number.to_be_bytes()[..]].concat().into()
    }

    fn read(options: &TcpOptions) -> Option<Self> {
        let (kind, number) = options.unknown.as_deref()?.strip_prefix(&HEADER)?.split_first()?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        match kind {
            0 => Some(Self::Ask(number)),
            1 => Some(Self::Answer(number)),
            _ => None,
        }
    }
}

impl Connection {
    /// It is time for heartbeats: one on every path, closed or not, while data is under way.
    pub(super) fn on_heartbeat_due(&mut self, now: Instant) {
        self.engine.timers.set(Timer::HEARTBEAT, now + self.config.knowledge.heartbeat);
        if self.sender.map.is_idle() {
            return;
        }
        self.heartbeats = (self.heartbeats + 1) % BEHIND;
        for i in 0..self.engine.views().len() {
            let path = self.engine.views().id_at(i);
            if matches!(self.engine.path_state(path), PathState::Active | PathState::Congested) {
                self.engine.heartbeat_sent(now, path, self.heartbeats);
                self.send_beat(now, path, Beat::Ask(self.heartbeats));
            }
        }
    }

    /// Asks whether `path` works again, which had fallen silent.
    pub(super) fn ask_silent(&mut self, now: Instant, path: PathId) {
        self.heartbeats = (self.heartbeats + 1) % BEHIND;
        self.engine.probe_sent(path, self.heartbeats);
        self.send_beat(now, path, Beat::Ask(self.heartbeats));
    }

    /// Takes `segment` if it is a heartbeat from about where the peer is in its stream.
    #[inline]
    pub(super) fn handle_heartbeat(&mut self, now: Instant, path: PathId, segment: &Segment) -> bool {
        segment.header.options.unknown.is_some() && self.answer_heartbeat(now, path, segment)
    }

    #[cold]
    fn answer_heartbeat(&mut self, now: Instant, path: PathId, segment: &Segment) -> bool {
        let Some(beat) = Beat::read(&segment.header.options) else { return false };
        let next = self.receiver.next() as i64;
        let window = self.receiver.window_end() as i64 - next;
        if self.rcv_offset(segment.header.seq).abs_diff(next) <= window.unsigned_abs() {
            match beat {
                Beat::Ask(number) if self.defers_heartbeat(now, path, number) => self.rest(now),
                Beat::Ask(number) => self.send_beat(now, path, Beat::Answer(number)),
                Beat::Answer(number) if number >= BEHIND => self.on_probe_answered(number),
                Beat::Answer(number) => {
                    if self.engine.is_probe_answered(path, number) {
                        self.revive(now, path);
                    }
                    if self.engine.on_heartbeat(now, path, number) {
                        self.observe_path(now, path, PathState::Active);
                    }
                }
            }
        }
        true
    }

    pub(super) fn send_beat(&mut self, now: Instant, path: PathId, beat: Beat) {
        let next = self.snd_seq(self.sender.map.nxt());
        let mut segment = self.bare_segment(now, path, next, TcpFlags::ACK);
        segment.header.ack = self.rcv_seq();
        segment.header.window = self.receiver.advertised(self.handshake.our_shift);
        segment.header.options.unknown = Some(beat.option());
        self.control.push_back(Transmit { path, segment });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_survive_the_wire_format_of_options() {
        for beat in [Beat::Ask(7), Beat::Answer(u32::MAX)] {
            let options = TcpOptions { unknown: Some(beat.option()), ..Default::default() };
            assert_eq!(Beat::read(&options), Some(beat));
        }
        let other = TcpOptions { unknown: Some([254, 2].into()), ..Default::default() };
        assert_eq!(Beat::read(&other), None);
    }
}
