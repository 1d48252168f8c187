//! A HIP packet as bytes whose structure was checked.

use std::ops::Range;

use super::kind::{Kind, PacketType};
use super::params::Param;
use super::{CHECKSUM_AT, HEADER_LEN, Hit, NO_NEXT_HEADER, PROTOCOL, RECEIVER_AT, VERSION, WHAT, padded};
use crate::checksum::Checksum;
use crate::error::{WireError, split, u16_at};

/// A packet whose header and parameters lie within its bytes, in order.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    bytes: &'a [u8],
}

/// One parameter of a packet.
#[derive(Clone, Debug)]
pub struct RawParam<'a> {
    /// Its type.
    pub kind: Kind,
    /// Its contents, without type, length and padding.
    pub contents: &'a [u8],
    /// Where the whole of it stands in the packet, padding included.
    pub span: Range<usize>,
}

impl<'a> PacketView<'a> {
    /// A view of the packet `bytes`. Bytes behind it are ignored if it says that something follows,
    /// and an error otherwise (RFC 7401 §5.1).
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (header, _) = split::<HEADER_LEN>(WHAT, bytes)?;
        let version = header[3] >> 4;
        if version != VERSION {
            return Err(WireError::new(WHAT, "version", VERSION.into(), version.into()));
        }
        let len = (usize::from(header[1]) + 1) * 8;
        if len < HEADER_LEN {
            return Err(WireError::new(WHAT, "header length", HEADER_LEN, len));
        }
        let follows = header[0] != NO_NEXT_HEADER;
        if bytes.len() < len || bytes.len() > len && !follows {
            return Err(WireError::new(WHAT, "length", len, bytes.len()));
        }
        let view = Self { bytes: &bytes[..len] };
        view.check_params()?;
        Ok(view)
    }

    fn check_params(&self) -> Result<(), WireError> {
        let (mut at, mut last) = (HEADER_LEN, Kind(0));
        while at < self.bytes.len() {
            let left = self.bytes.len() - at;
            let (kind, len) = (Kind(u16_at(self.bytes, at)), usize::from(u16_at(self.bytes, at + 2)));
            if padded(len) > left {
                return Err(WireError::new(WHAT, "parameter length", left, padded(len)));
            }
            if kind < last {
                return Err(WireError::new(WHAT, "parameter order", last.0.into(), kind.0.into()));
            }
            (at, last) = (at + padded(len), kind);
        }
        Ok(())
    }

    /// Checks the checksum. Inside UDP ([`Checksum::Unused`]) it must be 0 (RFC 9028 §5.1).
    pub fn verify(&self, checksum: Checksum) -> Result<(), WireError> {
        match (checksum, u16_at(self.bytes, CHECKSUM_AT)) {
            (Checksum::Unused, 0) => Ok(()),
            (Checksum::Unused, got) => Err(WireError::checksum(WHAT, 0, got)),
            _ => checksum.verify(WHAT, PROTOCOL, self.bytes, CHECKSUM_AT),
        }
    }

    /// What the packet is.
    pub fn packet_type(&self) -> PacketType {
        PacketType::from(self.bytes[2] & 0x7f)
    }
    /// The controls.
    pub fn controls(&self) -> u16 {
        u16_at(self.bytes, 6)
    }
    /// The sender's HIT.
    pub fn sender(&self) -> Hit {
        self.hit_at(8)
    }
    /// The receiver's HIT; all zero in an opportunistic I1.
    pub fn receiver(&self) -> Hit {
        self.hit_at(RECEIVER_AT)
    }
    /// The packet's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn hit_at(&self, at: usize) -> Hit {
        Hit(self.bytes[at..].first_chunk().copied().expect("the view has a whole header"))
    }

    /// The parameters in their order.
    pub fn params(&self) -> impl Iterator<Item = RawParam<'a>> + use<'a> {
        let (bytes, mut at) = (self.bytes, HEADER_LEN);
        std::iter::from_fn(move || {
            let left = bytes.get(at..).filter(|left| !left.is_empty())?;
            let len = usize::from(u16_at(left, 2));
            let span = at..at + padded(len);
            at = span.end;
            Some(RawParam { kind: Kind(u16_at(left, 0)), contents: &left[4..4 + len], span })
        })
    }

    /// The first parameter of `kind`.
    pub fn param(&self, kind: Kind) -> Option<RawParam<'a>> {
        self.params().find(|p| p.kind == kind)
    }

    /// The first parameter that a receiver must know and we do not (RFC 7401 §5.2.1).
    pub fn unknown_critical(&self) -> Option<Kind> {
        self.params().map(|p| p.kind).find(|k| k.is_critical() && k.name().is_none())
    }

    /// All parameters as values.
    pub fn values(&self) -> Result<Vec<Param>, WireError> {
        self.params().map(|p| Param::parse(p.kind, p.contents)).collect()
    }
}
