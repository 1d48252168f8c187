//! What can arrive at an endpoint.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use polypath_transport::{KnownPath, Ports, Segment};
use polypath_wire::{Duration, Ecn, Seq};

use crate::known::PathName;
use crate::paths::Locators;
use crate::security::LocalInfo;

/// One arrival.
#[derive(Clone, Debug)]
pub enum Input {
    /// A segment that needs no parsing: from a simulated hop.
    Segment {
        /// Between which locators, as we see it.
        locators: Locators,
        /// The segment.
        segment: Segment,
    },
    /// A UDP payload: a segment (see [`encode_datagram`](crate::frame::encode_datagram)), or HIP or ESP if
    /// the endpoint is secure. What came without UDP has the same form, and port 0 at both ends.
    Datagram {
        /// Between which locators, as we see it.
        locators: Locators,
        /// The ECN field that it came with.
        ecn: Ecn,
        /// The payload.
        bytes: BytesMut,
    },
    /// An IP packet (see [`decode_packet`](crate::packet::decode_packet)).
    Packet {
        /// Header and payload.
        bytes: Bytes,
    },
    /// A segment that we sent was larger than its way carries: a socket or a simulated router says so.
    TooBig {
        /// Between which locators, as we see it.
        locators: Locators,
        /// Ports of the segment.
        ports: Ports,
        /// Its sequence number.
        seq: Seq,
        /// Largest IP packet that may carry a segment as an IP host sends it, bytes.
        mtu: u32,
    },
    /// Packets that we sent were larger than their way carries: our own host or a router says so. For secure
    /// endpoints, whose segments nobody else can read.
    PathMtu {
        /// Between which locators, as we see it; the ports do not matter.
        locators: Locators,
        /// Largest IP packet that gets through, bytes.
        mtu: u32,
    },
    /// A local address can be used from now on, or is described anew. Only secure endpoints care.
    LocalUp {
        /// The address and the port of its socket.
        local: SocketAddr,
        /// What is known of it.
        info: LocalInfo,
    },
    /// A local address can be used no longer.
    LocalDown {
        /// The address and the port of its socket.
        local: SocketAddr,
    },
    /// What was measured of a path before this endpoint was there.
    Known {
        /// Which path.
        name: PathName,
        /// What it was found to carry.
        path: KnownPath,
        /// How long ago.
        age: Duration,
    },
}
