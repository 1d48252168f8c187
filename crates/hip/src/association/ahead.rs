//! Paths that carry data before the peer has answered the request for them.
//!
//! I1 goes to several pairs of addresses, and each R1 shows that its pair works and how long that takes. Where both ends
//! give an added path one number for both SPIs, the end that asks for it knows all that the answer will say: it installs the SA pair with
//! its request, and data leaves behind that. The answer confirms it. The peer's SA is as it always is: what is sent
//! to an address that is not proved needs credit. An R1 serves one path: when that is asked for again, what the path was says nothing,
//! and its SA pair stays until the answer is here.

use polypath_wire::Duration;
use polypath_wire::hip::EspInfo;

use super::Association;
use crate::context::Context;
use crate::event::{DropReason, Event, Route};

/// A route by which an R1 answered our I1, and that no path has used yet.
pub(super) struct Met {
    route: Route,
    round_trip: Duration,
}

impl Met {
    pub(super) fn is_on(&self, route: Route) -> bool {
        self.route == route
    }
}

impl Association {
    /// Whether both ends give a path one number for both its SPIs.
    pub(super) fn shares_spis(&self, ctx: &Context<'_>) -> bool {
        ctx.config.same_spi && self.peer_multipath.as_ref().is_some_and(|m| m.same_spi)
    }

    /// An R1 came on `route`, whoever sent it: all that follows from it is where data is tried.
    pub(super) fn meet(&mut self, ctx: &mut Context<'_>, route: Route) {
        let Some(round_trip) = self.asked_at.map(|at| ctx.now.since(at)) else { return };
        let asked = self.routes.contains(&route) && round_trip < ctx.config.patience();
        let new = !self.met.iter().any(|met| met.is_on(route)) && self.paths.iter().all(|p| p.route != route);
        if asked && new {
            self.met.push(Met { route, round_trip });
            self.open_ahead(ctx, route);
        }
    }

    /// A path on `route` was asked for. The place of its keys is kept.
    pub(super) fn asked_to_add(&mut self, ctx: &mut Context<'_>, route: Route) {
        if self.shares_spis(ctx) {
            self.session.iter_mut().for_each(|s| s.skip(1));
            self.open_ahead(ctx, route);
        }
    }

    /// Installs the SA pair of the path that was asked for on `route`, if an R1 came there.
    fn open_ahead(&mut self, ctx: &mut Context<'_>, route: Route) {
        let Some(met) = self.met.iter().find(|met| met.is_on(route)) else { return };
        let (round_trip, shares) = (met.round_trip, self.shares_spis(ctx));
        let Some((inbound, index)) = self.updates.asked_on(route).filter(|_| shares) else { return };
        let Ok(keymat_index) = u16::try_from(index) else { return };
        let info = EspInfo { keymat_index, old_spi: 0, new_spi: inbound };
        if self.install_new(ctx, route, inbound, info, true, true).is_ok()
            && let Some(path) = self.paths.last_mut()
        {
            path.round_trip = round_trip;
        }
    }

    /// The answer to the request for a path is here. One that says something else than what was taken for granted is of no
    /// use if it names the same keys: these were used already.
    pub(super) fn complete_add(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        inbound: u32,
        info: EspInfo,
    ) -> Result<(), DropReason> {
        let Some(path) = self.paths.iter().find(|p| p.inbound == inbound) else {
            return self.install_new(ctx, route, inbound, info, true, true);
        };
        let (asked_on, same) = (path.route, path.outbound == info.new_spi);
        let drawn = self.session.as_ref().is_some_and(|s| s.drawn.contains(&info.keymat_index.into()));
        if same && drawn {
            self.locators.meet(asked_on.remote.ip());
            self.reached(ctx, inbound, route);
            return Ok(());
        }
        self.remove_path(ctx, inbound);
        if drawn {
            ctx.event(self.peer, Event::PathFailed { route: asked_on });
            return Ok(());
        }
        ctx.spis.insert(inbound);
        self.install_new(ctx, route, inbound, info, true, true)
    }
}
