//! Our requests: what is asked of the peer, again until it answers.

use std::net::IpAddr;

use polypath_wire::hip::{EspInfo, Locator, LocatorAddress, Packet, PacketType, Param, TrafficType};

use super::{Pending, Request, What, public};
use crate::association::wait::{round_trip, wait};
use crate::association::{Association, Path};
use crate::context::{Context, announcement};
use crate::event::{Event, Route};
use crate::session::Session;
use crate::state::State;

/// Most links and most locators in a request, so that it fits into one IP packet of 1500 bytes. LOCATOR_SET is the complete
/// list (RFC 8046 §5.3), so it is left out rather than cut: the request is then about the address that it comes from.
const MOST_LINKS: usize = 8;
const MOST_LISTED: usize = 24;

impl Association {
    /// Does what is asked: at once if nothing is under way that it depends on.
    pub(crate) fn request(&mut self, ctx: &mut Context<'_>, request: Request) {
        if self.updates.waiting.contains(&request) {
            return;
        }
        if self.state == State::Established && !request.draws_keys() && self.updates.may_go(request) {
            // Nothing is sent for a path that is not there.
            let _ = self.send_request(ctx, request);
            return;
        }
        self.updates.waiting.push_back(request);
        self.next_request(ctx);
        if let Request::Add(route) = request
            && self.updates.waiting.contains(&request)
        {
            self.hasten(ctx, route);
        }
    }

    /// Tells the peer our addresses; those without a path too if it is to know `all`, from now on.
    pub(crate) fn announce(&mut self, ctx: &mut Context<'_>, all: bool) {
        self.updates.announces |= all;
        self.request(ctx, Request::Announce);
    }

    /// Sends what waits, in order, as far as it may go.
    pub(super) fn next_request(&mut self, ctx: &mut Context<'_>) {
        self.ask_for_keymat();
        while self.state == State::Established
            && let Some(&request) = self.updates.waiting.front()
            && self.updates.may_go(request)
        {
            self.updates.waiting.pop_front();
            self.send_request(ctx, request);
        }
    }

    /// Key material does not last for ever: when half of it is used up, a path gets new keys from a new exchange.
    fn ask_for_keymat(&mut self) {
        let asked = self.updates.is_rekeying()
            || self.updates.waiting.iter().any(|r| matches!(r, Request::Rekey { new_dh: true, .. }));
        if self.session.as_ref().is_some_and(Session::is_scarce)
            && !asked
            && let Some(path) = self.paths.iter().find(|p| p.reachable)
        {
            self.updates.waiting.push_front(Request::Rekey { inbound: path.inbound, new_dh: true });
        }
    }

    fn send_request(&mut self, ctx: &mut Context<'_>, request: Request) -> Option<()> {
        let find = |inbound: u32| self.paths.iter().find(|p| p.inbound == inbound).cloned();
        let index = self.session.as_ref()?.next_index;
        let (route, inbound, old, dh) = match request {
            Request::Add(route) => (route, ctx.new_spi(), 0, None),
            Request::Announce => return self.send_announcement(ctx),
            Request::Rekey { inbound, new_dh } => {
                let path = find(inbound)?;
                let group = self.session.as_ref()?.group;
                (path.route, ctx.new_spi(), inbound, new_dh.then(|| ctx.dh_key(group)))
            }
            Request::Move { inbound, route } => (route, find(inbound)?.inbound, inbound, None),
            Request::Remove { inbound } => {
                find(inbound)?;
                (self.paths.iter().find(|p| p.inbound != inbound)?.route, 0, inbound, None)
            }
        };
        let keymat_index = if dh.is_some() { 0 } else { u16::try_from(index).ok()? };
        let locators = self.our_locators(ctx, request, inbound);
        let mut params = vec![Param::EspInfo(EspInfo { keymat_index, old_spi: old, new_spi: inbound })];
        if locators.len() <= MOST_LISTED {
            params.push(Param::LocatorSet(locators.clone()));
        }
        params.extend(dh.as_ref().map(public));
        params.extend(self.our_links(ctx, &locators));
        self.send_update(ctx, route, params, What::Request { request, inbound, dh, index })?;
        if matches!(request, Request::Add(_)) {
            self.asked_to_add(ctx, route);
        }
        Some(())
    }

