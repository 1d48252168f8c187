//! What takes what an endpoint sends.

use bytes::Bytes;
use polypath_transport::Segment;
use polypath_wire::{Ecn, Instant};

use crate::paths::Locators;

/// What stands behind an endpoint: a simulated host, a set of sockets, a TUN device.
pub trait Outlet {
    /// Sends a segment, or loses it. An outlet that keeps it leaves any other in its place.
    fn send(&mut self, now: Instant, locators: &Locators, segment: &mut Box<Segment>);

    /// Sends a UDP payload of HIP or ESP between two outer addresses, or loses it; with port 0 at the remote end,
    /// without UDP (HIP without its marker). `ecn` is the ECN field of the IP header, for outlets that can set it. Only outlets of secure
    /// endpoints are asked.
    fn send_datagram(&mut self, _now: Instant, _locators: &Locators, _ecn: Ecn, _payload: &[u8]) {}

    /// Sends a UDP payload of `len` bytes, which `write` makes in the buffer that it is sent from, or nothing if `write`
    /// returns false. The buffer's bytes are unspecified before.
    fn send_datagram_with(
        &mut self,
        now: Instant,
        locators: &Locators,
        ecn: Ecn,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) {
        let mut payload = vec![0; len];
        if write(&mut payload) {
            self.send_datagram(now, locators, ecn, &payload);
        }
    }

    /// Sends a whole IP packet, or loses it. Only an outlet that gave the endpoint IP packets is asked.
    fn send_packet(&mut self, _now: Instant, _packet: Bytes) {}

    /// Whether it takes no more for now. The pump stops, and is called again when that has changed.
    fn is_full(&self) -> bool {
        false
    }
}
