//! A host: its endpoint, its clock, and what stands between the endpoint and the first hop.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use polypath_endpoint::{
    ConnectionHandle, Endpoint, EndpointConfig, Input, Locators, Outlet, SecurityConfig,
};
use polypath_hip::{Identity, Random};
use polypath_transport::{DropReason, Ports, Segment};
use polypath_wire::hip::Hit;
use polypath_wire::millis;
use polypath_wire::{Duration, Ecn, Instant, Seed, WireError};
use serde::{Deserialize, Serialize};

use crate::bytes;
use crate::clock::{Clock, ClockConfig};
use crate::events::Alarm;
use crate::jitter::Jitter;
use crate::net::Net;
use crate::packet::{Body, Packet};
use crate::route::{Route, RouteId};
use crate::topology::NodeId;

/// Parameters of a host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostConfig {
    /// Its clock.
    pub clock: ClockConfig,
    /// Its endpoint.
    pub endpoint: EndpointConfig,
    /// New data that an event allows to be sent leaves after a time drawn from 0 to this, ms; what
    /// is sent again leaves at once. ns-2's `overhead_`, which breaks up phase effects.
    #[serde(with = "millis")]
    pub processing: Duration,
}

/// The identity of a simulated host: a P-256 key that follows from `seed`, and so is no secret, whose
/// signatures follow from what they sign.
pub fn identity(seed: Seed) -> Identity {
    Identity::repeatable(&mut Random::from_seed(secret(seed)))
        .expect("a generator of random numbers gives a scalar below the order sooner or later")
}

fn secret(seed: Seed) -> [u8; 32] {
    let mut secret = [0; 32];
    for (part, n) in secret.chunks_mut(8).zip(0..) {
        part.copy_from_slice(&seed.child(&format!("secret/{n}")).0.to_le_bytes());
    }
    secret
}

/// What the headers of a segment take on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Headers {
    /// What they are: IPv4 and TCP with its options.
    #[default]
    Real,
    /// IPv4, UDP and TCP with its options, as the daemon's are.
    Udp,
    /// Always the same, as in the papers' simulations.
    Fixed {
        /// Bytes of a segment with data beside its data.
        data: u32,
        /// Bytes of a segment without data.
        control: u32,
    },
}

impl Headers {
    /// Size of a segment on the wire, bytes.
    #[inline]
    pub fn size(self, segment: &Segment) -> u32 {
        let data = segment.payload.len() as u32;
        match self {
            Self::Real => polypath_wire::ipv4::MIN_HEADER_LEN as u32 + segment.header.len() as u32 + data,
            Self::Udp => Self::Real.size(segment) + polypath_wire::udp::HEADER_LEN as u32,
            Self::Fixed { control, .. } if data == 0 => control,
            Self::Fixed { data: headers, .. } => headers + data,
        }
    }
}

/// Which end of a flow a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Host {
    pub clock: Clock,
    /// Wakes it.
    pub alarm: Alarm,
    /// The time to which the alarm is set; `MAX` if it is not.
    pub armed: Instant,
    pub exit: Exit,
    /// Flows whose sender sees all queues.
    pub oracles: Vec<u32>,
    /// The flows of connections, by the index of their handles.
    connections: Vec<Option<(ConnectionHandle, u32, Side)>>,
    pub endpoint: Endpoint,
    /// The flows that listen on a port.
    pub listeners: BTreeMap<u16, u32>,
    /// Flows that wait for an association with their peer.
    pub waiting: Vec<(Hit, u32)>,
    /// Packets dropped before the endpoint, indexed by [`DropReason`].
    pub drops: [u64; DropReason::COUNT],
}

/// The way out of a host.
#[derive(Debug)]
pub(crate) struct Exit {
    pub node: NodeId,
    pub ways: Vec<Way>,
    pub jitter: Option<Jitter>,
    pub headers: Headers,
    /// Segments leave as bytes.
    pub bytes: bool,
    /// Segments between locators without a route.
    pub unroutable: u64,
}

/// A route out of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Its locators, by [`route_key`].
    pub key: u64,
    pub route: RouteId,
    /// Where it begins in the network's steps.
    pub first: u32,
}

impl Host {
    pub fn new(node: NodeId, config: HostConfig, headers: Headers, bytes: bool, seed: Seed) -> Self {
        let jitter = (config.processing > Duration::ZERO)
            .then(|| Jitter::new(config.processing, seed.child("jitter")));
        Self {
            endpoint: Endpoint::new(config.endpoint, seed.child("endpoint")),
            clock: Clock::new(config.clock),
            alarm: Alarm::of_host(node),
            armed: Instant::MAX,
            exit: Exit { node, ways: Vec::new(), jitter, headers, bytes, unroutable: 0 },
            listeners: BTreeMap::new(),
            waiting: Vec::new(),
            oracles: Vec::new(),
            connections: Vec::new(),
            drops: [0; DropReason::COUNT],
        }
    }

    /// A host whose segments travel in ESP.
    pub fn secure(
        self,
        config: SecurityConfig,
        endpoint: EndpointConfig,
        identity: Identity,
        seed: Seed,
    ) -> Self {
        Self { endpoint: Endpoint::secure(endpoint, config, identity, secret(seed), 1), ..self }
    }

