//! Packets that are treated alike.

use std::ops::RangeInclusive;

use polypath_wire::{tcp, udp};

use crate::inner::InnerPacket;

/// Packets that are treated alike: all that it names must fit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PacketClass {
    /// Their differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// Their protocol is one of these; empty: any.
    pub protocols: Vec<u8>,
    /// They are of TCP or UDP, and either port is in one of these; empty: any packet.
    pub ports: Vec<RangeInclusive<u16>>,
}

impl PacketClass {
    /// Whether `packet` is one of them. A fragment has no ports.
    pub fn contains(&self, packet: &InnerPacket) -> bool {
        let of_protocol = self.protocols.is_empty() || self.protocols.contains(&packet.protocol);
        of_protocol && self.dscp.is_none_or(|dscp| dscp == packet.dscp()) && self.has_port(packet)
    }

    fn has_port(&self, packet: &InnerPacket) -> bool {
        let has_ports = [tcp::PROTOCOL, udp::PROTOCOL].contains(&packet.protocol);
        let ports = packet.ports.filter(|_| has_ports);
        let either = |(src, dst)| self.ports.iter().any(|range| range.contains(&src) || range.contains(&dst));
        self.ports.is_empty() || ports.is_some_and(either)
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::icmp;

    use super::*;

    fn packet(protocol: u8, ports: Option<(u16, u16)>, dscp: u8) -> InnerPacket {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        let (opens, traffic_class, fragment) = (None, dscp << 2 | 1, ports.is_none());
        InnerPacket { src, dst, protocol, ports, opens, traffic_class, fragment, starts: true, len: 60 }
    }

    #[test]
    fn all_that_a_class_names_must_fit_and_either_port_does() {
        let voice = PacketClass { dscp: Some(46), ..PacketClass::default() };
        assert!(voice.contains(&packet(udp::PROTOCOL, None, 46)));
        assert!(!voice.contains(&packet(udp::PROTOCOL, None, 40)));
        let ports = vec![5060..=5060, 10_000..=20_000];
        let calls = PacketClass { protocols: vec![udp::PROTOCOL], ports, ..PacketClass::default() };
        for (ports, contained) in
            [((5060, 7), true), ((7, 20_000), true), ((9999, 5061), false), ((20_001, 1), false)]
        {
            assert_eq!(calls.contains(&packet(udp::PROTOCOL, Some(ports), 0)), contained, "{ports:?}");
            assert!(!calls.contains(&packet(tcp::PROTOCOL, Some(ports), 0)));
        }
        assert!(!calls.contains(&packet(udp::PROTOCOL, None, 0)), "a fragment");
        let any = PacketClass { protocols: Vec::new(), ..calls };
        assert!(!any.contains(&packet(icmp::PROTOCOL_V4, Some((5060, 5060)), 0)), "an echo's identifier");
    }
}
