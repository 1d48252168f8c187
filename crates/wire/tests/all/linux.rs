//! Packets of the Linux kernel: read, understood, and written again byte for byte.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, Ipv6Addr};

use polypath_wire::icmp::{self, IcmpFamily, IcmpHeader, IcmpView, Quoted};
use polypath_wire::ipv4::Ipv4Header;
use polypath_wire::ipv6::Ipv6Header;
use polypath_wire::tcp::{self, SackBlock, TcpFlags, TcpHeader, Timestamps};
use polypath_wire::udp::{self, UdpHeader};
use polypath_wire::{Checksum, Seq};

/// The packets whose summary contains `summary`.
fn packets(summary: &str) -> Vec<Vec<u8>> {
    let lines: Vec<_> =
        include_str!("../vectors/linux.txt").lines().filter(|line| !line.starts_with('#')).collect();
    let found = lines.chunks(2).filter(|pair| pair[0].contains(summary));
    let found: Vec<_> = found.map(|pair| unhex(pair[1])).collect();
    assert!(!found.is_empty(), "no packet {summary:?}");
    found
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// A packet's network layer: its value, or rather the parts of it that both versions have.
struct Ip {
    header: Vec<u8>,
    protocol: u8,
    checksum: Checksum,
    family: IcmpFamily,
}

/// Parses the IP header of `packet`, checks that it is emitted as it was, and cuts it off.
fn network(packet: &[u8]) -> (Ip, &[u8]) {
    let mut header = vec![0xaa; packet.len()];
    if packet[0] >> 4 == 4 {
        let (ip, at) = Ipv4Header::parse(packet).unwrap();
        assert_eq!((ip.len(), at + usize::from(ip.payload_len)), (at, packet.len()));
        let len = ip.emit(&mut header).unwrap();
        header.truncate(len);
        let family = IcmpFamily::V4;
        (Ip { header, protocol: ip.protocol, checksum: ip.pseudo_header(), family }, &packet[at..])
    } else {
        let (ip, at) = Ipv6Header::parse(packet).unwrap();
        assert_eq!((ip.len(), at + usize::from(ip.payload_len)), (at, packet.len()));
        let len = ip.emit(&mut header).unwrap();
        header.truncate(len);
        let family = IcmpFamily::V6 { src: ip.src, dst: ip.dst };
        let protocol = ip.upper().unwrap().protocol;
        (Ip { header, protocol, checksum: ip.pseudo_header(), family }, &packet[at..])
    }
}

fn tcp_header(summary: &str) -> TcpHeader {
    let packet = &packets(summary)[0];
    let (ip, message) = network(packet);
    TcpHeader::parse(message, ip.checksum).unwrap().0
}

fn icmp_message(summary: &str) -> (IcmpHeader, Vec<u8>, IcmpFamily) {
    let packet = &packets(summary)[0];
    let (ip, message) = network(packet);
    let (header, at) = IcmpHeader::parse(message, ip.family).unwrap();
    assert_eq!(IcmpView::new(message).unwrap().body(), &message[at..]);
    (header, message[at..].to_vec(), ip.family)
}

#[test]
fn every_packet_is_written_as_it_was_read() {
    for packet in packets("") {
        let (ip, message) = network(&packet);
        assert_eq!(ip.header, packet[..ip.header.len()]);
        let mut again = message.to_vec();
        again[..8].fill(0xaa);
        let len = match ip.protocol {
            tcp::PROTOCOL => {
                let (header, at) = TcpHeader::parse(message, ip.checksum).unwrap();
                again[..at].fill(0xaa);
                header.emit(&mut again, ip.checksum).unwrap()
            }
            udp::PROTOCOL => {
                let (header, _) = UdpHeader::parse(message, ip.checksum).unwrap();
                header.emit(&mut again, ip.checksum).unwrap()
            }
            icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6 => {
                let (header, _) = IcmpHeader::parse(message, ip.family).unwrap();
                header.emit(&mut again, ip.family).unwrap()
            }
            other => panic!("protocol {other}"),
        };
        assert!(len <= message.len());
        assert_eq!(again, message);
    }
}

#[test]
fn the_handshake() {
    let syn = tcp_header("TCP 60 38286 → 5001 [SYN]");
    assert_eq!((syn.src_port, syn.dst_port, syn.window), (38286, 5001, 64240));
    assert_eq!(syn.flags, TcpFlags::SYN);
    assert_eq!(syn.options.mss, Some(1460));
    assert_eq!(syn.options.window_scale, Some(10));
    assert!(syn.options.sack_permitted);
    assert_eq!(syn.options.timestamps, Some(Timestamps { value: 3959707022, echo: 0 }));
    let syn_ack = tcp_header("[SYN, ACK]");
    assert_eq!(syn_ack.flags, TcpFlags::SYN | TcpFlags::ACK);
    assert_eq!(syn_ack.ack, syn.seq.plus(1));
    assert_eq!(tcp_header("[SYN] Seq=0 Win=64800").options.mss, Some(1440));
    assert!(tcp_header("[RST, ACK]").options.is_empty());
}

#[test]
fn three_sack_blocks_beside_timestamps() {
    let isn = tcp_header("TCP 60 38286 → 5001 [SYN]").seq;
    let options = tcp_header("SLE=8689 SRE=10137 SLE=5793 SRE=7241 SLE=2897 SRE=4345").options;
    let block = |start, end| SackBlock { start: isn.plus(start), end: isn.plus(end) };
    assert_eq!(*options.sack, [block(8689, 10137), block(5793, 7241), block(2897, 4345)]);
    assert_eq!((options.len(), options.sack_room()), (40, 3));
}

#[test]
fn a_router_tells_the_path_mtu() {
    let (header, body, family) = icmp_message("Fragmentation needed");
    assert_eq!(header, IcmpHeader::TooBig { mtu: 1280 });
    assert_eq!(body.len(), family.quote_len(1300));
    let quoted = Quoted::parse(&body, family).unwrap();
    let (src, dst) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 7));
    assert_eq!((quoted.src, quoted.dst, quoted.protocol), (src.into(), dst.into(), icmp::PROTOCOL_V4));

    let (header, body, family) = icmp_message("Packet Too Big");
    assert_eq!(header, IcmpHeader::TooBig { mtu: 1280 });
    assert_eq!(body.len(), family.quote_len(1320));
    let quoted = Quoted::parse(&body, family).unwrap();
    let (src, dst) = ("2001:db8::1", "2001:db8:1::7");
    let address = |a: &str| a.parse::<Ipv6Addr>().unwrap();
    assert_eq!((quoted.src, quoted.dst), (address(src).into(), address(dst).into()));
    assert_eq!(quoted.protocol, icmp::PROTOCOL_V6);
}

