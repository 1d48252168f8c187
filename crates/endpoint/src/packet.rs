//! Segments in bytes: as IP packets, and what else an ordinary host does with a packet.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use polypath_transport::{CloseReason, Ports, Segment};
use polypath_wire::icmp::{self, IcmpFamily, IcmpHeader, Quoted};
use polypath_wire::ipv4::{Ipv4Header, Ipv4View};
use polypath_wire::ipv6::{Ipv6Header, Ipv6View};
use polypath_wire::tcp::{TcpFlags, TcpHeader};
use polypath_wire::{Checksum, Seq, WireError, tcp};

use crate::frame::{decode, encode};
use crate::paths::Locators;

/// Segment size of a peer that names none over IPv6 (RFC 9293 §3.7.1); the transport's own default is for IPv4.
const DEFAULT_MSS_V6: u16 = 1220;

/// What an IP packet turned out to be.
#[derive(Clone, Debug)]
pub enum Packet {
    /// A TCP segment.
    Segment {
        /// Between which addresses, as we see it; the ports are 0.
        locators: Locators,
        /// The segment; its data shares memory with the packet.
        segment: Segment,
    },
    /// An echo request (RFC 1122 §3.2.2.6).
    Echo {
        /// The packet that answers it.
        reply: Bytes,
    },
    /// A router says that a segment of ours was too big (RFC 1191, RFC 8201).
    TooBig {
        /// Between which addresses, as we see it.
        locators: Locators,
        /// The ports of the segment, as we see them.
        ports: Ports,
        /// Its sequence number.
        seq: Seq,
        /// Largest packet for the next hop, bytes; 0 if the message does not say.
        mtu: u32,
    },
    /// A router or a host says that a segment of ours cannot be delivered (RFC 9293 §3.9.2.2).
    Unreachable {
        /// Between which addresses, as we see it.
        locators: Locators,
        /// The ports of the segment, as we see them.
        ports: Ports,
        /// Its sequence number.
        seq: Seq,
        /// What this means for a connection that it opens.
        reason: CloseReason,
    },
    /// A fragment, of another protocol, or not from one host to one: nothing for us.
    Other,
}

/// What the IP packet `bytes` is. All checksums are verified.
pub fn decode_packet(bytes: &Bytes) -> Result<Packet, WireError> {
    decode_by(bytes, Checksum::between)
}

/// The same for a packet of this host's kernel that has not left it: nobody has computed the checksum of its segment.
pub fn decode_local(bytes: &Bytes) -> Result<Packet, WireError> {
    decode_by(bytes, |_, _| Some(Checksum::Unused))
}

/// `checksum`: how the checksum of a segment between two addresses is verified.
fn decode_by(
    bytes: &Bytes,
    checksum: impl Fn(IpAddr, IpAddr) -> Option<Checksum>,
) -> Result<Packet, WireError> {
    let between =
        |locators: Locators| checksum(locators.remote.ip(), locators.local.ip()).unwrap_or(Checksum::Unused);
    match bytes.first().map(|b| b >> 4) {
        Some(6) => decode_v6(bytes, between),
        _ => decode_v4(bytes, between),
    }
}

/// Writes `segment` as an IP packet to the start of `out`; returns its length.
pub fn encode_packet(locators: &Locators, segment: &Segment, out: &mut [u8]) -> Result<usize, WireError> {
    let len = segment.header.len() as u64 + segment.payload.len();
    let len = u16::try_from(len).map_err(|_| error("payload length", 0xffff, len))?;
    let (at, checksum) = emit_header(locators, tcp::PROTOCOL, len, out)?;
    Ok(at + encode(segment, checksum, &mut out[at..])?)
}

