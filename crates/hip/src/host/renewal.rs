//! A second base exchange with a peer that may have lost its state, beside the association in force (RFC 7401 §4.5.4):
//! only its R2 ends that one, so neither silence nor a forged answer does.

use polypath_wire::Instant;
use polypath_wire::hip::Hit;

use super::Host;
use crate::association::Association;
use crate::context::Context;
use crate::event::Route;
use crate::state::State;

impl Host {
    /// Asks `peer` at `routes` for a new association in the place of the present one, or asks again: nothing goes again by itself,
    /// so that what the caller sent just before it is answered first. The present one stays until the peer's R2; events report its end
    /// then.
    pub fn renew(&mut self, now: Instant, peer: Hit, routes: Vec<Route>) {
        if self.peers.get(&peer).is_none_or(|a| a.state() != State::Established) {
            return;
        }
        if self.renewals.get(&peer).is_some_and(|a| !a.waits_for_r1()) {
            return;
        }
        let mut renewal = Association::new(peer, routes, now);
        renewal.succeed();
        self.renewals.put(peer, renewal);
        self.with_renewal(now, peer, |a, ctx| a.connect(ctx));
    }

    /// Whether a payload that came on `route` is an R1 for us, signed by a peer who is asked for a new association, and from an address and port
    /// of its paths: the rest costs no public-key operation, and signatures that are checked are limited.
    pub fn is_genuine_r1(&mut self, now: Instant, route: Route, payload: &[u8]) -> bool {
        let Ok(view) = self.check(route, payload) else { return false };
        let peer = view.sender();
        let known = self.peers.get(&peer).is_some_and(|a| a.is_at(route));
        known && self.with_renewal(now, peer, |a, ctx| a.is_signed_r1(ctx, &view)) == Some(true)
    }

    /// The peer has not lost its state after all.
    pub fn cancel_renewal(&mut self, now: Instant, peer: Hit) {
        self.with_renewal(now, peer, |a, ctx| a.forget(ctx));
    }

    /// Whether a new association with `peer` is asked for.
    pub fn is_renewing(&self, peer: Hit) -> bool {
        self.renewals.contains(&peer)
    }

    /// Lets the new association do something. Its events are reported only once it is established.
    pub(super) fn with_renewal<T>(
        &mut self,
        now: Instant,
        peer: Hit,
        act: impl FnOnce(&mut Association, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut renewal = self.renewals.take(&peer)?;
        let before = std::mem::take(&mut self.events);
        let (_, mut ctx) = self.context(now);
        let result = act(&mut renewal, &mut ctx);
        let events = std::mem::replace(&mut self.events, before);
        match renewal.state() {
            State::Established => {
                self.with(now, peer, |old, ctx| old.forget(ctx));
                self.events.extend(events);
                self.peers.put(peer, renewal);
            }
            State::I1Sent | State::I2Sent => self.renewals.put(peer, renewal),
            _ => {}
        }
        Some(result)
    }
}