#[test]
fn a_refused_datagram_is_quoted_with_its_ports() {
    let datagram = &packets("UDP 31")[0];
    let (header, body, family) = icmp_message("ICMP 59 Destination unreachable (Port");
    assert_eq!(header, IcmpHeader::Unreachable { code: 3 });
    assert_eq!(&body, datagram);
    assert_eq!(Quoted::parse(&body, family).unwrap().ports(), (56582, 5002));
    let (header, body, family) = icmp_message("ICMPv6 100 Destination Unreachable (Port");
    assert_eq!(header, IcmpHeader::Unreachable { code: 4 });
    assert_eq!(Quoted::parse(&body, family).unwrap().ports(), (48105, 5002));
}

#[test]
fn echo_and_time_exceeded() {
    assert_eq!(icmp_message("Echo (ping) reply id=0x109c").0, IcmpHeader::EchoReply { id: 0x109c, seq: 1 });
    assert_eq!(
        icmp_message("Echo (ping) request id=0x109e").0,
        IcmpHeader::EchoRequest { id: 0x109e, seq: 1 }
    );
    assert_eq!(icmp_message("Time-to-live exceeded").0, IcmpHeader::TimeExceeded { code: 0 });
}

#[test]
fn hop_by_hop_options_lead_to_the_payload() {
    let packet = &packets("Multicast Listener Report")[0];
    let (ip, at) = Ipv6Header::parse(packet).unwrap();
    assert_eq!((ip.next_header, at), (0, 48));
    assert_eq!(ip.upper().unwrap().protocol, icmp::PROTOCOL_V6);
}

#[test]
fn a_quoted_segment_has_its_sequence_number() {
    let packet = &packets("[SYN] Seq=0 Win=64240")[0];
    let quoted = Quoted::parse(&packet[..28], IcmpFamily::V4).unwrap();
    assert_eq!(quoted.ports(), (38286, 5001));
    assert_eq!(quoted.seq(), Seq(tcp_header("[SYN] Seq=0 Win=64240").seq.0));
    let error = Quoted::parse(&packet[..27], IcmpFamily::V4).unwrap_err();
    assert_eq!(error.to_string(), "ICMP: length: need 8, got 7");
}