/// Writes the headers of a TCP packet with `payload` bytes of data, for a kernel that completes its checksum: the field
/// holds the sum of the pseudo header (RFC 9293 §3.1). Returns where the TCP header begins and where it ends.
pub fn encode_headers(
    locators: &Locators,
    header: &TcpHeader,
    payload: usize,
    out: &mut [u8],
) -> Result<(usize, usize), WireError> {
    let len = (header.len() + payload) as u64;
    let len = u16::try_from(len).map_err(|_| error("payload length", 0xffff, len))?;
    let (at, pseudo) = emit_header(locators, tcp::PROTOCOL, len, out)?;
    let end = at + header.emit(&mut out[at..], Checksum::Unused)?;
    let sum = pseudo.partial(tcp::PROTOCOL, u32::from(len));
    out[at + tcp::CHECKSUM_AT..at + tcp::CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    Ok((at, end))
}

/// The ICMP message with the code of the family that `segment`, which came from the remote end of `locators`, cannot be
/// delivered.
pub(crate) fn unreachable(locators: &Locators, segment: &Segment, [v4, v6]: [u8; 2]) -> Option<Bytes> {
    let mut quoted = vec![0; MAX_IP_HEADER + segment.header.len()];
    let bare = Segment { header: segment.header.clone(), ..Segment::default() };
    let len = encode_packet(&locators.reversed(), &bare, &mut quoted).ok()?;
    let (family, code) = match (locators.remote.ip(), locators.local.ip()) {
        (IpAddr::V6(src), IpAddr::V6(dst)) => (IcmpFamily::V6 { src, dst }, v6),
        _ => (IcmpFamily::V4, v4),
    };
    answer(*locators, IcmpHeader::Unreachable { code }, family, &quoted[..len]).ok()
}

/// Codes of Destination Unreachable over IPv4 and IPv6 (RFC 792; RFC 4443 §3.1): nothing leads to the network, nobody has the
/// address, nobody listens on the port.
pub(crate) const NETWORK: [u8; 2] = [0, 0];
pub(crate) const HOST: [u8; 2] = [1, 3];
const PORT: [u8; 2] = [3, 4];

/// What Destination Unreachable means for a connection being opened; all other codes mean the host.
fn reason(code: u8, locators: &Locators) -> CloseReason {
    let family = usize::from(locators.remote.is_ipv6());
    match code {
        _ if code == PORT[family] => CloseReason::Refused,
        _ if code == NETWORK[family] => CloseReason::NetUnreachable,
        _ => CloseReason::Unreachable,
    }
}

fn decode_v4(bytes: &Bytes, between: impl Fn(Locators) -> Checksum) -> Result<Packet, WireError> {
    let view = Ipv4View::new(bytes)?;
    view.verify()?;
    let locators = seen(view.src().into(), view.dst().into());
    match view.protocol() {
        _ if view.is_fragment() => Ok(Packet::Other),
        tcp::PROTOCOL => decode_tcp(locators, between(locators), bytes, view.payload()),
        icmp::PROTOCOL_V4 => decode_icmp(locators, IcmpFamily::V4, view.payload()),
        _ => Ok(Packet::Other),
    }
}

fn decode_v6(bytes: &Bytes, between: impl Fn(Locators) -> Checksum) -> Result<Packet, WireError> {
    let view = Ipv6View::new(bytes)?;
    let (src, dst) = (view.src(), view.dst());
    let locators = seen(src.into(), dst.into());
    match view.upper().protocol {
        _ if view.upper().fragment.is_some() => Ok(Packet::Other),
        tcp::PROTOCOL => decode_tcp(locators, between(locators), bytes, view.payload()),
        icmp::PROTOCOL_V6 => decode_icmp(locators, IcmpFamily::V6 { src, dst }, view.payload()),
        _ => Ok(Packet::Other),
    }
}

fn decode_tcp(
    locators: Locators,
    checksum: Checksum,
    packet: &Bytes,
    payload: &[u8],
) -> Result<Packet, WireError> {
    let mut segment = decode(&packet.slice_ref(payload), checksum)?;
    if !is_unicast(locators) {
        return Ok(Packet::Other); // RFC 9293 §3.9.2.3
    }
    let header = &mut segment.header;
    if header.flags.contains(TcpFlags::SYN) && locators.remote.is_ipv6() {
        header.options.mss.get_or_insert(DEFAULT_MSS_V6);
    }
    Ok(Packet::Segment { locators, segment })
}

fn decode_icmp(locators: Locators, family: IcmpFamily, message: &[u8]) -> Result<Packet, WireError> {
    let (header, body_at) = IcmpHeader::parse(message, family)?;
    match header {
        IcmpHeader::EchoRequest { id, seq } if is_unicast(locators) => {
            let reply = IcmpHeader::EchoReply { id, seq };
            Ok(Packet::Echo { reply: answer(locators, reply, family, &message[body_at..])? })
        }
        IcmpHeader::TooBig { .. } | IcmpHeader::Unreachable { .. } => {
            Ok(of_ours(header, Quoted::parse(&message[body_at..], family)?))
        }
        _ => Ok(Packet::Other),
    }
}

/// What `header` says of the packet it quotes, if that was a segment.
fn of_ours(header: IcmpHeader, quoted: Quoted) -> Packet {
    let ((local, remote), seq) = (quoted.ports(), quoted.seq());
    let (locators, ports) = (seen(quoted.dst, quoted.src), Ports { local, remote });
    match header {
        _ if quoted.protocol != tcp::PROTOCOL => Packet::Other,
        IcmpHeader::TooBig { mtu } => Packet::TooBig { locators, ports, seq, mtu },
        IcmpHeader::Unreachable { code } => {
            Packet::Unreachable { locators, ports, seq, reason: reason(code, &locators) }
        }
        _ => Packet::Other,
    }
}

/// The packet with the ICMP message `header` and `body` that goes back where one came from.
pub(crate) fn answer(
    locators: Locators,
    header: IcmpHeader,
    family: IcmpFamily,
    body: &[u8],
) -> Result<Bytes, WireError> {
    let (protocol, family) = match family {
        IcmpFamily::V4 => (icmp::PROTOCOL_V4, family),
        IcmpFamily::V6 { src, dst } => (icmp::PROTOCOL_V6, IcmpFamily::V6 { src: dst, dst: src }),
    };
    let len = icmp::HEADER_LEN + body.len();
    let mut packet = vec![0; MAX_IP_HEADER + len];
    let len16 = u16::try_from(len).map_err(|_| error("payload length", 0xffff, len as u64))?;
    let (at, _) = emit_header(&locators, protocol, len16, &mut packet)?;
    packet.truncate(at + len);
    packet[at + icmp::HEADER_LEN..].copy_from_slice(body);
    header.emit(&mut packet[at..], family)?;
    Ok(packet.into())
}

const MAX_IP_HEADER: usize = 40;

/// Writes an IP header from our end to the peer's; returns its length and what a transport
/// checksum covers beside the message.
fn emit_header(
    locators: &Locators,
    protocol: u8,
    payload_len: u16,
    out: &mut [u8],
) -> Result<(usize, Checksum), WireError> {
    match (locators.local.ip(), locators.remote.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = Ipv4Header::new(protocol, src, dst, payload_len);
            Ok((header.emit(out)?, header.pseudo_header()))
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let header = Ipv6Header::new(protocol, src, dst, payload_len);
            Ok((header.emit(out)?, header.pseudo_header()))
        }
        (local, remote) => Err(error("address family", bits(local), bits(remote))),
    }
}

