//! What the kernel leaves to a network card: packets to be cut into segments, and checksums to be completed.

use std::io;

use bytes::Bytes;
use polypath_endpoint::inner::InnerPacket;
use polypath_wire::checksum::checksum;
use polypath_wire::udp;
use tun_rs::{VirtioNetHdr, gso_split};

use super::NEEDS_CHECKSUM;

/// The field of the virtio-net header that says what to cut (Virtual I/O Device 1.2 §5.1.6): nothing.
const WHOLE: u8 = 0;
/// UDP is cut into datagrams.
const UDP: u8 = 5;
/// The flag beside it: the first segment has CWR set (RFC 3168).
const ECN: u8 = 0x80;
/// Length of a header of UDP, bytes.
const UDP_HEADER: u16 = udp::HEADER_LEN as u16;

/// Appends what leaves of `packet`, which the kernel gave with this `header`, to `out`: IP packets as they are on the wire.
pub(super) fn cut(header: VirtioNetHdr, packet: &mut [u8], out: &mut Vec<Bytes>) -> io::Result<()> {
    if header.gso_type == WHOLE {
        if header.flags & NEEDS_CHECKSUM != 0 {
            complete(&header, packet)?;
        }
        out.push(Bytes::copy_from_slice(packet));
        return Ok(());
    }
    let header = VirtioNetHdr { hdr_len: headers(&header, packet)?, ..header };
    let (start, size) = (usize::from(header.hdr_len), usize::from(header.gso_size).max(1));
    let number = packet.len().saturating_sub(start).div_ceil(size);
    let mut segments = vec![vec![0; start + size]; number];
    let mut sizes = vec![0; number];
    let ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let made = gso_split(packet, header, &mut segments, &mut sizes, 0, ipv6)?;
    let made = segments.into_iter().zip(sizes).take(made);
    out.extend(made.map(|(mut segment, size)| {
        segment.truncate(size);
        Bytes::from(segment)
    }));
    Ok(())
}

/// Completes the checksum: its field holds the sum of the pseudo header, as if that were part of the message.
fn complete(header: &VirtioNetHdr, packet: &mut [u8]) -> io::Result<()> {
    let is_udp = InnerPacket::parse(packet).is_ok_and(|looked| looked.protocol == udp::PROTOCOL);
    let message = packet.get_mut(header.csum_start.into()..).ok_or(io::ErrorKind::InvalidData)?;
    let sum = match checksum(message) {
        0 if is_udp => 0xffff, // RFC 768: 0 means that there is none
        sum => sum,
    };
    let at = usize::from(header.csum_offset);
    let field = message.get_mut(at..at + 2).ok_or(io::ErrorKind::InvalidData)?;
    field.copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

/// Length of all headers, bytes: the kernel may count the whole packet if it forwards it.
fn headers(header: &VirtioNetHdr, packet: &[u8]) -> io::Result<u16> {
    let transport = match header.gso_type & !ECN {
        UDP => UDP_HEADER,
        _ => {
            let offset = packet.get(usize::from(header.csum_start) + 12);
            offset.map_or(0, |offset| u16::from(offset >> 4) * 4)
        }
    };
    let all = header.csum_start.checked_add(transport);
    all.filter(|_| transport >= UDP_HEADER).ok_or(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use polypath_endpoint::packet::{Packet, decode_packet};
    use polypath_wire::ipv4::Ipv4Header;
    use polypath_wire::{Checksum, tcp};

    use super::*;

    /// A packet of TCP with `len` bytes of data as the kernel gives it: the checksum covers the pseudo header only.
    fn large(len: usize) -> Vec<u8> {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::Ipv4Addr::from);
        let header = Ipv4Header::new(tcp::PROTOCOL, src, dst, (20 + len) as u16);
        let mut packet = vec![7; 40 + len];
        header.emit(&mut packet).unwrap();
        packet[20..40].fill(0);
        packet[32] = 5 << 4;
        packet[33] = 0x18;
        let sum = Checksum::Ipv4 { src, dst }.partial(tcp::PROTOCOL, (20 + len) as u32);
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn a_large_packet_becomes_segments_with_checksums_and_numbers_of_their_own() {
        let of = VirtioNetHdr {
            flags: 1,
            gso_type: 1,
            gso_size: 1000,
            csum_start: 20,
            csum_offset: 16,
            hdr_len: 2540,
        };
        let mut out = Vec::new();
        cut(of, &mut large(2500), &mut out).unwrap();
        let decoded = out.iter().map(|packet| match decode_packet(packet) {
            Ok(Packet::Segment { segment, .. }) => (segment.header.seq.0, segment.payload.len()),
            other => panic!("{other:?}"),
        });
        assert_eq!(decoded.collect::<Vec<_>>(), [(0, 1000), (1000, 1000), (2000, 500)]);
    }

    #[test]
    fn a_small_packet_gets_its_checksum() {
        let of = VirtioNetHdr { flags: 1, csum_start: 20, csum_offset: 16, ..VirtioNetHdr::default() };
        let mut out = Vec::new();
        cut(of, &mut large(100), &mut out).unwrap();
        assert!(matches!(decode_packet(&out[0]), Ok(Packet::Segment { .. })));
        assert!(cut(VirtioNetHdr { csum_start: 200, ..of }, &mut large(100), &mut out).is_err());
    }
}
