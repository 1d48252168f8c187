//! Who listens on the hops and to the hosts: the trace, the capture, and the watch of delays.

use std::fmt;

use polypath_wire::Instant;

use crate::delay;
use crate::packet::Packet;
use crate::pcapng::Capture;
use crate::route::Route;
use crate::topology::HopId;
use crate::trace::{HopEvent, Trace};
use polypath_hop::Drop;

#[derive(Default)]
pub(crate) struct Taps {
    pub trace: Option<Trace>,
    /// Whether the trace wants hop events too.
    pub trace_hops: bool,
    pub capture: Option<Capture>,
    pub delays: Option<delay::Watch>,
}

impl Taps {
    /// Whether anybody wants to know what happens at this hop.
    pub fn watches(&self, at: HopId) -> bool {
        self.trace_hops || self.capture.as_ref().is_some_and(|c| c.watches(at))
    }

    /// A packet reached the far end of a hop.
    pub fn left(&mut self, now: Instant, at: HopId, packet: &Packet, routes: &[Route]) {
        if let Some(trace) = self.trace.as_mut().filter(|_| self.trace_hops) {
            trace.hop(now, at, packet.size, HopEvent::Left);
        }
        if let Some(capture) = self.capture.as_mut().filter(|c| c.watches(at)) {
            capture.packet(now, at, packet, &routes[packet.route.0 as usize].locators.reversed());
        }
    }

    /// A packet was dropped at a hop.
    pub fn dropped(&mut self, now: Instant, at: HopId, packet: &Packet, cause: Drop) {
        if let Some(trace) = self.trace.as_mut().filter(|_| self.trace_hops) {
            trace.hop(now, at, packet.size, HopEvent::Dropped(cause));
        }
    }
}

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taps").finish_non_exhaustive()
    }
}
