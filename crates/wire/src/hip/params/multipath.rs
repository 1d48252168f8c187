//! Our private parameter (docs/hip.md): the sender can use several paths at once, and what it knows
//! about them. Its type is even, so a peer that does not know it ignores it.

use std::net::IpAddr;

use crate::error::WireError;
use crate::hip::cursor::{Cursor, address_bytes};
use crate::units::{Duration, Rate};

/// The format of the contents.
const FORMAT: u8 = 1;
const NO_DELAY: u32 = u32::MAX;

/// MULTIPATH.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Multipath {
    /// The version of the multipath shim header that the sender speaks.
    pub shim_version: u8,
    /// How many paths the sender is ready to use at once.
    pub max_paths: u8,
    /// Whether the sender delivers data that comes directly behind a SYN.
    pub early_data: bool,
    /// Whether the SPI of the sender's end of a path that it is asked for is the asker's, if that is free.
    pub same_spi: bool,
    /// Whether the sender does not check TCP's checksum inside ESP, whose ICV covers the same bytes.
    pub no_checksums: bool,
    /// The sender's ends of paths.
    pub paths: Vec<MultipathPath>,
}

/// The flags of who takes early data, takes the asker's SPI, and does not check TCP's checksums.
const EARLY_DATA: u8 = 1;
const SAME_SPI: u8 = 2;
const NO_CHECKSUMS: u8 = 4;
/// The flags of values that were measured, and of links for what others have no room for.
const MEASURED: u8 = 1;
const SPILL: u8 = 2;

/// The sender's end of one path, with what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultipathPath {
    /// The sender's number of it.
    pub id: u8,
    /// The sender's address.
    pub address: IpAddr,
    /// Whether rate and delay were measured on a path, else they are what the sender's link gives.
    pub measured: bool,
    /// Whether the sender wants data on its link only for want of room on its others.
    pub spill: bool,
    /// The rate it gives; zero on the wire if unknown.
    pub bandwidth: Option<Rate>,
    /// One-way delay, microseconds on the wire, all ones if unknown.
    pub delay: Option<Duration>,
}

impl Multipath {
    /// Whether the contents have the format that we know; another one is like a parameter that we do not know.
    pub(super) fn is_known(contents: &[u8]) -> bool {
        contents.first() == Some(&FORMAT)
    }

    pub(super) fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [_, shim_version, max_paths, flags] = c.take()?;
        let [early_data, same_spi, no_checksums] =
            [EARLY_DATA, SAME_SPI, NO_CHECKSUMS].map(|flag| flags & flag != 0);
        let paths = c.list(MultipathPath::parse)?;
        Ok(Self { shim_version, max_paths, early_data, same_spi, no_checksums, paths })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let said =
            [(self.early_data, EARLY_DATA), (self.same_spi, SAME_SPI), (self.no_checksums, NO_CHECKSUMS)];
        let flags = said.iter().filter(|(yes, _)| *yes).fold(0, |flags, (_, flag)| flags | flag);
        out.extend_from_slice(&[FORMAT, self.shim_version, self.max_paths, flags]);
        self.paths.iter().for_each(|p| p.emit(out));
    }
}

impl MultipathPath {
    fn parse(c: &mut Cursor<'_>) -> Result<Self, WireError> {
        let [id, flags, ..] = c.take::<4>()?;
        let (delay, bandwidth) = (c.u32()?, c.u64()?);
        Ok(Self {
            id,
            address: c.address()?,
            measured: flags & MEASURED != 0,
            spill: flags & SPILL != 0,
            bandwidth: (bandwidth != 0).then_some(Rate(bandwidth)),
            delay: (delay != NO_DELAY).then(|| Duration::from_micros(delay.into())),
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let micros = |d: Duration| u32::try_from(d.as_micros()).unwrap_or(NO_DELAY - 1).min(NO_DELAY - 1);
        let flags = (u8::from(self.measured) * MEASURED) | (u8::from(self.spill) * SPILL);
        out.extend_from_slice(&[self.id, flags, 0, 0]);
        out.extend_from_slice(&self.delay.map_or(NO_DELAY, micros).to_be_bytes());
        out.extend_from_slice(&self.bandwidth.map_or(0, |r| r.0).to_be_bytes());
        out.extend_from_slice(&address_bytes(self.address));
    }
}
