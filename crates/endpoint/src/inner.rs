//! IP packets of other programs, as far as somebody who carries them must look into them.

mod errors;

use std::net::IpAddr;

use bytes::{Bytes, BytesMut};
use polypath_wire::ipv4::Ipv4View;
use polypath_wire::ipv6::{Ipv6Header, Ipv6View};
use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Seq, WireError, checksum, icmp, tcp, udp};

pub use errors::{Trouble, error_about};

/// Explicit congestion notification: the last two bits of the traffic class (RFC 3168).
const ECN: u8 = 3;

/// What is known of an IP packet from its headers. The checksum of an IPv4 header is verified, no other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InnerPacket {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source and destination port of TCP and UDP. Of an echo request and its answer the identifier, twice.
    pub ports: Option<(u16, u16)>,
    /// The sequence number of the first segment of a connection of TCP, if it is one.
    pub opens: Option<Seq>,
    /// Differentiated services code point and ECN.
    pub traffic_class: u8,
    /// It is a fragment.
    pub fragment: bool,
    /// The payload begins in it: it is no later fragment.
    pub starts: bool,
    /// Length, bytes; there may be padding behind it.
    pub len: usize,
}

impl InnerPacket {
    /// Looks into the packet at the start of `bytes`, all of which is there.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        match bytes.first().map(|b| b >> 4) {
            Some(6) => Self::parse_v6(bytes),
            _ => Self::parse_v4(bytes),
        }
    }

    fn parse_v4(bytes: &[u8]) -> Result<Self, WireError> {
        let view = Ipv4View::new(bytes)?;
        view.verify()?;
        let (protocol, fragment) = (view.protocol(), view.is_fragment());
        Ok(Self {
            src: view.src().into(),
            dst: view.dst().into(),
            protocol,
            ports: ports(protocol, view.payload()).filter(|_| !fragment),
            opens: opens(protocol, view.payload()).filter(|_| !fragment),
            traffic_class: bytes[1],
            fragment,
            starts: view.has_start(),
            len: view.total_len(),
        })
    }

    fn parse_v6(bytes: &[u8]) -> Result<Self, WireError> {
        let view = Ipv6View::new(bytes)?;
        let (protocol, fragment) = (view.upper().protocol, view.upper().fragment.is_some());
        Ok(Self {
            src: view.src().into(),
            dst: view.dst().into(),
            protocol,
            ports: ports(protocol, view.payload()).filter(|_| !fragment),
            opens: opens(protocol, view.payload()).filter(|_| !fragment),
            traffic_class: Ipv6Header::from_view(&view).traffic_class,
            fragment,
            starts: view.upper().has_start(),
            len: view.total_len(),
        })
    }

    /// Differentiated services code point, 0 to 63.
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Whether routers may mark it instead of dropping it.
    pub fn is_ecn_capable(&self) -> bool {
        self.traffic_class & ECN != 0
    }
}

/// What tells the packets of `protocol` between two hosts apart, as the start of their payload says it.
fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    let at = |n: usize| Some(u16::from_be_bytes(*payload.get(n..)?.first_chunk()?));
    let kind = payload.first();
    match (protocol, kind) {
        (tcp::PROTOCOL | udp::PROTOCOL, _) => Some((at(0)?, at(2)?)),
        (icmp::PROTOCOL_V4, Some(0 | 8)) | (icmp::PROTOCOL_V6, Some(128 | 129)) => Some((at(4)?, at(4)?)),
        _ => None,
    }
}

/// The sequence number of a payload that begins a connection of TCP: SYN without ACK (RFC 9293 §3.1).
fn opens(protocol: u8, payload: &[u8]) -> Option<Seq> {
    const SEQ_AT: usize = 4;
    const FLAGS_AT: usize = 13;
    let flags = payload.get(FLAGS_AT)? & (TcpFlags::SYN.0 | TcpFlags::ACK.0);
    let seq = Seq(u32::from_be_bytes(*payload.get(SEQ_AT..)?.first_chunk()?));
    (protocol == tcp::PROTOCOL && flags == TcpFlags::SYN.0).then_some(seq)
}

/// `packet`, which was looked into, with congestion experienced.
pub fn marked(packet: &Bytes) -> Bytes {
    let mut packet = BytesMut::from(&packet[..]);
    match packet.first().map(|b| b >> 4) {
        Some(6) => packet[1] |= ECN << 4,
        _ => {
            packet[1] |= ECN;
            packet[10..12].fill(0);
            let header = usize::from(packet[0] & 0xf) * 4;
            let sum = checksum::checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }
    packet.freeze()
}

#[cfg(test)]
mod tests {
    use polypath_wire::ipv4::Ipv4Header;
    use proptest::prelude::*;

    use super::*;

    fn v4(fragment_offset: u16) -> Vec<u8> {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        let header = Ipv4Header::new(udp::PROTOCOL, src, dst, 8);
        let mut packet = vec![0; 28];
        Ipv4Header { fragment_offset, traffic_class: 46 << 2 | 2, ..header }.emit(&mut packet).unwrap();
        packet[20..24].copy_from_slice(&[0, 7, 0, 9]);
        packet
    }

    fn v6() -> Vec<u8> {
        let [src, dst] = ["fd00::1", "fd00::2"].map(|ip| ip.parse().unwrap());
        let mut packet = vec![0; 48];
        let header = Ipv6Header { traffic_class: 1, ..Ipv6Header::new(icmp::PROTOCOL_V6, src, dst, 8) };
        header.emit(&mut packet).unwrap();
        packet[40..48].copy_from_slice(&[128, 0, 0, 0, 0, 5, 0, 1]);
        packet
    }

    #[test]
    fn ports_and_identifiers_tell_flows_apart_and_fragments_have_none() {
        let whole = InnerPacket::parse(&v4(0)).unwrap();
        assert_eq!((whole.ports, whole.dscp(), whole.is_ecn_capable()), (Some((7, 9)), 46, true));
        let later = InnerPacket::parse(&v4(3)).unwrap();
        assert_eq!((later.ports, later.fragment, later.starts), (None, true, false));
        let echo = InnerPacket::parse(&v6()).unwrap();
        assert_eq!((echo.ports, echo.src.to_string(), echo.len), (Some((5, 5)), "fd00::1".into(), 48));
    }

    #[test]
    fn a_marked_packet_is_still_a_packet() {
        for packet in [v4(0), v6()] {
            let before = InnerPacket::parse(&packet).unwrap();
            let after = InnerPacket::parse(&marked(&packet.into())).unwrap();
            assert_eq!(after, InnerPacket { traffic_class: before.traffic_class | 3, ..before });
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = InnerPacket::parse(&bytes) {
                prop_assert!(packet.len <= bytes.len());
                prop_assert!(InnerPacket::parse(&marked(&bytes.into())).is_ok());
            }
        }
    }
}
