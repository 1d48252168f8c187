//! UPDATE: adding, moving, rekeying and removing paths (RFC 7401 §6.11 and §6.12, RFC 7402 §6.8 to
//! §6.10, RFC 8046 §5, RFC 8047).
//!
//! A request carries ESP_INFO with SEQ; the answer acknowledges it, has its own ESP_INFO and SEQ, and
//! a nonce that the requester must send back from where it claims to be. One request that draws keys
//! is under way at a time; when both ends begin one, that of the greater HIT goes first.

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::Instant;
use polypath_wire::hip::{
    DiffieHellman, EspInfo, Locator, LocatorAddress, Multipath, NotifyType, Packet, PacketType, PacketView,
    Param, TrafficType,
};

use super::{Association, Path, State};
use crate::context::{Context, announcement};
use crate::dh::{DhGroup, DhKey};
use crate::event::{DropReason, Event, Route};
use crate::keymat::Keymat;

/// How many of the peer's UPDATE ids around the newest are accepted and remembered.
const WINDOW: i32 = 32;

/// What is under way in both directions.
#[derive(Default)]
pub(super) struct Updates {
    next_id: u32,
    pending: Vec<Pending>,
    /// Requests that wait for another one to finish.
    waiting: VecDeque<Request>,
    /// The peer's next id, and our answers to its last ones.
    peer_next: u32,
    answered: BTreeMap<u32, Vec<u8>>,
    /// Paths that were rekeyed, until data comes on the new SA of that inbound SPI.
    retired: Vec<(u32, Path)>,
}

/// What the owner of an association may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// A new path with its own SA pair.
    Add(Route),
    /// Another SPI and new keys for the path with that inbound SPI.
    Rekey {
        /// The path.
        inbound: u32,
        /// Whether from a new Diffie-Hellman exchange.
        new_dh: bool,
    },
    /// The path with that inbound SPI continues elsewhere.
    Move {
        /// The path.
        inbound: u32,
        /// Where.
        route: Route,
    },
    /// The path with that inbound SPI is given up.
    Remove {
        /// The path.
        inbound: u32,
    },
}

impl Request {
    fn draws_keys(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Rekey { .. })
    }
}

/// An UPDATE of ours that is not acknowledged.
struct Pending {
    id: u32,
    packet: Vec<u8>,
    route: Route,
    due: Instant,
    tries: u32,
    what: What,
}

enum What {
    /// A request, with the SPI that we will receive on and our new key.
    Request { request: Request, inbound: u32, dh: Option<DhKey> },
    /// An answer that asks for `nonce` back, about the path with that inbound SPI.
    Answer { inbound: u32, nonce: Vec<u8>, route: Route },
}

/// What an UPDATE says.
#[derive(Default)]
struct Update {
    seq: Option<u32>,
    acks: Vec<u32>,
    esp_info: Option<EspInfo>,
    dh: Option<DiffieHellman>,
    locators: Option<Vec<Locator>>,
    multipath: Option<Multipath>,
    echo_requests: Vec<Param>,
    echo_responses: Vec<Vec<u8>>,
}

impl Updates {
    pub fn timeout(&self) -> Option<Instant> {
        self.pending.iter().map(|p| p.due).min()
    }
    fn draws_keys(&self) -> bool {
        let draws = |p: &Pending| match &p.what {
            What::Request { request, .. } => request.draws_keys(),
            What::Answer { .. } => true,
        };
        self.pending.iter().any(draws)
    }
}

