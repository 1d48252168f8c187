//! IPv4, IPv6, UDP and ICMP: round trips, damage, and what is refused.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, Ipv6Addr};

use polypath_wire::icmp::{IcmpFamily, IcmpHeader, Quoted};
use polypath_wire::ipv4::{Ipv4Header, Ipv4View};
use polypath_wire::ipv6::{Ipv6Header, Ipv6View};
use polypath_wire::udp::{UdpHeader, UdpView};
use polypath_wire::{Checksum, WireError};
use proptest::collection::vec;
use proptest::prelude::*;

const V4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
const V6: (Ipv6Addr, Ipv6Addr) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
const SUM_V4: Checksum = Checksum::Ipv4 { src: V4.0, dst: V4.1 };
const SUM_V6: Checksum = Checksum::Ipv6 { src: V6.0, dst: V6.1 };
const ICMP_V6: IcmpFamily = IcmpFamily::V6 { src: V6.0, dst: V6.1 };

fn v4_packet(payload: &[u8]) -> Vec<u8> {
    let header = Ipv4Header::new(17, V4.0, V4.1, payload.len() as u16);
    let mut packet = vec![0xaa; header.len()];
    packet.extend_from_slice(payload);
    header.emit(&mut packet).unwrap();
    packet
}

/// An IPv6 packet whose `rest` begins with an extension header of kind `next_header`.
fn v6_packet(next_header: u8, rest: &[u8]) -> Vec<u8> {
    let header = Ipv6Header::new(next_header, V6.0, V6.1, rest.len() as u16);
    let mut packet = vec![0xaa; header.len()];
    packet.extend_from_slice(rest);
    header.emit(&mut packet).unwrap();
    packet
}

