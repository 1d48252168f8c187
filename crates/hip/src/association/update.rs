//! UPDATE: adding, moving, rekeying and removing paths (RFC 7401 §6.11 and §6.12, RFC 7402 §6.8 to
//! §6.10, RFC 8046 §5, RFC 8047).
//!
//! A request carries ESP_INFO with SEQ; the answer acknowledges it, has its own ESP_INFO and SEQ, and
//! a nonce that the requester must send back from where it claims to be.
//!
//! Requests for paths are independent of one another (RFC 7401 §6.11 lets several UPDATEs be outstanding that do not
//! depend on one another): whoever answers says where in KEYMAT the keys are. A request for new keys of a path waits
//! until nothing else that draws keys is under way, as it may change KEYMAT itself; when both ends begin one, that of
//! the greater HIT goes first.

mod answer;
mod outstanding;
mod request;
mod source;
mod withdrawn;

use polypath_wire::hip::{DiffieHellman, EspInfo, Locator, Multipath, PacketView, Param, coverage};
use polypath_wire::{Duration, Instant};

use super::wait::{round_trip, wait};
use super::{Association, Path};
use crate::context::Context;
use crate::dh::DhKey;
use crate::event::{DropReason, Event, Route};
use crate::keymat::Keymat;
use crate::responder::{is_usable, sha256};
use crate::state::State;
pub(crate) use outstanding::Request;
pub(super) use outstanding::Updates;
use outstanding::{Pending, Retired, What};

/// How many of the peer's UPDATE ids before the newest are accepted and remembered, and how many of ours a peer is taken to
/// accept behind the newest that it acknowledged (RFC 7401 §6.12).
const WINDOW: i32 = 64;
/// How many of those our requests take, so that answers have some.
const MOST_AHEAD: i32 = 48;

