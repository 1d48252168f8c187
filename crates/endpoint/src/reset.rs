//! Answers to segments of no connection (RFC 9293 §3.10.7.1).

use polypath_transport::Segment;
use polypath_wire::tcp::{TcpFlags, TcpHeader};
use polypath_wire::{Duration, Instant, Seq};

/// The reset that answers `segment`; none answers a reset.
pub(crate) fn reset_for(segment: &Segment) -> Option<Segment> {
    let h = &segment.header;
    if h.flags.contains(TcpFlags::RST) {
        return None;
    }
    let (seq, ack, flags) = if h.flags.contains(TcpFlags::ACK) {
        (h.ack, Seq(0), TcpFlags::RST)
    } else {
        (Seq(0), h.seq.plus(segment.seq_len()), TcpFlags::RST | TcpFlags::ACK)
    };
    let header =
        TcpHeader { src_port: h.dst_port, dst_port: h.src_port, seq, ack, flags, ..TcpHeader::default() };
    Some(Segment { header, ..Segment::default() })
}

/// Allows a number of events per second, and the same number at once.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    left: u32,
    since: Instant,
}

impl RateLimit {
    pub fn new(per_second: u32) -> Self {
        Self { per_second, left: per_second, since: Instant::ZERO }
    }

    /// Whether one more event may happen at `now`.
    pub fn allow(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.left = self.per_second;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: TcpFlags) -> Segment {
        let header = TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: Seq(100),
            ack: Seq(200),
            flags,
            ..TcpHeader::default()
        };
        Segment { header, ..Segment::default() }
    }

    #[test]
    fn a_reset_is_acceptable_to_who_sent_the_segment() {
        let to_syn = reset_for(&segment(TcpFlags::SYN)).unwrap().header;
        assert_eq!((to_syn.src_port, to_syn.dst_port), (2, 1));
        assert_eq!((to_syn.seq, to_syn.ack), (Seq(0), Seq(101)));
        assert_eq!(to_syn.flags, TcpFlags::RST | TcpFlags::ACK);

        let to_ack = reset_for(&segment(TcpFlags::ACK)).unwrap().header;
        assert_eq!((to_ack.seq, to_ack.flags), (Seq(200), TcpFlags::RST));
        assert!(reset_for(&segment(TcpFlags::RST | TcpFlags::ACK)).is_none());
    }

    #[test]
    fn the_limit_holds_within_a_second() {
        let mut limit = RateLimit::new(2);
        let allowed = |limit: &mut RateLimit, ms| limit.allow(Instant::ZERO + Duration::from_millis(ms));
        assert!(allowed(&mut limit, 0) && allowed(&mut limit, 1) && !allowed(&mut limit, 999));
        assert!(allowed(&mut limit, 1000));
        assert!(!RateLimit::new(0).allow(Instant::ZERO));
    }
}
