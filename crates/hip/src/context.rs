//! What an association may use while it handles one input.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use polypath_wire::hip::{Hit, Kind, Multipath, MultipathPath, PacketView, Param, Signature, coverage};
use polypath_wire::{Duration, Instant, Rate};

use crate::Random;
use crate::config::HipConfig;
use crate::dh::{DhGroup, DhKey, SharedSecret};
use crate::effort::Effort;
use crate::error::CryptoError;
use crate::event::{DropReason, Event, PeerEvent, Route, Transmit};
use crate::identity::{Identity, PublicIdentity};

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
    /// The association's name, if that is not the HIT of its peer.
    pub name: Option<Hit>,
    pub config: &'a HipConfig,
    pub identity: &'a Identity,
    /// What we know of our own addresses.
    pub links: &'a Links,
    pub random: &'a mut Random,
    /// Our addresses, for those peers to which all are announced.
    pub addresses: &'a [IpAddr],
    /// Inbound SPIs in use.
    pub spis: &'a mut BTreeSet<u32>,
    pub outbox: &'a mut VecDeque<Transmit>,
    pub events: &'a mut VecDeque<PeerEvent>,
    pub effort: &'a mut Effort,
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

    /// Our signature over `message`.
    pub fn sign(&mut self, message: &[u8]) -> Result<Signature, CryptoError> {
        self.effort.signed += 1;
        self.identity.sign(message)
    }

    /// Checks the signature of `peer` in the parameter `kind` over `covered`.
    pub fn verify(
        &mut self,
        peer: &PublicIdentity,
        view: &PacketView<'_>,
        kind: Kind,
        covered: &[u8],
    ) -> Result<(), DropReason> {
        let signature = view.param(kind).and_then(|p| match Param::parse(kind, p.contents) {
            Ok(Param::HipSignature(s) | Param::HipSignature2(s)) => Some(s),
            _ => None,
        });
        let signature = signature.ok_or(DropReason::Signature)?;
        self.effort.verified += 1;
        peer.verify(covered, &signature).map_err(|_| DropReason::Signature)
    }

    /// Checks HIP_SIGNATURE.
    pub fn verify_signature(
        &mut self,
        peer: &PublicIdentity,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        self.verify(peer, view, Kind::HIP_SIGNATURE, &coverage::signature(view))
    }

    /// A fresh key.
    pub fn dh_key(&mut self, group: DhGroup) -> DhKey {
        self.effort.agreed += 1;
        DhKey::generate(group, self.random)
    }

    /// What we share with the owner of the public value `peer`.
    pub fn agree(&mut self, key: &DhKey, peer: &[u8]) -> Result<SharedSecret, CryptoError> {
        self.effort.agreed += 1;
        key.agree(peer)
    }

    /// `spi` for an inbound SPI of ours, if it is like ours and nobody uses it; else a random one.
    pub fn same_spi(&mut self, spi: u32) -> u32 {
        let free = spi & !SPI_RANDOM == SPI_SET && self.spis.insert(spi);
        if free { spi } else { self.new_spi() }
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
    /// It is for what other links have no room for.
    pub spill: bool,
}

/// By their addresses, and whether it was measured.
pub(crate) type Links = BTreeMap<IpAddr, (Link, bool)>;

/// Our multipath parameter; none if we use one path only.
pub(crate) fn announcement(config: &HipConfig, links: &Links, addresses: &[IpAddr]) -> Option<Multipath> {
    let path = |(address, id): (&IpAddr, u8)| {
        let (Link { bandwidth, delay, spill }, measured) = links.get(address).copied().unwrap_or_default();
        MultipathPath { id, address: *address, measured, spill, bandwidth, delay }
    };
    (config.max_paths > 1).then(|| Multipath {
        shim_version: SHIM_VERSION,
        max_paths: config.max_paths,
        early_data: config.early_data,
        same_spi: config.same_spi,
        no_checksums: config.no_checksums,
        paths: addresses.iter().zip(0..).map(path).collect(),
    })
}