    /// A LOCATOR_SET alone, on the first path that works.
    fn send_announcement(&mut self, ctx: &mut Context<'_>) -> Option<()> {
        let path = self.paths.iter().find(|p| p.reachable).or(self.paths.first())?;
        let (route, request) = (path.route, Request::Announce);
        self.updates.pending.retain(|p| p.request() != Some(request));
        let locators = self.our_locators(ctx, request, 0);
        let mut params = vec![Param::LocatorSet(locators.clone())];
        params.extend(self.our_links(ctx, &locators));
        self.send_update(ctx, route, params, What::Request { request, inbound: 0, dh: None, index: 0 })
    }

    /// What we know of the links behind `locators`, for a peer that uses MULTIPATH; of many only the last one's, which is
    /// the one that the request is for.
    fn our_links(&self, ctx: &Context<'_>, locators: &[Locator]) -> Option<Param> {
        self.peer_multipath.as_ref()?;
        let first = if locators.len() > MOST_LINKS { locators.len() - 1 } else { 0 };
        let addresses: Vec<_> = locators[first..].iter().filter_map(|l| l.address.ip()).collect();
        announcement(ctx.config, ctx.links, &addresses).map(Param::Multipath)
    }

    /// All our locators as they will be after `request` and the requests for paths before it.
    fn our_locators(&self, ctx: &Context<'_>, request: Request, inbound: u32) -> Vec<Locator> {
        let stays = |p: &&Path| !self.updates.is_removing(p.inbound);
        let mut ends: Vec<_> = self.paths.iter().filter(stays).map(|p| (p.inbound, p.route)).collect();
        ends.extend(self.updates.adding().filter(|(spi, _)| self.paths.iter().all(|p| p.inbound != *spi)));
        match request {
            Request::Add(route) => ends.push((inbound, route)),
            Request::Rekey { inbound: old, .. } => {
                ends.iter_mut().filter(|e| e.0 == old).for_each(|e| e.0 = inbound);
            }
            Request::Move { route, .. } => {
                ends.iter_mut().filter(|e| e.0 == inbound).for_each(|e| e.1 = route)
            }
            Request::Remove { inbound: old } => ends.retain(|e| e.0 != old),
            Request::Announce => {}
        }
        let has_path = |address: &&IpAddr| ends.iter().any(|(_, route)| route.local.ip() == **address);
        let here = ends.iter().any(|(_, route)| route.local.ip().is_loopback());
        let told = |a: &&IpAddr| self.updates.announces && a.is_loopback() == here && !has_path(a);
        let others = ctx.addresses.iter().filter(told);
        let of_path =
            |(spi, route): &(u32, Route)| LocatorAddress::Esp { spi: *spi, address: route.local.ip() };
        let all = ends.iter().map(of_path).chain(others.map(|address| LocatorAddress::Ip(*address)));
        let locator = |(n, address)| Locator {
            traffic: TrafficType::Both,
            preferred: n == 0,
            lifetime: u32::MAX,
            address,
        };
        all.enumerate().map(locator).collect()
    }

    /// Sends a new UPDATE and keeps it until it is acknowledged.
    pub(super) fn send_update(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        mut params: Vec<Param>,
        what: What,
    ) -> Option<()> {
        let id = self.updates.next_id;
        params.push(Param::Seq(id));
        let packet = self.update_packet(ctx, params)?;
        self.updates.next_id = id.wrapping_add(1);
        ctx.send(route, &packet);
        let sent = ctx.now;
        let due = sent + wait(ctx.config, round_trip(&self.paths, route), 0);
        self.updates.pending.push(Pending { id, packet, route, sent, due, tries: 0, what });
        Some(())
    }

    pub(crate) fn update_packet(&self, ctx: &mut Context<'_>, params: Vec<Param>) -> Option<Vec<u8>> {
        let (tail, params) = params.into_iter().partition(|p| matches!(p, Param::EchoResponseUnsigned(_)));
        let packet = Packet::new(PacketType::Update, ctx.identity.hit(), self.peer, params);
        self.session.as_ref()?.seal(ctx, packet, tail).ok()
    }

