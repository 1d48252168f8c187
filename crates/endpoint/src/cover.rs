//! What stands between connections and the network: nothing, or a protocol that authenticates and encrypts.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::{Bytes, BytesMut};
use polypath_transport::flow::Leaving;
use polypath_transport::{PathConfig, PathStats, Segment};
use polypath_wire::hip::Hit;
use polypath_wire::{Checksum, Duration, Ecn, Instant, shim, tcp};

use crate::outlet::Outlet;
use crate::paths::Locators;

/// What an endpoint knows of its cover.
///
/// Connections name a path by *inner* locators, packets travel between *outer* ones: to a cover the first mean the
/// second. A peer is known by the IP address of its inner locators. Where a method has a body, it is what an endpoint
/// does without security. Packets are opened and sealed in the buffers in which they arrive and leave.
pub(crate) trait Cover {
    /// Opens what came between outer locators. What is for the cover itself, and what it refuses, it keeps; afterwards
    /// [`Self::poll`].
    fn open(&mut self, now: Instant, outer: &Locators, ecn: Ecn, bytes: BytesMut) -> Option<Inner>;

    /// Gives `outlet` a payload for the path with these inner locators, sealed, or loses it.
    fn seal(&mut self, now: Instant, path: &Locators, cargo: Cargo<'_>, outlet: &mut impl Outlet);

    /// Gives `outlet` what the cover itself has to send.
    fn transmit(&mut self, _now: Instant, _outlet: &mut impl Outlet) {}

    /// The next change of a path that connections must hear of.
    fn poll(&mut self) -> Option<Change> {
        None
    }

    /// When [`Self::handle_timeout`] must be called at the latest.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Does what is due; afterwards [`Self::poll`].
    fn handle_timeout(&mut self, _now: Instant) {}

    /// The peers for which something is due: what was measured with them is [wanted](Self::measured) first.
    fn concerned(&self, _now: Instant) -> BTreeSet<Hit> {
        BTreeSet::new()
    }

    /// What a connection measured on a path.
    fn measured(&mut self, _now: Instant, _path: &Locators, _stats: &PathStats) {}

    /// No connection with that peer has sent or received since its paths were last asked for.
    fn quiet(&mut self, _name: Hit) {}

    /// Counts a payload that nobody here knows.
    fn note_other(&mut self) {}

    /// Whether events or observations of the cover wait to be polled.
    #[inline]
    fn has_news(&self) -> bool {
        false
    }

    /// Whether peers are who their addresses say.
    #[inline]
    fn authenticates(&self) -> bool {
        false
    }

    /// The HIT of the peer that connections know by this address; several addresses may be of one peer.
    fn peer_at(&self, _remote: IpAddr) -> Option<Hit> {
        None
    }

    /// Whether that peer and we take data directly behind a SYN.
    fn takes_early_data(&self, _remote: IpAddr) -> bool {
        false
    }

    /// The outer locators of a path.
    fn outer(&self, path: &Locators) -> Option<Locators> {
        Some(*path)
    }

    /// Whether the peer is known to be at the other end of a path.
    fn is_up(&self, _path: &Locators) -> bool {
        true
    }

    /// Parameters of a path, if they are not for others to say.
    fn config_of(&self, _path: &Locators) -> Option<PathConfig> {
        None
    }

    /// The paths that may be used of the association of this name.
    fn live_paths(&self, _name: Hit) -> Vec<Locators> {
        Vec::new()
    }

    /// Whether it is known how large packets on those paths may be.
    fn knows_sizes(&self, _name: Hit) -> bool {
        false
    }
}

/// A payload that was opened.
#[derive(Debug)]
pub(crate) struct Inner {
    /// The inner locators of its path.
    pub path: Locators,
    /// Its protocol, as in an IP header.
    pub next_header: u8,
    /// What its checksum covers, if it has one.
    pub checksum: Checksum,
    /// The ECN field that it came with.
    pub ecn: Ecn,
    /// The payload, in the memory that it came in.
    pub bytes: Bytes,
}

/// A payload to be sealed.
pub(crate) enum Cargo<'a> {
    /// Of a connection.
    Segment(&'a mut Box<Segment>),
    /// Of the packet lane.
    Frame(&'a Leaving),
}

impl Cargo<'_> {
    /// Length, bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Segment(segment) => segment.header.len() + segment.payload.len() as usize,
            Self::Frame(frame) => frame.len(),
        }
    }

    /// Whether queues may mark it.
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::Segment(segment) => segment.ecn,
            Self::Frame(frame) => frame.ecn,
        }
    }

    /// Its protocol, as in an IP header.
    pub fn next_header(&self) -> u8 {
        match self {
            Self::Segment(_) => tcp::PROTOCOL,
            Self::Frame(_) => shim::NEXT_HEADER,
        }
    }
}

/// What connections must hear of a path, by its inner locators.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Change {
    /// It may be used.
    Up(Locators),
    /// It may be used no longer.
    Down(Locators),
    /// The peer has another address there.
    Moved(Locators),
    /// It was answered on after this round trip.
    Sample(Locators, Duration),
    /// The largest payload that it carries, bytes.
    Carries(Locators, u32),
    /// Packets on it are lost or late.
    Skipped(Locators),
    /// From now on it spills, or no longer: it carries what the others have no room for.
    Spills(Locators, bool),
    /// The association of this name is over, or began anew.
    Over(Hit),
}

impl Change {
    /// The address by which connections know the peer.
    pub fn peer(&self) -> IpAddr {
        match self {
            Self::Up(path)
            | Self::Down(path)
            | Self::Moved(path)
            | Self::Sample(path, _)
            | Self::Carries(path, _)
            | Self::Spills(path, _)
            | Self::Skipped(path) => path.remote.ip(),
            Self::Over(name) => name.as_ipv6().into(),
        }
    }
}

/// The name of the association whose peer connections know by this address.
pub(crate) fn name_of(remote: IpAddr) -> Option<Hit> {
    match remote {
        IpAddr::V6(name) => Some(Hit(name.octets())),
        IpAddr::V4(_) => None,
    }
}

/// No cover: segments travel as they are, between the locators that connections know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

impl Cover for Plain {
    fn open(&mut self, _now: Instant, outer: &Locators, ecn: Ecn, bytes: BytesMut) -> Option<Inner> {
        let (next_header, checksum) = (tcp::PROTOCOL, Checksum::ZeroPseudoHeader);
        Some(Inner { path: *outer, next_header, checksum, ecn, bytes: bytes.freeze() })
    }

    #[inline]
    fn seal(&mut self, now: Instant, path: &Locators, cargo: Cargo<'_>, outlet: &mut impl Outlet) {
        if let Cargo::Segment(segment) = cargo {
            outlet.send(now, path, segment);
        }
    }
}
