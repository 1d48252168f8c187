//! ICMP errors about packets that are not carried (RFC 1812 §4.3.2, RFC 4443 §2.4).

use std::net::IpAddr;

use bytes::Bytes;
use polypath_wire::icmp::{self, IcmpFamily, IcmpHeader};

use super::InnerPacket;
use crate::packet::{answer, is_unicast, seen};

/// What every IPv4 host takes, and every IPv6 network carries, bytes.
const LEAST_MTU: [u32; 2] = [576, 1280];
/// Codes of Destination Unreachable: host (RFC 792), address (RFC 4443 §3.1).
const UNREACHABLE: [u8; 2] = [1, 3];

/// Why a packet is not carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Nothing leads there.
    Unreachable,
    /// The path carries packets of at most this size, bytes.
    TooBig(u32),
}

/// The ICMP error that tells the sender of `packet`, as if from where it was to go. None about ICMP errors, about later
/// fragments, or where a host is not one end of the packet and one host the other.
pub fn error_about(packet: &Bytes, trouble: Trouble) -> Option<Bytes> {
    let looked = InnerPacket::parse(packet).ok()?;
    let locators = seen(looked.src, looked.dst);
    if !looked.starts || !is_unicast(locators) || is_icmp_error(&looked) {
        return None;
    }
    let (family, n) = match (looked.src, looked.dst) {
        (IpAddr::V6(src), IpAddr::V6(dst)) => (IcmpFamily::V6 { src, dst }, 1),
        _ => (IcmpFamily::V4, 0),
    };
    let header = match trouble {
        Trouble::Unreachable => IcmpHeader::Unreachable { code: UNREACHABLE[n] },
        Trouble::TooBig(most) => IcmpHeader::TooBig { mtu: most.max(LEAST_MTU[n]) },
    };
    let quoted = &packet[..family.quote_len(looked.len)];
    answer(locators, header, family, quoted).ok()
}

/// Whether it is ICMP, but no echo.
fn is_icmp_error(looked: &InnerPacket) -> bool {
    let is_icmp = matches!(looked.protocol, icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6);
    is_icmp && looked.ports.is_none()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use polypath_wire::ipv4::Ipv4Header;
    use polypath_wire::ipv6::Ipv6Header;
    use polypath_wire::udp;

    use super::*;

    fn v4(protocol: u8, dst: [u8; 4], fragment_offset: u16) -> Bytes {
        let header = Ipv4Header::new(protocol, Ipv4Addr::new(10, 0, 0, 1), dst.into(), 1000);
        let mut packet = vec![0; 1020];
        Ipv4Header { fragment_offset, ..header }.emit(&mut packet).unwrap();
        packet[20] = 3;
        packet.into()
    }

    #[test]
    fn the_sender_hears_how_much_is_carried() {
        let error = error_about(&v4(udp::PROTOCOL, [10, 0, 0, 2], 0), Trouble::TooBig(900)).unwrap();
        let looked = InnerPacket::parse(&error).unwrap();
        assert_eq!((looked.src, looked.dst), ([10, 0, 0, 2].into(), [10, 0, 0, 1].into()));
        let (header, at) = IcmpHeader::parse(&error[20..], IcmpFamily::V4).unwrap();
        assert_eq!((header, error.len()), (IcmpHeader::TooBig { mtu: 900 }, 576));
        let quoted = icmp::Quoted::parse(&error[20 + at..], IcmpFamily::V4).unwrap();
        assert_eq!((quoted.protocol, quoted.dst), (udp::PROTOCOL, [10, 0, 0, 2].into()));
    }

    #[test]
    fn over_ipv6_it_hears_of_no_less_than_every_network_carries() {
        let [src, dst] = ["fd00::1", "fd00::2"].map(|ip| ip.parse::<Ipv6Addr>().unwrap());
        let mut packet = vec![0; 1400];
        Ipv6Header::new(udp::PROTOCOL, src, dst, 1360).emit(&mut packet).unwrap();
        let error = error_about(&packet.into(), Trouble::TooBig(1000)).unwrap();
        let (header, _) = IcmpHeader::parse(&error[40..], IcmpFamily::V6 { src: dst, dst: src }).unwrap();
        assert_eq!((header, error.len()), (IcmpHeader::TooBig { mtu: 1280 }, 1280));
    }

    #[test]
    fn nobody_hears_of_errors_of_later_fragments_and_of_what_went_to_many() {
        for packet in [
            v4(icmp::PROTOCOL_V4, [10, 0, 0, 2], 0),
            v4(udp::PROTOCOL, [10, 0, 0, 2], 5),
            v4(udp::PROTOCOL, [224, 0, 0, 1], 0),
            v4(udp::PROTOCOL, [255; 4], 0),
        ] {
            assert_eq!(error_about(&packet, Trouble::Unreachable), None);
        }
    }
}