/// Most SPIs of its former SAs that a path remembers.
const MOST_FORMER: usize = 8;

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
    /// It came before and was refused, so anybody may have sent it now.
    repeated: bool,
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
    /// Forgets everything that is under way.
    pub(super) fn drop_updates(&mut self, ctx: &mut Context<'_>) {
        for pending in std::mem::take(&mut self.updates.pending) {
            if let What::Request { request: Request::Add(_) | Request::Rekey { .. }, inbound, .. } =
                pending.what
            {
                ctx.spis.remove(&inbound);
            }
        }
        self.updates.retired.iter_mut().for_each(|retired| retired.until = Some(ctx.now));
        self.remove_retired(ctx);
        self.updates.waiting.clear();
    }

    /// Data came on the SA `inbound`: what it replaced, and what that had replaced, is kept for two round trips more, as
    /// packets that were sealed before may come later.
    pub(super) fn retire(&mut self, ctx: &Context<'_>, inbound: u32) {
        let path = self.paths.iter().find(|p| p.inbound == inbound);
        let until = ctx.now + wait(ctx.config, path.map_or(Duration::ZERO, |p| p.round_trip), 0);
        self.retire_until(until, inbound);
    }

    fn retire_until(&mut self, until: Instant, mut inbound: u32) {
        while let Some(retired) = self.updates.retired.iter_mut().find(|r| r.by == inbound) {
            retired.until.get_or_insert(until);
            inbound = retired.path.inbound;
        }
    }

    /// Takes away the old SAs whose time is over.
    pub(super) fn remove_retired(&mut self, ctx: &mut Context<'_>) {
        let is_over = |retired: &mut Retired| retired.until.is_some_and(|at| at <= ctx.now);
        let over: Vec<Path> = self.updates.retired.extract_if(.., is_over).map(|r| r.path).collect();
        for Path { inbound, outbound, .. } in over {
            ctx.spis.remove(&inbound);
            ctx.event(self.peer, Event::SaRemoved { inbound, outbound });
        }
    }

    pub(super) fn remove_path(&mut self, ctx: &mut Context<'_>, inbound: u32) {
        let Some(n) = self.paths.iter().position(|p| p.inbound == inbound) else { return };
        let path = self.paths.remove(n);
        self.updates.forget_path(inbound);
        self.forget_rekey(ctx, inbound);
        self.retire_until(ctx.now, inbound);
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
        session.check_mac(view)?;
        let update = Update::read(view)?;
        if let Some(id) = update.seq.filter(|id| self.updates.answered.contains_key(id)) {
            // The peer did not get our answer, or somebody repeats what it sent.
            return self.answer_again(ctx, route, id);
        }
        self.updates.may_be_new(&update)?;
        let digest = sha256(&[&coverage::mac(view)]);
        let update = Update { repeated: self.updates.refused.contains(&digest), ..update };
        if !update.repeated {
            if !self.updates.checks.take(ctx.now) {
                return Err(DropReason::Policy);
            }
            session.verify_signature(ctx, view)?;
        }
        self.updates.note_acks(&update.acks);
        let result = self.process(ctx, route, &update);
        match result {
            Ok(()) => {
                self.heard = ctx.now;
                self.on_data(ctx);
            }
            // It can be repeated by anybody who saw it.
            Err(_) => self.updates.note_refused(digest),
        }
        self.review_paths(ctx);
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
        self.check_locators(ctx, route, update)?;
        let is_news = self.updates.is_news(id);
        let params = if is_request { self.answer(ctx, route, id, update)? } else { Some(vec![]) };
        self.take_locators(ctx, update, is_news);
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
        if updates.is_news(id) {
            updates.peer_next = id.wrapping_add(1);
        }
        updates.answered.insert(id, answer);
        let next = updates.peer_next;
        updates.answered.retain(|id, _| (0..=WINDOW).contains(&(next.wrapping_sub(*id) as i32)));
    }

    /// The peer has our UPDATE number `n` of those pending. Whether this one was the answer to it.
    fn acknowledged(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        update: &Update,
        n: usize,
    ) -> Result<bool, DropReason> {
        let Pending { route: asked, sent, tries, .. } = self.updates.pending[n];
        // An answer that came elsewhere, or after long darkness, does not tell what answers take.
        let timely = asked == route && tries <= ctx.config.retries;
        let is_answer = match &self.updates.pending[n].what {
            What::Answer { inbound, nonce, route: claimed, .. }
            | What::Check { inbound, nonce, route: claimed } => {
                if !update.echo_responses.contains(nonce) {
                    return Err(DropReason::Proposal);
                }
                let (inbound, claimed) = (*inbound, *claimed);
                match self.updates.pending.remove(n).what {
                    What::Answer { rekeyed: true, strayed: true, .. } => {}
                    What::Answer { strayed: true, .. } => self.ask_for_proof(ctx, inbound, route),
                    // New keys are asked for by any path: that moves none.
                    What::Answer { rekeyed: true, .. } if !self.leads(inbound, claimed) => {}
                    _ => self.reached(ctx, inbound, claimed),
                }
                false
            }
            What::Request { request: Request::Remove { inbound }, .. } => {
                let inbound = *inbound;
                self.updates.pending.remove(n);
                self.remove_path(ctx, inbound);
                return Ok(false);
            }
            What::Request { request: Request::Announce, .. } => {
                self.updates.pending.remove(n);
                false
            }
            What::Request { .. } => {
                let info = self.check_answer(update, n)?;
                let pending = self.updates.pending.remove(n);
                if let What::Request { request, inbound, dh, index, .. } = pending.what {
                    // Both ends' indices count (RFC 7402 §6.9); ours, as it was when we asked.
                    let index = if dh.is_some() { 0 } else { index }.max(info.keymat_index.into());
                    let info = EspInfo { keymat_index: index as u16, ..info };
                    self.complete(ctx, request, inbound, dh, info, update)?;
                }
                true
            }
        };
        if timely {
            self.answered(ctx.now, asked, sent);
        }
        Ok(is_answer)
    }

    /// ESP_INFO of an answer to the request number `n`: with an SPI that is not reserved, a Diffie-Hellman value if and
    /// only if we sent one, and our nonce, which nobody knows who did not get the request.
    fn check_answer(&self, update: &Update, n: usize) -> Result<EspInfo, DropReason> {
        let info = update.esp_info.filter(|info| is_usable(info.new_spi)).ok_or(DropReason::Proposal)?;
        let fits = match &self.updates.pending[n].what {
            What::Request { dh, nonce, .. } => {
                let is_there = |nonce: &Vec<u8>| update.echo_responses.contains(nonce);
                dh.is_some() == update.dh.is_some() && nonce.as_ref().is_none_or(is_there)
            }
            What::Answer { .. } | What::Check { .. } => false,
        };
        fits.then_some(info).ok_or(DropReason::Proposal)
    }

    /// The answer to our request is here, wherever it came from: the peer is where the request went.
    fn complete(
        &mut self,
        ctx: &mut Context<'_>,
        request: Request,
        inbound: u32,
        dh: Option<DhKey>,
        info: EspInfo,
        update: &Update,
    ) -> Result<(), DropReason> {
        match request {
            Request::Move { route, .. } => self.reached(ctx, inbound, route),
            Request::Add(route) => self.complete_add(ctx, route, inbound, info)?,
            Request::Rekey { inbound: old, .. } => {
                if let (Some(key), Some(peer)) = (&dh, &update.dh) {
                    self.renew_keymat(ctx, key, peer).inspect_err(|_| {
                        ctx.spis.remove(&inbound);
                    })?;
                }
                self.replace(ctx, old, inbound, info, true)?;
            }
            Request::Remove { .. } | Request::Announce => {}
        }
        Ok(())
    }

    /// Installs the SA pair of a new path, with the keys at the index that `info` has, on which both ends agreed.
    pub(super) fn install_new(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        inbound: u32,
        info: EspInfo,
        reachable: bool,
        confirmed: bool,
    ) -> Result<(), DropReason> {
        self.locators.meet(route.remote.ip());
        let path = Path::new(route, inbound, info.new_spi, reachable, round_trip(&self.paths, route));
        self.draw_and_install(ctx, path, info, None, confirmed)
    }

    fn draw_and_install(
        &mut self,
        ctx: &mut Context<'_>,
        path: Path,
        info: EspInfo,
        replaces: Option<u32>,
        confirmed: bool,
    ) -> Result<(), DropReason> {
        let session = self.session.as_mut().ok_or(DropReason::State)?;
        let Ok(keys) = session.draw(info.keymat_index.into(), ctx.identity) else {
            ctx.spis.remove(&path.inbound);
            return Err(DropReason::Crypto);
        };
        self.install(ctx, path, keys, replaces, confirmed);
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
        let before = self.paths[n].clone();
        let mut former = before.former.clone();
        former.drain(..former.len().saturating_sub(MOST_FORMER - 1));
        former.push(before.outbound);
        let path = Path { inbound, outbound: info.new_spi, former, ..before };
        self.draw_and_install(ctx, path, info, Some(old), confirmed)?;
        // The new path takes the place of the old one, which stays until data comes on it.
        let path = self.paths.swap_remove(n);
        self.locators.rename(path.outbound, info.new_spi);
        self.updates.rename(old, inbound);
        self.updates.retired.push(Retired { by: inbound, path, until: None });
        Ok(())
    }

    /// New key material from a new exchange, with the salt of the first (RFC 7402 §6.9).
    fn renew_keymat(
        &mut self,
        ctx: &mut Context<'_>,
        key: &DhKey,
        peer: &DiffieHellman,
    ) -> Result<(), DropReason> {
        let session = self.session.as_mut().ok_or(DropReason::State)?;
        if peer.group != key.group() as u8 {
            return Err(DropReason::Proposal);
        }
        let kij = ctx.agree(key, &peer.public).map_err(|_| DropReason::Crypto)?;
        let (i, j) = &session.salt;
        session.keymat = Keymat::new(session.hash, &kij, i, j, ctx.identity.hit(), self.peer);
        session.begin_keymat();
        Ok(())
    }

    /// Whether the path with that inbound SPI leads there.
    fn leads(&self, inbound: u32, route: Route) -> bool {
        self.paths.iter().any(|p| p.inbound == inbound && p.route == route)
    }

    /// The peer is on that path at `route` if it returns what is sent there, and there alone.
    pub(super) fn ask_for_proof(&mut self, ctx: &mut Context<'_>, inbound: u32, route: Route) {
        self.updates.drop_proofs(inbound);
        let nonce = ctx.random.vec(16);
        let params = vec![Param::EchoRequestSigned(nonce.clone())];
        let what = What::Answer { inbound, nonce, route, rekeyed: false, strayed: false };
        // Without a proof the path is given up when the last retransmission is over.
        let _ = self.send_update(ctx, route, params, what);
    }

    pub(super) fn reached(&mut self, ctx: &mut Context<'_>, inbound: u32, route: Route) {
        let Some(path) = self.paths.iter_mut().find(|p| p.inbound == inbound) else { return };
        path.route = route;
        (path.reachable, path.withdrawn, path.withdrawn_at, path.next_check) = (true, false, None, ctx.now);
        self.locators.verified(route.remote.ip());
        if self.paths.first().is_some_and(|p| p.inbound == inbound) {
            self.routes = vec![route];
        }
        ctx.event(self.peer, Event::Reachable { inbound, route });
    }

    /// The path is gone, or both ends asked for new keys of it at once, and the peer's request went first: ours has got
    /// what it wanted, and names an SPI that is no more.
    fn forget_rekey(&mut self, ctx: &mut Context<'_>, old: u32) {
        self.updates.waiting.retain(|request| !request.rekeys(old));
        let ours = |p: &Pending| p.request().is_some_and(|request| request.rekeys(old));
        let Some(n) = self.updates.pending.iter().position(ours) else { return };
        if let What::Request { inbound, .. } = self.updates.pending.remove(n).what {
            ctx.spis.remove(&inbound);
        }
    }
}

fn public(key: &DhKey) -> Param {
    Param::DiffieHellman(DiffieHellman { group: key.group() as u8, public: key.public().to_vec() })
}
