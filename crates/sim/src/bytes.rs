//! Packets in bytes: for corruption, for captures, and for worlds in the bytes mode.

use std::net::{IpAddr, Ipv4Addr};

use bytes::BytesMut;
use polypath_endpoint::Locators;
use polypath_transport::{Pattern, Payload, Segment};
use polypath_wire::ipv4::{Ipv4Header, MIN_HEADER_LEN};
use polypath_wire::tcp::{self, TcpHeader};
use polypath_wire::udp::{self, UdpHeader};
use polypath_wire::{Checksum, WireError};

use crate::packet::Datagram;

/// Both ports of the first source of datagrams; nothing known uses one of the ports that follow.
const FIRST_UDP_PORT: u16 = 61_000;
/// Number of sources with ports of their own.
const UDP_PORTS: u32 = 4096;

/// The IPv4 packet of `segment`, sent between `locators` (as its sender sees them).
pub(crate) fn encode(segment: &Segment, locators: &Locators) -> Vec<u8> {
    let header_len = segment.header.len();
    packet(locators, tcp::PROTOCOL, header_len + segment.payload.len() as usize, |bytes, checksum| {
        segment.payload.copy_to(&mut bytes[header_len..]);
        segment.header.emit(bytes, checksum)
    })
}

/// The IPv4 packet of a datagram of `size` bytes with headers; its data is a pattern.
pub(crate) fn encode_datagram(datagram: &Datagram, locators: &Locators, size: u32) -> Vec<u8> {
    let len = (size as usize).saturating_sub(MIN_HEADER_LEN).max(udp::HEADER_LEN);
    packet(locators, udp::PROTOCOL, len, |bytes, checksum| {
        let data = (len - udp::HEADER_LEN) as u64;
        let pattern = Pattern { key: datagram.source, offset: datagram.number * data, len: data };
        Payload::from(pattern).copy_to(&mut bytes[udp::HEADER_LEN..]);
        let src_port = FIRST_UDP_PORT + (datagram.source % UDP_PORTS) as u16;
        let payload_len = data as u16;
        UdpHeader { src_port, dst_port: src_port, payload_len }.emit(bytes, checksum)
    })
}

/// The IPv4 packet of a UDP payload, without UDP's checksum: what is in it has its own (RFC 3948 §2.1).
pub(crate) fn encode_payload(payload: &[u8], locators: &Locators) -> Vec<u8> {
    packet(locators, udp::PROTOCOL, udp::HEADER_LEN + payload.len(), |bytes, _| {
        bytes[udp::HEADER_LEN..].copy_from_slice(payload);
        let (src_port, dst_port) = (locators.local.port(), locators.remote.port());
        let payload_len = payload.len() as u16;
        UdpHeader { src_port, dst_port, payload_len }.emit(bytes, Checksum::Unused)
    })
}

/// The UDP payload in an IPv4 packet, and its ports: source, then destination.
pub(crate) fn decode_payload(packet: &[u8]) -> Result<(BytesMut, [u16; 2]), WireError> {
    let (ip, udp_at) = Ipv4Header::parse(packet)?;
    let datagram = &packet[udp_at..udp_at + usize::from(ip.payload_len)];
    let (header, data_at) = UdpHeader::parse(datagram, Checksum::Unused)?;
    let data = &datagram[data_at..data_at + usize::from(header.payload_len)];
    Ok((BytesMut::from(data), [header.src_port, header.dst_port]))
}

/// The segment in an IPv4 packet, its checksums verified.
pub(crate) fn decode(packet: Vec<u8>) -> Result<Segment, WireError> {
    let (ip, tcp_at) = Ipv4Header::parse(&packet)?;
    let tcp_end = tcp_at + usize::from(ip.payload_len);
    let (header, data_at) = TcpHeader::parse(&packet[tcp_at..tcp_end], ip.pseudo_header())?;
    let data = bytes::Bytes::from(packet).slice(tcp_at + data_at..tcp_end);
    Ok(Segment { header, payload: data.into(), ..Segment::default() })
}

/// Flips the bit that `word` selects, and with one chance in four another one beside it.
pub(crate) fn flip(bytes: &mut [u8], word: u64) {
    if bytes.is_empty() {
        return;
    }
    let bit = (word >> 8) as usize % (bytes.len() * 8);
    bytes[bit / 8] ^= 1 << (bit % 8);
    if word & 3 == 0 {
        bytes[bit / 8] ^= 1 << ((bit + 1) % 8);
    }
}

fn packet(
    locators: &Locators,
    protocol: u8,
    len: usize,
    emit: impl FnOnce(&mut [u8], Checksum) -> Result<usize, WireError>,
) -> Vec<u8> {
    let (src, dst) = (v4(locators.local.ip()), v4(locators.remote.ip()));
    let mut bytes = vec![0; MIN_HEADER_LEN + len];
    let header = Ipv4Header::new(protocol, src, dst, len as u16);
    emit(&mut bytes[MIN_HEADER_LEN..], header.pseudo_header())
        .and_then(|_| header.emit(&mut bytes))
        .expect("the buffer was made to measure, and segments are smaller than 64 KiB");
    bytes
}

fn v4(ip: IpAddr) -> Ipv4Addr {
    match ip {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
