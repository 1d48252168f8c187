//! What an association may use while it handles one input.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

use polypath_wire::hip::{Hit, Multipath, MultipathPath};
use polypath_wire::{Instant, PathId};

use crate::Random;
use crate::config::HipConfig;
use crate::event::{Event, PeerEvent, Route, Transmit};
use crate::identity::Identity;

/// The version of the multipath shim header that we speak.
pub(crate) const SHIM_VERSION: u8 = 1;
/// SPIs up to here are reserved (RFC 4303 §2.1).
const RESERVED_SPIS: u32 = 255;

pub(crate) struct Context<'a> {
    pub now: Instant,
    pub config: &'a HipConfig,
    pub identity: &'a Identity,
    pub random: &'a mut Random,
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
        self.events.push_back((peer, event));
    }

    /// A random inbound SPI that nobody uses.
    pub fn new_spi(&mut self) -> u32 {
        loop {
            let spi = self.random.u32();
            if spi > RESERVED_SPIS && self.spis.insert(spi) {
                return spi;
            }
        }
    }
}

/// Our multipath parameter; none if we use one path only.
pub(crate) fn announcement(config: &HipConfig, addresses: &[IpAddr]) -> Option<Multipath> {
    (config.max_paths > 1).then(|| Multipath {
        shim_version: SHIM_VERSION,
        max_paths: config.max_paths,
        paths: addresses.iter().zip(0..).map(|(address, id)| path(*address, id)).collect(),
    })
}

fn path(address: IpAddr, id: u8) -> MultipathPath {
    MultipathPath { id: PathId(id), address, bandwidth: None, delay: None }
}
