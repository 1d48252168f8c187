//! What a queue discipline sees of an IP packet, and how it marks one.

use polypath_hop::Label;
use polypath_wire::checksum;

const CE: u8 = 0b11;
const NOT_ECT: u8 = 0b00;
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// Where the fields of an IP header lie.
struct Fields {
    ecn: u8,
    protocol: u8,
    addresses: std::ops::Range<usize>,
    payload: usize,
}

/// The label of an IP packet that takes `size` bytes on the wire.
pub(super) fn label(packet: &[u8], size: u32) -> Label {
    let Some(fields) = fields(packet) else { return size.into() };
    let ports = packet.get(fields.payload..fields.payload + 4).unwrap_or_default();
    let identity = packet[fields.addresses].iter().chain([&fields.protocol]).chain(ports);
    // FNV-1a.
    let flow = identity.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Label { size, flow, ecn_capable: fields.ecn != NOT_ECT }
}

/// Sets Congestion Experienced (RFC 3168 §5), with IPv4's checksum.
pub(super) fn mark(packet: &mut [u8]) {
    match fields(packet) {
        Some(_) if packet[0] >> 4 == 4 => {
            let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            let (before, sum) = (word(packet, 0), word(packet, CHECKSUM.start));
            packet[1] |= CE;
            let sum = checksum::update(sum, before, word(packet, 0));
            packet[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        }
        Some(_) => packet[1] |= CE << 4,
        None => {}
    }
}

fn fields(packet: &[u8]) -> Option<Fields> {
    match packet.first()? >> 4 {
        4 => {
            let payload = usize::from(packet[0] & 0xf) * 4;
            (packet.len() >= payload && payload >= 20).then(|| Fields {
                ecn: packet[1] & CE,
                protocol: packet[9],
                addresses: 12..20,
                payload,
            })
        }
        6 if packet.len() >= 40 => {
            Some(Fields { ecn: packet[1] >> 4 & CE, protocol: packet[6], addresses: 8..40, payload: 40 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use polypath_wire::ipv4::{Ipv4Header, Ipv4View};
    use polypath_wire::ipv6::Ipv6Header;

    use super::*;

    fn v4(ports: [u8; 4], traffic_class: u8) -> Vec<u8> {
        let mut packet = vec![0; 20];
        let header = Ipv4Header::new(6, Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST, 4);
        packet.extend(ports);
        Ipv4Header { traffic_class, ..header }.emit(&mut packet).unwrap();
        packet
    }

    #[test]
    fn packets_of_one_flow_have_one_number() {
        let flow = |packet: &[u8]| label(packet, 24).flow;
        assert_eq!(flow(&v4([1, 2, 3, 4], 0)), flow(&v4([1, 2, 3, 4], 0b10)));
        assert_ne!(flow(&v4([1, 2, 3, 4], 0)), flow(&v4([1, 2, 3, 5], 0)));
    }

    #[test]
    fn a_mark_sets_both_ecn_bits_and_keeps_the_checksum_right() {
        let mut packet = v4([1, 2, 3, 4], 0b1011_1010);
        assert!(label(&packet, 24).ecn_capable && !label(&v4([0; 4], 0b1011_1000), 24).ecn_capable);
        mark(&mut packet);
        assert_eq!(packet[1], 0b1011_1011);
        Ipv4View::new(&packet).unwrap().verify().unwrap();
        let mut packet = vec![0; 40];
        Ipv6Header::new(6, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 0).emit(&mut packet).unwrap();
        packet[1] |= 0b10 << 4;
        assert!(label(&packet, 40).ecn_capable);
        mark(&mut packet);
        assert_eq!(packet[1] >> 4 & CE, CE);
    }

    #[test]
    fn what_is_no_ip_packet_has_a_size_only() {
        for packet in [&[][..], &[0x45], &[0x44; 60], &[0x60; 39], &[0xff; 100]] {
            assert_eq!(label(packet, 7), Label::from(7));
            mark(&mut packet.to_vec());
        }
    }
}