fn says<T: std::fmt::Debug>(result: Result<T, WireError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn bad_ipv4_headers_name_the_field() {
    let packet = v4_packet(b"data");
    let changed = |at: usize, to: u8| {
        let mut packet = packet.clone();
        packet[at] = to;
        says(Ipv4View::new(&packet))
    };
    assert_eq!(says(Ipv4View::new(&packet[..19])), "IPv4: length: need 20, got 19");
    assert_eq!(says(Ipv4View::new(&packet[..23])), "IPv4: length: need 24, got 23");
    assert_eq!(changed(0, 0x65), "IPv4: version: need 4, got 6");
    assert_eq!(changed(0, 0x44), "IPv4: header length: need 20, got 16");
    assert_eq!(changed(0, 0x47), "IPv4: length: need 28, got 24");
    assert_eq!(changed(3, 19), "IPv4: total length: need 20, got 19");
    assert_eq!(changed(3, 25), "IPv4: length: need 25, got 24");
    let mut packet = packet.clone();
    packet[8] ^= 1;
    assert!(Ipv4Header::parse(&packet).unwrap_err().is_checksum());
}

#[test]
fn ipv4_values_that_have_no_bytes_are_refused() {
    let header = Ipv4Header::new(6, V4.0, V4.1, 65_516);
    let mut room = [0; 100];
    assert_eq!(says(header.emit(&mut room)), "IPv4: total length: need 65535, got 65536");
    let header = Ipv4Header { payload_len: 0, ..header };
    assert_eq!(says(header.emit(&mut room[..19])), "IPv4: buffer: need 20, got 19");
    let long = Ipv4Header { options: Some([0; 41].into()), ..header.clone() };
    assert_eq!(says(long.emit(&mut room)), "IPv4: options: need 40, got 41");
    let far = Ipv4Header { fragment_offset: 8192, ..header };
    assert_eq!(says(far.emit(&mut room)), "IPv4: fragment offset: need 8191, got 8192");
}

#[test]
fn fragments_tell_whether_the_payload_begins_in_them() {
    let header = Ipv4Header::new(17, V4.0, V4.1, 8);
    for (offset, more, is_fragment, has_start) in
        [(0, false, false, true), (0, true, true, true), (1, false, true, false)]
    {
        let header = Ipv4Header { fragment_offset: offset, more_fragments: more, ..header.clone() };
        let mut packet = [0; 28];
        header.emit(&mut packet).unwrap();
        let view = Ipv4View::new(&packet).unwrap();
        assert_eq!((view.is_fragment(), view.has_start()), (is_fragment, has_start));
        assert_eq!(Quoted::parse(&packet, IcmpFamily::V4).is_ok(), has_start);
    }
}

#[test]
fn padding_is_no_payload() {
    let mut packet = v4_packet(b"data");
    packet.extend_from_slice(&[0; 22]);
    assert_eq!(Ipv4View::new(&packet).unwrap().payload(), b"data");
    let mut packet = v6_packet(59, b"data");
    packet.extend_from_slice(&[0; 22]);
    assert_eq!(Ipv6View::new(&packet).unwrap().payload(), b"data");
    let (datagram, _) = UdpHeader::parse(&[0, 1, 0, 2, 0, 9, 0, 0, 7, 0, 0], SUM_V4).unwrap();
    assert_eq!(datagram.payload_len, 1);
}

#[test]
fn bad_ipv6_headers_name_the_field() {
    let packet = v6_packet(17, b"data");
    assert_eq!(says(Ipv6View::new(&packet[..39])), "IPv6: length: need 40, got 39");
    assert_eq!(says(Ipv6View::new(&packet[..43])), "IPv6: length: need 44, got 43");
    assert_eq!(says(Ipv6View::new(&v4_packet(&[0; 30]))), "IPv6: version: need 6, got 4");
    let mut room = [0; 100];
    let header = Ipv6Header::new(17, V6.0, V6.1, 0);
    let far = Ipv6Header { flow_label: 1 << 20, ..header.clone() };
    assert_eq!(says(far.emit(&mut room)), "IPv6: flow label: need 1048575, got 1048576");
    let long = Ipv6Header { payload_len: 65_528, extensions: Some([0; 8].into()), ..header };
    assert_eq!(says(long.emit(&mut room)), "IPv6: payload length: need 65535, got 65536");
}

#[test]
fn extension_headers_are_gone_through_or_refused() {
    let pad = [1, 4, 0, 0, 0, 0];
    let after = |next: u8, second: u8, data: [u8; 6]| [&[next, second][..], &data].concat();
    let chain =
        [after(60, 0, pad), after(43, 0, pad), after(44, 0, [9, 0, 0, 0, 0, 0]), after(17, 0, [0; 6])];
    let packet = v6_packet(0, &[&chain.concat()[..], b"payload!"].concat());
    let view = Ipv6View::new(&packet).unwrap();
    assert_eq!((view.upper().protocol, view.header_len()), (17, 72));
    assert_eq!(view.payload(), b"payload!");
    let fragment = view.upper().fragment.unwrap();
    assert_eq!((fragment.offset, fragment.more, fragment.id), (0, false, 0));

    // What follows the header of a later fragment is a part of something.
    let packet = v6_packet(44, &after(60, 0, [0x12, 0x35, 0, 0, 0, 7]));
    let upper = Ipv6View::new(&packet).unwrap().upper();
    let fragment = upper.fragment.unwrap();
    assert_eq!((upper.protocol, upper.has_start()), (60, false));
    assert_eq!((fragment.offset, fragment.more, fragment.id), (0x246, true, 7));

    for (kind, rest, error) in [
        (60, after(17, 1, pad), "IPv6: extension header length: need 16, got 8"),
        (60, vec![17], "IPv6: extension header length: need 8, got 1"),
        (60, [after(0, 0, pad), after(17, 0, pad)].concat(), "IPv6: hop-by-hop header offset: need 0, got 8"),
        (43, after(17, 0, [9, 1, 0, 0, 0, 0]), "IPv6: segments left: need 0, got 1"),
        (0, after(17, 0, [0xc2, 4, 0, 0, 0, 0]), "IPv6: option to skip: need 63, got 194"),
        (0, after(17, 0, [5, 5, 0, 0, 0, 0]), "IPv6: option length: need 6, got 5"),
        (0, after(17, 0, [0, 0, 0, 0, 0, 5]), "IPv6: option length: need 1, got 0"),
    ] {
        assert_eq!(says(Ipv6View::new(&v6_packet(kind, &rest))), error);
    }
}

#[test]
fn bad_udp_headers_name_the_field() {
    assert_eq!(says(UdpView::new(&[0; 7])), "UDP: length: need 8, got 7");
    assert_eq!(says(UdpView::new(&[0, 0, 0, 0, 0, 7, 0, 0])), "UDP: length: need 8, got 7");
    assert_eq!(says(UdpView::new(&[0, 0, 0, 0, 0, 9, 0, 0])), "UDP: length: need 9, got 8");
    let header = UdpHeader { payload_len: 65_528, ..Default::default() };
    assert_eq!(says(header.emit(&mut vec![0; 70_000], SUM_V4)), "UDP: length: need 65535, got 65536");
    let header = UdpHeader { payload_len: 2, ..Default::default() };
    assert_eq!(says(header.emit(&mut [0; 9], SUM_V4)), "UDP: buffer: need 10, got 9");
}

#[test]
fn udp_without_a_checksum() {
    let mut datagram = [0xaa; 8];
    UdpHeader::default().emit(&mut datagram, Checksum::Unused).unwrap();
    assert!(UdpHeader::parse(&datagram, SUM_V4).is_ok());
    assert!(UdpHeader::parse(&datagram, SUM_V6).unwrap_err().is_checksum());
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    let header = UdpHeader { payload_len: 2, ..Default::default() };
    let mut datagram = [0; 10];
    header.emit(&mut datagram, Checksum::ZeroPseudoHeader).unwrap();
    // The data that makes the sum all ones.
    datagram.copy_within(6..8, 8);
    header.emit(&mut datagram, Checksum::ZeroPseudoHeader).unwrap();
    assert_eq!(UdpView::new(&datagram).unwrap().checksum(), 0xffff);
    assert!(UdpHeader::parse(&datagram, Checksum::ZeroPseudoHeader).is_ok());
}

#[test]
fn icmp_edges() {
    assert_eq!(says(IcmpHeader::parse(&[0; 7], IcmpFamily::V4)), "ICMP: length: need 8, got 7");
    let too_big = IcmpHeader::TooBig { mtu: 65_536 };
    assert_eq!(says(too_big.emit(&mut [0; 8], IcmpFamily::V4)), "ICMP: MTU: need 65535, got 65536");
    assert_eq!(too_big.emit(&mut [0; 8], ICMP_V6), Ok(8));
    assert_eq!(says(too_big.emit(&mut [0; 7], ICMP_V6)), "ICMP: buffer: need 8, got 7");
    assert_eq!((IcmpFamily::V4.quote_len(100), ICMP_V6.quote_len(9000)), (100, 1232));
}

prop_compose! {
    fn any_ipv4()(
        (traffic_class, id, ttl, protocol) in any::<(u8, u16, u8, u8)>(),
        payload_len in 0u16..60,
        (dont_fragment, more_fragments, fragment_offset) in (any::<bool>(), any::<bool>(), 0u16..8192),
        (src, dst) in any::<(Ipv4Addr, Ipv4Addr)>(),
        options in vec(any::<[u8; 4]>(), 0..=10),
    ) -> Ipv4Header {
        let options = (!options.is_empty()).then(|| options.concat().into());
        Ipv4Header {
            traffic_class, payload_len, id, dont_fragment, more_fragments, fragment_offset, ttl, protocol,
            src, dst, options,
        }
    }
}

prop_compose! {
    fn any_ipv6()(
        (traffic_class, hop_limit) in any::<(u8, u8)>(),
        flow_label in 0u32..1 << 20,
        payload_len in 0u16..60,
        // ESP, UDP, destination options of padding before UDP.
        (next_header, extensions) in prop_oneof![
            Just((50, None)),
            Just((17, None)),
            vec(0u8..1, 6..7).prop_map(|p| (60, Some([vec![17, 0], p].concat().into()))),
        ],
        (src, dst) in any::<(Ipv6Addr, Ipv6Addr)>(),
    ) -> Ipv6Header {
        Ipv6Header { traffic_class, flow_label, payload_len, next_header, hop_limit, src, dst, extensions }
    }
}

fn any_icmp() -> impl Strategy<Value = IcmpHeader> {
    let pair = any::<(u16, u16)>();
    prop_oneof![
        pair.prop_map(|(id, seq)| IcmpHeader::EchoRequest { id, seq }),
        any::<(u16, u16)>().prop_map(|(id, seq)| IcmpHeader::EchoReply { id, seq }),
        (5u8..).prop_map(|code| IcmpHeader::Unreachable { code }),
        any::<u8>().prop_map(|code| IcmpHeader::TimeExceeded { code }),
        (0u32..65_536).prop_map(|mtu| IcmpHeader::TooBig { mtu }),
        (20u8..100, any::<u8>(), any::<[u8; 4]>()).prop_map(|(kind, code, rest)| IcmpHeader::Other {
            kind,
            code,
            rest
        }),
    ]
}

proptest! {
    #[test]
    fn ipv4_to_bytes_and_back(header in any_ipv4(), bit in any::<prop::sample::Index>()) {
        let mut packet = vec![0xaa; header.len() + usize::from(header.payload_len)];
        prop_assert_eq!(header.emit(&mut packet), Ok(header.len()));
        prop_assert_eq!(Ipv4Header::parse(&packet), Ok((header.clone(), header.len())));
        let bit = bit.index(header.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Ipv4Header::parse(&packet).is_err());
    }

    #[test]
    fn ipv6_to_bytes_and_back(header in any_ipv6()) {
        let mut packet = vec![0xaa; header.len() + usize::from(header.payload_len)];
        prop_assert_eq!(header.emit(&mut packet), Ok(header.len()));
        prop_assert_eq!(Ipv6Header::parse(&packet), Ok((header.clone(), header.len())));
    }

    #[test]
    fn udp_to_bytes_and_back(ports: (u16, u16), data in vec(any::<u8>(), 0..40), v6: bool, bit: prop::sample::Index) {
        let sum = if v6 { SUM_V6 } else { SUM_V4 };
        let header = UdpHeader { src_port: ports.0, dst_port: ports.1, payload_len: data.len() as u16 };
        let mut datagram = [&[0xaa; 8][..], &data].concat();
        prop_assert_eq!(header.emit(&mut datagram, sum), Ok(8));
        prop_assert_eq!(UdpHeader::parse(&datagram, sum), Ok((header, 8)));
        prop_assert_eq!(UdpView::new(&datagram).unwrap().payload(), &data);
        let bit = bit.index(datagram.len() * 8);
        datagram[bit / 8] ^= 1 << (bit % 8);
        // But for the one flip that turns a checksum into none.
        let none = UdpView::new(&datagram).is_ok_and(|d| d.checksum() == 0);
        prop_assert!(UdpHeader::parse(&datagram, sum).is_err() || none);
    }

    #[test]
    fn icmp_to_bytes_and_back(header in any_icmp(), body in vec(any::<u8>(), 0..40), v6: bool, bit: prop::sample::Index) {
        let family = if v6 { ICMP_V6 } else { IcmpFamily::V4 };
        let mut message = [&[0xaa; 8][..], &body].concat();
        prop_assert_eq!(header.emit(&mut message, family), Ok(8));
        prop_assert_eq!(IcmpHeader::parse(&message, family), Ok((header, 8)));
        let bit = bit.index(message.len() * 8);
        message[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(IcmpHeader::parse(&message, family).unwrap_err().is_checksum());
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(mut bytes in vec(any::<u8>(), 0..120), version in 4u8..=6) {
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | *first & 0xf;
        }
        let _ = Ipv4View::new(&bytes).map(|v| Ipv4Header::from_view(&v));
        let _ = Ipv6View::new(&bytes).map(|v| Ipv6Header::from_view(&v));
        for family in [IcmpFamily::V4, ICMP_V6] {
            let _ = Quoted::parse(&bytes, family);
            let _ = IcmpHeader::parse(&bytes, family);
        }
        let _ = UdpHeader::parse(&bytes, SUM_V4);
    }
}
