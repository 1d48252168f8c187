//! The packet that an ICMP error is about.

use std::net::IpAddr;

use super::{IcmpFamily, WHAT};
use crate::error::{WireError, split, u16_at, u32_at};
use crate::ipv4::Ipv4View;
use crate::ipv6::Ipv6View;
use crate::units::Seq;

/// What an ICMP error quotes of the packet it is about: enough to find the connection, and to tell
/// a packet in flight from a guess (RFC 5927 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// Source of the packet: us.
    pub src: IpAddr,
    /// Destination of the packet.
    pub dst: IpAddr,
    /// Protocol of its payload.
    pub protocol: u8,
    /// The first bytes of its payload: all that RFC 792 asks for.
    pub start: [u8; 8],
}

impl Quoted {
    /// Reads the body of an error message. Checksums are not verified: the packet may have been
    /// changed or cut on its way. Fails if it does not hold the first 8 bytes of a payload.
    pub fn parse(body: &[u8], family: IcmpFamily) -> Result<Self, WireError> {
        let (src, dst, protocol, has_start, payload) = match family {
            IcmpFamily::V4 => {
                let view = Ipv4View::quoted(body)?;
                (view.src().into(), view.dst().into(), view.protocol(), view.has_start(), view.payload())
            }
            IcmpFamily::V6 { .. } => {
                let view = Ipv6View::quoted(body)?;
                let upper = view.upper();
                (view.src().into(), view.dst().into(), upper.protocol, upper.has_start(), view.payload())
            }
        };
        if !has_start {
            return Err(WireError::new(WHAT, "quoted fragment offset", 0, 1));
        }
        let (start, _) = split(WHAT, payload)?;
        Ok(Self { src, dst, protocol, start: *start })
    }

    /// Source and destination port, if the protocol is TCP or UDP.
    pub fn ports(&self) -> (u16, u16) {
        (u16_at(&self.start, 0), u16_at(&self.start, 2))
    }

    /// Sequence number, if the protocol is TCP.
    pub fn seq(&self) -> Seq {
        Seq(u32_at(&self.start, 4))
    }
}
