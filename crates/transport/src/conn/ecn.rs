//! Marks of congestion (RFC 3168): which data may be marked, and how a mark is reported to its sender. Paths are independent.
//!
//! After a mark on a path, acknowledgments that leave on this path have ECE, until data with CWR arrives there.

use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Ecn, Instant, PathId};

use super::connection::Connection;
use super::sender::Outgoing;
use crate::segment::Segment;

/// The flags of a SYN that offers ECN.
const OFFER: TcpFlags = TcpFlags(TcpFlags::ECE.0 | TcpFlags::CWR.0);

impl Connection {
    /// A SYN offers ECN, a SYN-ACK accepts it. Those sent again do not: the first may have been dropped for its flags (§6.1.1.1).
    pub(super) fn offer_ecn(&self, answer: bool, segment: &mut Segment) {
        let wanted = self.handshake.ecn && self.engine.heeds_marks() && self.handshake.attempts == 0;
        if wanted {
            let flags = if answer { TcpFlags::ECE } else { OFFER };
            segment.header.flags = segment.header.flags | flags;
        }
    }

    /// The peer's SYN or SYN-ACK has these flags (§6.1.1).
    pub(super) fn agree_ecn(&mut self, flags: TcpFlags) {
        let agrees = match flags.contains(TcpFlags::ACK) {
            true => flags.contains(TcpFlags::ECE) && !flags.contains(TcpFlags::CWR),
            false => flags.contains(OFFER),
        };
        self.handshake.ecn &= agrees && self.engine.heeds_marks();
    }

    /// New data may be marked, and reports that the window was reduced (§6.1.2, §6.1.5).
    #[inline]
    pub(super) fn mark_data(&mut self, now: Instant, outgoing: &Outgoing, segment: &mut Segment) {
        if !self.handshake.ecn || self.handshake.peer.is_none() {
            return;
        }
        if !outgoing.retransmission && !segment.payload.is_empty() {
            segment.ecn = Ecn::Capable;
            if self.engine.take_reduced(now, outgoing.path) {
                segment.header.flags = segment.header.flags | TcpFlags::CWR;
            }
        }
        self.echo_mark(outgoing.path, segment);
    }

    /// A segment that leaves on `path` reports marks there (§6.1.3).
    #[inline]
    pub(super) fn echo_mark(&self, path: PathId, segment: &mut Segment) {
        if self.handshake.ecn && self.receiver.paths.get(path).is_some_and(|p| p.marked) {
            segment.header.flags = segment.header.flags | TcpFlags::ECE;
        }
    }

    /// Acceptable data arrived on `path`.
    #[inline]
    pub(super) fn note_mark(&mut self, path: PathId, ecn: Ecn, flags: TcpFlags) {
        if self.handshake.ecn
            && let Some(known) = self.receiver.paths.get_mut(path)
        {
            known.marked &= !flags.contains(TcpFlags::CWR);
            known.marked |= ecn == Ecn::Marked;
        }
    }
}