impl Update {
    fn read(view: &PacketView<'_>) -> Result<Self, DropReason> {
        let mut update = Self::default();
        for param in view.values().map_err(|_| DropReason::Malformed)? {
            match param {
                Param::Seq(id) => update.seq = Some(id),
                Param::Ack(ids) => update.acks = ids,
                Param::EspInfo(info) => update.esp_info = Some(info),
                Param::DiffieHellman(dh) => update.dh = Some(dh),
                Param::LocatorSet(locators) => update.locators = Some(locators),
                Param::Multipath(multipath) => update.multipath = Some(multipath),
                Param::EchoRequestSigned(b) => update.echo_requests.push(Param::EchoResponseSigned(b)),
                Param::EchoRequestUnsigned(b) => update.echo_requests.push(Param::EchoResponseUnsigned(b)),
                Param::EchoResponseSigned(b) | Param::EchoResponseUnsigned(b) => {
                    update.echo_responses.push(b)
                }
                _ => {}
            }
        }
        Ok(update)
    }
}

impl Association {
    /// Does what is asked: at once if it draws no keys, else when what is under way has finished.
    pub(crate) fn request(&mut self, ctx: &mut Context<'_>, request: Request) {
        if self.state == State::Established && !request.draws_keys() {
            // Nothing is sent for a path that is not there.
            let _ = self.send_request(ctx, request);
            return;
        }
        self.updates.waiting.push_back(request);
        self.next_request(ctx);
    }

    fn next_request(&mut self, ctx: &mut Context<'_>) {
        while self.state == State::Established && !self.updates.draws_keys() {
            let Some(request) = self.updates.waiting.pop_front() else { return };
            self.send_request(ctx, request);
        }
    }

    fn send_request(&mut self, ctx: &mut Context<'_>, request: Request) -> Option<()> {
        let find = |inbound: u32| self.paths.iter().find(|p| p.inbound == inbound).cloned();
        let next = self.session.as_ref()?.next_index as u16;
        let (route, inbound, old, dh) = match request {
            Request::Add(route) => (route, ctx.new_spi(), 0, None),
            Request::Rekey { inbound, new_dh } => {
                let path = find(inbound)?;
                let group = *ctx.config.dh_groups.first()?;
                (path.route, ctx.new_spi(), inbound, new_dh.then(|| DhKey::generate(group, ctx.random)))
            }
            Request::Move { inbound, route } => (route, find(inbound)?.inbound, inbound, None),
            Request::Remove { inbound } => {
                find(inbound)?;
                (self.paths.iter().find(|p| p.inbound != inbound)?.route, 0, inbound, None)
            }
        };
        let keymat_index = if dh.is_some() { 0 } else { next };
        let locators = self.our_locators(request, inbound);
        let mut params = vec![
            Param::EspInfo(EspInfo { keymat_index, old_spi: old, new_spi: inbound }),
            Param::LocatorSet(locators.clone()),
        ];
        params.extend(dh.as_ref().map(public));
        if self.peer_multipath.is_some() {
            let addresses: Vec<_> = locators.iter().filter_map(|l| l.address.ip()).collect();
            params.extend(announcement(ctx.config, ctx.links, &addresses).map(Param::Multipath));
        }
        self.send_update(ctx, route, params, What::Request { request, inbound, dh })
    }

    /// All our locators as they will be after `request`.
    fn our_locators(&self, request: Request, inbound: u32) -> Vec<Locator> {
        let mut ends: Vec<_> = self.paths.iter().map(|p| (p.inbound, p.route)).collect();
        match request {
            Request::Add(route) => ends.push((inbound, route)),
            Request::Rekey { inbound: old, .. } => {
                ends.iter_mut().filter(|e| e.0 == old).for_each(|e| e.0 = inbound);
            }
            Request::Move { route, .. } => {
                ends.iter_mut().filter(|e| e.0 == inbound).for_each(|e| e.1 = route)
            }
            Request::Remove { inbound: old } => ends.retain(|e| e.0 != old),
        }
        let locator = |(n, (spi, route)): (usize, (u32, Route))| Locator {
            traffic: TrafficType::Both,
            preferred: n == 0,
            lifetime: u32::MAX,
            address: LocatorAddress::Esp { spi, address: route.local.ip() },
        };
        ends.into_iter().enumerate().map(locator).collect()
    }

