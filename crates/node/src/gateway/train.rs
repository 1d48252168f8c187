//! Segments of one connection that leave in one packet: the kernel cuts it again where somebody needs that.

use polypath_endpoint::Locators;
use polypath_endpoint::packet::encode_headers;
use polypath_transport::Segment;
use polypath_wire::Seq;
use polypath_wire::tcp::{CHECKSUM_AT, TcpFlags, TcpHeader};
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use crate::pool::Buffer;

/// Values of the virtio-net header (Virtual I/O Device 1.2 §5.1.6): the checksum must be completed; the packet is not to
/// be cut, or is of TCP over IPv4 or IPv6.
const NEEDS_CHECKSUM: u8 = 1;
const WHOLE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;

/// Segments of equal size without a gap, whose headers differ in nothing but their sequence number and, in the last one,
/// FIN and PSH; only the last may be smaller.
pub(super) struct Train {
    buffer: Buffer,
    locators: Locators,
    /// Of the first, with the flags of the last.
    header: TcpHeader,
    /// Data of each but the last, bytes.
    size: usize,
    /// Where the data begins and ends in the buffer.
    data: std::ops::Range<usize>,
    /// No other one may follow.
    closed: bool,
}

/// What a segment may say that others follow.
const LAST: TcpFlags = TcpFlags(TcpFlags::FIN.0 | TcpFlags::PSH.0);

impl Train {
    /// One of `segment` alone; `None` if it does not fit into a packet.
    pub fn begin(buffer: Buffer, locators: &Locators, segment: &Segment) -> Option<Self> {
        let ip_header = if locators.local.is_ipv4() { 20 } else { 40 };
        let at = VIRTIO_NET_HDR_LEN + ip_header + segment.header.len();
        let size = usize::try_from(segment.payload.len()).ok()?;
        let mut train = Self {
            buffer,
            locators: *locators,
            header: segment.header.clone(),
            size,
            data: at..at,
            closed: true,
        };
        train.append(segment).then_some(train)
    }

    /// Takes one more segment if it may follow; whether it did.
    pub fn take(&mut self, locators: &Locators, segment: &Segment) -> bool {
        let fits = segment.payload.len() <= self.size as u64 && !segment.payload.is_empty();
        let follows =
            !self.closed && fits && self.locators == *locators && self.is_followed_by(&segment.header);
        follows && self.append(segment)
    }

    fn is_followed_by(&self, next: &TcpHeader) -> bool {
        let ours = &self.header;
        let seq = Seq(ours.seq.0.wrapping_add(self.data.len() as u32));
        (ours.src_port, ours.dst_port, seq) == (next.src_port, next.dst_port, next.seq)
            && (ours.ack, ours.window, ours.flags.0) == (next.ack, next.window, next.flags.0 & !LAST.0)
            && ours.options == next.options
    }

    /// Whether there was room.
    fn append(&mut self, segment: &Segment) -> bool {
        let len = segment.payload.len() as usize;
        let Some(room) = self.buffer.get_mut(self.data.end..self.data.end + len) else { return false };
        segment.payload.copy_to(room);
        self.data.end += len;
        self.header.flags = segment.header.flags;
        self.closed = len < self.size || len == 0 || segment.header.flags.0 != TcpFlags::ACK.0;
        true
    }

    /// The packet behind its virtio-net header: the buffer that it is in, and its length.
    pub fn complete(mut self) -> (Buffer, usize) {
        let packet = &mut self.buffer[VIRTIO_NET_HDR_LEN..];
        let Ok((tcp_at, headers)) = encode_headers(&self.locators, &self.header, self.data.len(), packet)
        else {
            return (self.buffer, 0); // `begin` and `append` leave room for them
        };
        let gso_type = match self.locators.local.is_ipv4() {
            _ if self.data.len() <= self.size => WHOLE,
            true => TCP_V4,
            false => TCP_V6,
        };
        let header = VirtioNetHdr {
            flags: NEEDS_CHECKSUM,
            gso_type,
            hdr_len: headers as u16,
            gso_size: if gso_type == WHOLE { 0 } else { self.size as u16 },
            csum_start: tcp_at as u16,
            csum_offset: CHECKSUM_AT as u16,
        };
        // The buffer is longer than the header.
        let _ = header.encode(&mut self.buffer);
        (self.buffer, self.data.end)
    }
}

