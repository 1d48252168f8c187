//! Data that does not wait for the handshake: in the spirit of TCP Fast Open (RFC 7413), without its cookie, as the layer
//! below proves who sent a segment.
//!
//! Who connects sends an initial window directly behind its first SYN, in segments without ACK, for it has nothing to
//! acknowledge yet. Who accepts is connected when the SYN comes: it delivers that data, and sends its own behind its SYN-ACK.
//! A host that does not know of it drops segments without ACK (RFC 9293 §3.10.7.4), and all goes again as lost. What left
//! before the answer goes again only after it, so that a SYN that was sent again brings nothing twice. FINs wait for the handshake.

use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Instant, PathId};

use super::connection::{Connection, Event, State};
use crate::segment::Segment;

/// The window that a peer is taken to have before it says so, bytes: what it has no room for it drops.
const WINDOW: u64 = 65_535;

impl Connection {
    /// Opening: the paths may carry data.
    pub(super) fn send_early(&mut self, now: Instant) {
        if !self.handshake.early {
            return;
        }
        self.engine.agree(self.config.loss.build(self.config.sack), false);
        self.sender.agree(self.config.sack, false);
        self.sender.window.open(WINDOW);
        self.sender.offer(&mut self.engine);
        self.sender.holds_fin = true;
        for (path, config) in self.paths.iter() {
            self.engine.add_path(now, path, config, self.payload_size(config));
        }
    }

    /// The peer opens: it is who it says, so that is enough.
    pub(super) fn accept_early(&mut self) {
        if self.handshake.early {
            self.sender.holds_fin = true;
            self.tell(Event::Connected);
        }
    }

    /// What left behind a SYN.
    pub(super) fn is_early(&self, flags: TcpFlags) -> bool {
        let others = TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN;
        let open = matches!(self.state, State::SynReceived | State::Established);
        self.handshake.early && open && !flags.intersects(others)
    }

    /// It is delivered; it acknowledges nothing.
    pub(super) fn handle_early(&mut self, now: Instant, path: PathId, offset: i64, segment: &mut Segment) {
        self.heard_from(now, path, false);
        let timestamps = segment.header.options.timestamps.filter(|_| self.handshake.timestamps);
        self.receiver.on_timestamps(now, path, offset, timestamps);
        self.handle_data(now, path, offset, segment);
    }

    /// Data behind our first SYN: new data only.
    pub(super) fn next_early(&mut self, now: Instant, segment: &mut Segment) -> Option<PathId> {
        let first = self.handshake.early && self.handshake.attempts == 0;
        let again = self.sender.map.has_lost() || self.engine.wants_probe();
        if first && !again { self.next_data(now, segment) } else { None }
    }

    /// The SYN-ACK, and data behind it.
    pub(super) fn next_of_accepted(
        &mut self,
        now: Instant,
        data: bool,
        segment: &mut Segment,
    ) -> Option<PathId> {
        if let Some(path) = self.next_handshake(now, segment) {
            return Some(path);
        }
        let early = if data && self.handshake.early { self.next_data(now, segment) } else { None };
        early.or_else(|| self.next_ack(now, segment))
    }
}
