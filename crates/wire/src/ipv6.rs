//! IPv6 headers with their extensions (RFC 8200).

mod extension;

use std::net::Ipv6Addr;

pub use extension::{Fragment, Upper};

use crate::checksum::Checksum;
use crate::error::{WireError, room, split, u16_at, u32_at};

/// Length of the header without extensions, bytes.
pub const FIXED_HEADER_LEN: usize = 40;

const WHAT: &str = "IPv6";
const FLOW_LABEL_MASK: u32 = 0xf_ffff;

/// An IPv6 header as a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Differentiated services code point (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes after this header and its extensions.
    pub payload_len: u16,
    /// What follows the fixed header: the first extension, or else the protocol of the payload.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Extension headers as they came.
    pub extensions: Option<Box<[u8]>>,
}

impl Ipv6Header {
    /// A packet without extensions, with a hop limit of 64.
    pub fn new(protocol: u8, src: Ipv6Addr, dst: Ipv6Addr, payload_len: u16) -> Self {
        Self {
            traffic_class: 0,
            flow_label: 0,
            payload_len,
            next_header: protocol,
            hop_limit: 64,
            src,
            dst,
            extensions: None,
        }
    }

    /// The header at the start of the packet `bytes` with its extensions, and where the payload
    /// begins. Fails on extensions that forbid to go on; there may be padding after the packet.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let view = Ipv6View::new(bytes)?;
        Ok((Self::from_view(&view), view.header_len()))
    }

    /// The value of `view`.
    pub fn from_view(view: &Ipv6View<'_>) -> Self {
        let first = u32_at(view.bytes, 0);
        let extensions = view.extensions();
        Self {
            traffic_class: (first >> 20) as u8,
            flow_label: first & FLOW_LABEL_MASK,
            payload_len: (view.total_len() - view.header_len()) as u16,
            next_header: view.bytes[6],
            hop_limit: view.bytes[7],
            src: view.src(),
            dst: view.dst(),
            extensions: (!extensions.is_empty()).then(|| extensions.into()),
        }
    }

    /// Length on the wire, extensions included, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        FIXED_HEADER_LEN + self.extensions.as_deref().map_or(0, <[u8]>::len)
    }

    /// What the extensions lead to.
    pub fn upper(&self) -> Result<Upper, WireError> {
        Upper::find(self.next_header, self.extensions.as_deref().unwrap_or_default())
    }

    /// What the checksum of a transport message in this packet covers beside it.
    pub fn pseudo_header(&self) -> Checksum {
        Checksum::Ipv6 { src: self.src, dst: self.dst }
    }

    /// Writes the header to the start of `packet` and returns its length. Fails if it does not
    /// fit, or if extensions and payload take more than 65535 bytes.
    pub fn emit(&self, packet: &mut [u8]) -> Result<usize, WireError> {
        let len = self.len();
        let rest = len - FIXED_HEADER_LEN + usize::from(self.payload_len);
        let rest = u16::try_from(rest).map_err(|_| WireError::new(WHAT, "payload length", 0xffff, rest))?;
        if self.flow_label > FLOW_LABEL_MASK {
            let (need, got) = (FLOW_LABEL_MASK as usize, self.flow_label as usize);
            return Err(WireError::new(WHAT, "flow label", need, got));
        }
        let header = room(WHAT, packet, len)?;
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        header[0..4].copy_from_slice(&first.to_be_bytes());
        header[4..6].copy_from_slice(&rest.to_be_bytes());
        header[6] = self.next_header;
        header[7] = self.hop_limit;
        header[8..24].copy_from_slice(&self.src.octets());
        header[24..40].copy_from_slice(&self.dst.octets());
        header[40..].copy_from_slice(self.extensions.as_deref().unwrap_or_default());
        Ok(len)
    }
}

/// A packet whose header and extensions lie within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    bytes: &'a [u8],
    upper: Upper,
}

impl<'a> Ipv6View<'a> {
    /// A view of the packet at the start of `bytes`, all of which is there. Fails on extensions
    /// that forbid to go on.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let total = total_len(bytes)?;
        if total > bytes.len() {
            return Err(WireError::new(WHAT, "length", total, bytes.len()));
        }
        Self::quoted(bytes)
    }

    /// A view of the start of a packet, as ICMP errors quote it: the payload may be cut short.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, WireError> {
        let end = total_len(bytes)?.min(bytes.len());
        let bytes = &bytes[..end];
        Ok(Self { bytes, upper: Upper::find(bytes[6], &bytes[FIXED_HEADER_LEN..])? })
    }

    /// Length of the header with its extensions, bytes.
    pub fn header_len(&self) -> usize {
        FIXED_HEADER_LEN + self.upper.offset
    }
    /// Length of the packet, bytes.
    pub fn total_len(&self) -> usize {
        FIXED_HEADER_LEN + usize::from(u16_at(self.bytes, 4))
    }
    /// What the extensions lead to.
    pub fn upper(&self) -> Upper {
        self.upper
    }
    /// Source address.
    pub fn src(&self) -> Ipv6Addr {
        address(self.bytes, 8)
    }
    /// Destination address.
    pub fn dst(&self) -> Ipv6Addr {
        address(self.bytes, 24)
    }
    /// The extension headers.
    pub fn extensions(&self) -> &'a [u8] {
        &self.bytes[FIXED_HEADER_LEN..self.header_len()]
    }
    /// The payload, as far as it is there.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }
}

/// Length of the packet at the start of `bytes` by its own account, its version checked.
fn total_len(bytes: &[u8]) -> Result<usize, WireError> {
    let (fixed, _) = split::<FIXED_HEADER_LEN>(WHAT, bytes)?;
    if fixed[0] >> 4 != 6 {
        return Err(WireError::new(WHAT, "version", 6, usize::from(fixed[0] >> 4)));
    }
    Ok(FIXED_HEADER_LEN + usize::from(u16_at(fixed, 4)))
}

fn address(bytes: &[u8], at: usize) -> Ipv6Addr {
    let octets: [u8; 16] = bytes[at..at + 16].try_into().expect("a range of 16 bytes");
    octets.into()
}
