//! The only drain loop in the project.

use polypath_wire::Instant;

use crate::endpoint::Endpoint;
use crate::outlet::Outlet;

/// Lets due timers expire and sends all that is ready. Returns when to call again at the latest.
/// The caller polls events and records afterwards.
pub fn pump(endpoint: &mut Endpoint, now: Instant, outlet: &mut impl Outlet) -> Option<Instant> {
    if endpoint.poll_timeout().is_some_and(|due| due <= now) {
        endpoint.handle_timeout(now);
    }
    endpoint.transmit(now, outlet);
    while let Some(packet) = endpoint.poll_packet() {
        outlet.send_packet(now, packet);
    }
    endpoint.poll_timeout()
}
