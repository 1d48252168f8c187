//! NAT traversal (RFC 9028 §5, RFC 5770 §5) and registration (RFC 8003 §4).

use std::net::IpAddr;

use crate::error::WireError;
use crate::hip::cursor::{Cursor, address_bytes};

/// NAT_TRAVERSAL_MODE.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NatTraversal {
    /// The modes, most preferred first; in I2 the one chosen.
    pub modes: Vec<u16>,
}

impl NatTraversal {
    /// Everything in UDP, no connectivity checks.
    pub const UDP_ENCAPSULATION: u16 = 1;
    /// ICE with STUN (RFC 5770).
    pub const ICE_STUN_UDP: u16 = 2;
    /// ICE with HIP packets (RFC 9028).
    pub const ICE_HIP_UDP: u16 = 3;

    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        c.u16()?;
        Ok(Self { modes: c.list(Cursor::u16)? })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; 2]);
        super::u16s(&self.modes, out);
    }
}

/// REG_FROM, RELAY_FROM, RELAY_TO, RELAYED_ADDRESS, MAPPED_ADDRESS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportAddress {
    /// The port; 0 without UDP.
    pub port: u16,
    /// 17 for UDP, 0 for plain IP.
    pub protocol: u8,
    /// The address.
    pub address: IpAddr,
}

impl TransportAddress {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let (port, [protocol, _]) = (c.u16()?, c.take()?);
        Ok(Self { port, protocol, address: c.address()? })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.port.to_be_bytes());
        out.extend_from_slice(&[self.protocol, 0]);
        out.extend_from_slice(&address_bytes(self.address));
    }
}

/// REG_INFO.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegistrationInfo {
    /// The shortest lifetime, coded as 2^((this - 64) / 8) seconds.
    pub min_lifetime: u8,
    /// The longest lifetime, coded alike.
    pub max_lifetime: u8,
    /// The services.
    pub services: Vec<u8>,
}

impl RegistrationInfo {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [min_lifetime, max_lifetime] = c.take()?;
        Ok(Self { min_lifetime, max_lifetime, services: super::rest(c) })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.min_lifetime, self.max_lifetime]);
        out.extend_from_slice(&self.services);
    }
}

/// REG_REQUEST, REG_RESPONSE, REG_FAILED.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// The lifetime, coded as 2^((this - 64) / 8) seconds, 0 to cancel; or the failure type.
    pub lifetime: u8,
    /// The services.
    pub services: Vec<u8>,
}

impl Registration {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(Self { lifetime: c.u8()?, services: super::rest(c) })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.lifetime);
        out.extend_from_slice(&self.services);
    }
}