/// Locators of a packet from `src` to `dst`, as its receiver sees them.
pub(crate) fn seen(src: IpAddr, dst: IpAddr) -> Locators {
    Locators { local: SocketAddr::new(dst, 0), remote: SocketAddr::new(src, 0) }
}

pub(crate) fn is_unicast(locators: Locators) -> bool {
    [locators.local.ip(), locators.remote.ip()].into_iter().all(|ip| {
        let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
        !(broadcast || ip.is_multicast() || ip.is_unspecified())
    })
}

fn bits(ip: IpAddr) -> u64 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn error(field: &'static str, need: u64, got: u64) -> WireError {
    WireError { what: "IP", field, need, got }
}

#[cfg(test)]
mod tests {
    use polypath_transport::Pattern;

    use super::*;

    const PAIRS: [(&str, &str); 2] = [("10.0.0.1:0", "10.0.0.2:0"), ("[fd00::1]:0", "[fd00::2]:0")];

    fn locators((local, remote): (&str, &str)) -> Locators {
        Locators { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn segment() -> Segment {
        let mut header =
            TcpHeader { src_port: 1, dst_port: 2, seq: Seq(3), ack: Seq(4), ..Default::default() };
        header.flags = TcpFlags::ACK;
        Segment { header, payload: Pattern { key: 1, offset: 0, len: 999 }.into(), ..Segment::default() }
    }

    fn packet(locators: &Locators) -> Vec<u8> {
        packet_of(locators, &segment())
    }

    fn packet_of(locators: &Locators, segment: &Segment) -> Vec<u8> {
        let mut out = vec![0; 1500];
        let len = encode_packet(locators, segment, &mut out).unwrap();
        out.truncate(len);
        out
    }

    #[test]
    fn a_packet_survives_the_round_trip() {
        for pair in PAIRS {
            let ours = locators(pair);
            let decoded = decode_packet(&packet(&ours).into()).unwrap();
            let Packet::Segment { locators, segment: back } = decoded else { panic!("{decoded:?}") };
            assert_eq!(locators, ours.reversed());
            assert_eq!(back.header, segment().header);
            assert!(back.payload.same_bytes(&segment().payload));
        }
    }

    /// RFC 9293 §3.7.1 (MUST-15).
    #[test]
    fn a_syn_without_a_segment_size_means_the_default_of_its_family() {
        for (pair, default) in PAIRS.into_iter().zip([None, Some(1220)]) {
            for (flags, told, expected) in [
                (TcpFlags::SYN, None, default),
                (TcpFlags::SYN, Some(9000), Some(9000)),
                (TcpFlags::ACK, None, None),
            ] {
                let mut segment = Segment::default();
                (segment.header.flags, segment.header.options.mss) = (flags, told);
                let packet = packet_of(&locators(pair), &segment);
                let Ok(Packet::Segment { segment, .. }) = decode_packet(&packet.into()) else { panic!() };
                assert_eq!(segment.header.options.mss, expected);
            }
        }
    }

    /// RFC 9293 §3.9.2.3 (MUST-57, MUST-63).
    #[test]
    fn segments_from_and_to_many_hosts_are_nothing_for_us() {
        for (from, to) in [
            ("224.0.0.1:0", "10.0.0.2:0"),
            ("255.255.255.255:0", "10.0.0.2:0"),
            ("0.0.0.0:0", "10.0.0.2:0"),
            ("10.0.0.1:0", "255.255.255.255:0"),
            ("[ff02::1]:0", "[fd00::2]:0"),
            ("[fd00::1]:0", "[ff02::1]:0"),
        ] {
            let decoded = decode_packet(&packet(&locators((from, to))).into()).unwrap();
            assert!(matches!(decoded, Packet::Other), "{from} {to}: {decoded:?}");
        }
    }

    #[test]
    fn damaged_packets_are_errors() {
        for pair in PAIRS {
            let mut bytes = packet(&locators(pair));
            assert!(decode_packet(&Bytes::copy_from_slice(&bytes[..bytes.len() - 1])).is_err());
            *bytes.last_mut().unwrap() ^= 0x10;
            assert!(decode_packet(&bytes.into()).unwrap_err().is_checksum());
        }
        assert!(decode_packet(&Bytes::new()).is_err());
    }

    #[test]
    fn an_echo_request_is_answered_with_its_data() {
        for pair in PAIRS {
            let theirs = locators(pair);
            let family = match (theirs.local.ip(), theirs.remote.ip()) {
                (IpAddr::V6(src), IpAddr::V6(dst)) => IcmpFamily::V6 { src: dst, dst: src },
                _ => IcmpFamily::V4,
            };
            // `answer` swaps the addresses of the family: they are those of a request to us.
            let request =
                answer(theirs, IcmpHeader::EchoRequest { id: 5, seq: 6 }, family, b"hello").unwrap();
            let Packet::Echo { reply } = decode_packet(&request).unwrap() else { panic!("no echo") };
            let again = decode_packet(&reply).unwrap();
            assert!(matches!(again, Packet::Other), "{again:?}");
            assert!(reply.ends_with(b"hello"));
            let (from, to) = (request.len() - 13, reply.len() - 13);
            assert_eq!(reply[to + 4..], request[from + 4..], "identifier, sequence number and data");
        }
    }

    /// RFC 1122 §4.2.3.9: a closed port is a refusal, as it is to the kernel's TCP.
    #[test]
    fn unreachable_says_whether_it_is_the_port_the_network_or_the_host() {
        for pair in PAIRS {
            let ours = locators(pair);
            for (codes, expected) in [
                (PORT, CloseReason::Refused),
                (NETWORK, CloseReason::NetUnreachable),
                (HOST, CloseReason::Unreachable),
                ([13, 1], CloseReason::Unreachable),
            ] {
                let message = unreachable(&ours.reversed(), &segment(), codes).unwrap();
                let decoded = decode_packet(&message).unwrap();
                let Packet::Unreachable { locators, ports, seq, reason } = decoded else {
                    panic!("{decoded:?}")
                };
                assert_eq!(
                    (locators, ports, seq, reason),
                    (ours, Ports { local: 1, remote: 2 }, Seq(3), expected)
                );
            }
        }
    }

    #[test]
    fn too_big_names_the_segment_it_is_about() {
        for pair in PAIRS {
            let ours = locators(pair);
            let family = match (ours.local.ip(), ours.remote.ip()) {
                (IpAddr::V6(src), IpAddr::V6(dst)) => IcmpFamily::V6 { src, dst },
                _ => IcmpFamily::V4,
            };
            let message =
                answer(ours.reversed(), IcmpHeader::TooBig { mtu: 1300 }, family, &packet(&ours)).unwrap();
            let decoded = decode_packet(&message).unwrap();
            let Packet::TooBig { locators, ports, seq, mtu } = decoded else { panic!("{decoded:?}") };
            assert_eq!((locators, seq, mtu), (ours, Seq(3), 1300));
            assert_eq!(ports, Ports { local: 1, remote: 2 });
        }
    }
}
