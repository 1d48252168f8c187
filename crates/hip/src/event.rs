//! What goes out of the state machine: packets, events, and reasons to drop a packet.

use std::net::{IpAddr, SocketAddr};

use polypath_wire::Checksum;
use polypath_wire::hip::{Hit, Multipath, Notification, NotifyType, set_checksum, udp};

use crate::keymat::{EspKeys, Pair};
use crate::state::State;
use crate::suite::EspSuite;

/// Our address and the peer's. With port 0 at the peer HIP goes as IP protocol 139, else in UDP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Route {
    /// Our end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
}

impl Route {
    /// Whether packets travel in UDP.
    pub fn is_udp(&self) -> bool {
        self.remote.port() != 0
    }
    /// How packets that travel from `src` to `dst` are summed.
    pub(crate) fn checksum(&self, inbound: bool) -> Option<Checksum> {
        if self.is_udp() {
            return Some(Checksum::Unused);
        }
        let (src, dst) = if inbound { (self.remote, self.local) } else { (self.local, self.remote) };
        Checksum::between(src.ip(), dst.ip())
    }
}

/// A packet to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// From where to where.
    pub route: Route,
    /// The payload of UDP, with its marker, or of IP.
    pub payload: Vec<u8>,
}

impl Transmit {
    /// `packet`, whose checksum is 0, as it travels on `route`. `None` if its families differ.
    pub(crate) fn new(route: Route, packet: &[u8]) -> Option<Self> {
        let checksum = route.checksum(false)?;
        let marker: &[u8] = if route.is_udp() { &udp::HIP_MARKER } else { &[] };
        let mut payload = [marker, packet].concat();
        set_checksum(&mut payload[marker.len()..], checksum);
        Some(Self { route, payload })
    }
}

/// A pair of SAs, one in each direction, that serves one path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SaPair {
    /// The SPI of what we receive.
    pub inbound: u32,
    /// The SPI of what we send.
    pub outbound: u32,
    /// The suite of both.
    pub suite: EspSuite,
    /// Their keys.
    pub keys: Pair<EspKeys>,
    /// The path.
    pub route: Route,
    /// The inbound SPI of the pair of which this one takes the place, if these are new keys of a path.
    pub replaces: Option<u32>,
    /// Whether the peer has installed its end already. Where not, what this pair replaces must be sent
    /// with until something comes on it.
    pub confirmed: bool,
}

/// Why an association did not come about or ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Nobody answered.
    Timeout,
    /// The puzzle is harder than we accept, or could not be solved in time.
    Puzzle,
    /// The peer does not accept our HIT suite.
    HitSuite,
    /// No group, cipher, suite or format in common: data is the notification that says it.
    NoProposal(NotifyType),
}

/// What happened to an association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It has another state.
    State {
        /// The one it had.
        from: State,
        /// The one it has.
        to: State,
    },
    /// An SA pair is ready: install both SAs.
    SaAdded(SaPair),
    /// An SA pair is over: remove both SAs.
    SaRemoved {
        /// Its inbound SPI.
        inbound: u32,
        /// Its outbound SPI.
        outbound: u32,
    },
    /// The peer proved that it is reachable at the remote end of this route.
    Reachable {
        /// The inbound SPI of the path.
        inbound: u32,
        /// The route that user data may take from now on.
        route: Route,
    },
    /// The peer's address on a path is good no longer: no data may go there until it is [`Self::Reachable`] again.
    Withdrawn {
        /// The inbound SPI of the path.
        inbound: u32,
    },
    /// A path could not be had, or its address not be verified.
    PathFailed {
        /// The route that was tried.
        route: Route,
    },
    /// The peer says that these are all its addresses; nobody has proved them.
    Locators(Vec<IpAddr>),
    /// The peer can use several paths.
    Multipath(Multipath),
    /// The peer says something; nobody vouches for it but the signature.
    Notified(Notification),
    /// An attempt came to nothing.
    Failed(Failure),
    /// A stranger proved who he is, and is not let in.
    Refused {
        /// Where he asked from.
        route: Route,
    },
}

/// An event with the peer it is about: its HIT, or the name of a further association with it.
pub type PeerEvent = (Hit, Event);

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DropReason {
    /// No HIPv2 packet.
    Malformed,
    /// Damaged on its way.
    Checksum,
    /// For another host.
    NotForUs,
    /// A type we do not know, or a critical parameter.
    Unknown,
    /// There is no association that it could belong to.
    NoAssociation,
    /// It makes no sense in this state.
    State,
    /// It comes from where its sender is not known to be.
    Source,
    /// Policy, or a limit on rate or number.
    Policy,
    /// Not our puzzle, not a solution of it, or one too old.
    Puzzle,
    /// Seen before.
    Replay,
    /// The HIT does not belong to the Host Identity.
    Hit,
    /// The MAC is wrong or missing.
    Mac,
    /// The signature is wrong or missing.
    Signature,
    /// A parameter is missing, or its value was not on offer.
    Proposal,
    /// Keys could not be computed.
    Crypto,
}
