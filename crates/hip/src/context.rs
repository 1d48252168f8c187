//! What an association may use while it handles one input.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use polypath_wire::hip::{Hit, Multipath, MultipathPath};
use polypath_wire::{Duration, Instant, PathId, Rate};

use crate::Random;
use crate::config::HipConfig;
use crate::event::{Event, PeerEvent, Route, Transmit};
use crate::identity::Identity;

/// The version of the multipath shim header that we speak.
pub(crate) const SHIM_VERSION: u8 = 1;
/// What every SPI of ours has. An SPI begins a UDP payload, and analysers guess a protocol by its first
/// bytes: none begins with 8 to 15 (RFC 7983 §7), followed by a byte above 127 (not CLTP) and one with an
/// opcode that DNS does not have. It is above 255 too, as it must be (RFC 4303 §2.1).
const SPI_SET: u32 = 0x0880_7800;
/// What is random in an SPI.
const SPI_RANDOM: u32 = 0x077f_87ff;

pub(crate) struct Context<'a> {
    pub now: Instant,
    /// What the association goes by, if not by the HIT of its peer.
    pub name: Option<Hit>,
    pub config: &'a HipConfig,
    pub identity: &'a Identity,
    /// What we know of our own addresses.
    pub links: &'a Links,
    pub random: &'a mut Random,
    /// Our addresses, for those peers that are told of all.
    pub addresses: &'a [IpAddr],
    /// Inbound SPIs in use.
    pub spis: &'a mut BTreeSet<u32>,
    pub outbox: &'a mut VecDeque<Transmit>,
    pub events: &'a mut VecDeque<PeerEvent>,
}

impl Context<'_> {
    /// Sends `packet`, whose checksum is 0, on `route`.
    pub fn send(&mut self, route: Route, packet: &[u8]) {
        self.outbox.extend(Transmit::new(route, packet));
    }

    /// Says what happened.
    pub fn event(&mut self, peer: Hit, event: Event) {
        self.events.push_back((self.name.unwrap_or(peer), event));
    }

    /// A random inbound SPI that nobody uses.
    pub fn new_spi(&mut self) -> u32 {
        loop {
            let spi = self.random.u32() & SPI_RANDOM | SPI_SET;
            if self.spis.insert(spi) {
                return spi;
            }
        }
    }
}

/// What a host knows of the link of one of its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Link {
    /// Its rate.
    pub bandwidth: Option<Rate>,
    /// What it adds to the one-way delay.
    pub delay: Option<Duration>,
}

/// By their addresses, and whether it was measured.
pub(crate) type Links = BTreeMap<IpAddr, (Link, bool)>;

/// Our multipath parameter; none if we use one path only.
pub(crate) fn announcement(config: &HipConfig, links: &Links, addresses: &[IpAddr]) -> Option<Multipath> {
    let path = |(address, id): (&IpAddr, u8)| {
        let (Link { bandwidth, delay }, measured) = links.get(address).copied().unwrap_or_default();
        MultipathPath { id: PathId(id), address: *address, measured, bandwidth, delay }
    };
    (config.max_paths > 1).then(|| Multipath {
        shim_version: SHIM_VERSION,
        max_paths: config.max_paths,
        paths: addresses.iter().zip(0..).map(path).collect(),
    })
}