    /// Sends a new UPDATE and keeps it until it is acknowledged.
    fn send_update(
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
        let due = ctx.now + ctx.config.retransmit;
        self.updates.pending.push(Pending { id, packet, route, due, tries: 0, what });
        Some(())
    }

    fn update_packet(&self, ctx: &Context<'_>, params: Vec<Param>) -> Option<Vec<u8>> {
        let (tail, params) = params.into_iter().partition(|p| matches!(p, Param::EchoResponseUnsigned(_)));
        let packet = Packet::new(PacketType::Update, ctx.identity.hit(), self.peer, params);
        self.session.as_ref()?.seal(packet, ctx.identity, tail).ok()
    }

    pub(super) fn retransmit_updates(&mut self, ctx: &mut Context<'_>) {
        let (now, mut given_up) = (ctx.now, Vec::new());
        for (n, pending) in self.updates.pending.iter_mut().enumerate().filter(|(_, p)| p.due <= now) {
            pending.tries += 1;
            if pending.tries > ctx.config.retries {
                given_up.push(n);
                continue;
            }
            ctx.send(pending.route, &pending.packet);
            pending.due = ctx.now + ctx.config.retransmit.times(1 << pending.tries.min(16));
        }
        for n in given_up.into_iter().rev() {
            let pending = self.updates.pending.remove(n);
            self.give_up(ctx, pending);
        }
        self.next_request(ctx);
    }

