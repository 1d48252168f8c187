//! Classes of packets as people write them.

use std::ops::RangeInclusive;

use polypath_endpoint::PacketClass;
use polypath_wire::{icmp, tcp, udp};
use serde::{Deserialize, Serialize};

use super::wording::takes;

/// Packets that all of this fits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Class {
    /// Differentiated services code point, 0 to 63: 46 is expedited forwarding (RFC 3246), as of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Protocol"))]
    pub protocol: Option<Protocol>,
    /// Ports of TCP or UDP, at either end; empty: any packet.
    pub ports: Vec<Ports>,
}

/// A protocol above IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Transmission control.
    Tcp,
    /// User datagrams.
    Udp,
    /// Control messages of IPv4 and IPv6.
    Icmp,
}

/// A port, or a range as text: `"10000-20000"`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Ports(pub RangeInclusive<u16>);

#[derive(Deserialize, Serialize)]
#[serde(untagged, expecting = "a port is a number from 0 to 65535, a range of them a text: \"10000-20000\"")]
enum Written {
    Port(u16),
    Range(String),
}

impl TryFrom<Written> for Ports {
    type Error = String;
    fn try_from(written: Written) -> Result<Self, String> {
        let range = match written {
            Written::Port(port) => return Ok(Self(port..=port)),
            Written::Range(text) => text,
        };
        let ends = range.split_once('-').unwrap_or((&range, &range));
        match (ends.0.trim().parse(), ends.1.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("\"{range}\" is no range of ports: write for example \"10000-20000\"")),
        }
    }
}

impl From<Ports> for Written {
    fn from(ports: Ports) -> Self {
        match ports.0.into_inner() {
            (first, last) if first == last => Self::Port(first),
            (first, last) => Self::Range(format!("{first}-{last}")),
        }
    }
}

impl Class {
    /// What is wrong with it, at which key, and what to write.
    pub(super) fn wrong(&self) -> Option<(&'static str, &'static str, &'static str)> {
        if *self == Self::default() {
            return Some(("", "every packet is of this class", "name a dscp, a protocol or ports"));
        }
        if self.dscp.is_some_and(|dscp| !takes("lane.duplicate.dscp", dscp.into())) {
            return Some(("dscp", "above 63", "46 is expedited forwarding, as of calls"));
        }
        let no_ports = self.protocol == Some(Protocol::Icmp) && !self.ports.is_empty();
        no_ports.then_some(("ports", "packets of ICMP have no ports", "leave out ports, or write \"udp\""))
    }

    /// As the packet lane has it.
    pub(crate) fn packets(&self) -> PacketClass {
        let protocols = self.protocol.map(|protocol| match protocol {
            Protocol::Tcp => vec![tcp::PROTOCOL],
            Protocol::Udp => vec![udp::PROTOCOL],
            Protocol::Icmp => vec![icmp::PROTOCOL_V4, icmp::PROTOCOL_V6],
        });
        let ports = self.ports.iter().map(|ports| ports.0.clone()).collect();
        PacketClass { dscp: self.dscp, protocols: protocols.unwrap_or_default(), ports }
    }
}
