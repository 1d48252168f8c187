//! What stands inside: BEET mode for traffic between HITs (RFC 7402 §3.1 and appendix B) and tunnel
//! mode for routed traffic (RFC 4303 §3.1.2).

use std::net::Ipv6Addr;

use polypath_wire::WireError;

/// Next header of an IPv4 packet in a tunnel.
pub const IPV4: u8 = 4;
/// Next header of an IPv6 packet in a tunnel.
pub const IPV6: u8 = 41;

const IPV6_HEADER: usize = 40;
const IPV4_HEADER: usize = 20;

/// The inner addresses of a BEET association, known to both ends and never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beet {
    /// Our HIT.
    pub local: Ipv6Addr,
    /// The peer's HIT.
    pub remote: Ipv6Addr,
}

/// Why a packet cannot travel in an association, or what it delivered is not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModeError {
    /// Not an IP packet.
    #[error(transparent)]
    Malformed(#[from] WireError),
    /// Not between the HITs of the association.
    #[error("packet from {src} to {dst} does not belong to the association")]
    OtherAddresses {
        /// Source of the packet.
        src: Ipv6Addr,
        /// Destination of the packet.
        dst: Ipv6Addr,
    },
    /// Neither IPv4 nor IPv6 in a tunnel.
    #[error("next header {0} is not IP")]
    NotIp(u8),
}

impl Beet {
    /// What of `packet`, from our HIT to the peer's, is sealed: its next header and all that
    /// follows the fixed IPv6 header. What follows the packet in the slice is left out.
    pub fn strip<'a>(&self, packet: &'a [u8]) -> Result<(u8, &'a [u8]), ModeError> {
        let packet = ip_packet(packet)?;
        if packet[0] >> 4 != 6 {
            return Err(ModeError::NotIp(IPV4));
        }
        let (src, dst) = (address(packet, 8), address(packet, 24));
        if (src, dst) != (self.local, self.remote) {
            return Err(ModeError::OtherAddresses { src, dst });
        }
        Ok((packet[6], &packet[IPV6_HEADER..]))
    }

    /// The IPv6 header to put before an opened payload, from the peer's HIT to ours. Hop limit and
    /// traffic class are the outer header's. `None` if the payload is longer than 65,535 bytes.
    pub fn header(
        &self,
        payload_len: usize,
        next_header: u8,
        hop_limit: u8,
        traffic_class: u8,
    ) -> Option<[u8; IPV6_HEADER]> {
        let mut header = [0; IPV6_HEADER];
        header[0] = 0x60 | traffic_class >> 4;
        header[1] = traffic_class << 4;
        header[4..6].copy_from_slice(&u16::try_from(payload_len).ok()?.to_be_bytes());
        header[6..8].copy_from_slice(&[next_header, hop_limit]);
        header[8..24].copy_from_slice(&self.remote.octets());
        header[24..].copy_from_slice(&self.local.octets());
        Some(header)
    }
}

/// The next header under which `packet` travels in a tunnel.
pub fn tunnel_next_header(packet: &[u8]) -> Result<u8, ModeError> {
    Ok(if ip_packet(packet)?[0] >> 4 == 4 { IPV4 } else { IPV6 })
}

/// The IP packet that came out of a tunnel, without the bytes that only hid its length (RFC 4303 §2.7).
pub fn tunnel_packet(next_header: u8, payload: &[u8]) -> Result<&[u8], ModeError> {
    let version = match next_header {
        IPV4 => 4,
        IPV6 => 6,
        other => return Err(ModeError::NotIp(other)),
    };
    let packet = ip_packet(payload)?;
    if packet[0] >> 4 != version {
        return Err(malformed("version", usize::from(version), usize::from(packet[0] >> 4)));
    }
    Ok(packet)
}

