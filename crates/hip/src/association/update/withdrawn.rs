//! The peer's locators (RFC 8046 §5.3), and the paths to those that it has withdrawn.

use polypath_wire::hip::NotifyType;

use super::{Request, Update};
use crate::association::{Association, Path};
use crate::context::Context;
use crate::event::{DropReason, Event, Route};
use crate::locators::LocatorState;

/// Most addresses of a peer that the owner hears of.
const MOST_TOLD: usize = 16;

impl Association {
    /// Each of the peer's locators must be one that a host can have, of a type that we know (RFC 8046 §5.3).
    pub(super) fn check_locators(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        update: &Update,
    ) -> Result<(), DropReason> {
        for locator in update.locators.iter().flatten() {
            let Some(address) = locator.address.ip() else {
                if locator.preferred {
                    self.notify(ctx, route, NotifyType::LOCATOR_TYPE_UNSUPPORTED, Vec::new());
                }
                continue;
            };
            let broadcast = address == std::net::IpAddr::from([255; 4]);
            if address.is_multicast() || address.is_unspecified() || broadcast || locator.lifetime == 0 {
                return Err(DropReason::Proposal);
            }
        }
        Ok(())
    }

    /// Takes what the peer says of its addresses; a LOCATOR_SET only if it `is_news`, not older than one that came.
    pub(super) fn take_locators(&mut self, ctx: &mut Context<'_>, update: &Update, is_news: bool) {
        if self.peer_multipath.is_some() && update.multipath.is_some() {
            self.learn_multipath(ctx, update.multipath.clone());
        }
        if let Some(set) = update.locators.as_ref().filter(|_| is_news) {
            self.locators.replace(ctx.now, set);
            for path in &self.paths {
                path.former.iter().for_each(|spi| self.locators.rename(*spi, path.outbound));
            }
            let addresses = set.iter().filter_map(|l| l.address.ip()).take(MOST_TOLD).collect();
            ctx.event(self.peer, Event::Locators(addresses));
        }
    }

    /// A path whose locator is no longer listed, or whose lifetime is over, gets no data; if it is listed again, it does
    /// after the peer has proved that it is there. What the peer said before it answered the request for a path does not list it; once it gave a path new keys, it
    /// names the new SPI.
    pub(in crate::association) fn review_paths(&mut self, ctx: &mut Context<'_>) {
        let mut listed_again = Vec::new();
        for n in 0..self.paths.len() {
            let spi = self.paths[n].inbound;
            let asked = self.updates.adding().any(|(inbound, _)| inbound == spi)
                || self.updates.awaited().any(|request| request.rekeys(spi));
            let listed = asked || self.is_listed(&self.paths[n]);
            let path = &mut self.paths[n];
            if listed && path.withdrawn {
                (path.withdrawn, path.withdrawn_at) = (false, None);
                listed_again.push((path.inbound, path.route));
            } else if !listed && !path.withdrawn {
                (path.reachable, path.withdrawn, path.withdrawn_at) = (false, true, Some(ctx.now));
                self.leftover_at.get_or_insert(ctx.now + ctx.config.unused_lifetime);
                ctx.event(self.peer, Event::Withdrawn { inbound: path.inbound });
            }
        }
        for (inbound, route) in listed_again {
            self.ask_for_proof(ctx, inbound, route);
        }
    }

    /// The peer's word that a path is removed may have been lost: one that stays withdrawn for long is removed from here.
    pub(in crate::association) fn remove_leftovers(&mut self, ctx: &mut Context<'_>) {
        let lifetime = ctx.config.unused_lifetime;
        let over = |p: &&Path| p.withdrawn_at.is_some_and(|at| at + lifetime <= ctx.now);
        let over: Vec<u32> = self.paths.iter().filter(over).map(|p| p.inbound).collect();
        over.into_iter().for_each(|inbound| self.request(ctx, Request::Remove { inbound }));
        let waits = self.paths.iter().any(|p| p.withdrawn);
        self.leftover_at = waits.then(|| ctx.now + lifetime);
    }

    /// Whether a locator that is not deprecated names the path: by its address, or behind a NAT by the SPI on which the
    /// peer receives.
    fn is_listed(&self, path: &Path) -> bool {
        let mut good = self.locators.iter().filter(|l| l.state != LocatorState::Deprecated);
        good.any(|l| l.address == path.route.remote.ip() || l.spis.contains(&path.outbound))
    }
}
