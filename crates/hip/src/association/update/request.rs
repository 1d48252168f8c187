//! Our requests: what is asked of the peer, again until it answers.

use std::net::IpAddr;

use polypath_wire::Duration;
use polypath_wire::hip::{EspInfo, Locator, LocatorAddress, Packet, PacketType, Param, TrafficType};

use super::{MOST_AHEAD, Pending, Request, What, public};
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
        if self.updates.waiting.contains(&request) || self.updates.is_asked(ctx.now, request) {
            return;
        }
        self.updates.supersede(request);
        if self.state == State::Established && !request.draws_keys() && self.updates.may_go(request) {
            // Nothing is sent for a path that is not there.
            let _ = self.send_request(ctx, request);
            return self.stay_in_window(ctx);
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
        self.stay_in_window(ctx);
    }

    /// A peer may drop ids too far behind the newest that it knows. Before ours are, others wait; if those under way went unanswered,
    /// one that is sent until it is acknowledged stands for them.
    fn stay_in_window(&mut self, ctx: &mut Context<'_>) {
        let full = self.state == State::Established && self.updates.ahead() >= MOST_AHEAD;
        if full && !self.updates.are_fresh() && !self.updates.is_last_announced() {
            self.send_announcement(ctx);
        }
    }

    /// Key material does not last for ever: when half of it is used up, a path gets new keys from a new exchange.
    fn ask_for_keymat(&mut self) {
        let asked = self.updates.drawing().any(|r| matches!(r, Request::Rekey { .. }))
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
        let about_route = matches!(request, Request::Add(_) | Request::Move { .. });
        let nonce = about_route.then(|| ctx.random.vec(16));
        params.extend(nonce.clone().map(Param::EchoRequestSigned));
        self.send_update(ctx, route, params, What::Request { request, inbound, dh, index, nonce })?;
        if matches!(request, Request::Add(_)) {
            self.asked_to_add(ctx, route);
        }
        Some(())
    }

    /// A LOCATOR_SET alone, on the first path that works.
    fn send_announcement(&mut self, ctx: &mut Context<'_>) -> Option<()> {
        let path = self.paths.iter().find(|p| p.reachable).or(self.paths.first())?;
        let (route, request) = (self.place(path), Request::Announce);
        self.updates.pending.retain(|p| p.request() != Some(request));
        let locators = self.our_locators(ctx, request, 0);
        let mut params = vec![Param::LocatorSet(locators.clone())];
        params.extend(self.our_links(ctx, &locators));
        self.send_update(
            ctx,
            route,
            params,
            What::Request { request, inbound: 0, dh: None, index: 0, nonce: None },
        )
    }

    /// Where a path is, or is being moved to.
    fn place(&self, path: &Path) -> Route {
        self.updates.destination(path.inbound).unwrap_or(path.route)
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
        let end = |p: &Path| (p.inbound, self.place(p));
        let stays = |p: &&Path| !self.updates.is_leaving(p.inbound);
        let mut ends: Vec<_> = self.paths.iter().filter(stays).map(end).collect();
        if ends.is_empty() {
            // the last one is never removed
            let removed = |p: &&Path| self.updates.is_removing(p.inbound);
            ends = self.paths.iter().filter(|p| !removed(p)).map(end).collect();
        }
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
        let packet = self.update_packet(ctx, params.clone())?;
        self.updates.next_id = id.wrapping_add(1);
        ctx.send(route, &packet);
        let sent = ctx.now;
        let due = sent + wait(ctx.config, round_trip(&self.paths, route), 0);
        let (tries, unheeded, rests) = (0, 0, false);
        self.updates.pending.push(Pending {
            id,
            params,
            packet,
            route,
            sent,
            left: sent,
            due,
            tries,
            unheeded,
            rests,
            what,
        });
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
            if self.is_over(ctx, pending) {
                given_up.push(pending.id);
            } else if !self.rest(ctx, n) {
                self.repeat(ctx, n);
            }
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

    /// Whether no answer is waited for any more.
    fn is_over(&self, ctx: &Context<'_>, pending: &Pending) -> bool {
        let since = match pending.request().filter(Request::lasts) {
            None if matches!(pending.what, What::Check { .. }) => return true,
            None => return pending.tries >= ctx.config.retries,
            Some(Request::Rekey { .. }) => pending.sent.max(self.data_at),
            Some(_) => pending.sent,
        };
        ctx.now.since(since) >= ctx.config.unused_lifetime
    }

    /// A peer that sends data on all the time and does not answer our request for new keys, whichever way that goes, refuses it for now.
    /// The request leaves again only between others, as it may change the KEYMAT that they draw from. Whether it rests.
    fn rest(&mut self, ctx: &Context<'_>, n: usize) -> bool {
        let pending = &self.updates.pending[n];
        if !matches!(pending.request(), Some(Request::Rekey { .. })) {
            return false;
        }
        let (id, rested) = (pending.id, pending.rests);
        let others = self.updates.pending.iter().any(|p| p.id != id && p.changes_keys());
        let longest = wait(ctx.config, Duration::ZERO, ctx.config.retries);
        let (heard, silent) = (self.data_at > pending.left, ctx.now.since(self.data_at) >= longest);
        let often = ctx.config.retries.max(2 * self.paths.len() as u32);
        let pending = &mut self.updates.pending[n];
        if !rested {
            pending.unheeded = if silent { 0 } else { pending.unheeded + u32::from(heard) };
        }
        pending.rests = if rested { others } else { pending.unheeded > often };
        let pause = if rested { 0 } else { ctx.config.retries };
        if pending.rests {
            pending.due = ctx.now + wait(ctx.config, Duration::ZERO, pause);
        }
        pending.rests
    }

    /// Sends UPDATE number `n` of those pending again.
    fn repeat(&mut self, ctx: &mut Context<'_>, n: usize) {
        let pending = &self.updates.pending[n];
        let (tries, refused) = (pending.tries + 1, pending.unheeded > ctx.config.retries);
        let route = self.way(pending, tries);
        self.freshen(ctx, n, route);
        ctx.send(route, &self.updates.pending[n].packet);
        let doublings = if refused { 0 } else { tries.min(ctx.config.retries) };
        let due = ctx.now + wait(ctx.config, round_trip(&self.paths, route), doublings);
        let pending = &mut self.updates.pending[n];
        (pending.tries, pending.left, pending.due) = (tries, ctx.now, due);
    }

    /// Where a path is sought the peer may see us at an address that it does not know. What it refused before draws nothing there, as anybody
    /// can repeat a packet; so a request for new keys leaves as another packet with the same number.
    fn freshen(&mut self, ctx: &mut Context<'_>, n: usize, route: Route) {
        let pending = &self.updates.pending[n];
        let rekeys = matches!(pending.request(), Some(Request::Rekey { .. }));
        if !rekeys || !self.updates.waiting.contains(&Request::Add(route)) {
            return;
        }
        let nonce = Param::EchoRequestSigned(ctx.random.vec(16));
        let params = pending.params.iter().cloned().chain([nonce]).collect();
        if let Some(packet) = self.update_packet(ctx, params) {
            self.updates.pending[n].packet = packet;
        }
    }

    /// Where an UPDATE goes for the `tries`-th time beyond the first: what is not about one route, by all paths in turn, and
    /// where a path is wanted.
    fn way(&self, pending: &Pending, tries: u32) -> Route {
        let avoided = match pending.request() {
            Some(Request::Announce | Request::Rekey { .. }) => None,
            Some(Request::Remove { inbound }) => Some(inbound),
            _ => return pending.route,
        };
        let mut ways: Vec<Route> = Vec::new();
        let of_paths = self.paths.iter().filter(|p| Some(p.inbound) != avoided).map(|p| self.place(p));
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

    /// Our request that others wait for goes to where the peer is or may be.
    pub(super) fn hasten(&mut self, ctx: &mut Context<'_>, route: Route) {
        let full = self.updates.ahead() >= MOST_AHEAD;
        self.send_now(ctx, route, |p| match p.request() {
            Some(Request::Rekey { .. }) => !p.rests,
            request => full && request == Some(Request::Announce),
        });
    }

    /// The first of our UPDATEs that is `meant` goes there, unless it just left for there.
    pub(super) fn send_now(&mut self, ctx: &mut Context<'_>, route: Route, meant: impl Fn(&Pending) -> bool) {
        let left = |p: &Pending| p.tries == 0 && p.route == route;
        if let Some(pending) = self.updates.pending.iter().find(|p| meant(p) && !left(p)) {
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
            What::Request { request: Request::Announce, .. } | What::Check { .. } => {}
            What::Request { request: Request::Move { route, .. }, .. } if self.is_live(ctx) => {
                ctx.event(self.peer, Event::PathFailed { route });
            }
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