#[cfg(test)]
mod tests {
    use polypath_endpoint::packet::{Packet, decode_local};
    use polypath_transport::Pattern;

    use super::*;
    use crate::pool::Pool;

    const MSS: u64 = 1000;

    fn locators() -> Locators {
        Locators { local: "10.0.0.1:0".parse().unwrap(), remote: "10.0.0.2:0".parse().unwrap() }
    }

    fn segment(number: u64, len: u64, flags: TcpFlags) -> Segment {
        let seq = Seq((number * MSS) as u32);
        let header = TcpHeader { src_port: 1, dst_port: 2, seq, flags, ..TcpHeader::default() };
        Segment {
            header,
            payload: Pattern { key: 1, offset: number * MSS, len }.into(),
            ..Segment::default()
        }
    }

    fn train() -> Train {
        let mut buffer = Pool::new(VIRTIO_NET_HDR_LEN + 65_535, 1).take();
        buffer.fill(0xff);
        Train::begin(buffer, &locators(), &segment(0, MSS, TcpFlags::ACK)).unwrap()
    }

    #[test]
    fn segments_in_sequence_leave_as_one_packet() {
        let mut train = train();
        assert!(train.take(&locators(), &segment(1, MSS, TcpFlags::ACK)));
        assert!(train.take(&locators(), &segment(2, 500, TcpFlags::ACK)));
        assert!(!train.take(&locators(), &segment(3, MSS, TcpFlags::ACK)), "one after a short one");
        let (buffer, len) = train.complete();
        let header = VirtioNetHdr::decode(&buffer).unwrap();
        assert_eq!((header.gso_type, header.gso_size), (TCP_V4, MSS as u16));
        assert_eq!((header.hdr_len, header.csum_start, header.csum_offset), (40, 20, 16));
        let packet = bytes::Bytes::copy_from_slice(&buffer[VIRTIO_NET_HDR_LEN..len]);
        let Ok(Packet::Segment { segment, .. }) = decode_local(&packet) else { panic!() };
        assert!(segment.payload.same_bytes(&Pattern { key: 1, offset: 0, len: 2500 }.into()));
    }

    #[test]
    fn what_differs_does_not_join() {
        let mut train = train();
        let mut other = segment(1, MSS, TcpFlags::ACK);
        other.header.window = 7;
        assert!(!train.take(&locators(), &other));
        assert!(!train.take(&locators(), &segment(2, MSS, TcpFlags::ACK)), "a gap");
        assert!(!train.take(&locators(), &segment(1, 0, TcpFlags::ACK)), "no data");
        let elsewhere = Locators { remote: "10.0.0.3:0".parse().unwrap(), ..locators() };
        assert!(!train.take(&elsewhere, &segment(1, MSS, TcpFlags::ACK)));
        let end = segment(1, MSS, TcpFlags(TcpFlags::ACK.0 | TcpFlags::FIN.0));
        assert!(train.take(&locators(), &end));
        assert!(!train.take(&locators(), &segment(2, MSS, TcpFlags::ACK)), "nothing follows the end");
    }

    #[test]
    fn no_packet_is_longer_than_ip_can_say() {
        let mut train = train();
        let taken =
            (1..100).take_while(|n| train.take(&locators(), &segment(*n, MSS, TcpFlags::ACK))).count();
        assert_eq!(taken, 64, "65,000 bytes of data and 40 of headers");
        assert_eq!(train.complete().1, VIRTIO_NET_HDR_LEN + 40 + 65_000);
    }
}