    pub(in crate::association) fn retransmit_updates(&mut self, ctx: &mut Context<'_>) {
        let mut given_up = Vec::new();
        for n in 0..self.updates.pending.len() {
            let pending = &self.updates.pending[n];
            if pending.due > ctx.now {
                continue;
            }
            let tries = pending.tries + 1;
            let is_over = match pending.request().is_some_and(|request| request.lasts()) {
                true => ctx.now.since(pending.sent) >= ctx.config.unused_lifetime,
                false => tries > ctx.config.retries,
            };
            if is_over {
                given_up.push(pending.id);
                continue;
            }
            let route = self.way(pending, tries);
            ctx.send(route, &pending.packet);
            let round_trip = round_trip(&self.paths, route);
            let due = ctx.now + wait(ctx.config, round_trip, tries.min(ctx.config.retries));
            let pending = &mut self.updates.pending[n];
            (pending.tries, pending.due) = (tries, due);
        }
        for id in given_up {
            // one that is given up may take others with it
            if let Some(n) = self.updates.pending.iter().position(|p| p.id == id) {
                let pending = self.updates.pending.remove(n);
                self.give_up(ctx, pending);
            }
        }
        self.next_request(ctx);
    }

    /// Where an UPDATE goes for the `tries`-th time beyond the first: what is not about one route, by all paths in turn, and
    /// where a path is to be.
    fn way(&self, pending: &Pending, tries: u32) -> Route {
        let avoided = match pending.request() {
            Some(Request::Announce | Request::Rekey { .. }) => None,
            Some(Request::Remove { inbound }) => Some(inbound),
            _ => return pending.route,
        };
        let mut ways: Vec<Route> = Vec::new();
        let of_paths = self.paths.iter().filter(|p| Some(p.inbound) != avoided).map(|p| p.route);
        let sought = self.updates.waiting.iter().filter_map(|request| match request {
            Request::Add(route) => Some(*route),
            _ => None,
        });
        for route in of_paths.chain(sought) {
            if !ways.contains(&route) {
                ways.push(route);
            }
        }
        let first = ways.iter().position(|route| *route == pending.route).unwrap_or(0);
        ways.get((first + tries as usize) % ways.len().max(1)).copied().unwrap_or(pending.route)
    }

    /// Our request for new keys, which others wait for, goes to where the peer is or may be, unless it just left for there.
    pub(super) fn hasten(&mut self, ctx: &mut Context<'_>, route: Route) {
        let left = |p: &Pending| p.tries == 0 && p.route == route;
        let rekeys = |p: &&Pending| matches!(p.request(), Some(Request::Rekey { .. })) && !left(p);
        if let Some(pending) = self.updates.pending.iter().find(rekeys) {
            ctx.send(route, &pending.packet);
        }
    }

    /// A path that cannot be had, or that we have left, is no reason to end the association, nor is silence while it may be
    /// in use; a peer that is there and does not answer is (RFC 7401 §6.11 step 4).
    fn give_up(&mut self, ctx: &mut Context<'_>, pending: Pending) {
        match pending.what {
            What::Request { request: Request::Add(route), inbound, .. } => {
                ctx.spis.remove(&inbound);
                self.session.iter_mut().for_each(|s| s.skip(1));
                self.remove_path(ctx, inbound);
                ctx.event(self.peer, Event::PathFailed { route });
            }
            What::Answer { inbound, route, .. } => {
                let unreachable = self.paths.iter().any(|p| p.inbound == inbound && !p.reachable);
                if unreachable && self.paths.len() > 1 {
                    self.remove_path(ctx, inbound);
                }
                ctx.event(self.peer, Event::PathFailed { route });
            }
            What::Request { request: Request::Remove { inbound }, .. } => self.remove_path(ctx, inbound),
            What::Request { request: Request::Announce, .. } => {}
            What::Request { request, inbound, .. } => {
                if matches!(request, Request::Rekey { .. }) {
                    ctx.spis.remove(&inbound);
                }
                if self.state == State::Established {
                    self.send_close(ctx);
                }
            }
        }
    }
}