/// The two ECN bits of a decapsulated packet from those of the inner and of the outer header, or
/// `None` if it must be dropped (RFC 6040 §4.2, figure 4). The outer header copies them from the
/// inner one on the way in.
pub fn decapsulated_ecn(inner: u8, outer: u8) -> Option<u8> {
    const NOT_ECT: u8 = 0b00;
    const ECT_1: u8 = 0b01;
    const ECT_0: u8 = 0b10;
    const CE: u8 = 0b11;
    match (inner & 0b11, outer & 0b11) {
        (NOT_ECT, CE) => None,
        (NOT_ECT, _) => Some(NOT_ECT),
        (_, CE) => Some(CE),
        (ECT_0, ECT_1) => Some(ECT_1),
        (inner, _) => Some(inner),
    }
}

/// `bytes` cut to the length that its IP header gives.
fn ip_packet(bytes: &[u8]) -> Result<&[u8], ModeError> {
    let field = |at: usize| usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
    let version = bytes.first().map_or(0, |b| b >> 4);
    let (shortest, total) = match version {
        4 if bytes.len() >= IPV4_HEADER => (IPV4_HEADER, field(2)),
        6 if bytes.len() >= IPV6_HEADER => (IPV6_HEADER, IPV6_HEADER + field(4)),
        4 | 6 => return Err(malformed("header", IPV4_HEADER, bytes.len())),
        _ => return Err(malformed("version", 4, usize::from(version))),
    };
    if total < shortest {
        return Err(malformed("total length", shortest, total));
    }
    bytes.get(..total).ok_or_else(|| malformed("total length", total, bytes.len()))
}

fn address(packet: &[u8], at: usize) -> Ipv6Addr {
    let octets: [u8; 16] = packet[at..at + 16].try_into().expect("ip_packet checked the header");
    octets.into()
}

fn malformed(field: &'static str, need: usize, got: usize) -> ModeError {
    ModeError::Malformed(WireError { what: "inner IP", field, need: need as u64, got: got as u64 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Beet = Beet {
        local: Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 1),
        remote: Ipv6Addr::new(0x2001, 0x20, 0, 0, 0, 0, 0, 2),
    };
    const B: Beet = Beet { local: A.remote, remote: A.local };

    #[test]
    fn beet_takes_off_what_it_puts_back() {
        let payload = b"whole segment";
        let mut packet = B.header(payload.len(), 6, 64, 0xb8).unwrap().to_vec();
        packet.extend_from_slice(payload);
        packet.push(0);
        assert_eq!(A.strip(&packet), Ok((6, &payload[..])));
        assert!(matches!(B.strip(&packet), Err(ModeError::OtherAddresses { .. })));
        assert_eq!(packet[..2], [0x6b, 0x80]);
    }

    #[test]
    fn a_tunnel_cuts_what_hid_the_length() {
        let mut v4 = [0u8; 48];
        v4[0] = 0x45;
        v4[3] = 28;
        assert_eq!(tunnel_next_header(&v4), Ok(IPV4));
        assert_eq!(tunnel_packet(IPV4, &v4), Ok(&v4[..28]));
        assert!(tunnel_packet(IPV6, &v4).is_err());
        assert_eq!(tunnel_packet(6, &v4), Err(ModeError::NotIp(6)));
        v4[3] = 19;
        assert!(tunnel_packet(IPV4, &v4).is_err());
    }

    #[test]
    fn congestion_is_not_forgotten() {
        // RFC 6040, figure 4: rows are the inner, columns the outer field.
        let figure_4 = [
            [Some(0), Some(0), Some(0), None],
            [Some(1), Some(1), Some(1), Some(3)],
            [Some(2), Some(1), Some(2), Some(3)],
            [Some(3), Some(3), Some(3), Some(3)],
        ];
        for (inner, row) in figure_4.into_iter().enumerate() {
            for (outer, expected) in row.into_iter().enumerate() {
                assert_eq!(decapsulated_ecn(inner as u8, outer as u8), expected, "{inner} {outer}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, next_header: u8) {
            let _ = A.strip(&bytes);
            let _ = tunnel_next_header(&bytes);
            let _ = tunnel_packet(next_header, &bytes);
        }
    }
}
