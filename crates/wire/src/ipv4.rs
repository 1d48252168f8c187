//! IPv4 headers (RFC 791 §3.1).

use std::net::Ipv4Addr;

use crate::checksum::{Checksum, checksum};
use crate::error::{WireError, room, split, u16_at};

/// Length of a header without options, bytes.
pub const MIN_HEADER_LEN: usize = 20;
/// Room for options, bytes: the header length has four bits.
pub const MAX_OPTIONS_LEN: usize = 40;

const WHAT: &str = "IPv4";
const CHECKSUM_AT: usize = 10;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// An IPv4 header as a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Differentiated services code point (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Bytes after the header.
    pub payload_len: u16,
    /// Identification, for reassembly.
    pub id: u16,
    /// No router may fragment the packet.
    pub dont_fragment: bool,
    /// This is a fragment, and not the last.
    pub more_fragments: bool,
    /// Where this fragment begins, in units of 8 bytes, below 8192.
    pub fragment_offset: u16,
    /// Time to live, hops.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Options as they came, a multiple of 4 bytes.
    pub options: Option<Box<[u8]>>,
}

impl Ipv4Header {
    /// An unfragmented packet that is not to be fragmented, with a time to live of 64 (RFC 1700).
    pub fn new(protocol: u8, src: Ipv4Addr, dst: Ipv4Addr, payload_len: u16) -> Self {
        Self {
            traffic_class: 0,
            payload_len,
            id: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            src,
            dst,
            options: None,
        }
    }

    /// The header at the start of the packet `bytes`, its checksum verified, and where the payload
    /// begins. There may be padding after the packet.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let view = Ipv4View::new(bytes)?;
        view.verify()?;
        Ok((Self::from_view(&view), view.header_len()))
    }

    /// The value of `view`.
    pub fn from_view(view: &Ipv4View<'_>) -> Self {
        let fragment = u16_at(view.bytes, 6);
        let options = view.options();
        Self {
            traffic_class: view.bytes[1],
            payload_len: (view.total_len() - view.header_len()) as u16,
            id: u16_at(view.bytes, 4),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            more_fragments: fragment & MORE_FRAGMENTS != 0,
            fragment_offset: fragment & OFFSET_MASK,
            ttl: view.bytes[8],
            protocol: view.protocol(),
            src: view.src(),
            dst: view.dst(),
            options: (!options.is_empty()).then(|| options.into()),
        }
    }

    /// Length on the wire, options included, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        MIN_HEADER_LEN + self.options.as_deref().map_or(0, |o| o.len().next_multiple_of(4))
    }

    /// What the checksum of a transport message in this packet covers beside it.
    pub fn pseudo_header(&self) -> Checksum {
        Checksum::Ipv4 { src: self.src, dst: self.dst }
    }

    /// Writes the header to the start of `packet` and returns its length. Fails if it does not
    /// fit, if options take more than 40 bytes, or the packet more than 65535.
    pub fn emit(&self, packet: &mut [u8]) -> Result<usize, WireError> {
        let len = self.len();
        let options = self.options.as_deref().unwrap_or_default();
        if options.len() > MAX_OPTIONS_LEN {
            return Err(WireError::new(WHAT, "options", MAX_OPTIONS_LEN, options.len()));
        }
        if self.fragment_offset > OFFSET_MASK {
            let (need, got) = (OFFSET_MASK.into(), self.fragment_offset.into());
            return Err(WireError::new(WHAT, "fragment offset", need, got));
        }
        let total = len + usize::from(self.payload_len);
        let total = u16::try_from(total).map_err(|_| WireError::new(WHAT, "total length", 0xffff, total))?;
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let fragment = flag(self.dont_fragment, DONT_FRAGMENT)
            | flag(self.more_fragments, MORE_FRAGMENTS)
            | self.fragment_offset;

        let header = room(WHAT, packet, len)?;
        header[0] = 0x40 | (len / 4) as u8;
        header[1] = self.traffic_class;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[4..6].copy_from_slice(&self.id.to_be_bytes());
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[8] = self.ttl;
        header[9] = self.protocol;
        header[10..12].fill(0);
        header[12..16].copy_from_slice(&self.src.octets());
        header[16..20].copy_from_slice(&self.dst.octets());
        header[20..].fill(0);
        header[20..20 + options.len()].copy_from_slice(options);
        let sum = checksum(header);
        header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        Ok(len)
    }
}

/// A packet whose header lies within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    bytes: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// A view of the packet at the start of `bytes`, all of which is there.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let view = Self::quoted(bytes)?;
        if view.total_len() > bytes.len() {
            return Err(WireError::new(WHAT, "length", view.total_len(), bytes.len()));
        }
        Ok(view)
    }

    /// A view of the start of a packet, as ICMP errors quote it: the payload may be cut short.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (fixed, _) = split::<MIN_HEADER_LEN>(WHAT, bytes)?;
        if fixed[0] >> 4 != 4 {
            return Err(WireError::new(WHAT, "version", 4, usize::from(fixed[0] >> 4)));
        }
        let view = Self { bytes };
        let header_len = view.header_len();
        if header_len < MIN_HEADER_LEN {
            return Err(WireError::new(WHAT, "header length", MIN_HEADER_LEN, header_len));
        }
        if header_len > bytes.len() {
            return Err(WireError::new(WHAT, "length", header_len, bytes.len()));
        }
        if view.total_len() < header_len {
            return Err(WireError::new(WHAT, "total length", header_len, view.total_len()));
        }
        Ok(view)
    }

    /// Checks the checksum of the header.
    pub fn verify(&self) -> Result<(), WireError> {
        Checksum::ZeroPseudoHeader.verify(WHAT, 0, &self.bytes[..self.header_len()], CHECKSUM_AT)
    }

    /// Length of the header with its options, bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes[0] & 0xf) * 4
    }
    /// Length of the packet, bytes.
    pub fn total_len(&self) -> usize {
        u16_at(self.bytes, 2).into()
    }
    /// Whether this is a part of a packet: the whole payload is not here.
    pub fn is_fragment(&self) -> bool {
        u16_at(self.bytes, 6) & (MORE_FRAGMENTS | OFFSET_MASK) != 0
    }
    /// Whether the payload begins here: this is no fragment but the first.
    pub fn has_start(&self) -> bool {
        u16_at(self.bytes, 6) & OFFSET_MASK == 0
    }
    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.bytes[9]
    }
    /// Source address.
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.bytes[12], self.bytes[13], self.bytes[14], self.bytes[15])
    }
    /// Destination address.
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.bytes[16], self.bytes[17], self.bytes[18], self.bytes[19])
    }
    /// Options with their padding.
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[MIN_HEADER_LEN..self.header_len()]
    }
    /// The payload, as far as it is there.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..self.total_len().min(self.bytes.len())]
    }
}
