//! ICMP (RFC 792, RFC 1191 §4) and ICMPv6 (RFC 4443) as far as hosts need them: echo, and the
//! errors with the packet they quote, so that path MTU discovery works.

mod quoted;

use std::net::Ipv6Addr;

pub use quoted::Quoted;

use crate::checksum::Checksum;
use crate::error::{WireError, room, split, u16_at, u32_at};

/// Length of the header, bytes. Echo data or the quoted packet follow.
pub const HEADER_LEN: usize = 8;
/// The protocol number of ICMP over IPv4.
pub const PROTOCOL_V4: u8 = 1;
/// The protocol number of ICMPv6.
pub const PROTOCOL_V6: u8 = 58;

const CHECKSUM_AT: usize = 2;
const FRAGMENTATION_NEEDED: u8 = 4;

/// Which of the two protocols; they number their messages differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpFamily {
    /// ICMP over IPv4. Its checksum covers no addresses.
    V4,
    /// ICMPv6 between two addresses.
    V6 {
        /// Source address.
        src: Ipv6Addr,
        /// Destination address.
        dst: Ipv6Addr,
    },
}

/// An ICMP message as a value, without the bytes after its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpHeader {
    /// Echo request.
    EchoRequest {
        /// Identifier.
        id: u16,
        /// Sequence number.
        seq: u16,
    },
    /// Echo reply.
    EchoReply {
        /// Identifier.
        id: u16,
        /// Sequence number.
        seq: u16,
    },
    /// Destination unreachable, but for fragmentation needed.
    Unreachable {
        /// Code of the family.
        code: u8,
    },
    /// Fragmentation needed and forbidden, or packet too big.
    TooBig {
        /// MTU of the next hop, bytes; 0 if an old IPv4 router does not tell. IPv4 has 16 bits.
        mtu: u32,
    },
    /// Time exceeded.
    TimeExceeded {
        /// Code of the family: 0 in transit, 1 in reassembly.
        code: u8,
    },
    /// Any other message.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// Bytes 4 to 8 of the header.
        rest: [u8; 4],
    },
}

impl IcmpHeader {
    /// The header of `message`, all of which the checksum covers, and where its body begins.
    pub fn parse(message: &[u8], family: IcmpFamily) -> Result<(Self, usize), WireError> {
        let view = IcmpView::new(message)?;
        view.verify(family)?;
        Ok((Self::from_view(&view, family), HEADER_LEN))
    }

    /// The value of `view`.
    pub fn from_view(view: &IcmpView<'_>, family: IcmpFamily) -> Self {
        let kinds = family.kinds();
        let (kind, code, rest) = (view.kind(), view.code(), view.rest());
        let (id, seq) = (u16_at(&rest, 0), u16_at(&rest, 2));
        match kind {
            k if (k, code) == (kinds.echo_request, 0) => Self::EchoRequest { id, seq },
            k if (k, code) == (kinds.echo_reply, 0) => Self::EchoReply { id, seq },
            k if (k, code) == kinds.too_big => Self::TooBig { mtu: family.read_mtu(rest) },
            k if k == kinds.unreachable => Self::Unreachable { code },
            k if k == kinds.time_exceeded => Self::TimeExceeded { code },
            kind => Self::Other { kind, code, rest },
        }
    }

    /// Length on the wire, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the start of `message`, whose bytes after it are the body and in place
    /// already, and returns its length. Fails if it does not fit, or if the MTU does not.
    pub fn emit(&self, message: &mut [u8], family: IcmpFamily) -> Result<usize, WireError> {
        let kinds = family.kinds();
        let pair = |a: u16, b: u16| (u32::from(a) << 16 | u32::from(b)).to_be_bytes();
        let (kind, code, rest) = match *self {
            Self::EchoRequest { id, seq } => (kinds.echo_request, 0, pair(id, seq)),
            Self::EchoReply { id, seq } => (kinds.echo_reply, 0, pair(id, seq)),
            Self::Unreachable { code } => (kinds.unreachable, code, [0; 4]),
            Self::TooBig { mtu } => (kinds.too_big.0, kinds.too_big.1, family.check_mtu(mtu)?.to_be_bytes()),
            Self::TimeExceeded { code } => (kinds.time_exceeded, code, [0; 4]),
            Self::Other { kind, code, rest } => (kind, code, rest),
        };
        let header = room(WHAT, message, HEADER_LEN)?;
        header[..4].copy_from_slice(&[kind, code, 0, 0]);
        header[4..].copy_from_slice(&rest);
        if let Some(sum) = family.checksum().compute(PROTOCOL_V6, message) {
            message[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        }
        Ok(HEADER_LEN)
    }
}

/// A message whose header lies within its bytes.
#[derive(Clone, Copy, Debug)]
pub struct IcmpView<'a> {
    bytes: &'a [u8],
}

impl<'a> IcmpView<'a> {
    /// A view of the message `bytes`.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        split::<HEADER_LEN>(WHAT, bytes)?;
        Ok(Self { bytes })
    }

    /// Checks the checksum.
    pub fn verify(&self, family: IcmpFamily) -> Result<(), WireError> {
        family.checksum().verify(WHAT, PROTOCOL_V6, self.bytes, CHECKSUM_AT)
    }

    /// Type.
    pub fn kind(&self) -> u8 {
        self.bytes[0]
    }
    /// Code.
    pub fn code(&self) -> u8 {
        self.bytes[1]
    }
    /// Bytes 4 to 8 of the header; what they mean depends on the type.
    pub fn rest(&self) -> [u8; 4] {
        u32_at(self.bytes, 4).to_be_bytes()
    }
    /// Echo data, or the packet that an error quotes (see [`Quoted::parse`]).
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }
}

const WHAT: &str = "ICMP";

/// The numbers of the messages in one family.
struct Kinds {
    echo_request: u8,
    echo_reply: u8,
    unreachable: u8,
    time_exceeded: u8,
    /// Type and code.
    too_big: (u8, u8),
}

impl IcmpFamily {
    /// How many bytes of a packet of `len` an error quotes, so that it always gets through: the
    /// error then has at most 576 bytes (RFC 1812 §4.3.2.3) or 1280 (RFC 4443 §3.1).
    pub fn quote_len(self, len: usize) -> usize {
        match self {
            Self::V4 => len.min(576 - 20 - HEADER_LEN),
            Self::V6 { .. } => len.min(1280 - 40 - HEADER_LEN),
        }
    }

    fn kinds(self) -> Kinds {
        match self {
            Self::V4 => Kinds {
                echo_request: 8,
                echo_reply: 0,
                unreachable: 3,
                time_exceeded: 11,
                too_big: (3, FRAGMENTATION_NEEDED),
            },
            Self::V6 { .. } => Kinds {
                echo_request: 128,
                echo_reply: 129,
                unreachable: 1,
                time_exceeded: 3,
                too_big: (2, 0),
            },
        }
    }

    fn checksum(self) -> Checksum {
        match self {
            Self::V4 => Checksum::ZeroPseudoHeader,
            Self::V6 { src, dst } => Checksum::Ipv6 { src, dst },
        }
    }

    fn read_mtu(self, rest: [u8; 4]) -> u32 {
        match self {
            Self::V4 => u16_at(&rest, 2).into(),
            Self::V6 { .. } => u32::from_be_bytes(rest),
        }
    }

    fn check_mtu(self, mtu: u32) -> Result<u32, WireError> {
        match self {
            Self::V4 if mtu > 0xffff => Err(WireError::new(WHAT, "MTU", 0xffff, mtu as usize)),
            _ => Ok(mtu),
        }
    }
}
