//! The entries of LOCATOR_SET (RFC 8046 §4, RFC 9028 §5.7).

use std::net::IpAddr;

use crate::error::WireError;
use crate::hip::cursor::{Cursor, address_bytes};

/// What a locator is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrafficType {
    /// HIP packets and user data.
    Both,
    /// HIP packets only.
    Signalling,
    /// User data only.
    Data,
    /// A number that we do not know.
    Other(u8),
}

/// One locator of the sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Locator {
    /// What it is for.
    pub traffic: TrafficType,
    /// Whether the sender prefers it.
    pub preferred: bool,
    /// How long it is good, seconds; `u32::MAX` for ever, never 0.
    pub lifetime: u32,
    /// Where it is.
    pub address: LocatorAddress,
}

/// The kinds of locators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocatorAddress {
    /// Type 0: an address.
    Ip(IpAddr),
    /// Type 1: an address with the SPI of the SA that ends there.
    Esp {
        /// The sender's inbound SPI.
        spi: u32,
        /// The address.
        address: IpAddr,
    },
    /// Type 2: a transport address (RFC 9028 §5.7).
    Transport {
        /// The port.
        port: u16,
        /// The transport protocol; 17 is UDP.
        protocol: u8,
        /// 0 host, 1 server reflexive, 2 peer reflexive, 3 relayed.
        kind: u8,
        /// The priority of the candidate.
        priority: u32,
        /// The sender's inbound SPI.
        spi: u32,
        /// The address.
        address: IpAddr,
    },
    /// A type, or a length of a type, that we do not know; whole 4-byte words, at most 255.
    Unknown {
        /// The type.
        kind: u8,
        /// The locator.
        bytes: Vec<u8>,
    },
}

impl Locator {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [traffic, kind, words, flags] = c.take()?;
        let lifetime = c.u32()?;
        let mut l = Cursor { what: c.what, rest: c.bytes(usize::from(words) * 4)? };
        let address = match (kind, words) {
            (0, 4) => LocatorAddress::Ip(l.address()?),
            (1, 5) => LocatorAddress::Esp { spi: l.u32()?, address: l.address()? },
            (2, 7) => LocatorAddress::Transport {
                port: l.u16()?,
                protocol: l.u8()?,
                kind: l.u8()?,
                priority: l.u32()?,
                spi: l.u32()?,
                address: l.address()?,
            },
            _ => LocatorAddress::Unknown { kind, bytes: l.rest.to_vec() },
        };
        Ok(Self { traffic: traffic.into(), preferred: flags & 1 == 1, lifetime, address })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let (kind, words) = match &self.address {
            LocatorAddress::Ip(_) => (0, 4),
            LocatorAddress::Esp { .. } => (1, 5),
            LocatorAddress::Transport { .. } => (2, 7),
            LocatorAddress::Unknown { kind, bytes } => (*kind, (bytes.len() / 4) as u8),
        };
        out.extend_from_slice(&[self.traffic.into(), kind, words, self.preferred.into()]);
        out.extend_from_slice(&self.lifetime.to_be_bytes());
        match &self.address {
            LocatorAddress::Ip(address) => out.extend_from_slice(&address_bytes(*address)),
            LocatorAddress::Esp { spi, address } => {
                out.extend_from_slice(&spi.to_be_bytes());
                out.extend_from_slice(&address_bytes(*address));
            }
            LocatorAddress::Transport { port, protocol, kind, priority, spi, address } => {
                out.extend_from_slice(&port.to_be_bytes());
                out.extend_from_slice(&[*protocol, *kind]);
                out.extend_from_slice(&priority.to_be_bytes());
                out.extend_from_slice(&spi.to_be_bytes());
                out.extend_from_slice(&address_bytes(*address));
            }
            LocatorAddress::Unknown { bytes, .. } => out.extend_from_slice(bytes),
        }
    }
}

impl LocatorAddress {
    /// The address, of a type that we know.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(address) | Self::Esp { address, .. } | Self::Transport { address, .. } => Some(*address),
            Self::Unknown { .. } => None,
        }
    }
    /// The SPI bound to it.
    pub fn spi(&self) -> Option<u32> {
        match self {
            Self::Esp { spi, .. } | Self::Transport { spi, .. } => Some(*spi),
            Self::Ip(_) | Self::Unknown { .. } => None,
        }
    }
}

impl From<u8> for TrafficType {
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Both,
            1 => Self::Signalling,
            2 => Self::Data,
            n => Self::Other(n),
        }
    }
}
impl From<TrafficType> for u8 {
    fn from(traffic: TrafficType) -> Self {
        match traffic {
            TrafficType::Both => 0,
            TrafficType::Signalling => 1,
            TrafficType::Data => 2,
            TrafficType::Other(n) => n,
        }
    }
}