    /// A path that cannot be had, or that we have left, is no reason to end the association; a lost
    /// peer is (RFC 7401 §6.11 step 4).
    fn give_up(&mut self, ctx: &mut Context<'_>, pending: Pending) {
        match pending.what {
            What::Request { request: Request::Add(route), inbound, .. } => {
                ctx.spis.remove(&inbound);
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

    /// Forgets everything that is under way.
    pub(super) fn drop_updates(&mut self, ctx: &mut Context<'_>) {
        for pending in std::mem::take(&mut self.updates.pending) {
            if let What::Request { request: Request::Add(_) | Request::Rekey { .. }, inbound, .. } =
                pending.what
            {
                ctx.spis.remove(&inbound);
            }
        }
        for (_, old) in std::mem::take(&mut self.updates.retired) {
            ctx.spis.remove(&old.inbound);
            ctx.event(self.peer, Event::SaRemoved { inbound: old.inbound, outbound: old.outbound });
        }
        self.updates.waiting.clear();
    }

    /// Data came on the SA `inbound`: what it replaced is not needed any more.
    pub(super) fn retire(&mut self, ctx: &mut Context<'_>, inbound: u32) {
        while let Some(n) = self.updates.retired.iter().position(|(new, _)| *new == inbound) {
            let (_, old) = self.updates.retired.remove(n);
            ctx.spis.remove(&old.inbound);
            ctx.event(self.peer, Event::SaRemoved { inbound: old.inbound, outbound: old.outbound });
        }
    }

    fn remove_path(&mut self, ctx: &mut Context<'_>, inbound: u32) {
        let Some(n) = self.paths.iter().position(|p| p.inbound == inbound) else { return };
        let path = self.paths.remove(n);
        ctx.spis.remove(&path.inbound);
        ctx.event(self.peer, Event::SaRemoved { inbound: path.inbound, outbound: path.outbound });
        if let Some(first) = self.paths.first() {
            self.routes = vec![first.route];
        }
    }

    pub(super) fn on_update(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        let session = self.session.as_ref().ok_or(DropReason::State)?;
        if !matches!(self.state, State::R2Sent | State::Established) {
            return Err(DropReason::State);
        }
        session.verify(view)?;
        let update = Update::read(view)?;
        if update.seq.is_none() && update.acks.is_empty() {
            return Err(DropReason::Proposal);
        }
        self.on_data(ctx, true);
        if let Some(answer) = update.seq.and_then(|id| self.updates.answered.get(&id)) {
            // The peer did not get our answer.
            ctx.send(route, answer);
            return Ok(());
        }
        if update
            .seq
            .is_some_and(|id| !(-WINDOW..WINDOW).contains(&(id.wrapping_sub(self.updates.peer_next) as i32)))
        {
            return Err(DropReason::Replay);
        }
        let result = self.process(ctx, route, &update);
        self.next_request(ctx);
        result
    }

    fn process(&mut self, ctx: &mut Context<'_>, route: Route, update: &Update) -> Result<(), DropReason> {
        let ours = self.updates.pending.iter().position(|p| update.acks.contains(&p.id));
        let answered = match ours {
            Some(n) => self.acknowledged(ctx, route, update, n)?,
            None if update.seq.is_none() => return Err(DropReason::Replay),
            None => false,
        };
        let Some(id) = update.seq else { return Ok(()) };
        if ours.is_none() && !update.acks.is_empty() && update.esp_info.is_some() {
            // An answer to what we gave up: it must not be taken for a request.
            return Err(DropReason::Replay);
        }
        let is_request = !answered && update.esp_info.is_some();
        let params = if is_request { self.answer(ctx, route, id, update)? } else { Some(vec![]) };
        if let Some(mut params) = params {
            params.extend(update.echo_requests.iter().cloned());
            params.push(Param::Ack(vec![id]));
            let packet = self.update_packet(ctx, params).ok_or(DropReason::Crypto)?;
            ctx.send(route, &packet);
            self.remember(id, packet);
        }
        Ok(())
    }

    fn remember(&mut self, id: u32, answer: Vec<u8>) {
        let updates = &mut self.updates;
        if id.wrapping_sub(updates.peer_next) as i32 >= 0 {
            updates.peer_next = id.wrapping_add(1);
        }
        updates.answered.insert(id, answer);
        let next = updates.peer_next;
        updates.answered.retain(|id, _| next.wrapping_sub(*id) as i32 <= WINDOW);
    }

    /// The peer has our UPDATE number `n` of those pending. Whether this one was the answer to it.
    fn acknowledged(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        update: &Update,
        n: usize,
    ) -> Result<bool, DropReason> {
        match &self.updates.pending[n].what {
            What::Answer { inbound, nonce, route: claimed } => {
                if !update.echo_responses.contains(nonce) {
                    return Err(DropReason::Proposal);
                }
                let (inbound, claimed) = (*inbound, *claimed);
                self.updates.pending.remove(n);
                self.reached(ctx, inbound, claimed);
                Ok(false)
            }
            What::Request { request: Request::Remove { inbound }, .. } => {
                let inbound = *inbound;
                self.updates.pending.remove(n);
                self.remove_path(ctx, inbound);
                Ok(false)
            }
            What::Request { .. } => {
                let info = update.esp_info.ok_or(DropReason::Proposal)?;
                let pending = self.updates.pending.remove(n);
                if let What::Request { request, inbound, dh } = pending.what {
                    self.complete(ctx, route, request, inbound, dh, info, update)?;
                }
                Ok(true)
            }
        }
    }

    /// The answer to our request is here.
    #[expect(clippy::too_many_arguments, reason = "the parts of one request and of its answer")]
    fn complete(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        request: Request,
        inbound: u32,
        dh: Option<DhKey>,
        info: EspInfo,
        update: &Update,
    ) -> Result<(), DropReason> {
        match request {
            Request::Move { .. } => self.reached(ctx, inbound, route),
            Request::Add(_) => self.install_new(ctx, route, inbound, info, true, true)?,
            Request::Rekey { inbound: old, .. } => {
                if let (Some(key), Some(peer)) = (&dh, &update.dh) {
                    self.renew_keymat(ctx, key, peer)?;
                }
                self.replace(ctx, old, inbound, info, true)?;
            }
            Request::Remove { .. } => {}
        }
        Ok(())
    }

    /// Draws keys at the index that both ends agreed on and installs the SA pair.
    fn install_new(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        inbound: u32,
        info: EspInfo,
        reachable: bool,
        confirmed: bool,
    ) -> Result<(), DropReason> {
        let session = self.session.as_mut().ok_or(DropReason::State)?;
        let index = session.next_index.max(info.keymat_index.into());
        let keys = session.draw(index, ctx.identity).map_err(|_| DropReason::Crypto)?;
        self.install(ctx, Path { route, inbound, outbound: info.new_spi, reachable }, keys, confirmed);
        Ok(())
    }

    fn replace(
        &mut self,
        ctx: &mut Context<'_>,
        old: u32,
        inbound: u32,
        info: EspInfo,
        confirmed: bool,
    ) -> Result<(), DropReason> {
        let n = self.paths.iter().position(|p| p.inbound == old).ok_or(DropReason::Proposal)?;
        let path = self.paths[n].clone();
        self.install_new(ctx, path.route, inbound, info, path.reachable, confirmed)?;
        // The new path takes the place of the old one, which stays until data comes on it.
        let path = self.paths.swap_remove(n);
        self.updates.retired.push((inbound, path));
        Ok(())
    }

    /// New key material from a new exchange, with the salt of the first (RFC 7402 §6.9).
    fn renew_keymat(
        &mut self,
        ctx: &Context<'_>,
        key: &DhKey,
        peer: &DiffieHellman,
    ) -> Result<(), DropReason> {
        let session = self.session.as_mut().ok_or(DropReason::State)?;
        if peer.group != key.group() as u8 {
            return Err(DropReason::Proposal);
        }
        let kij = key.agree(&peer.public).map_err(|_| DropReason::Crypto)?;
        let (i, j) = &session.salt;
        session.keymat = Keymat::new(session.hash, &kij, i, j, ctx.identity.hit(), self.peer);
        session.next_index = 0;
        Ok(())
    }

    fn reached(&mut self, ctx: &mut Context<'_>, inbound: u32, route: Route) {
        let Some(path) = self.paths.iter_mut().find(|p| p.inbound == inbound) else { return };
        path.route = route;
        path.reachable = true;
        self.locators.verified(route.remote.ip());
        if self.paths.first().is_some_and(|p| p.inbound == inbound) {
            self.routes = vec![route];
        }
        ctx.event(self.peer, Event::Reachable { inbound, route });
    }

    /// Answers a request. `None` if the answer is an UPDATE of our own, which was sent.
    fn answer(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        id: u32,
        update: &Update,
    ) -> Result<Option<Vec<Param>>, DropReason> {
        let info = update.esp_info.ok_or(DropReason::Proposal)?;
        self.take_locators(ctx, route, update)?;
        if self.peer_multipath.is_some() && update.multipath.is_some() {
            self.learn_multipath(ctx, update.multipath.clone());
        }
        if info.new_spi == 0 {
            // One that is not there any more: both ends gave it up at once.
            let path = self.paths.iter().find(|p| p.outbound == info.old_spi).map(|p| p.inbound);
            if info.old_spi == 0 || path.is_some() && self.paths.len() < 2 {
                return Err(DropReason::Proposal);
            }
            path.into_iter().for_each(|inbound| self.remove_path(ctx, inbound));
            return Ok(Some(Vec::new()));
        }
        if info.old_spi != info.new_spi && self.is_our_turn(ctx) {
            return Err(DropReason::State);
        }
        let (inbound, params) = match info.old_spi {
            0 => self.answer_add(ctx, route, info)?,
            old if old == info.new_spi => self.answer_move(info)?,
            old => self.answer_rekey(ctx, old, info, update)?,
        };
        let nonce = ctx.random.vec(16);
        let mut params = params;
        params.extend(update.echo_requests.iter().cloned());
        params.extend([Param::EchoRequestSigned(nonce.clone()), Param::Ack(vec![id])]);
        self.send_update(ctx, route, params, What::Answer { inbound, nonce, route })
            .ok_or(DropReason::Crypto)?;
        let packet = self.updates.pending.last().map(|p| p.packet.clone()).unwrap_or_default();
        self.remember(id, packet);
        Ok(None)
    }

    /// When both ends ask for keys at once, the greater HIT finishes its request first; the other's comes
    /// again. So both draw the same keys in the same order.
    fn is_our_turn(&self, ctx: &Context<'_>) -> bool {
        let asked = |p: &Pending| matches!(&p.what, What::Request { request, .. } if request.draws_keys());
        ctx.identity.hit() > self.peer && self.updates.pending.iter().any(asked)
    }

    /// A new SA pair for the path that the request came on (RFC 8047 §4).
    fn answer_add(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        info: EspInfo,
    ) -> Result<(u32, Vec<Param>), DropReason> {
        if self.paths.len() >= ctx.config.max_paths.into() {
            return Err(DropReason::Policy);
        }
        let info = self.agree_on_index(info)?;
        let inbound = ctx.new_spi();
        self.install_new(ctx, route, inbound, info, false, false)?;
        Ok((inbound, vec![Param::EspInfo(EspInfo { old_spi: 0, new_spi: inbound, ..info })]))
    }

    /// Keys are drawn at the larger of both ends' indices (RFC 7402 §6.9): the answer has it.
    fn agree_on_index(&self, info: EspInfo) -> Result<EspInfo, DropReason> {
        let next = self.session.as_ref().ok_or(DropReason::State)?.next_index;
        let keymat_index = u16::try_from(next).map_err(|_| DropReason::Crypto)?.max(info.keymat_index);
        Ok(EspInfo { keymat_index, ..info })
    }

    fn answer_move(&self, info: EspInfo) -> Result<(u32, Vec<Param>), DropReason> {
        let path = self.paths.iter().find(|p| p.outbound == info.old_spi).ok_or(DropReason::Proposal)?;
        let same = EspInfo { old_spi: path.inbound, new_spi: path.inbound, ..info };
        Ok((path.inbound, vec![Param::EspInfo(same)]))
    }

    fn answer_rekey(
        &mut self,
        ctx: &mut Context<'_>,
        old: u32,
        info: EspInfo,
        update: &Update,
    ) -> Result<(u32, Vec<Param>), DropReason> {
        let path = self.paths.iter().find(|p| p.outbound == old).ok_or(DropReason::Proposal)?.inbound;
        let key = match &update.dh {
            Some(dh) => {
                let group = DhGroup::from_id(dh.group).filter(|g| ctx.config.dh_groups.contains(g));
                let key = DhKey::generate(group.ok_or(DropReason::Proposal)?, ctx.random);
                self.renew_keymat(ctx, &key, dh)?;
                Some(key)
            }
            None => None,
        };
        let info = self.agree_on_index(info)?;
        let inbound = ctx.new_spi();
        self.replace(ctx, path, inbound, info, false)?;
        self.forget_rekey(ctx, path);
        let mut params = vec![Param::EspInfo(EspInfo { old_spi: path, new_spi: inbound, ..info })];
        params.extend(key.as_ref().map(public));
        Ok((inbound, params))
    }

    /// Both ends asked for new keys of one path at once, and the peer's request went first: ours has got
    /// what it wanted, and names an SPI that is no more.
    fn forget_rekey(&mut self, ctx: &mut Context<'_>, old: u32) {
        let ours = |p: &Pending| matches!(p.what, What::Request { request: Request::Rekey { inbound, .. }, .. } if inbound == old);
        let Some(n) = self.updates.pending.iter().position(ours) else { return };
        if let What::Request { inbound, .. } = self.updates.pending.remove(n).what {
            ctx.spis.remove(&inbound);
        }
    }

    /// Takes the peer's locators, each of which must be one that a host can have, of a type that we
    /// know (RFC 8046 §5.3).
    fn take_locators(
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
        if let Some(set) = &update.locators {
            self.locators.replace(ctx.now, set);
        }
        Ok(())
    }
}

fn public(key: &DhKey) -> Param {
    Param::DiffieHellman(DiffieHellman { group: key.group() as u8, public: key.public().to_vec() })
}
