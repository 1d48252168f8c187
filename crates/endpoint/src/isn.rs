//! Initial sequence numbers (RFC 6528 §3: ISN = M + F(locators, ports, secret key)).

use std::hash::Hasher;
use std::net::IpAddr;

use polypath_transport::Ports;
use polypath_wire::{Instant, Seed, Seq};
use siphasher::sip::SipHasher13;

use crate::paths::Locators;

/// The secret key of one endpoint.
#[derive(Debug)]
pub(crate) struct IsnKey(SipHasher13);

impl IsnKey {
    pub fn new(seed: Seed) -> Self {
        Self(SipHasher13::new_with_keys(seed.child("isn/0").0, seed.child("isn/1").0))
    }

    /// A seed for something else that nobody is to guess.
    pub fn child(&self, name: &str) -> Seed {
        let mut hasher = self.0;
        hasher.write(name.as_bytes());
        Seed(hasher.finish())
    }

    /// The initial sequence number of a connection opened `now`.
    pub fn at(&self, now: Instant, locators: &Locators, ports: Ports) -> Seq {
        let mut hasher = self.0;
        for (address, port) in [(locators.local, ports.local), (locators.remote, ports.remote)] {
            match address.ip() {
                IpAddr::V4(ip) => hasher.write(&ip.octets()),
                IpAddr::V6(ip) => hasher.write(&ip.octets()),
            }
            hasher.write(&address.port().to_be_bytes());
            hasher.write(&port.to_be_bytes());
        }
        let ticks_of_4_us = (now.0 / 4_000) as u32;
        Seq(ticks_of_4_us).plus(hasher.finish() as u32)
    }
}
