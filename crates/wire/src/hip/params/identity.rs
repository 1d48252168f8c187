//! HOST_ID (RFC 7401 §5.2.9).

use crate::error::WireError;
use crate::hip::cursor::Cursor;

/// A Host Identity with the name that its host gives itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostId {
    /// The algorithm of the key.
    pub algorithm: u16,
    /// The public key in the encoding of the algorithm: what the HIT is a hash of.
    pub identity: Vec<u8>,
    /// The host's name.
    pub domain: DomainId,
}

/// The domain identifier of a HOST_ID.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DomainId {
    /// 0 none, 1 FQDN in DNS wire format, 2 NAI; four bits.
    pub kind: u8,
    /// The name; at most 4095 bytes.
    pub name: Vec<u8>,
}

impl HostId {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let (len, domain, algorithm) = (c.u16()?, c.u16()?, c.u16()?);
        let identity = c.bytes(len.into())?.to_vec();
        let name = c.bytes((domain & 0xfff).into())?.to_vec();
        Ok(Self { algorithm, identity, domain: DomainId { kind: (domain >> 12) as u8, name } })
    }
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let domain = u16::from(self.domain.kind) << 12 | self.domain.name.len() as u16 & 0xfff;
        out.extend_from_slice(&(self.identity.len() as u16).to_be_bytes());
        out.extend_from_slice(&domain.to_be_bytes());
        out.extend_from_slice(&self.algorithm.to_be_bytes());
        out.extend_from_slice(&self.identity);
        out.extend_from_slice(&self.domain.name);
    }
}
