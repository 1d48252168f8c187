//! A TCP segment in the form the state machine eats and produces. Drivers that need bytes emit
//! and parse it at their edge (`polypath-endpoint`'s `frame.rs`); the simulator carries it as is.

use std::mem::offset_of;

use polypath_wire::tcp::{TcpFlags, TcpHeader, TcpOptions};
use polypath_wire::{Ecn, PathId};

use crate::payload::Payload;

/// Header and data of one segment. Without SACK blocks it is read and written in two lines of the cache.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Segment {
    /// The data.
    pub payload: Payload,
    /// The ECN field of the IP header around it.
    pub ecn: Ecn,
    /// The header.
    pub header: TcpHeader,
}

const _: () = assert!(
    offset_of!(Segment, header) + offset_of!(TcpHeader, options) + offset_of!(TcpOptions, sack) < 128
);

impl Segment {
    /// Sequence space it takes: data, SYN and FIN (RFC 9293 §3.4, SEG.LEN).
    pub fn seq_len(&self) -> u32 {
        let flags = self.header.flags;
        self.payload.len() as u32
            + u32::from(flags.contains(TcpFlags::SYN))
            + u32::from(flags.contains(TcpFlags::FIN))
    }
}

/// A segment to be sent, and the path it was given.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// The path it leaves on.
    pub path: PathId,
    /// The segment.
    pub segment: Segment,
}