    /// A packet arrived over `route`. Returns the connection that it belongs to. A segment's data is taken
    /// out of it.
    pub fn receive(
        &mut self,
        now: Instant,
        route: &mut Route,
        packet: &mut Packet,
    ) -> Option<ConnectionHandle> {
        let local = self.clock.local(now);
        let ecn = packet.ecn;
        match &mut packet.body {
            Body::Segment(segment) => {
                segment.ecn = ecn;
                let (locators, trail) = (&route.locators, &mut route.trail);
                let handle = self.endpoint.handle_segment_on(trail, local, locators, segment);
                self.endpoint.reuse(segment);
                handle
            }
            Body::Bytes(packet) => self.receive_bytes(local, &route.locators, ecn, packet),
            Body::Datagram(_) => None,
        }
    }

    #[inline(never)]
    fn receive_bytes(
        &mut self,
        local: Instant,
        locators: &Locators,
        ecn: Ecn,
        packet: &mut Vec<u8>,
    ) -> Option<ConnectionHandle> {
        if self.endpoint.hit().is_some() {
            return match bytes::decode_payload(packet) {
                Ok((payload, [src, dst])) => {
                    let Locators { local: ours, remote } = locators;
                    let (ours, remote) = (SocketAddr::new(ours.ip(), dst), SocketAddr::new(remote.ip(), src));
                    self.endpoint.handle_datagram(local, &Locators { local: ours, remote }, ecn, payload)
                }
                Err(error) => self.damaged(error),
            };
        }
        match bytes::decode(std::mem::take(packet)) {
            Ok(mut segment) => {
                segment.ecn = ecn;
                self.endpoint.handle_segment(local, locators, &mut segment)
            }
            Err(error) => self.damaged(error),
        }
    }

    /// A segment of ours did not fit a hop, which takes packets of `mtu` bytes.
    pub fn too_big(&mut self, now: Instant, locators: Locators, body: Body, mtu: u32) {
        if self.endpoint.hit().is_some() {
            return self.endpoint.handle(self.clock.local(now), Input::PathMtu { locators, mtu });
        }
        let segment = match body {
            Body::Segment(segment) => *segment,
            Body::Bytes(packet) => match bytes::decode(packet) {
                Ok(segment) => segment,
                Err(_) => return, // damaged on the way: nobody knows whose it was
            },
            Body::Datagram(_) => return,
        };
        let ports = Ports { local: segment.header.src_port, remote: segment.header.dst_port };
        let input = Input::TooBig { locators, ports, seq: segment.header.seq, mtu };
        self.endpoint.handle(self.clock.local(now), input);
    }

    fn damaged(&mut self, error: WireError) -> Option<ConnectionHandle> {
        let reason = if error.is_checksum() { DropReason::Checksum } else { DropReason::Malformed };
        self.drops[reason as usize] += 1;
        None
    }

    /// The flow of a connection, and which end of it this is.
    pub fn flow(&self, handle: ConnectionHandle) -> Option<(u32, Side)> {
        let &(known, flow, side) = self.connections.get(handle.index())?.as_ref()?;
        (known == handle).then_some((flow, side))
    }

    /// Says whose connection this is.
    pub fn assign(&mut self, handle: ConnectionHandle, flow: u32, side: Side) {
        if handle.index() >= self.connections.len() {
            self.connections.resize(handle.index() + 1, None);
        }
        self.connections[handle.index()] = Some((handle, flow, side));
    }
}

impl Exit {
    /// The way between two locators. What is sent without one is lost.
    fn way(&mut self, locators: &Locators) -> Option<Way> {
        let key = route_key(locators);
        let known = self.ways.iter().find(|way| way.key == key);
        if known.is_none() {
            self.unroutable += 1;
        }
        known.copied()
    }
}

/// The way out together with what lies beyond it.
pub(crate) struct Door<'a> {
    pub exit: &'a mut Exit,
    pub net: &'a mut Net,
}

impl Outlet for Door<'_> {
    fn send(&mut self, _: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        let Some(Way { route, first, .. }) = self.exit.way(locators) else { return };
        let size = self.exit.headers.size(segment);
        let batch = self.exit.jitter.as_mut().and_then(|jitter| jitter.batch_for(segment));
        let packet = self.net.packets.claim(route, size);
        let Packet { body, ecn, .. } = &mut self.net.packets[packet];
        *ecn = segment.ecn;
        match body {
            body if self.exit.bytes => *body = Body::Bytes(bytes::encode(segment, locators)),
            Body::Segment(slot) => std::mem::swap(slot, segment),
            body => *body = Body::Segment(std::mem::take(segment)),
        }
        match (&mut self.exit.jitter, batch) {
            (Some(jitter), Some(batch)) => jitter.hold(batch, packet, self.exit.node, self.net),
            _ => self.net.send_from(first, packet),
        }
    }

    fn send_datagram(&mut self, _: Instant, locators: &Locators, ecn: Ecn, payload: &[u8]) {
        let Some(Way { route, first, .. }) = self.exit.way(locators) else { return };
        let bytes = bytes::encode_payload(payload, locators);
        let packet = self.net.packets.claim(route, bytes.len() as u32);
        let slot = &mut self.net.packets[packet];
        (slot.body, slot.ecn) = (Body::Bytes(bytes), ecn);
        self.net.send_from(first, packet);
    }
}

/// The addresses of a pair of IPv4 locators in one number.
pub(crate) fn route_key(locators: &Locators) -> u64 {
    match (locators.local, locators.remote) {
        (SocketAddr::V4(l), SocketAddr::V4(r)) => {
            u64::from(l.ip().to_bits()) << 32 | u64::from(r.ip().to_bits())
        }
        _ => 0,
    }
}
