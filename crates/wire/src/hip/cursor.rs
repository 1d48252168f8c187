//! Reading the contents of one parameter, front to back.

use std::net::{IpAddr, Ipv6Addr};

use crate::error::{WireError, split};

/// What is left of the contents of the parameter called `what`.
pub(super) struct Cursor<'a> {
    pub what: &'static str,
    pub rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = split::<N>(self.what, self.rest)?;
        self.rest = rest;
        Ok(*head)
    }
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let too_short = || WireError::new(self.what, "length", n, self.rest.len());
        let (head, rest) = self.rest.split_at_checked(n).ok_or_else(too_short)?;
        self.rest = rest;
        Ok(head)
    }
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.take::<1>()?[0])
    }
    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.take()?))
    }
    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.take()?))
    }
    pub fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_be_bytes(self.take()?))
    }
    /// An address; IPv4 stands there as ::ffff:a.b.c.d.
    pub fn address(&mut self) -> Result<IpAddr, WireError> {
        let address = Ipv6Addr::from(self.take::<16>()?);
        Ok(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
    }
    /// Everything that is left, read item by item.
    pub fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
        let mut items = Vec::new();
        while !self.rest.is_empty() {
            items.push(item(self)?);
        }
        Ok(items)
    }
    /// Nothing may be left.
    pub fn end<T>(&self, value: T) -> Result<T, WireError> {
        match self.rest.len() {
            0 => Ok(value),
            n => Err(WireError::new(self.what, "bytes after the last field", 0, n)),
        }
    }
}

/// The 16 bytes of an address; IPv4 as ::ffff:a.b.c.d.
pub(super) fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
        IpAddr::V6(a) => a.octets(),
    }
}
